"""Which atoms are in the dictionary: as many as span all of them, those first that the others express least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Bools, Floats
from laconic.leverage import RANK_TOLERANCE
from laconic.linalg import lower_cholesky, pivoted_cholesky


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
    """Rows of a kernel matrix of full rank, which leave no more than `RANK_TOLERANCE` of the diagonal of the others.

    All rows, where each has a pivot above that in their own order. Otherwise rows are chosen by the largest residual:
    in their own order rounding is divided by small pivots again and again, until it looks like another direction.
    """
    diagonal = np.diagonal(K)
    factor, failed = lapack.dpotrf(K.T, lower=0, clean=1)
    if not failed and (np.diagonal(factor) ** 2 > RANK_TOLERANCE * diagonal).all():
        return Spanning(np.ones(len(K), dtype=np.bool_), factor.T)
    which = np.zeros(len(K), dtype=np.bool_)
    which[pivoted_cholesky(lambda j: K[j], diagonal, tolerance=RANK_TOLERANCE * diagonal)] = True
    return Spanning(which, lower_cholesky(K[np.ix_(which, which)]))
