"""Parcels: points in a row as they travel, each in the form that it needs, or by a number if the other side knows it.

Each side of a link keeps two **libraries**: the points that went up on it and those that came down, each once, in the
order in which they first went. A point in one of them travels as its number there, so that none crosses twice. One
side may know more than the other while messages are on their way, so that no number depends on how much is known. A
client's **shelf** is what it has of the points that came down: their number and a hash of them go with a greeting, and
the server then counts on no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.errors import RemoteProtocolError
from laconic.growing import keys
from laconic.protocol.known_points import Library, PointTable
from laconic.protocol.wire import Wire

#: The names of a parcel's arrays: points in each form, then the numbers of those that are known.
FORMS = ("points", "wide", "exact")
REFERENCE = len(FORMS)
#: The types that their entries may have, on any wire, with those of the rewards that go beside them.
TYPES: Mapping[str, tuple[str, ...]] = {
    "points": ("int8", "float64", "float32", "float16"),
    "rewards": ("float16", "float64", "float32"),
    "wide": ("int16",),
    "exact": ("float32",),
    "ids": ("uint8", "uint16", "uint32"),
}
IDS = frozenset(map(np.dtype, TYPES["ids"]))


@dataclass(frozen=True, eq=False)
class Libraries:
    """The points that both sides know of: those that went up, and those that came down."""

    up: Library
    down: Library

    @classmethod
    def empty(cls, dim: int) -> Libraries:
        """Nothing has crossed."""
        return cls(Library.empty(dim), Library.empty(dim))

    @classmethod
    def within(cls, table: PointTable) -> Libraries:
        """Nothing has crossed; what will is kept in this table."""
        return cls(Library(table), Library(table))

    def lacks(self, identities: list[bytes]) -> bool:
        """True when it is plain that none of these points has crossed; False says nothing."""
        return self.down.table.lacks(identities) and (
            self.up.table is self.down.table or self.up.table.lacks(identities)
        )

    def numbers_at(self, identities: list[bytes]) -> Ints:
        """The number of the point of each identity, −1 for one that has not crossed."""
        found = self.down.table.found(identities)
        down = self.down.places_of(found)
        if self.up.table is not self.down.table:
            found = self.up.table.found(identities)
        up = self.up.places_of(found)
        return np.where(down >= 0, 2 * down, np.where(up >= 0, 2 * up + 1, -1))

    def at(self, numbers: np.ndarray) -> Floats:
        """The points of these numbers."""
        places = numbers.astype(np.int64) // 2
        is_up = numbers.astype(np.int64) % 2 == 1
        points = np.empty((len(numbers), self.up.dim))
        for which, library in ((is_up, self.up), (~is_up, self.down)):
            if not which.any():
                continue
            if int(places[which].max()) >= library.size:
                raise RemoteProtocolError(
                    f"a point of number {int(places[which].max())}, where {library.size} are known"
                )
            points[which] = library.at(places[which])
        return points

    def sent_up(self, X: Floats) -> Libraries:
        """After these points went up."""
        return Libraries(up=self.up.with_points(X), down=self.down)

    def sent_down(self, X: Floats) -> Libraries:
        """After these points came down."""
        return Libraries(up=self.up, down=self.down.with_points(X))

    def received(self, count: int, *, mark: int) -> Libraries:
        """With the first ``count`` of those that came down, as the rest was lost; none if their hash is another."""
        shelf = self.down.first(count)
        same = shelf.size == count and shelf.mark == mark
        return Libraries(up=self.up, down=shelf if same else self.down.first(0))


def packed(
    X: Floats, wire: Wire, known: Libraries | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Points as the values and records of a payload; what there is nothing of is left out.

    A point that comes twice goes once, and then as its number among those of this parcel that go as they are; numbers
    in a library follow after these.
    """
    numbers = _numbers(X, known) if known is not None and wire.by_reference else None
    refers = None if numbers is None else numbers >= 0
    fresh = X if refers is None else X[~refers]
    arrays = wire.packed(fresh)
    values = {name: array for name, array in zip(FORMS, arrays, strict=False) if len(array) or name == "points"}
    if numbers is not None:
        values["ids"] = _narrowest(numbers[refers])
        if not len(values["points"]):
            del values["points"]
    if len(values["points" if "points" in values else "ids"]) == len(X):  # as nearly always, all are of one form
        return values, {}
    form = np.full(len(X), REFERENCE)
    form[slice(None) if refers is None else ~refers] = wire.form_of(fresh)
    kinds = sorted(set(form.tolist()))
    return values, {} if len(kinds) < 2 else {"forms": _marks(form, kinds)}


def _numbers(X: Floats, known: Libraries) -> Ints | None:
    """The number of each point, −1 for one that travels as it is; None where all do."""
    fresh: dict[bytes, int] = {}
    identities = keys(X)
    is_once = len(set(identities)) == len(identities)  # no two are the same
    if is_once and known.lacks(identities):
        return None
    numbers = known.numbers_at(identities)
    if is_once:
        refers = numbers >= 0
        return np.where(refers, numbers + np.count_nonzero(~refers), -1) if refers.any() else None
    repeats = np.full(len(X), -1)
    for place in np.flatnonzero(numbers < 0).tolist():
        repeats[place] = fresh.get(identities[place], -1)
        fresh.setdefault(identities[place], len(fresh))
    return np.where(numbers >= 0, numbers + len(fresh), repeats)


def unpacked(
    values: dict[str, np.ndarray], records: dict[str, np.ndarray], wire: Wire, known: Libraries | None, *, dim: int
) -> Floats:
    """The points of a parcel; anything else raises `RemoteProtocolError`."""
    parts: dict[int, Floats] = {}
    for form, name in enumerate(FORMS):
        if name in values:
            array = values[name]
            if array.ndim != 2 or array.shape[1] != dim:
                raise RemoteProtocolError(f"{name} has the shape {array.shape}, where rows of {dim} are expected")
            parts[form] = wire.unpacked(form, array)
    if "ids" not in values and "forms" not in records and len(parts) == 1:  # as nearly always
        return next(iter(parts.values()))
    numbers = values.get("ids", np.empty(0, dtype=np.uint8))
    if numbers.dtype not in IDS or numbers.ndim != 1:  # wider ones might turn negative
        raise RemoteProtocolError(f"numbers of known points came as {numbers.dtype} of shape {numbers.shape}")
    if known is None and len(numbers):
        raise RemoteProtocolError("numbers of known points, where each comes as it is")
    count = sum(len(part) for part in parts.values()) + len(numbers)
    order = _order(parts, records.get("forms"), count, references=len(numbers))
    points = np.empty((count, dim))
    for form, part in parts.items():
        points[order == form] = part
    if known is not None and len(numbers):
        points[order == REFERENCE] = _referred(numbers, points[order < REFERENCE], known)
    return points


def _referred(numbers: np.ndarray, fresh: Floats, known: Libraries) -> Floats:
    """The points of numbers, of which the first are of this parcel."""
    places = numbers.astype(np.int64)
    here = places < len(fresh)
    points = np.empty((len(numbers), fresh.shape[1]))
    points[here] = fresh[places[here]]
    points[~here] = known.at(places[~here] - len(fresh))
    return points


def _order(parts: dict[int, Floats], forms: np.ndarray | None, count: int, *, references: int) -> np.ndarray:
    """The form of each point in turn."""
    counts = {REFERENCE: references} | {form: len(part) for form, part in parts.items()}
    filled = [form for form, many in counts.items() if many]
    if forms is None:
        if len(filled) > 1:
            raise RemoteProtocolError("points in several forms do not say their order")
        return np.full(count, filled[0] if filled else 0)
    order = _of_marks(forms, count, sorted(filled))
    for form in range(REFERENCE + 1):
        if int((order == form).sum()) != counts.get(form, 0):
            raise RemoteProtocolError(f"{counts.get(form, 0)} points of form {form}, and the order has another number")
    return order


def _narrowest(numbers: np.ndarray) -> np.ndarray:
    largest = int(numbers.max(initial=0))
    return numbers.astype(np.uint8 if largest < 2**8 else np.uint16 if largest < 2**16 else np.uint32)


def _marks(form: np.ndarray, kinds: list[int]) -> np.ndarray:
    """Which of the kinds that there are each point is of: a bit for each where there are two, and else two bits."""
    place = np.searchsorted(kinds, form).astype(np.uint8)
    bits = np.unpackbits(place[:, None], axis=1, bitorder="little")[:, : _width(len(kinds))]
    return np.packbits(bits.reshape(-1), bitorder="little")


def _of_marks(packed: np.ndarray, count: int, kinds: list[int]) -> np.ndarray:
    width = _width(len(kinds))
    if packed.dtype != np.uint8 or packed.ndim != 1 or len(packed) != marks_size(count, kinds=len(kinds)):
        raise RemoteProtocolError(f"the order of {count} points does not have {packed.size} bytes")
    bits = np.unpackbits(packed, count=count * width, bitorder="little").reshape(count, width)
    place = bits @ (1 << np.arange(width))
    if int(place.max(initial=0)) >= len(kinds):
        raise RemoteProtocolError(f"a point of kind {int(place.max())}, where there are {len(kinds)}")
    return np.array(kinds)[place]


def marks_size(count: int, *, kinds: int) -> int:
    """How many bytes say which of so many kinds each of ``count`` points is of."""
    return -(-count * _width(kinds) // 8)


def _width(kinds: int) -> int:
    """How many bits tell so many kinds apart."""
    return 1 if kinds <= 2 else 2
