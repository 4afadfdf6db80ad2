"""Which atoms are in the dictionary: those that the ones before them do not express."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Bools, Floats
from laconic.linalg import lower_cholesky

#: An atom is in the dictionary when those before it leave more than this part of its k(x, x).
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Spanning:
    """The dictionary of some atoms."""

    which: Bools  # (m,) the atoms that are in it
    root: Floats  # (p, p) the Cholesky root of its kernel matrix

    @property
    def every(self) -> bool:
        """Whether all atoms are in it."""
        return len(self.root) == len(self.which)


def independent(K: Floats) -> Spanning:
    """The rows of a kernel matrix whose Cholesky pivots, in their order, are above `RANK_TOLERANCE` of the diagonal."""
    factor, failed = lapack.dpotrf(K.T, lower=0, clean=1)
    if not failed and (np.diagonal(factor) ** 2 > RANK_TOLERANCE * np.diagonal(K)).all():
        return Spanning(np.ones(len(K), dtype=np.bool_), factor.T)
    which = _one_by_one(K)
    return Spanning(which, lower_cholesky(K[np.ix_(which, which)]))


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
