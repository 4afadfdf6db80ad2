"""What every belief offers, and what it says of points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs.precision import PRECISIONS, Precision
from laconic.errors import InputError, KernelError, RemoteProtocolError
from laconic.kernels import Kernel

if TYPE_CHECKING:
    from laconic.beliefs.embeddings import Embedding
    from laconic.beliefs.sums import Statistics

#: Of fewer entries than this, squares are summed the plain way, which begins sooner.
SMALL = 2048
#: How many entries a matrix of features may have where many points are summed up.
CHUNK_ENTRIES = 4_000_000
#: The fewest points of which features are computed together, however many features there are.
CHUNK_LEAST = 256


@dataclass(frozen=True, eq=False)
class View:
    """What a belief says of m points: enough to predict them and to condition on them.

    Attributes:
        points: The points themselves, (m, d).
        features: Feature column v(x) of each point, (p, m); p is the belief's ``width``.
        mean: μ of each point, (m,), in units of rewards.
        signal: Variance that data on these points would reduce, (m,), at least 0.
        residual: Variance that a Nyström belief adds for the part of a point that its dictionary cannot express, (m,),
            at least 0.
    """

    points: Floats
    features: Floats
    mean: Floats
    signal: Floats
    residual: Floats

    @property
    def variance(self) -> Floats:
        """σ² of each point under the belief alone."""
        return self.signal + self.residual

    def at(self, index: int) -> View:
        """The view of one of the points.

        Args:
            index: Its place, from 0.
        """
        return self.between(index, index + 1)

    def between(self, first: int, stop: int) -> View:
        """The view of some points in a row.

        Args:
            first: Place of the first of them, from 0.
            stop: Place after the last of them.
        """
        some = slice(first, stop)
        return View(
            points=self.points[some],
            features=np.ascontiguousarray(self.features[:, some]),
            mean=self.mean[some],
            signal=self.signal[some],
            residual=self.residual[some],
        )

    def of(self, indices: Ints) -> View:
        """The view of some of the points, in their order.

        Args:
            indices: Their places, in ascending order and no two alike.
        """
        return self if len(indices) == len(self.mean) else self.taken(indices)

    def taken(self, indices: Ints) -> View:
        """The view of points in any order, some of them perhaps twice.

        Args:
            indices: Their places.
        """
        return View(
            points=self.points[indices],
            features=np.ascontiguousarray(self.features[:, indices]),
            mean=self.mean[indices],
            signal=self.signal[indices],
            residual=self.residual[indices],
        )


class Belief(Protocol):
    """What every belief offers to tails, triggers and phases.

    What only some kinds can do, others refuse with `InputError`; `BeliefBase` has such refusals to inherit. The class
    variable ``bookkeeping`` names those of its arrays that keep books only, and are no scalars of what was learnt.
    """

    #: Which of its arrays keep books only, and are no scalars of what was learnt.
    bookkeeping: ClassVar[frozenset[str]]

    @property
    def dim(self) -> int:
        """The number of features of a point."""
        ...

    @property
    def lam(self) -> float:
        """The ridge λ."""
        ...

    @property
    def precision(self) -> Precision:
        """How far the precision reaches in which it computes."""
        ...

    @property
    def parameters(self) -> dict[str, object]:
        """What decides of the belief before any data, by name; what it learnt is not among it."""
        ...

    @property
    def rank(self) -> int | None:
        """The number of coordinates of a finite belief; None where every point adds one."""
        ...

    @property
    def width(self) -> int:
        """The number of rows of a view's features."""
        ...

    @property
    def dictionary_size(self) -> int | None:
        """|S| for beliefs that have a dictionary."""
        ...

    @property
    def information(self) -> float:
        """ln det(I + K_DD/λ), or an upper bound of it."""
        ...

    def is_sound(self) -> bool:
        """True when nothing overflowed on the way here; cheap, as it is asked at every sync."""
        ...

    def prior(self, X: Floats) -> Floats:
        """k(x, x) of the rows of X, λ times their variance before any data.

        Args:
            X: Points, (m, d).
        """
        ...

    def view(self, X: Floats) -> View:
        """What the belief says of the rows of X.

        Args:
            X: Points, (m, d), finite; m may be 0.
        """
        ...

    def covariance(self, a: View, b: View) -> Floats:
        """The covariance, in units of λ, of the points of two views.

        Args:
            a: View of m points, whose features may be in another basis than the belief's, as a tail's are.
            b: View of n points in the same basis; the result is (m, n).
        """
        ...

    def arrays(self) -> dict[str, Floats]:
        """All that was learnt, as named arrays from which `from_arrays` makes the belief again."""
        ...

    def from_arrays(self, arrays: dict[str, Floats]) -> Belief:
        """The belief of the same plan of which these arrays were taken.

        Args:
            arrays: What `arrays` gave, by name, perhaps of another process; it may be damaged.

        Raises:
            RemoteProtocolError: They are of no such belief.
        """
        ...

    # -- for phases that send points

    def check_points(self, X: Floats) -> None:
        """Refuse points that cannot be learnt even alone.

        Args:
            X: Points that came from elsewhere, (m, d), finite.

        Raises:
            RemoteProtocolError: The belief would overflow on them.
        """
        ...

    def extended(self, X: Floats, y: Floats) -> Belief:
        """The belief that has also learnt rewards y of the rows of X; this one stays as it is.

        Args:
            X: Points, (m, d), finite.
            y: Reward of each, (m,), finite.
        """
        ...

    def metric(self) -> Kernel | None:
        """The kernel that says how far apart two points are; None where that is their plain distance."""
        ...

    # -- for phases that agree on a dictionary

    def dictionary_kernel(self) -> Kernel:
        """The kernel by which a dictionary is thinned."""
        ...

    def on_dictionary(self, points: Floats) -> Belief:
        """The Nyström belief without data on this dictionary, with the same kernel and λ.

        Args:
            points: Points of the dictionary, (r, d), of full rank; r may be 0.
        """
        ...

    # -- for phases that send sums

    @property
    def coordinates(self) -> Embedding:
        """The map of points to the coordinates that sums are taken in."""
        ...

    def check_statistics(self, sums: Statistics) -> None:
        """Refuse what cannot be sums over points in these coordinates.

        Args:
            sums: Sums that came from elsewhere.

        Raises:
            RemoteProtocolError: They have other shapes, are not finite, or contradict each other.
        """
        ...

    def with_statistics(self, sums: Statistics, *, added: bool = False) -> Belief:
        """The belief on these sums; this one stays as it is.

        Args:
            sums: Sums over points in these coordinates.
            added: True: they are added to its own. False: they take the place of its own.
        """
        ...


class BeliefBase:
    """What a kind of belief cannot do is refused in words; a kind of one's own overrides what it can.

    Derive from it and write dim, lam, parameters, rank, width, dictionary_size, information, view, covariance, arrays
    and from_arrays; the other members of `Belief` are here.
    """

    bookkeeping: ClassVar[frozenset[str]] = frozenset()

    @property
    def precision(self) -> Precision:
        return PRECISIONS["float64"]

    def is_sound(self: Belief) -> bool:
        try:
            return math.isfinite(self.information)
        except KernelError:
            return False

    def prior(self: Belief, X: Floats) -> Floats:
        return self.lam * self.view(X).variance  # of a plan's belief, which has no data

    def check_points(self: Belief, X: Floats) -> None:
        with np.errstate(all="ignore"):
            variance = variances(self, X)
        if not np.isfinite(variance).all():
            raise RemoteProtocolError(f"{len(X)} points that a {type(self).__name__} cannot take: it overflows there")

    def extended(self, X: Floats, y: Floats) -> Belief:
        self._cannot("ShareData needs a belief that learns raw points, such as ExactBelief")

    def metric(self: Belief) -> Kernel | None:
        try:
            return self.dictionary_kernel()
        except InputError:
            return None

    def dictionary_kernel(self) -> Kernel:
        self._cannot("a dictionary needs a belief with a kernel")

    def on_dictionary(self, points: Floats) -> Belief:
        self._cannot("a dictionary needs a belief with a kernel")

    @property
    def coordinates(self) -> Embedding:
        self._cannot("ShareStatistics needs a belief with coordinates, such as FiniteBelief")

    def check_statistics(self, sums: Statistics) -> None:
        self._cannot("ShareStatistics needs a belief with coordinates, such as FiniteBelief")

    def with_statistics(self, sums: Statistics, *, added: bool = False) -> Belief:
        self._cannot("ShareStatistics needs a belief with coordinates, such as FiniteBelief")

    def _cannot(self, needed: str) -> NoReturn:
        raise InputError(f"{needed}; got {type(self).__name__}")


def chunks(rows: int, width: int) -> list[slice]:
    """Slices of so many rows that a matrix of ``width`` columns for each stays small."""
    size = max(CHUNK_ENTRIES // max(width, 1), CHUNK_LEAST)
    return [slice(first, first + size) for first in range(0, rows, size)]


def variances(belief: Belief, X: Floats) -> Floats:
    """σ² of the rows of X under a belief, without holding all their features at once."""
    parts = [belief.view(X[part]).variance for part in chunks(len(X), belief.width)]
    return np.concatenate([np.empty(0), *parts])


def column_squares(V: Floats) -> Floats:
    """‖v‖² of each column, summed in float64 whatever V is stored in."""
    if V.size < SMALL:
        return np.asarray((V * V).sum(axis=0, dtype=np.float64))
    return np.asarray(np.einsum("ij,ij->j", V, V, dtype=np.float64))


def weighted(weights: Floats, V: Floats) -> Floats:
    """weights · v of each column, in the precision of V."""
    return np.asarray(weights.astype(V.dtype, copy=False) @ V, dtype=np.float64)
