"""Which atoms are in the dictionary: those that the ones before them do not express."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Bools, Floats

#: An atom is in the dictionary when those before it leave more than this part of its k(x, x).
RANK_TOLERANCE = 1e-10


def independent(K: Floats) -> Bools:
    """Which rows of a kernel matrix have, in their order, Cholesky pivots above `RANK_TOLERANCE` of their diagonal."""
    diagonal = np.diagonal(K)
    factor, failed = lapack.dpotrf(K.T, lower=0, clean=0)
    if not failed and (np.diagonal(factor) ** 2 > RANK_TOLERANCE * diagonal).all():
        return np.ones(len(K), dtype=np.bool_)
    return _one_by_one(K)


def _one_by_one(K: Floats) -> Bools:
    """The same, a row at a time, leaving out those that are not."""
    residual, threshold = np.diagonal(K).copy(), RANK_TOLERANCE * np.diagonal(K)
    columns, rank = np.empty_like(K), 0
    keep = np.zeros(len(K), dtype=np.bool_)
    for j in range(len(K)):
        if residual[j] > threshold[j]:
            column = (K[j] - columns[:rank, j] @ columns[:rank]) / np.sqrt(residual[j])
            columns[rank], keep[j], rank = column, True, rank + 1
            residual -= column**2
    return keep
