"""What one more point teaches when so many are known: learnt from a sample, and carried on beyond it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky

#: Variances are averaged over sizes that differ by no more than this factor.
BIN = 1.3
#: A point of which a dictionary lacks no more than this is dropped from it.
THINNED = 1e-10


@dataclass(frozen=True, eq=False)
class Curve:
    """σ² of a new point by the number of points known, the spectrum of the kernel, and how often points return."""

    lam: float
    sizes: Floats  # ln(1 + n)
    variances: Floats  # ln σ² there
    spectrum: Floats  # eigenvalues of K/m, largest first, m the size of the sample
    population: float  # how many different points there seem to be

    @classmethod
    def of(cls, kernel: Kernel, X: Floats, *, lam: float) -> Curve:
        """From one factor: a pivot of K + λI is λ(1 + σ²) of its point given those before it."""
        m = len(X)
        K = kernel(X, X)
        pivots = np.square(np.diagonal(lower_cholesky(K + lam * np.eye(m)))) / lam - 1.0
        sizes, variances = _binned(np.maximum(pivots, 1e-12))
        spectrum = np.maximum(np.linalg.eigvalsh(K / m)[::-1], 0.0)
        return cls(lam, sizes=sizes, variances=variances, spectrum=spectrum, population=population(X))

    def variance(self, n: float) -> float:
        """σ² of a new point when n are known; beyond the sample it falls as the spectrum says."""
        known = min(n, math.expm1(self.sizes[-1]))
        at = math.exp(float(np.interp(math.log1p(known), self.sizes, self.variances)))
        return at if n <= known else at * self._spectral(n) / self._spectral(known)

    def _spectral(self, n: float) -> float:
        """Σ κ/(nκ + λ) over the spectrum."""
        return float((self.spectrum / (n * self.spectrum + self.lam)).sum())

    def dimension(self, n: float) -> float:
        """d_eff of n points: the sum of their leverages σ²/(1 + σ²), each given all others."""
        variance = self.variance(n)
        return n * variance / (1.0 + variance)

    @property
    def effective(self) -> float:
        """The effective dimension tr K(K + λI)⁻¹ of the sample itself."""
        known = len(self.spectrum) * self.spectrum
        return float((known / (known + self.lam)).sum())

    @property
    def rank(self) -> float:
        """The most points that a dictionary holds after thinning; without a limit where the sample shows none."""
        known = int((len(self.spectrum) * self.spectrum > THINNED).sum())
        return float(known) if known < len(self.spectrum) else math.inf

    def missed(self, size: float) -> float:
        """σ² that a dictionary of this many random points leaves of a new point on average."""
        return self.variance(size) * max(1.0 - size / self.population, 0.0)

    def distinct(self, n: float) -> float:
        """How many different points n points are."""
        return -self.population * math.expm1(-n / self.population)


def population(X: Floats) -> float:
    """How many different points there are to be met, from those that a sample met once and twice (Chao 1984).

    >>> population(np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]]))
    2.0
    """
    _, counts = np.unique(X, axis=0, return_counts=True)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return len(counts) + once * (once - 1) / (2.0 * (twice + 1))


def _binned(values: Floats) -> tuple[Floats, Floats]:
    """Means of ln(1 + n) and of the values, as logarithms, in bins that widen."""
    edges = np.unique(np.floor(BIN ** np.arange(math.ceil(math.log(len(values), BIN)) + 1)).astype(int) - 1)
    starts = edges[edges < len(values)]
    counts = np.diff([*starts, len(values)])
    sizes = np.add.reduceat(np.log1p(np.arange(len(values))), starts) / counts
    return np.asarray(sizes), np.log(np.add.reduceat(values, starts) / counts)
