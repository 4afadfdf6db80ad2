"""α from the noise where rewards are good: how much of what is not known an index should add."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky, solve_lower

#: An index adds so many standard deviations of what the model does not know.
DEVIATIONS = 2.0
#: The noise that matters is that of the best part of the points.
BEST = 0.25
#: It is taken for at least, and at most, this part of the noise of all points.
FEWEST, MOST = 0.05, 1.5


def weight(noise: Noise) -> float:
    """α = 2·noise at the best points: what the model does not know has a deviation of noise·σ."""
    return DEVIATIONS * min(max(noise.best, FEWEST * noise.all), MOST * noise.all)


@dataclass(frozen=True)
class Noise:
    """The standard deviation of noise at all points of a sample, and at the quarter that the model thinks best."""

    all: float
    best: float

    @classmethod
    def of(cls, kernel: Kernel, X: Floats, y: Floats, *, lam: float) -> Noise:
        """From residuals: one has s² times its variance in units of s², and noise has s²λ.

        Each point is predicted from all others, so that its own noise does not make it look good.
        """
        residuals, variances = left_out(kernel, X, y, lam=lam)
        mean, squares = y - residuals, lam * residuals**2 / variances
        best = mean >= np.quantile(mean, 1.0 - BEST)
        return cls(math.sqrt(squares.mean()), best=math.sqrt(squares[best].mean()))


def left_out(kernel: Kernel, X: Floats, y: Floats, *, lam: float) -> tuple[Floats, Floats]:
    """Each reward less its prediction from all others, and that prediction's variance in units of s².

    With A = K + λI these are (A⁻¹y)_i / (A⁻¹)_ii and 1 / (A⁻¹)_ii.
    """
    rows = solve_lower(lower_cholesky(kernel(X, X) + lam * np.eye(len(X))), np.eye(len(X)))
    precision = np.einsum("ij,ij->j", rows, rows)
    return np.asarray((rows @ y) @ rows / precision), np.asarray(1.0 / precision)
