"""Thompson sampling: an arm with the probability with which it is the best, given what is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack
from scipy.special import log_ndtr, ndtri_exp

from laconic.arrays import Floats, Ints
from laconic.checks import require_flag
from laconic.errors import InputError
from laconic.exploration.greatest import greatest
from laconic.exploration.shown import Chance, Choice, Shown

#: Added to the covariance, relative to its largest variance: points that the belief cannot tell apart are told apart by
#: the draw, and the root of the covariance is the same to many digits however it was computed. More where that is not
#: enough, as in single precision.
NUGGETS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
#: So many draws estimate a probability.
ESTIMATED_BY = 256


@dataclass(frozen=True)
class Thompson:
    """The best arm of a draw from N(μ, α²Σ), Σ the joint covariance of the arms shown.

    With α = √λ these are draws from the posterior of a Gaussian process whose noise has the variance λ.

    Args:
        joint: True: arms are drawn together, from their joint covariance. False: each by itself, which is quicker and
            knows nothing of what arms have in common.
    """

    joint: bool = True

    equation: ClassVar[str] = "argmax of a draw from N(μ, α²Σ); from N(μ, α²σ²) of each arm where joint=False"

    def __post_init__(self) -> None:
        require_flag("joint", self.joint)

    def choose(self, shown: Shown, /) -> Choice:
        if not shown.width.any():
            return greatest(shown, shown.mean, shown.width)
        first, repeats = np.unique(shown.same, return_index=True, return_counts=True)[1:]
        mean, covariance = shown.mean[first], self._covariance(shown, first)
        random = shown.random()
        best = int(np.argmax(mean + root(covariance) @ random.standard_normal(len(first))))
        arms = np.flatnonzero(shown.same == best)
        arm = arms[0] if len(arms) == 1 else arms[random.integers(len(arms))]

        same, draws = shown.same, shown.draws  # a decision may wait for long, and all that is shown takes memory

        def chance(each: int) -> Chance:
            point = int(same[each])
            return _shared(best_chance(mean, covariance, point, random=draws.estimating()), among=int(repeats[point]))

        return Choice(int(arm), chance)

    def _covariance(self, shown: Shown, first: Ints) -> Floats:
        covariance = shown.joint().copy() if self.joint else np.diag(shown.width[first] ** 2)
        covariance.flat[:: len(covariance) + 1] += NUGGETS[0] * covariance.diagonal().max()
        return covariance


def _shared(chance: Chance, *, among: int) -> Chance:
    """The chance of one of several arms that are the same point."""
    return Chance(chance.value / among, chance.error / among)


def root(covariance: Floats) -> Floats:
    """The lower triangular root, which is unique, of a covariance that rounding may have left slightly indefinite."""
    scale = float(covariance.diagonal().max())
    upper, failed = lapack.dpotrf(covariance.T, lower=0, clean=1)
    for nugget in NUGGETS:
        if not failed:
            break
        upper, failed = lapack.dpotrf(covariance.T + nugget * scale * np.eye(len(covariance)), lower=0, clean=1)
    if failed:
        raise InputError("the covariance of the arms is not positive definite; try a larger lam, or joint=False")
    return np.asarray(upper.T)


def best_chance(mean: Floats, covariance: Floats, arm: int, *, random: np.random.Generator) -> Chance:
    """P(x_arm is the largest) for x ~ N(mean, covariance), by sequential sampling of the differences d_j = x_j − x_arm.

    With LLᵀ = cov(d) and d = m + Le, e_1, e_2, … are drawn in turn from the normal law cut off where d_j ≤ 0 holds, and
    the product of what was left of it each time has the expectation P(d ≤ 0) (Geweke, Hajivassiliou and Keane). Never
    zero, however rare the arm.
    """
    others = np.flatnonzero(np.arange(len(mean)) != arm)
    if len(others) == 0:
        return Chance(1.0)
    m = mean[others] - mean[arm]
    own = covariance[arm, others]
    cov = covariance[np.ix_(others, others)] - own - own[:, None] + covariance[arm, arm]
    demands = -m / np.sqrt(cov.diagonal())  # rounded, so that last bits do not decide among equals
    order = np.argsort(np.round(demands, 6), kind="stable")  # the most demanding first, for a small variance
    m, L = m[order], root(cov[np.ix_(order, order)])
    e, log_left = np.empty((len(m), ESTIMATED_BY)), np.zeros(ESTIMATED_BY)
    log_uniform = -np.maximum(random.standard_exponential((len(m), ESTIMATED_BY)), 1e-16)  # 1 would be beyond any e
    for j, row in enumerate(L):
        log_part = log_ndtr((-m[j] - row[:j] @ e[:j]) / row[j])
        e[j] = ndtri_exp(log_uniform[j] + log_part)
        log_left += log_part
    left = np.exp(log_left)
    return Chance(float(left.mean()), float(left.std(ddof=1)) / math.sqrt(ESTIMATED_BY))
