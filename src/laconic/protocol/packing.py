"""Payloads as msgpack: by place where they follow a layout, with names and shapes where they do not.

What follows a tight layout is one run of bytes (`laconic.protocol.tight`). Elsewhere an array is an extension: its code
says the type of the entries, which follow little-endian. One that travels by name has its number of axes and its shape,
as 32-bit numbers, before them. What goes in comes out: same type, shape and bits.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from laconic.arrays import Ints
from laconic.errors import LocalProtocolError
from laconic.protocol import tight
from laconic.protocol.messages import Payload
from laconic.protocol.shapes import MOST_FIELDS, Layout, solved

_TYPES = ("float64", "float32", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
#: The types of entries that travel, with their codes.
CODES = {np.dtype(name): code for code, name in enumerate(_TYPES, start=1)}
_TYPE_OF = {code: dtype for dtype, code in CODES.items()}
_MOST_AXES = 4
#: Extensions of these lengths need not say them.
_FIXED = (1, 2, 4, 8, 16)
#: An array without entries may be so long along its other axes, that nobody makes something large of nothing.
_MOST_EMPTY = 2**16
#: Whole numbers below this are exact as floats, and below the other one byte long in msgpack.
MOST_WHOLE, NARROW = 2**53, 2**7
_WIDER_FROM = (NARROW, 2**8, 2**16, 2**32)
_WIDTHS = (1, 2, 3, 5, 9)
MOST_WIDTH = _WIDTHS[-1]
_encode = msgspec.msgpack.Encoder().encode

_FEW = msgspec.Meta(max_length=MOST_FIELDS)
_Packed = Annotated[list[Ext | int | float | None], _FEW]


class _Described(msgspec.Struct, frozen=True, eq=False, omit_defaults=True, forbid_unknown_fields=True):
    """A payload that says its own names; a map, which tells it from one by place."""

    v: Annotated[dict[str, Ext], _FEW] = {}
    r: Annotated[dict[str, Ext], _FEW] = {}
    c: Annotated[dict[str, int | float], _FEW] = {}


_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_Described | _Packed | bytes)
#: Bytes that follow each other.
Pieces = tuple[bytes | memoryview, ...]
#: Makes an array part of what is encoded: its code, what stands before its entries, and itself.
_Put = Callable[[int, bytes, np.ndarray], Any]


def width(number: int) -> int:
    """How many bytes msgpack takes for a whole number from 0 on."""
    return _WIDTHS[bisect(_WIDER_FROM, number)]


def widths(numbers: Ints) -> Ints:
    """The `width` of each of these numbers."""
    return np.array(_WIDTHS)[np.searchsorted(_WIDER_FROM, numbers, side="right")]


def pack(payload: Payload, layout: Layout | None, *, dim: int) -> bytes:
    """The payload as msgpack."""
    return b"".join(in_pieces(payload, layout, dim=dim))


def in_pieces(payload: Payload, layout: Layout | None, *, dim: int) -> Pieces:
    """The payload as msgpack, in pieces; arrays by place are not copied, as they may be large."""
    if layout is not None and (chosen := tight.chosen(payload, layout, dim=dim)) is not None:
        return (_encode(tight.head(chosen, layout) + b"".join(each.entries() for each in chosen)),)
    if layout is not None and _follows(payload, layout, dim):
        fields = _by_place(payload, layout, _beside_its_head)
        return (_list_head(len(fields)), *(piece for each in fields for piece in _pieces(each)))
    return (_encode(_arranged(payload, layout, dim, _extension)),)


def is_made_of(data: msgspec.Raw, pieces: Pieces) -> bool:
    """Whether these bytes are the pieces, one after the other; none of them is copied, as they may be large."""
    there, first = memoryview(data), 0
    if len(there) != sum(map(len, pieces)):
        return False
    for piece in filter(len, pieces):
        part = np.frombuffer(piece, dtype=np.uint8)
        if not np.array_equal(np.frombuffer(there[first : first + len(part)], dtype=np.uint8), part):
            return False
        first += len(part)
    return True


def packed_size(payload: Payload, layout: Layout | None, *, dim: int) -> int:
    """len(pack(…)), without copying the arrays."""
    if layout is not None and (chosen := tight.chosen(payload, layout, dim=dim)) is not None:
        length = len(tight.head(chosen, layout)) + sum(each.size for each in chosen)
        return length + (2 if length < 2**8 else 3 if length < 2**16 else 5)
    lengths: list[int] = []

    def put(code: int, head: bytes, array: np.ndarray) -> msgspec.Raw:
        lengths.append(len(head) + array.nbytes)
        return msgspec.Raw(b"")

    rest = len(_encode(_arranged(payload, layout, dim, put)))
    return rest + sum(length + _head(length) for length in lengths)


def unpack(data: msgspec.Raw, layout: Layout | None, *, dim: int) -> Payload:
    """The payload in this msgpack; anything else raises a ValueError or an error of msgspec's."""
    found = _decoder.decode(data)
    if isinstance(found, _Described):
        return Payload(
            values={name: described(ext.code, memoryview(ext.data)) for name, ext in found.v.items()},
            control={name: _number(value) for name, value in found.c.items()},
            records={name: described(ext.code, memoryview(ext.data)) for name, ext in found.r.items()},
        )
    if isinstance(found, bytes):
        return _loosened(found, layout, dim)
    if layout is None or len(found) > layout.size:
        raise ValueError("a payload by place, where none is expected or with too much in it")
    return _placed(found, layout, dim)


# -- arrays ------------------------------------------------------------------------------------------------------------


def extension(array: Any) -> Ext:
    """An array that says its own shape."""
    return _extension(*_with_shape(array), array)


def described(code: int, data: memoryview) -> np.ndarray:
    """The array in an extension that says its own shape."""
    axes = data[0] if len(data) else _MOST_AXES + 1
    head = 1 + 4 * axes
    if axes > _MOST_AXES or len(data) < head:
        raise ValueError("not an array")
    shape = struct.unpack(f"<{axes}I", data[1:head])
    if 0 in shape and math.prod(size for size in shape if size) > _MOST_EMPTY:
        raise ValueError(f"an array without entries has the shape {shape}")
    flat = _flat(code, data[head:])
    if len(flat) != math.prod(shape):
        raise ValueError(f"an array of shape {shape} does not have {len(flat)} entries")
    return flat.reshape(shape)


def _flat(code: int, data: memoryview) -> np.ndarray:
    if code not in _TYPE_OF:
        raise ValueError(f"no array has the code {code}")
    dtype = _TYPE_OF[code]
    array: np.ndarray = np.frombuffer(data, dtype=dtype.newbyteorder("<")).astype(dtype)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("an array holds a value that is not finite")
    return array


def _code(array: Any) -> int:
    found = CODES.get(array.dtype) if isinstance(array, np.ndarray) else None
    if found is None:
        what = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise LocalProtocolError(f"{what} cannot travel; convert it to an array of {', '.join(_TYPES)}")
    return found


def _with_shape(array: Any) -> tuple[int, bytes]:
    code = _code(array)
    if array.ndim > _MOST_AXES or max(array.shape, default=0) >= 2**32:
        raise LocalProtocolError(f"an array of shape {array.shape} cannot travel; at most {_MOST_AXES} axes do")
    return code, struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)


def _extension(code: int, head: bytes, array: np.ndarray) -> Ext:
    entries = _entries(array)
    return Ext(code, head + entries if head else entries)


def _entries(array: np.ndarray) -> memoryview:
    """The entries of an array as they travel."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def _beside_its_head(code: int, _: bytes, array: np.ndarray) -> Pieces:
    """An array as an extension whose entries are where they were."""
    entries = _entries(array)
    return _extension_head(code, len(entries)), entries


def _extension_head(code: int, length: int) -> bytes:
    """The head of an extension in msgpack."""
    if length in _FIXED:
        return struct.pack(">BB", 0xD4 + _FIXED.index(length), code)
    if length < 2**8:
        return struct.pack(">BBB", 0xC7, length, code)
    return struct.pack(">BHB", 0xC8, length, code) if length < 2**16 else struct.pack(">BIB", 0xC9, length, code)


def _list_head(length: int) -> bytes:
    """The head of a list in msgpack, which is no longer than a layout."""
    return bytes([0x90 + length]) if length < 2**4 else struct.pack(">BH", 0xDC, length)


def _pieces(field: Any) -> Pieces:
    return field if isinstance(field, tuple) else (_encode(field),)


def _head(length: int) -> int:
    """How many bytes msgpack puts before an extension of this length."""
    return len(_extension_head(1, length))


# -- payloads ----------------------------------------------------------------------------------------------------------


def _arranged(payload: Payload, layout: Layout | None, dim: int, put: _Put) -> Any:
    """What msgpack encodes for a payload."""
    if layout is not None and _follows(payload, layout, dim):
        return _by_place(payload, layout, put)
    return _Described(
        v={name: put(*_with_shape(array), array) for name, array in payload.values.items()},
        r={name: put(*_with_shape(array), array) for name, array in payload.records.items()},
        c={name: _compact(value) for name, value in payload.control.items()},
    )


def _follows(payload: Payload, layout: Layout, dim: int) -> bool:
    """Whether the receiver would find the names and shapes of this payload by itself."""
    places = ((payload.values, layout.values), (payload.records, layout.records), (payload.control, layout.control))
    if any(not given.keys() <= known.keys() for given, known in places):
        return False
    arrays = list(_arrays(payload, layout))
    try:
        shapes = _shapes(arrays, layout, dim)
    except ValueError:
        return False
    return all(array is None or array.shape == shape for array, shape in zip(arrays, shapes, strict=True))


def _shapes(arrays: Sequence[np.ndarray | None], layout: Layout, dim: int) -> list[tuple[int, ...] | None]:
    """What shape each array of a layout has by its length and those of the others; None for one that is missing."""
    there = [(shape, array.size) for array, shape in zip(arrays, layout.shapes, strict=True) if array is not None]
    found = iter(solved(tuple(shape for shape, _ in there), tuple(length for _, length in there), dim=dim))
    return [None if array is None else next(found) for array in arrays]


def _arrays(payload: Payload, layout: Layout) -> Iterator[np.ndarray | None]:
    yield from (payload.values.get(name) for name in layout.values)
    yield from (payload.records.get(name) for name in layout.records)


def _by_place(payload: Payload, layout: Layout, put: _Put) -> list[Any]:
    """Arrays and numbers in order; what is missing is nil, and left out at the end."""
    fields = [None if array is None else put(_code(array), b"", array) for array in _arrays(payload, layout)]
    for name, kind in layout.control.items():
        value = payload.control.get(name)
        fields.append(value if value is None else _compact(value) if kind is int else float(value))
    while fields and fields[-1] is None:
        fields.pop()
    return fields


def _placed(fields: list[Ext | int | float | None], layout: Layout, dim: int) -> Payload:
    fields = [*fields, *[None] * (layout.size - len(fields))]
    count = len(layout.shapes)
    flat = [_flat_of(each) for each in fields[:count]]
    shapes = _shapes(flat, layout, dim)
    arrays = [None if each is None else each.reshape(shape) for each, shape in zip(flat, shapes, strict=True)]
    numbers = zip(layout.control, fields[count:], strict=True)
    return Payload(
        values=_named(layout.values, arrays),
        records=_named(layout.records, arrays[len(layout.values) :]),
        control={name: _number(value) for name, value in numbers if value is not None},
    )


def _loosened(data: bytes, layout: Layout | None, dim: int) -> Payload:
    """The payload of a tight layout."""
    if layout is None or not layout.types:
        raise ValueError("a payload in one run of bytes, where none is expected")
    arrays: dict[str, np.ndarray] = {}
    for name, dtype, shape, entries in tight.found(data, layout, dim=dim):
        arrays[name] = _flat(CODES[dtype], entries).reshape(shape)
    values, records = (
        {name: arrays[name] for name in part if name in arrays} for part in (layout.values, layout.records)
    )
    return Payload(values=values, records=records)


def _flat_of(field: Ext | int | float | None) -> np.ndarray | None:
    if isinstance(field, int | float):
        raise ValueError("a number where an array is expected")
    return None if field is None else _flat(field.code, memoryview(field.data))


def _named(names: Iterable[str], arrays: list[np.ndarray | None]) -> dict[str, np.ndarray]:
    return {name: array for name, array in zip(names, arrays, strict=False) if array is not None}


def _compact(value: float) -> float:
    """A whole number as one, which takes fewer bytes; −0.0 is none."""
    value = float(value)
    if 0 <= value < MOST_WHOLE and value.is_integer() and math.copysign(1.0, value) > 0:
        return int(value)
    return value


def _number(value: Ext | int | float) -> float:
    if isinstance(value, Ext) or abs(value) >= (MOST_WHOLE if isinstance(value, int) else math.inf) or value != value:
        raise ValueError(f"a control field is {value}")
    return float(value)
