"""Parcels: points in a row as they travel, each in the form that it needs, or by a number if the other side knows it.

Each side of a link keeps two **libraries**: the points that went up on it and those that came down, each once, in the
order in which they first went. A point in one of them travels as its number there, so that none crosses twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.errors import RemoteProtocolError
from laconic.growing import GrowingPoints, GrowingRows, key, keys
from laconic.protocol.wire import Wire

#: The names of a parcel's arrays: points in each form, then the numbers of those that are known.
FORMS = ("points", "wide", "exact")
REFERENCE = len(FORMS)


@dataclass(frozen=True, eq=False)
class Libraries:
    """The points that both sides know of: those that went up, and those that came down."""

    up: GrowingPoints
    down: GrowingPoints

    @classmethod
    def empty(cls, dim: int) -> Libraries:
        """Nothing has crossed."""
        return cls(GrowingPoints.empty(dim), GrowingPoints.empty(dim))

    def number_of(self, x: Floats) -> int:
        """The number of a point, −1 for one that has not crossed."""
        return self.number_at(key(x))

    def number_at(self, identity: bytes) -> int:
        """The number of the point of this identity."""
        place = self.down.row_at(identity)
        if place >= 0:
            return 2 * place
        place = self.up.row_at(identity)
        return 2 * place + 1 if place >= 0 else -1

    @property
    def beyond(self) -> int:
        """The first number that no point has."""
        return 2 * max(self.down.rows.size, self.up.rows.size)

    def at(self, numbers: np.ndarray) -> Floats:
        """The points of these numbers."""
        places = numbers.astype(np.int64) // 2
        is_up = numbers.astype(np.int64) % 2 == 1
        points = np.empty((len(numbers), self.up.rows.values.shape[1]))
        for which, library in ((is_up, self.up), (~is_up, self.down)):
            rows = library.rows.values
            if which.any() and int(places[which].max()) >= len(rows):
                raise RemoteProtocolError(f"a point of number {int(places[which].max())}, where {len(rows)} are known")
            points[which] = rows[places[which]]
        return points

    def sent_up(self, X: Floats) -> Libraries:
        """After these points went up."""
        return Libraries(up=with_points(self.up, X), down=self.down)

    def sent_down(self, X: Floats) -> Libraries:
        """After these points came down."""
        return Libraries(up=self.up, down=with_points(self.down, X))

    def received(self, count: int) -> Libraries:
        """With the first ``count`` of those that came down, as the rest was lost."""
        return Libraries(up=self.up, down=first_points(self.down, count))


def with_points(library: GrowingPoints, X: Floats) -> GrowingPoints:
    """A library with those rows of X that it lacks, each once."""
    fresh: dict[bytes, int] = {}
    for row, identity in enumerate(keys(X)):
        if library.row_at(identity) < 0:
            fresh.setdefault(identity, row)
    return library.appended(X[list(fresh.values())]) if fresh else library


def first_points(library: GrowingPoints, count: int) -> GrowingPoints:
    """The first ``count`` points of a library."""
    if count >= library.rows.size:
        return library
    return GrowingPoints(rows=GrowingRows(size=count, shared=library.rows.shared), known=library.known)


def packed(
    X: Floats, wire: Wire, known: Libraries | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Points as the values and records of a payload; what there is nothing of is left out.

    A point that comes twice goes once, and then by a number beyond those that are known.
    """
    numbers = np.full(len(X), -1, dtype=np.int64)
    form = np.asarray(wire.form_of(X))
    if known is not None and wire.by_reference:
        numbers[:] = _numbers(X, known)
        form = np.where(numbers >= 0, REFERENCE, form)
    values = {
        name: array
        for name, array in zip(FORMS, wire.packed(X[form < REFERENCE]), strict=False)
        if len(array) or name == "points"
    }
    if (form == REFERENCE).any():
        values["ids"] = _narrowest(numbers[form == REFERENCE])
        if not len(values["points"]):
            del values["points"]
    records = {} if len(set(form.tolist())) < 2 else {"forms": _two_bits(form)}
    return values, records


def _numbers(X: Floats, known: Libraries) -> list[int]:
    """The number of each point, −1 for one that travels as it is."""
    fresh: dict[bytes, int] = {}
    numbers = []
    for identity in keys(X):
        number = known.number_at(identity)
        if number < 0 and identity in fresh:
            number = known.beyond + fresh[identity]
        elif number < 0:
            fresh[identity] = len(fresh)
        numbers.append(number)
    return numbers


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
    numbers = values.get("ids", np.empty(0, dtype=np.uint8))
    if numbers.dtype.kind != "u" or numbers.ndim != 1:
        raise RemoteProtocolError("numbers of known points are not whole numbers")
    if known is None and len(numbers):
        raise RemoteProtocolError("numbers of known points, where each comes as it is")
    count = sum(len(part) for part in parts.values()) + len(numbers)
    order = _order(parts, records.get("forms"), count, references=len(numbers))
    points = np.empty((count, dim))
    for form, part in parts.items():
        points[order == form] = part
    if known is not None:
        points[order == REFERENCE] = _referred(numbers, points[order < REFERENCE], known)
    return points


def _referred(numbers: np.ndarray, fresh: Floats, known: Libraries) -> Floats:
    """The points of numbers, of which those beyond the ones known are of this parcel."""
    beyond = numbers.astype(np.int64) - known.beyond
    points = np.empty((len(numbers), fresh.shape[1]))
    points[beyond < 0] = known.at(numbers[beyond < 0])
    if int(beyond.max(initial=-1)) >= len(fresh):
        raise RemoteProtocolError(f"a point of number {int(numbers.max())}, where {len(fresh)} are new")
    points[beyond >= 0] = fresh[beyond[beyond >= 0]]
    return points


def _order(parts: dict[int, Floats], forms: np.ndarray | None, count: int, *, references: int) -> np.ndarray:
    """The form of each point in turn."""
    counts = {REFERENCE: references} | {form: len(part) for form, part in parts.items()}
    filled = [form for form, many in counts.items() if many]
    if forms is None:
        if len(filled) > 1:
            raise RemoteProtocolError("points in several forms do not say their order")
        return np.full(count, filled[0] if filled else 0)
    order = _of_two_bits(forms, count)
    for form in range(REFERENCE + 1):
        if int((order == form).sum()) != counts.get(form, 0):
            raise RemoteProtocolError(f"{counts.get(form, 0)} points of form {form}, and the order has another number")
    return order


def _narrowest(numbers: np.ndarray) -> np.ndarray:
    largest = int(numbers.max(initial=0))
    return numbers.astype(np.uint8 if largest < 2**8 else np.uint16 if largest < 2**16 else np.uint32)


def _two_bits(form: np.ndarray) -> np.ndarray:
    """Four forms a byte."""
    padded = np.zeros(-(-len(form) // 4) * 4, dtype=np.uint8)
    padded[: len(form)] = form
    quads = padded.reshape(-1, 4)
    return np.asarray(quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6, dtype=np.uint8)


def _of_two_bits(packed: np.ndarray, count: int) -> np.ndarray:
    if packed.dtype != np.uint8 or packed.ndim != 1 or len(packed) != -(-count // 4):
        raise RemoteProtocolError(f"the order of {count} points does not have {packed.size} bytes")
    quads = np.stack([packed >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    return quads.reshape(-1)[:count]
