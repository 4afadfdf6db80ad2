"""Two settings compared seed by seed: what a paired t interval lets one say, and what it leaves open.

Both met the same arms and the same noise on a seed, so it is the differences that are uncertain, not the two means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from laconic.arrays import Floats
from laconic.experiments.results import Group
from laconic.report.table import number

Answer = Literal["holds", "fails", "too close to tell"]

LEVEL = 0.95
FEWEST = 2  # seeds: one has no spread
TEST = (
    "The test is the same for all: of x ≤ c·y the differences x − c·y, one for each seed, have a mean with a paired "
    f"t interval at {LEVEL:.0%}. Below 0 it says that this holds, above 0 that it fails, and across 0 that it is too "
    "close to tell. Of one seed nothing can be told."
)


@dataclass(frozen=True)
class Interval:
    """Where a mean, or a ratio of means, may be."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{LEVEL:.0%}: {number(self.low)} to {number(self.high)}"


def at_most(one: Group, other: Group, *, metric: str, factor: float = 1.0, strictly: bool = False) -> Answer:
    """Whether the one's mean is at most a factor of the other's, or strictly less."""
    mine, theirs = _paired(one, other, metric=metric)
    return _answer(interval(mine - factor * theirs), strictly=strictly)


def nearer(one: Group, to: Group, than: Group, *, metric: str) -> Answer:
    """Whether the one's mean is nearer to one group's than to another's, which is larger: below their middle."""
    mine, low, high = _paired(one, to, than, metric=metric)
    return _answer(interval(mine - (low + high) / 2), strictly=False)


def _answer(difference: Interval, *, strictly: bool) -> Answer:
    if difference.low == difference.high == 0.0:  # the same on every seed
        return "fails" if strictly else "holds"
    return "holds" if difference.high < 0 else "fails" if difference.low > 0 else "too close to tell"


def below(one: Group, bound: float, *, metric: str) -> Answer:
    """Whether the one's mean is below a bound."""
    return _answer(interval(np.array([float(getattr(row, metric)) for row in one.rows]) - bound), strictly=True)


def all_of(answers: Iterable[Answer]) -> Answer:
    """What can be said of several things at once: one that fails is enough, and all have to hold."""
    found = set(answers)
    return "fails" if "fails" in found else "too close to tell" if "too close to tell" in found else "holds"


def interval(values: Floats) -> Interval:
    """The t interval of a mean; without bounds where there are too few values."""
    if len(values) < FEWEST:
        return Interval(-math.inf, math.inf)
    half = _quantile(len(values)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(float(values.mean()) - half, float(values.mean()) + half)


def ratio(one: Group, other: Group, *, metric: str) -> Interval | None:
    """Fieller's interval of the ratio of the two means: all c that `at_most` finds too close to tell.

    None where it has no bounds, as there are too few seeds or the other's mean may be 0.
    """
    mine, theirs = _paired(one, other, metric=metric)
    if len(mine) < FEWEST:
        return None
    # (x̄ − c·ȳ)² ≤ t²·var(x − c·y)/n is a quadratic inequality in c.
    x, y = float(mine.mean()), float(theirs.mean())
    (xx, xy), (_, yy) = np.cov(mine, theirs) * (_quantile(len(mine)) ** 2 / len(mine))
    a, b, c = y * y - yy, x * y - xy, x * x - xx
    if a <= 0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Interval((b - root) / a, (b + root) / a)


def _quantile(n: int) -> float:
    """That of Student's t with n − 1 degrees of freedom which a two-sided interval needs."""
    return float(stdtrit(n - 1, 0.5 + LEVEL / 2))


def _paired(*groups: Group, metric: str) -> list[Floats]:
    """The metric of each group on the seeds that all have, in order of seeds."""
    known = [{row.seed: float(getattr(row, metric)) for row in group.rows} for group in groups]
    seeds = sorted(set[int].intersection(*(set(each) for each in known)))
    return [np.array([each[seed] for seed in seeds]) for each in known]
