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
        tolerance: Part of k(x, x) that the server's reference dictionary may leave of any point, above 0 and below 1;
            it leaves less where k(x, x) is large beside what tells points apart, or beside λ. Raising it makes the
            dictionary smaller and the certificate weaker.
        cap: Points of the reference dictionary at most, from 1. Where more are needed, points are sent as they are.
            Raising it allows atoms for more varied points, and takes more of the server's memory and time.
        kappa: Mean inflation of the variance that is aimed at, at least 1. Raising it takes fewer atoms: less is sent,
            and less is known.
        beta: How far the mean that is sent may be from the exact one, above 0, in units of range: by beta·range·σ(x) at
            a point x. It is an aim. Raising it takes fewer atoms.
        e_hi: How much too sure of itself a client may be, above 0: variances are at most 1 + e_hi times too small,
            beside those of all points as far as the reference dictionary and the atoms express these. Raising it takes
            fewer atoms.
        headroom: How much of e_hi is left for the rounding of weights, at least 0 and below e_hi. Raising it takes more
            atoms; where there is too little, weights are lowered once they are rounded, and variances are larger than
            kappa aims at.
        most: Atoms at most, in multiples of d_eff, at least 1. Raising it allows larger versions.
        share: Atoms at most, as a part of all observations, from 0: 0 never sends atoms, 1 sets no limit. Where
            more are needed, points are sent as they are. Raising it sends atoms in more cases.
        pool: Random points among which new atoms are looked for, from 1. Raising it takes longer and finds better ones.
        batch: New atoms at a time, as a part of those that there are, above 0; two come at least. Raising it is quicker
            and takes more atoms.
        alike: Largest cos² between two new atoms of one batch, above 0; 1 lets all in. Raising it lets more alike ones
            in.
        drop: An atom of less than this part of the mean importance is dropped, at least 0 and below 1. Raising it drops
            more.
        first: Steps of the weights to begin with, from 1. Raising it takes longer and weighs better.
        more: Steps of the weights after each batch, from 1. Raising it takes longer and weighs better.
        step: Step of the mean's coefficients, above 0, in units of range. Raising it sends less and rounds more.
        range: Largest usual size of a reward, above 0. It is a scale and not a bound. LaconicUCB puts its reward here,
            and refuses any other value but 1. Raising it makes the steps of the mean coarser and the aim beta looser:
            less is sent.
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
        for name, most in (("headroom", self.e_hi), ("drop", 1), ("tolerance", 1)):
            if getattr(self, name) >= most:
                raise InputError(f"{name} must be below {most:g}, not {getattr(self, name)!r}; try {name}={most / 2:g}")

    @property
    def quantum(self) -> float:
        """Δ, the step of the mean's coefficients."""
        return self.step * self.range
