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
class Atoms:
    """The aims and the effort of a digest; the defaults are those that the measurements used."""

    tolerance: float = TOLERANCE  # R expresses all but this part of every point
    cap: int = CAP  # points of R; where more are needed atoms do not pay
    kappa: float = 1.15  # the mean inflation of the variance that is aimed at
    beta: float = 0.1  # how far, in the norm of G + λI, the exact mean may lie from the atoms' span, in units of range
    e_hi: float = 1.0  # V̂ ≼ (1 + e_hi)V
    headroom: float = 0.07  # of it left for the rounding of weights
    most: float = 4.0  # atoms are at most this many times d_eff
    share: float = 0.5  # atoms that are more than this part of the observations do not pay
    pool: int = 1500  # random rows among which new atoms are looked for
    batch: float = 1 / 24  # new atoms at a time, as a part of those there are
    alike: float = 0.1  # new atoms of one batch have cos² below this
    drop: float = 0.2  # an atom of less than this part of the mean importance is dropped
    first: int = 4  # steps of the weights to begin with
    more: int = 2  # and after each batch
    step: float = 0.03  # of the mean's coefficients, in units of the rewards' range
    range: float = 1.0  # the largest |y| expected, a scale and not a bound

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
