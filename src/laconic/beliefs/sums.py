"""Statistics: sums over points in finitely many coordinates, and what tells that something is none."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Floats
from laconic.beliefs.contract import chunks, weighted
from laconic.beliefs.embeddings import Embedding
from laconic.beliefs.reading import whole
from laconic.checks import MOST
from laconic.errors import RemoteProtocolError
from laconic.linalg import ridged


class Sums(Protocol):
    """What statistics have, however they come by it."""

    @property
    def gram(self) -> Floats:
        """G, (r, r)."""
        ...

    @property
    def moment(self) -> Floats:
        """b, (r,)."""
        ...

    @property
    def prior(self) -> float:
        """Σk(x, x)."""
        ...

    @property
    def count(self) -> int:
        """How many points there were."""
        ...

    @property
    def squares(self) -> float:
        """Σy²."""
        ...


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over points in r coordinates; two of them add up.

    Attributes:
        gram: Matrix G = ZᵀZ, (r, r).
        moment: Vector b = Zᵀy, (r,).
        prior: Σk(x, x), at least 0.
        count: How many points there were, from 0.
        squares: Σy², at least 0.
    """

    gram: Floats
    moment: Floats
    prior: float = 0.0
    count: int = 0
    squares: float = 0.0

    @classmethod
    def zeros(cls, size: int) -> Statistics:
        """The statistics of no points.

        Args:
            size: Number r of coordinates, from 0.
        """
        return cls(gram=np.zeros((size, size)), moment=np.zeros(size))

    @classmethod
    def of(cls, embedding: Embedding, X: Floats, y: Floats) -> Statistics:
        """The statistics of rewards y of the rows of X, without holding all their coordinates at once.

        Args:
            embedding: Map z of points to coordinates.
            X: Points, (m, d); m may be 0.
            y: Reward of each, (m,).
        """
        if len(X) == 0:
            return cls.zeros(embedding.size)
        first, *others = chunks(len(X), embedding.size)
        total = cls._of_few(embedding, X[first], y[first])
        for part in others:
            total = total + cls._of_few(embedding, X[part], y[part])
        return total

    @classmethod
    def _of_few(cls, embedding: Embedding, X: Floats, y: Floats) -> Statistics:
        Z = embedding.embed(X)
        return cls(
            gram=np.asarray(Z @ Z.T, dtype=np.float64),
            moment=weighted(y, Z.T),
            prior=float(embedding.prior(X).sum()),
            count=len(X),
            squares=float(y @ y),
        )

    @classmethod
    def of_totals(cls, gram: Floats, moment: Floats, totals: Floats) -> Statistics:
        """The statistics with these totals.

        Args:
            gram: Matrix G, (r, r).
            moment: Vector b, (r,).
            totals: Σk(x, x), count and Σy², (3,); the count must be a whole number.
        """
        prior, count, squares = (float(total) for total in totals)
        return cls(gram=gram, moment=moment, prior=prior, count=whole("count", count), squares=squares)

    def __add__(self, other: Sums) -> Statistics:
        return Statistics(
            gram=self.gram + other.gram,
            moment=self.moment + other.moment,
            prior=self.prior + other.prior,
            count=self.count + other.count,
            squares=self.squares + other.squares,
        )


@dataclass(frozen=True)
class Margins:
    """How far rounding takes honest sums beyond what exact ones keep to."""

    relative: float
    solved: float  # of the largest k(x, x), by which a point's ‖z‖² may be off where coordinates are solved for
    definite: float  # of the trace, by which an eigenvalue may be below zero
    tiny: float  # a point or a reward of this size has a square that is lost


DOUBLE = Margins(relative=1e-6, solved=1e-6, definite=1e-6, tiny=1e-150)
#: In single precision coordinates have no digit left where a dictionary is nearly dependent, as polynomials make it.
SINGLE = Margins(relative=5e-2, solved=1e6, definite=1e-4, tiny=1e-18)


def expect_sums(sums: Statistics, *, size: int, lam: float, scale: float, margins: Margins, most: float = inf) -> None:
    """Refuse what cannot be sums over points.

    ``scale`` is the largest k(x, x) that coordinates were solved from, and ``most`` the largest that a point has.
    """
    _expect_bounded(sums, size)
    diagonal, slack = np.diagonal(sums.gram), 1.0 + margins.relative
    if sums.count and sums.prior > slack * sums.count * most:
        raise RemoteProtocolError(f"Σk(x,x) of {sums.prior:.6g} over {sums.count} points, each of which has {most:g}")
    turned = np.ascontiguousarray(sums.gram.T)
    skew = float((sums.gram - turned).max(initial=0.0))  # both ways round, so that none is below zero
    if skew > margins.relative * float(diagonal.max(initial=0.0)):
        raise RemoteProtocolError(f"a Gram matrix that is not symmetric: two entries differ by {skew:.3g}")
    _expect_definite(turned, lam=lam, margin=margins.definite)
    trace, lost = float(diagonal.sum()), sums.count * margins.tiny**2
    if trace > slack * sums.prior + margins.solved * scale * sums.count + lost:
        raise RemoteProtocolError(f"a Gram matrix of trace {trace:.6g}, above Σk(x,x) = {sums.prior:.6g}")
    # Cauchy and Schwarz: |Σ z_j y| ≤ √(Σy² Σz_j²)
    tiny = margins.tiny * sqrt(sums.count)
    bound = slack * (sqrt(sums.squares) + tiny) * (np.sqrt(np.maximum(diagonal, 0.0)) + tiny)
    if (above := np.abs(sums.moment) > bound).any():
        at = int(np.argmax(above))
        raise RemoteProtocolError(
            f"a moment of {sums.moment[at]:.6g} in coordinate {at}, where squares of rewards and coordinates "
            f"allow {bound[at]:.6g}"
        )


def _expect_bounded(sums: Statistics, size: int) -> None:
    shapes = sums.gram.shape, sums.moment.shape
    if shapes != ((size, size), (size,)):
        raise RemoteProtocolError(f"expected sums over {size} coordinates, got arrays of shapes {shapes}")
    for name, array in (("gram", sums.gram), ("moment", sums.moment)):
        largest = float(max(array.max(initial=0.0), -array.min(initial=0.0)))
        if not largest < MOST:  # also what is not a number
            raise RemoteProtocolError(f"{name} holds a number of size {largest}, not below {MOST:g}; rescale features")
    if not 0 <= sums.prior < MOST:
        raise RemoteProtocolError(f"Σk(x,x) is {sums.prior}, where 0 … {MOST:g} is expected; rescale features")
    if not (sums.squares >= 0 and isfinite(sums.squares)):
        raise RemoteProtocolError(f"Σy² is {sums.squares}, where a finite number of at least 0 is expected")
    if sums.count < 0 or (sums.count == 0 and (sums.prior or sums.squares)):
        raise RemoteProtocolError(f"{sums.count} points with Σk(x,x) = {sums.prior:.3g} and Σy² = {sums.squares:.3g}")


def _expect_definite(turned: Floats, *, lam: float, margin: float) -> None:
    """Refuse G, given as its transpose: LAPACK finds G by columns there, and factors its lower half fastest."""
    lift = margin * max(float(np.trace(turned)), lam)
    _, failed = lapack.dpotrf(ridged(turned, lift).T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise RemoteProtocolError(
            f"a Gram matrix that is not positive semi-definite: its first {failed} rows have a negative eigenvalue"
        )
