"""What a digest's certificates said in a run: one entry for each version, and how often points went as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.arrays import Floats, Ints

if TYPE_CHECKING:
    from laconic.runtimes.trace import Download

#: The quantities of a version, in the order of its columns, and the type of each.
QUANTITIES: dict[str, type[Any]] = {
    "number": np.int64,
    "length": np.int64,
    "atoms": np.int64,
    "raw": np.int64,
    "d_eff": np.float64,
    "e_lo": np.float64,
    "e_hi": np.float64,
    "kappa": np.float64,
    "beta": np.float64,
}
#: What a row says of them, in the order of its columns.
SUMMARY = ("versions", "atoms", "d_eff", "kappa", "kappa_max", "e_hi", "beta", "fallbacks", "fallback_reasons")


@dataclass(frozen=True, eq=False)
class Certified:
    """The versions of a run that say what they are worth, in order; all arrays have one entry for each version.

    Attributes:
        number: Number of the version, from 1.
        length: Observations of all clients that it has.
        atoms: How many atoms it has; 0 where no client was sent atoms.
        raw: How many clients were sent points as they are instead.
        d_eff: Effective dimension of the observations that it has, above 0.
        e_lo: Variances are at most 1/(1 + e_lo) times too large; 0 without atoms.
        e_hi: Variances are at most 1 + e_hi times too small; 0 without atoms.
        kappa: Variances are this many times too large on average, at the points observed; 1 without atoms.
        beta: The mean that was sent is within beta·σ(x) of the exact one at every x, before rounding and but for what
            the reference dictionary leaves of points; in units of rewards. It is 0 without atoms.
        reasons: Why points went as they are, and how often.
    """

    number: Ints
    length: Ints
    atoms: Ints
    raw: Ints
    d_eff: Floats
    e_lo: Floats
    e_hi: Floats
    kappa: Floats
    beta: Floats
    reasons: dict[str, int]

    @classmethod
    def of(cls, downloads: Iterable[Download]) -> Certified:
        """What clients were sent, by version; a digest that says nothing of itself leaves nothing."""
        told = [each for each in downloads if each.d_eff > 0]
        best: dict[int, Download] = {}
        for each in told:
            known = best.get(each.version)
            best[each.version] = each if known is None or (known.raw and not each.raw) else known
        raw = Counter(each.version for each in told if each.raw)
        found = [best[number] for number in sorted(best)]
        columns: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in found] for name in QUANTITIES if name != "number"
        }
        columns |= {"number": sorted(best), "raw": [raw[number] for number in sorted(best)]}
        arrays = {name: np.array(columns[name], dtype=kind) for name, kind in QUANTITIES.items()}
        return cls(**arrays, reasons=dict(Counter(each.why for each in told if each.raw)))

    def __len__(self) -> int:
        return len(self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certified) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def summary(self) -> dict[str, Any]:
        """The figures of a row; None where there is nothing of the kind."""
        if len(self) == 0:
            return dict.fromkeys(SUMMARY)
        figures: dict[str, Any] = {"versions": len(self), "d_eff": float(self.d_eff[-1])}
        compressed = self.atoms > 0
        if compressed.any():
            kappa, e_hi, beta = (each[compressed] for each in (self.kappa, self.e_hi, self.beta))
            figures |= {"atoms": int(self.atoms[compressed][-1]), "kappa": float(kappa.mean())}
            figures |= {"kappa_max": float(kappa.max()), "e_hi": float(e_hi.max()), "beta": float(beta.max())}
        figures |= {"fallbacks": int(self.raw.sum()), "fallback_reasons": self.reasons}
        return {name: figures.get(name) for name in SUMMARY}
