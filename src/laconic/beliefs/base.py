"""What every belief offers, and what it says of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from laconic.arrays import Floats

#: Of fewer entries than this, squares are summed the plain way, which begins sooner.
SMALL = 2048


@dataclass(frozen=True, eq=False)
class View:
    """What a belief says of m points: enough to predict them and to condition on them.

    ``signal`` is the variance that data on these points would reduce; ``residual`` is what a Nyström belief adds for
    the part of a point that its dictionary cannot express.
    """

    points: Floats  # (m, d)
    features: Floats  # (p, m)
    mean: Floats  # (m,)
    signal: Floats  # (m,)
    residual: Floats  # (m,)

    @property
    def variance(self) -> Floats:
        """σ² of each point under the belief alone."""
        return self.signal + self.residual

    def at(self, index: int) -> View:
        """The view of one of the points."""
        one = slice(index, index + 1)
        return View(
            points=self.points[one],
            features=np.ascontiguousarray(self.features[:, one]),
            mean=self.mean[one],
            signal=self.signal[one],
            residual=self.residual[one],
        )


class Belief(Protocol):
    """What every belief offers to tails, triggers and phases."""

    @property
    def dim(self) -> int:
        """The number of features of a point."""
        ...

    @property
    def lam(self) -> float:
        """The ridge λ."""
        ...

    @property
    def rank(self) -> int | None:
        """The number of coordinates of a finite belief; None where every point adds one."""
        ...

    @property
    def dictionary_size(self) -> int | None:
        """|S| for beliefs that have a dictionary."""
        ...

    @property
    def information(self) -> float:
        """ln det(I + K_DD/λ), or an upper bound of it."""
        ...

    def view(self, X: Floats) -> View:
        """What the belief says of the rows of X."""
        ...

    def covariance(self, a: View, b: View) -> Floats:
        """The covariance, in units of λ, of the points of two views."""
        ...

    def arrays(self) -> dict[str, Floats]:
        """All that was learnt, as named arrays from which `restored` makes the belief again."""
        ...


def column_squares(V: Floats) -> Floats:
    """‖v‖² of each column, summed in float64 whatever V is stored in."""
    if V.size < SMALL:
        return np.asarray((V * V).sum(axis=0, dtype=np.float64))
    return np.asarray(np.einsum("ij,ij->j", V, V, dtype=np.float64))


def weighted(weights: Floats, V: Floats) -> Floats:
    """weights · v of each column, in the precision of V."""
    return np.asarray(weights.astype(V.dtype, copy=False) @ V, dtype=np.float64)
