"""The median heuristic: a kernel that is about as wide as points are apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from laconic.arrays import Floats
from laconic.errors import InputError
from laconic.kernels import Gaussian, Kernel, Matern, RationalQuadratic


def median_distance(X: Floats) -> float:
    """The median of the distances between different points of a sample."""
    from scipy.spatial.distance import pdist

    distances = pdist(X)
    apart = distances[distances > 0]
    if not len(apart):
        raise InputError(f"all {len(X)} points are the same, so no kernel has a scale; try points that differ")
    return float(np.median(apart))


def at_scale(kernel: Kernel, distance: float) -> Kernel:
    """The kernel with k = 1/e (Gaussian: γ = 1/distance²) or about that at the distance; others as they are.

    >>> at_scale(Gaussian(), 2.0)
    Gaussian(gamma=0.25)
    """
    if isinstance(kernel, Gaussian):
        return Gaussian(distance**-2.0)
    if isinstance(kernel, Matern | RationalQuadratic):
        return replace(kernel, length=distance)
    return kernel
