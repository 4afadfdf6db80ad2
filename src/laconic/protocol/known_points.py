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

    Args:
        dim: Features d of a point, from 1.
    """

    def __init__(self, dim: int) -> None:
        self._rows, self._known = GrowingRows.empty(dim), dict[bytes, int]()

    @property
    def dim(self) -> int:
        """How many features each point has."""
        return int(self._rows.values.shape[1])

    def at(self, numbers: NDArray[Any]) -> Floats:
        """The points of these numbers, a row each."""
        return np.asarray(self._rows.values[numbers])

    def found(self, identities: list[bytes]) -> Ints:
        """The number of the point of each identity, −1 for one that is not here."""
        known = self._known
        return np.array([known.get(each, -1) for each in identities], dtype=np.int64)

    def lacks(self, identities: list[bytes]) -> bool:
        """True when none of these points is here."""
        return self._known.keys().isdisjoint(identities)

    def added(self, identities: list[bytes]) -> list[int]:
        """The number of the point of each identity; new ones get the next numbers."""
        known, size, new = self._known, self._rows.size, dict[bytes, int]()
        numbers = [known[each] if each in known else new.setdefault(each, size + len(new)) for each in identities]
        if new:  # an identity is the bits of a point; rows come first, before anybody can look for them
            self._rows = self._rows.appended(np.frombuffer(b"".join(new)).reshape(len(new), self.dim))
            known.update(new)
        return numbers


@dataclass(frozen=True, eq=False)
class Order:
    """Numbers from the least on, and the place of each."""

    numbers: Numbers
    places: Numbers

    @classmethod
    def of(cls, numbers: Numbers) -> Order:
        """The order of numbers whose places are counted from 0."""
        places = numbers.argsort(kind="stable")  # quick, as most of it is in order
        return cls(numbers[places], places.astype(np.int32))


@dataclass(frozen=True, eq=False)
class Library:
    """Points of a table, each once, in an order in which they have places; a value, of which `with_points` makes more.

    A point's place is found by its number. Points that a table got to know in the order in which they came here, as
    those of one client, have rising numbers; of any others the ``order`` is kept too.
    """

    table: PointTable
    numbers: Numbers = field(default_factory=_none)  # by place
    order: Order | None = None

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

    def with_points(self, X: Floats) -> Library:
        """The library with those rows of X that it lacks, each once."""
        if len(X) == 0:
            return self
        numbers = self.table.added(keys(X))
        largest = -1 if self.size == 0 else int((self.numbers if self.order is None else self.order.numbers)[-1])
        if min(numbers) <= largest:  # else nobody knew them
            several = np.array(numbers, dtype=np.int64)
            numbers = several[self.places_of(several) < 0].tolist()
        if not numbers:
            return self
        new = list(dict.fromkeys(numbers))
        longer = np.concatenate([self.numbers, np.array(new, dtype=np.int32)])
        rises = self.order is None and new[0] > largest and new == sorted(new)
        return Library(self.table, longer, None if rises else Order.of(longer))

    def first(self, count: int) -> Library:
        """The library of its first points."""
        if count >= self.size:
            return self
        few = self.numbers[:count].copy()
        return Library(self.table, few, None if self.order is None or count == 0 else Order.of(few))

    @property
    def mark(self) -> int:
        """A hash of the points in their order; 0 for none."""
        if self.size == 0:
            return 0
        return int.from_bytes(blake2b(self.points.tobytes(), digest_size=8).digest(), "little")

    def places_of(self, numbers: Ints) -> Ints:
        """The place of the point of each number, −1 for one that is not here."""
        if self.size == 0 or int(numbers.max(initial=-1)) < 0:
            return np.full(len(numbers), -1, dtype=np.int64)
        ordered = self.numbers if self.order is None else self.order.numbers
        at = np.minimum(np.searchsorted(ordered, numbers), self.size - 1)
        return np.where(ordered[at] == numbers, at if self.order is None else self.order.places[at], -1)
