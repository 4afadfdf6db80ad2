"""α from the noise where rewards are good: how much of what is not known an index should add."""

from __future__ import annotations

import math

import numpy as np

from laconic.arrays import Floats
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky, solve_lower

#: An index adds so many standard deviations of what the model does not know.
DEVIATIONS = 2.0
#: The noise that matters is that of the best part of the points.
BEST = 0.25
#: Residuals there are taken for at least, and at most, this part of the noise of all points.
FEWEST, MOST = 0.05, 1.5


def weight(kernel: Kernel, X: Floats, y: Floats, *, lam: float, signal: float) -> float:
    """α = 2 s√λ·ρ: the posterior's deviation is s√λ·σ, and ρ is how much noisier the best quarter of points is."""
    ratio = noise_ratio(kernel, X, y, lam=lam, signal=signal)
    return DEVIATIONS * signal * math.sqrt(lam) * min(max(ratio, FEWEST), MOST)


def noise_ratio(kernel: Kernel, X: Floats, y: Floats, *, lam: float, signal: float) -> float:
    """The size of residuals, relative to what the model expects, at the quarter of points that it thinks best.

    Each point is predicted from all others, so that its own noise does not make it look good.
    """
    residuals, variances = left_out(kernel, X, y, lam=lam)
    mean = y - residuals
    best = mean >= np.quantile(mean, 1.0 - BEST)
    return float(np.sqrt(np.mean(residuals[best] ** 2 / variances[best]))) / signal


def left_out(kernel: Kernel, X: Floats, y: Floats, *, lam: float) -> tuple[Floats, Floats]:
    """Each reward less its prediction from all others, and that prediction's variance in units of s².

    With A = K + λI these are (A⁻¹y)_i / (A⁻¹)_ii and 1 / (A⁻¹)_ii.
    """
    rows = solve_lower(lower_cholesky(kernel(X, X) + lam * np.eye(len(X))), np.eye(len(X)))
    precision = np.einsum("ij,ij->j", rows, rows)
    return np.asarray((rows @ y) @ rows / precision), np.asarray(1.0 / precision)
