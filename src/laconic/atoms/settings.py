"""What a digest of atoms can be told."""

from __future__ import annotations

from dataclasses import dataclass

from laconic.atoms.reference import CAP, TOLERANCE
from laconic.checks import require_at_least, require_positive, require_whole
from laconic.errors import InputError

#: ‖φ(x) − φ(x̂)‖² of a point as it is rounded for its upload is at most this part of λ.
POINT_ROUNDING = 1e-3
#: |y − ŷ| of a reward as it is rounded for its upload is at most this part of √λ.
REWARD_ROUNDING = 1e-2


@dataclass(frozen=True)
class Recipe:
    """The aims and the effort of a digest; the defaults are those that the measurements used.

    Args:
        tolerance: Part of k(x, x) that the server's reference dictionary may leave of any point, above 0. Raising it
            makes the dictionary smaller and the certificate weaker.
        cap: Points of the reference dictionary at most, from 1. Where more are needed, points are sent as they are.
        kappa: Mean inflation of the variance that is aimed at, at least 1. Raising it takes fewer atoms: less is sent,
            and less is known.
        beta: How far the exact mean may lie from the atoms' span, above 0, in units of range. Raising it takes fewer
            atoms.
        e_hi: How much too sure of itself a client may be, above 0: variances are at most 1 + e_hi times too small.
            Raising it takes fewer atoms.
        headroom: Part of e_hi that is left for the rounding of weights, from 0 up to e_hi.
        most: Atoms at most, in multiples of d_eff, at least 1. Raising it allows larger versions.
        share: Atoms at most, as a part of all observations, at least 0. Where more are needed, points are sent as they
            are.
        pool: Random points among which new atoms are looked for, from 1. Raising it takes longer and finds better ones.
        batch: New atoms at a time, as a part of those that there are, above 0. Raising it is quicker and takes more
            atoms.
        alike: Largest cos² between two new atoms of one batch, above 0. Raising it lets more alike ones in.
        drop: An atom of less than this part of the mean importance is dropped, from 0 to 1. Raising it drops more.
        first: Steps of the weights to begin with, from 1. Raising it takes longer and weighs better.
        more: Steps of the weights after each batch, from 1. Raising it takes longer and weighs better.
        step: Step of the mean's coefficients, above 0, in units of range. Raising it sends less and rounds more.
        range: Largest usual size of a reward, above 0. It is a scale and not a bound.
    """

    tolerance: float = TOLERANCE
    cap: int = CAP
    kappa: float = 1.15
    beta: float = 0.1
    e_hi: float = 1.0
    headroom: float = 0.07
    most: float = 4.0
    share: float = 0.5
    pool: int = 1500
    batch: float = 1 / 24
    alike: float = 0.1
    drop: float = 0.2
    first: int = 4
    more: int = 2
    step: float = 0.03
    range: float = 1.0

    def __post_init__(self) -> None:
        for name in ("tolerance", "beta", "e_hi", "pool", "batch", "alike", "step", "range"):
            require_positive(name, getattr(self, name))
        for name in ("cap", "pool", "first", "more"):
            require_whole(name, getattr(self, name), least=1)
        for name in ("headroom", "drop", "share"):
            require_at_least(name, getattr(self, name), least=0)
        require_at_least("kappa", self.kappa, least=1)
        require_at_least("most", self.most, least=1)
        if self.headroom >= self.e_hi or self.drop >= 1:
            raise InputError(f"headroom must be below e_hi and drop below 1, got {self.headroom!r} and {self.drop!r}")

    @property
    def quantum(self) -> float:
        """Δ, the step of the mean's coefficients."""
        return self.step * self.range
