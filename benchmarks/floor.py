"""The floor: the matrix products, triangular solves and kernel evaluations of a run, and nothing else.

`round_work` and `sync_work` say which there were, as values; `Floor` does them on matrices of those sizes that hold
arbitrary numbers. Left out is all else that a run does: norms of columns, indices, the choice, histories, messages, the
ledger, and making the problem's arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from benchmarks.blas import factor, factor_with_pivots, gaussian, solve
from benchmarks.schedule import Schedule, Segment, Sync, Turn
from laconic.arrays import Floats

#: How many entries a matrix of features of a history may have; more points are taken in parts.
MOST_ENTRIES = 4_000_000
#: An exact belief takes in so many points at a time.
MOST_NEW = 1024


@dataclass(frozen=True)
class Kernel:
    """k on all pairs of two sets, for one pair of sets or a stack of them."""

    rows: int
    columns: int
    stack: int = 1


@dataclass(frozen=True)
class Solve:
    """L⁻¹V for a triangular L."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Product:
    """A stack of products of matrices."""

    stack: int
    rows: int
    inner: int
    columns: int


@dataclass(frozen=True)
class Gram:
    """AAᵀ, which is half a product."""

    rows: int
    inner: int


@dataclass(frozen=True)
class Factor:
    """A Cholesky factor, perhaps with pivots."""

    rows: int
    pivots: bool = False


Work = Kernel | Solve | Product | Gram | Factor


def round_work(schedule: Schedule, turn: Turn) -> Iterator[Work]:
    """Scores of a round's arms under the beliefs of the round, and what the tails add."""
    anew = turn.shared or turn.regrown or schedule.kind != "exact"
    base = turn.segments[0].belief
    if not anew:
        yield from _score(schedule, base, turn.columns)
    for (_, belief), group in groupby(turn.segments, key=lambda segment: (segment.epoch, segment.belief)):
        segments = list(group)
        columns = sum(segment.clients for segment in segments) * schedule.arms
        if anew:
            yield from _score(schedule, belief, min(columns, turn.columns))
        elif belief > base:
            yield from _continue(base, belief, columns)
        for segment in segments:
            yield from _tail(schedule, segment)


def _score(schedule: Schedule, belief: int, columns: int) -> Iterator[Work]:
    """v of so many arms, and their means."""
    if belief == 0:
        return
    if schedule.kind != "linear":
        yield Kernel(belief, columns)
    if schedule.kind == "nystrom":
        yield Solve(belief, columns)  # z, whose norm the residual needs
    yield Solve(belief, columns)
    yield Product(1, 1, belief, columns)


def _continue(base: int, belief: int, columns: int) -> Iterator[Work]:
    """The rows of v that an exact belief has more than the one which scored the round."""
    new = belief - base
    yield Kernel(new, columns)
    yield Product(1, new, base, columns)
    yield Solve(new, columns)
    yield Product(1, 1, new, columns)


def _tail(schedule: Schedule, segment: Segment) -> Iterator[Work]:
    """Coordinates of the arms in the tails, means, and the row that each choice adds."""
    clients, tail, belief = segment.clients, segment.tail, segment.belief
    if tail == 0:
        return
    if schedule.kind == "exact":
        yield Kernel(tail, schedule.arms, stack=clients)
        if belief:
            yield Product(clients, tail, belief, schedule.arms)
        yield Product(clients, tail, tail, schedule.arms)
        yield Product(clients, 1, tail, tail)
    elif belief:
        yield Product(clients, tail, belief, schedule.arms)
        yield Product(clients, 1, tail, belief)
    yield Product(clients, 1, tail, schedule.arms)


def sync_work(schedule: Schedule, sync: Sync) -> Iterator[Work]:
    """What a sync computes for all clients in one pass."""
    if schedule.kind == "exact":
        yield from _share_data(sync)
    elif schedule.kind == "linear":
        yield Gram(schedule.dim, sync.fresh)
        yield Factor(schedule.dim)
    else:
        yield from _share_statistics(sync)


def _share_data(sync: Sync) -> Iterator[Work]:
    """The factor's new rows; the features of the new points are known, as their clients chose by them."""
    if sync.regrown:
        yield Factor(sync.new)
        yield Solve(sync.new, 1)
        return
    for rows, size in _parts(sync.new - sync.old, MOST_NEW):
        yield Kernel(size, size)
        if rows:
            yield Kernel(rows, size)
            yield Solve(rows, size)
        if sync.old + rows:
            yield Gram(size, sync.old + rows)
        yield Factor(size)
        yield Solve(size, 1)


def _share_statistics(sync: Sync) -> Iterator[Work]:
    """Variances of all histories on the old dictionary, the new dictionary, and all histories in its coordinates."""
    for _, size in _parts(sync.points if sync.old else 0, MOST_ENTRIES // max(sync.old, 1)):
        yield Kernel(sync.old, size)
        yield Solve(sync.old, size)
        yield Solve(sync.old, size)
    if sync.union:
        yield Kernel(sync.union, sync.union)
        yield Factor(sync.union, pivots=True)
        yield Kernel(sync.new, sync.new)
        yield Factor(sync.new)
    for _, size in _parts(sync.points, MOST_ENTRIES // max(sync.new, 1)):
        yield Kernel(sync.new, size)
        yield Solve(sync.new, size)
        yield Gram(sync.new, size)
        yield Product(1, sync.new, size, 1)
    yield Factor(sync.new)


def _parts(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Where each part of so many things begins, and its size."""
    for first in range(0, count, max(most, 1)):
        yield first, min(most, count - first)


class Floor:
    """Does work on matrices that are there before it starts."""

    def __init__(self, work: list[Work], *, dim: int) -> None:
        self._random = np.random.default_rng(0)
        self._dim = dim + 2  # points carry their norms along
        self._triangle = self._lower(max([_triangle_rows(each) for each in work], default=0))
        needs = [_needs(each, self._dim) for each in work]
        self._left, self._right, self._out = (
            self._random.uniform(-0.01, 0.0, max([sizes[place] for sizes in needs], default=0)) for place in range(3)
        )

    def _lower(self, size: int) -> Floats:
        """A triangular matrix whose inverse is tame."""
        L = np.zeros((size, size))
        for row in range(size):
            L[row, :row] = self._random.uniform(-0.005, 0.005, row)
        np.fill_diagonal(L, 1.0)
        return L

    def do(self, work: Work) -> None:
        """One piece of work."""
        match work:
            case Kernel(rows, columns, stack):
                X = self._matrix(self._left, stack, rows, self._dim)
                Y = self._matrix(self._right, stack, columns, self._dim)
                gaussian(X, Y, out=self._matrix(self._out, stack, rows, columns))
            case Solve(rows, columns):
                solve(self._triangle, self._out[: rows * columns].reshape(rows, columns))
            case Product(stack, rows, inner, columns):
                # the features of a client's arms lie among those of the others, as one solve left them
                right = self._right[: stack * inner * columns].reshape(inner, stack, columns).transpose(1, 0, 2)
                left = self._matrix(self._left, stack, rows, inner)
                np.matmul(left, right, out=self._matrix(self._out, stack, rows, columns))
            case Gram(rows, inner):
                A = self._left[: rows * inner].reshape(rows, inner)
                np.matmul(A, A.T, out=self._out[: rows * rows].reshape(rows, rows))
            case Factor(rows, pivots):
                self._factor(rows, pivots)

    def _factor(self, rows: int, pivots: bool) -> None:
        A = self._out[: rows * rows].reshape(rows, rows)
        A[:] = 0.0
        np.fill_diagonal(A, 1.0)
        if pivots:
            factor_with_pivots(A)
        else:
            factor(A)

    @staticmethod
    def _matrix(room: Floats, stack: int, rows: int, columns: int) -> Floats:
        return room[: stack * rows * columns].reshape(stack, rows, columns)


def _triangle_rows(work: Work) -> int:
    return work.rows if isinstance(work, Solve) else 0


def _needs(work: Work, dim: int) -> tuple[int, int, int]:
    """The entries of the left, the right and the resulting matrix."""
    match work:
        case Kernel(rows, columns, stack):
            return stack * rows * dim, stack * columns * dim, stack * rows * columns
        case Product(stack, rows, inner, columns):
            return stack * rows * inner, stack * inner * columns, stack * rows * columns
        case Solve(rows, columns):
            return 0, 0, rows * columns
        case Gram(rows, inner):
            return rows * inner, 0, rows * rows
        case Factor(rows):
            return 0, 0, rows * rows
