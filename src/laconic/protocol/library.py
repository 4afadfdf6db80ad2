"""Lists of points that two sides know by number, kept as numbers in a table that many lists may share."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats, Ints
from laconic.growing import GrowingRows, keys

#: Numbers of points, of which a server has as many as links times points.
Numbers = NDArray[np.int32]


def _none() -> Numbers:
    return np.empty(0, dtype=np.int32)


class PointTable:
    """Points, each once, by numbers that stay.

    It only ever grows, and what it has beyond the lists that refer to it does no harm: a list that was made in vain, as
    an event failed or was interrupted, leaves nothing else behind.
    """

    def __init__(self, dim: int) -> None:
        self._rows, self._known = GrowingRows.empty(dim), dict[bytes, int]()

    @property
    def dim(self) -> int:
        """How many features each point has."""
        return int(self._rows.values.shape[1])

    def at(self, numbers: NDArray[Any]) -> Floats:
        """The points of these numbers, a row each."""
        return self._rows.values[numbers]

    def found(self, identities: list[bytes]) -> Ints:
        """The number of the point of each identity, −1 for one that is not here."""
        known = self._known
        return np.array([known.get(each, -1) for each in identities], dtype=np.int64)

    def added(self, X: Floats, identities: list[bytes]) -> Ints:
        """The number of each row of X, whose identities these are; new ones get the next numbers."""
        numbers = self.found(identities)
        fresh = numbers < 0
        if not fresh.any():
            return numbers
        first = self._rows.size
        self._rows = self._rows.appended(X[fresh] + 0.0)  # before anybody can look for them
        for number, place in enumerate(np.flatnonzero(fresh).tolist(), start=first):
            self._known.setdefault(identities[place], number)
        return self.found(identities)


@dataclass(frozen=True, eq=False)
class Library:
    """Points of a table, each once, in an order in which they have places; a value, of which `with_points` makes more.

    ``ordered`` are the numbers from the least on, by which a point's place is found.
    """

    table: PointTable
    numbers: Numbers = field(default_factory=_none)  # by place
    ordered: Numbers = field(default_factory=_none)
    places: Numbers = field(default_factory=_none)  # of those that are ordered

    @classmethod
    def empty(cls, dim: int) -> Library:
        """No points of ``dim`` features, in a table of its own."""
        return cls(PointTable(dim))

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.numbers)

    @property
    def dim(self) -> int:
        """How many features each has."""
        return self.table.dim

    @property
    def points(self) -> Floats:
        """They themselves, a row each."""
        return self.table.at(self.numbers)

    def at(self, places: Ints) -> Floats:
        """The points at these places."""
        return self.table.at(self.numbers[places])

    def places_of(self, identities: list[bytes]) -> Ints:
        """The place of the point of each identity, −1 for one that is not here."""
        return self._places(self.table.found(identities))

    def with_points(self, X: Floats) -> Library:
        """The library with those rows of X that it lacks, each once."""
        numbers = self.table.added(X, keys(X))
        fresh = numbers[self._places(numbers) < 0].tolist()
        if not fresh:
            return self
        new = np.array(list(dict.fromkeys(fresh)), dtype=np.int32)
        ordered = np.concatenate([self.ordered, new])
        places = np.concatenate([self.places, np.arange(self.size, self.size + len(new), dtype=np.int32)])
        order = ordered.argsort(kind="stable")  # quick, as most of it is in order
        return Library(self.table, np.concatenate([self.numbers, new]), ordered[order], places[order])

    def first(self, count: int) -> Library:
        """The library of its first points."""
        if count >= self.size:
            return self
        keep = self.places < count
        return Library(self.table, self.numbers[:count].copy(), self.ordered[keep], self.places[keep])

    @property
    def mark(self) -> int:
        """A hash of the points in their order; 0 for none."""
        if self.size == 0:
            return 0
        return int.from_bytes(blake2b(self.points.tobytes(), digest_size=8).digest(), "little")

    def _places(self, numbers: Ints) -> Ints:
        if self.size == 0:
            return np.full(len(numbers), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ordered, numbers), self.size - 1)
        return np.where(self.ordered[at] == numbers, self.places[at], -1)
