"""Ridge leverage score sampling and the thinning that gives a dictionary full rank."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs.precision import PRECISIONS
from laconic.growing import first_appearances
from laconic.kernels import Kernel
from laconic.linalg import pivoted_cholesky

#: See `laconic.beliefs.Precision`.
RANK_TOLERANCE = PRECISIONS["float64"].rank
#: Up to this many candidates their kernel matrix is computed at once rather than row by row.
WHOLE_UP_TO = 2000


def sample(variance: Floats, *, qbar: float, uniforms: Floats) -> Bools:
    """Which points ridge leverage score sampling keeps: p_s = min(1, q̄ σ̃²(x_s)), one uniform a point (Alg. 3)."""
    if np.isinf(qbar):
        return np.ones(len(variance), dtype=np.bool_)  # also a point without variance
    return np.asarray(uniforms < np.minimum(1.0, qbar * variance))


def distinct(X: Floats) -> Ints:
    """The indices of the first appearance of each distinct row of X."""
    if len(X) == 0:
        return np.empty(0, dtype=np.int64)
    return np.unique(first_appearances(X), return_index=True)[1]


def full_rank(kernel: Kernel, X: Floats, *, tolerance: float = RANK_TOLERANCE) -> Ints:
    """Indices of rows of X that span what all rows span, in the order of a pivoted Cholesky of their kernel matrix.

    A row is dropped when what the others leave of its own k(x, x) is at most ``tolerance`` of it.
    """
    candidates = distinct(X)
    points = X[candidates]
    diagonal = kernel.diag(points)
    whole = kernel(points, points) if len(points) <= WHOLE_UP_TO else None
    pivots = pivoted_cholesky(
        lambda j: kernel(points[j : j + 1], points)[0] if whole is None else whole[j],
        diagonal,
        tolerance=tolerance * diagonal,
    )
    return candidates[np.array(pivots, dtype=np.int64)]
