"""How far each precision reaches: which numbers it tells apart, and which are too large for it beside λ."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from laconic.arrays import Floats
from laconic.errors import InputError

if TYPE_CHECKING:
    from laconic.beliefs.contract import Belief


@dataclass(frozen=True)
class Precision:
    """What a belief can compute with, by the precision of its features."""

    #: Arms whose index is this close to the best, relative to the largest |μ| + ασ, tie with it.
    tie: float
    #: A point is dropped from a dictionary when what the others leave of it is at most this part of its own k(x, x).
    rank: float
    #: k(x, x)/λ is below this: from there on kernel values are rounded by amounts that count beside λ.
    ratio: float
    #: Rewards, rewards over √λ, and √k(x, x) are below this: the sums of their squares, over as many observations as
    #: there ever are, then neither overflow nor exceed what a message or a snapshot may hold.
    size: float


PRECISIONS = {
    "float64": Precision(tie=1e-10, rank=1e-10, ratio=1e12, size=1e65),
    "float32": Precision(tie=1e-4, rank=1e-5, ratio=1e3, size=1e15),
}


def require_moderate(belief: Belief, X: Floats, y: Floats) -> None:
    """Refuse points X and rewards y beyond the precision of a plan's belief: the same ones wherever they are met."""
    require_moderate_rewards(belief, y)
    precision, lam = belief.precision, belief.lam
    with np.errstate(all="ignore"):  # what overflows is refused here
        prior = float(belief.prior(X).max(initial=0.0))
    if not prior < min(precision.ratio * lam, precision.size**2):
        raise InputError(_too_large(prior, precision=precision, lam=lam))


def require_moderate_rewards(belief: Belief, y: Floats) -> None:
    """Refuse rewards y beyond the precision of a plan's belief."""
    largest = float(np.abs(y).max(initial=0.0))
    most = belief.precision.size * min(1.0, sqrt(belief.lam))
    if not largest < most:
        cause, cure = (f" at lam={belief.lam:g}", "raise lam, or ") if belief.lam < 1.0 else ("", "")
        raise InputError(f"rewards must be below {most:.3g} in size{cause}, got {largest:.3g}; {cure}rescale rewards")


def _too_large(prior: float, *, precision: Precision, lam: float) -> str:
    """Why a k(x, x) is refused, and what to try."""
    if not prior < precision.size**2:
        return f"the kernel gives a point k(x, x) = {prior:.3g}, not below {precision.size**2:.3g}; rescale features"
    enough = f"{10 * prior / precision.ratio:.1g}"
    return (
        f"lam={lam:g} is lost in the rounding of kernel values as large as {prior:.3g}: k(x, x)/lam must be below "
        f"{precision.ratio:g}; try lam={enough} or more{_wider(precision)}, or rescale features"
    )


def _wider(precision: Precision) -> str:
    return ", dtype='float64'" if precision is PRECISIONS["float32"] else ""
