"""Arrays that grow at the end while older, shorter versions of them stay valid, and the collapse of repeated points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints, apart


def key(point: Floats) -> bytes:
    """The identity of a point: equal bits, with −0.0 and 0.0 the same."""
    return (point + 0.0).tobytes()


def keys(X: Floats) -> list[bytes]:
    """The identity of each row of X, which has at least one column."""
    data, width = (X + 0.0).tobytes(), X.shape[1] * X.itemsize
    return [data[first : first + width] for first in range(0, len(data), width or 1)]


def first_appearances(X: Floats) -> Ints:
    """For each row of X the number of its distinct point, counted in order of first appearance."""
    rows, numbers = keys(X), dict[bytes, int]()
    if len(set(rows)) == len(rows):
        return np.arange(len(rows))
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)


def collapsed(X: Floats, counts: Floats, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """The distinct rows of X in order of first appearance, with their counts and sums added up."""
    if len(X) == 1:
        return X, counts, sums
    number = first_appearances(X)
    if len(X) == 0 or number[-1] == len(X) - 1:  # the last row is new and so were all before it
        return X, counts, sums
    distinct = int(number.max()) + 1
    first = np.full(distinct, len(X))
    np.minimum.at(first, number, np.arange(len(X)))
    added = [np.asarray(np.bincount(number, each, distinct), dtype=np.float64) for each in (counts, sums)]
    return X[first], added[0], added[1]


class _Shared:
    """The memory behind the versions of one growing array."""

    __slots__ = ("buffer", "filled")

    def __init__(self, buffer: Floats, filled: int) -> None:
        self.buffer, self.filled = buffer, filled


@dataclass(frozen=True, eq=False)
class GrowingRows:
    """Rows that only ever get appended; every version sees its own length of one shared buffer."""

    size: int
    shared: _Shared

    @classmethod
    def empty(cls, width: int = 0) -> GrowingRows:
        """No rows; those that come first settle the width where it is not known yet."""
        return cls(size=0, shared=_Shared(np.empty((0, width)), 0))

    @property
    def values(self) -> Floats:
        """The rows of this version."""
        return self.shared.buffer[: self.size]

    @property
    def is_newest(self) -> bool:
        """True while no longer version was made of this one."""
        return self.shared.filled == self.size

    def upto(self, size: int) -> GrowingRows:
        """The version that had ``size`` rows."""
        return GrowingRows(size=min(size, self.size), shared=self.shared)

    def appended(self, rows: Floats) -> GrowingRows:
        """The version with these rows at the end."""
        shared, old, size = self.shared, self.size, self.size + len(rows)
        if shared.filled != old or size > len(shared.buffer):
            shared = self._moved(size, rows.shape[1])
        shared.buffer[old:size] = rows
        shared.filled = size
        return GrowingRows(size, shared)

    def _moved(self, size: int, width: int) -> _Shared:
        """Memory of their own for rows that will be so many."""
        buffer = apart(max(2 * size, 4), width)
        if self.size:
            buffer[: self.size] = self.values
        self.shared.filled = max(self.shared.filled, size)  # a longer version exists, though elsewhere
        return _Shared(buffer, self.size)


@dataclass(frozen=True, eq=False)
class GrowingPoints:
    """Growing rows that know which points they hold."""

    rows: GrowingRows
    known: dict[bytes, int]  # a point's row; shared between versions, like the rows

    @classmethod
    def empty(cls, dim: int) -> GrowingPoints:
        """No points of ``dim`` features."""
        return cls(rows=GrowingRows.empty(dim), known={})

    @property
    def distinct(self) -> int:
        """How many different points this version holds."""
        size = self.rows.size
        return len(self.known) if self.rows.is_newest else sum(row < size for row in self.known.values())

    def row_of(self, x: Floats) -> int:
        """Where this version has a point first; −1 if it has not."""
        return self.row_at(key(x))

    def row_at(self, identity: bytes) -> int:
        """Where this version has the point of this identity first; −1 if it has not."""
        found = self.known.get(identity, -1)
        return found if found < self.rows.size else -1

    def rows_of(self, X: Floats) -> Ints:
        """Where this version has the rows of X first; −1 for those that it has not."""
        return np.array([self.row_at(each) for each in keys(X)], dtype=np.int64)

    def lacked(self, identities: list[bytes]) -> dict[bytes, int]:
        """Which of these points this version has not, each with its first place among them."""
        known, size, fresh = self.known, self.rows.size, dict[bytes, int]()
        for place, each in enumerate(identities):
            if known.get(each, size) >= size:
                fresh.setdefault(each, place)
        return fresh

    def appended(self, X: Floats, identities: Iterable[bytes] | None = None) -> GrowingPoints:
        """The version with the rows of X at the end, whose identities somebody may have at hand."""
        size = self.rows.size
        known = self.known if self.rows.is_newest else {k: row for k, row in self.known.items() if row < size}
        rows = self.rows.appended(X)  # first: if what follows is interrupted, this version is no longer the newest
        for row, each in enumerate(keys(X) if identities is None else identities, start=size):
            known.setdefault(each, row)
        return GrowingPoints(rows=rows, known=known)
