"""Points that the other side may know: those that it does go as a number, others in single precision.

A payload has ``points``, the rows that are not known, ``ids``, the numbers of those that are, and one bit for each
point in ``known`` where there are both. Of the dictionary that both sides hold, row k has the number 2k; of the points
that the receiver itself has just sent as rows, row k has the number 2k + 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.errors import RemoteProtocolError
from laconic.growing import key
from laconic.protocol.messages import Payload
from laconic.protocol.shapes import Layout
from laconic.protocol.wire import FloatWire

SINGLE = FloatWire("float32")
DICTIONARY, OWN = 0, 1
LAYOUT = Layout(values={"points": ("n", "d"), "ids": ("i",)}, records={"known": ("b",)})


def numbers(points: Floats, kind: int) -> dict[bytes, int]:
    """The numbers of the points of a dictionary, or of a client's own."""
    found: dict[bytes, int] = {}
    for row, x in enumerate(points):
        found.setdefault(key(x), 2 * row + kind)
    return found


def single(points: Floats) -> Floats:
    """Points as they are after a journey."""
    return SINGLE.rounded(points, np.empty(0), kernel=None, lam=1.0)[0]


def packed(points: Floats, known: Mapping[bytes, int]) -> Payload:
    """Points, of which those that are ``known`` go as their numbers."""
    ids = np.array([known.get(key(x), -1) for x in points], dtype=np.int64)
    return _payload(points[ids < 0], ids[ids >= 0], ids >= 0)


def _payload(rows: Floats, ids: Ints, known: Bools) -> Payload:
    """What there is nothing of is left out."""
    values: dict[str, np.ndarray] = {}
    if len(rows):
        values["points"] = SINGLE.packed(rows)[0]
    if len(ids):
        values["ids"] = ids.astype(np.uint16 if ids.max() < 2**16 else np.uint32)
    return Payload(values=values, records={"known": np.packbits(known)} if len(values) > 1 else {})


def _read(payload: Payload, dim: int) -> tuple[Floats, Ints, Bools]:
    """The rows, the numbers, and which points have one."""
    values = payload.values
    if not values or not values.keys() <= {"points", "ids"}:
        raise RemoteProtocolError(f"expected points, or numbers of known ones, got {sorted(values)}")
    rows = SINGLE.unpacked(0, values["points"]) if "points" in values else np.empty((0, dim))
    ids = values.get("ids", np.empty(0, dtype=np.uint16))
    if rows.ndim != 2 or rows.shape[1] != dim or ids.ndim != 1 or ids.dtype not in (np.uint16, np.uint32):
        raise RemoteProtocolError(f"points of shape {rows.shape} and numbers of {ids.dtype} of shape {ids.shape}")
    return rows, ids.astype(np.int64), _mask(payload, len(rows), len(ids))


def _mask(payload: Payload, rows: int, ids: int) -> Bools:
    if len(payload.values) < 2:
        return np.full(rows + ids, ids > 0)
    bits = payload.records.get("known", np.empty(0, dtype=np.uint8))
    if bits.dtype != np.uint8 or bits.shape != (-(-(rows + ids) // 8),):
        raise RemoteProtocolError(f"{rows} points and {ids} numbers do not say their order")
    mask = np.unpackbits(bits)[: rows + ids].astype(np.bool_)
    if int(mask.sum()) != ids:
        raise RemoteProtocolError(f"{ids} numbers of known points, and {int(mask.sum())} places for them")
    return mask


def rows_of(payload: Payload, dim: int) -> Floats:
    """The points that do not go by number."""
    return _read(payload, dim)[0]


def count(payload: Payload) -> int:
    """How many points there are."""
    return sum(len(array) for array in payload.values.values())


def has_kind(payload: Payload, kind: int) -> bool:
    """Whether one of the points goes by a number of this kind."""
    return bool((payload.values.get("ids", np.empty(0, dtype=np.uint16)) % 2 == kind).any())


def resolved(payload: Payload, points: Floats, kind: int) -> Payload:
    """The same points with those of one kind written out."""
    rows, ids, mask = _read(payload, points.shape[1])
    places = np.flatnonzero(mask)
    which = ids % 2 == kind
    if which.any() and int(ids[which].max()) // 2 >= len(points):
        raise RemoteProtocolError(
            f"a known point of number {int(ids[which].max()) // 2}, where {len(points)} are known"
        )
    full = np.empty((len(mask), points.shape[1]))
    full[~mask] = rows
    full[places[which]] = points[ids[which] // 2]
    mask[places[which]] = False
    return _payload(full[~mask], ids[~which], mask)


def points_of(payload: Payload, dictionary: Floats) -> Floats:
    """All points, none of which goes by a number of one's own."""
    rows, ids, _ = _read(resolved(payload, dictionary, DICTIONARY), dictionary.shape[1])
    if len(ids):
        raise RemoteProtocolError(f"{len(ids)} points go by numbers that only their sender knows")
    return rows
