"""The ratio of two means over the same seeds, with an interval that knows that they are paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student


@dataclass(frozen=True)
class Ratio:
    """A ratio of means and its interval of confidence."""

    value: float
    low: float
    high: float


def ratio_of_means(above: Sequence[float], below: Sequence[float], *, level: float = 0.95) -> Ratio:
    """Fieller's interval: the ratios ρ for which the mean of above − ρ·below is not significantly different from zero.

    Squaring n·mean² ≤ q²·variance gives a quadratic inequality in ρ. Without pairs enough it has no bounds.
    """
    x, y = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    value, n = float(x.mean() / y.mean()), len(x)
    if n < 2:
        return Ratio(value, low=-math.inf, high=math.inf)
    (xx, xy), (_, yy) = np.cov(x, y) / n
    q = float(student.ppf((1.0 + level) / 2.0, n - 1)) ** 2
    a, b, c = y.mean() ** 2 - q * yy, x.mean() * y.mean() - q * xy, x.mean() ** 2 - q * xx
    if a <= 0.0:  # the denominator itself may be zero
        return Ratio(value, low=-math.inf, high=math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Ratio(value, low=float((b - root) / a), high=float((b + root) / a))
