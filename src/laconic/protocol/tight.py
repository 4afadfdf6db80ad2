"""Tight payloads: what stands before the entries of arrays that travel in one run of bytes.

First a bit for each array of the layout that says whether it is there, unless it always is; then for each that is
there, and may have entries of several types, which of these; then for each that may be in few bits
(`laconic.protocol.rice`), and has entries of one byte, whether it is; then each size that does not follow, seven bits a
byte; then all entries, those of the layout's ``rest`` last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np

from laconic.protocol import rice
from laconic.protocol.messages import Payload
from laconic.protocol.shapes import MOST_FIELDS, Layout, Shape

#: Sizes are below this.
MOST = 2**32
#: No head has more bytes before its sizes: two bits and a type for each array.
MOST_HEAD = 6 * MOST_FIELDS // 8
#: Numbers with a sign are in few bits what they are from the least one on.
LEAST = np.uint8(0x80)


class Chosen(NamedTuple):
    """An array that travels."""

    name: str
    array: np.ndarray
    sizes: tuple[int, ...]  # those of its shape that nothing else says
    code: rice.Code | None  # of one in few bits

    @property
    def size(self) -> int:
        """How many bytes its entries take."""
        return self.array.nbytes if self.code is None else self.code.size

    def entries(self) -> bytes:
        """Its entries, little-endian or in few bits."""
        if self.code is not None:
            return rice.written(_counted(self.array), self.code)
        return self.array.astype(self.array.dtype.newbyteorder("<"), copy=False).tobytes()


class Found(NamedTuple):
    """An array that has travelled, its entries little-endian."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    entries: memoryview


def chosen(payload: Payload, layout: Layout, *, dim: int) -> list[Chosen] | None:
    """The arrays of a payload as a tight layout has them; None if it has others, or the layout is not tight."""
    if not layout.types or payload.control or dim == 0:
        return None
    given = {**payload.values, **payload.records}
    follows = payload.values.keys() <= layout.values.keys() and payload.records.keys() <= layout.records.keys()
    if not follows or any(name not in given for name in layout.always):
        return None
    known, found, kinds = {"d": dim}, list[Chosen](), layout.kinds
    for name, shape in layout.order:
        array = given.get(name)
        if array is None:
            continue
        sizes = _sizes(array.shape, shape, known)
        if sizes is None or array.dtype not in kinds[name]:
            return None
        code = rice.best(_counted(array)) if _may_be_small(name, array.dtype, layout) else None
        found.append(Chosen(name, array, () if name == layout.rest and code is None else sizes, code))
    return found


def least_size(array: np.ndarray) -> int:
    """How many bytes entries take, in few bits where they have one byte each and that is shorter."""
    code = rice.best(_counted(array)) if array.dtype.itemsize == 1 else None
    return array.nbytes if code is None else code.size


def _may_be_small(name: str, dtype: np.dtype[Any], layout: Layout) -> bool:
    """Whether an array may be in few bits."""
    return name in layout.small and dtype.itemsize == 1


def _counted(array: np.ndarray) -> rice.Entries:
    """Entries of one byte, from the least one on."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) ^ LEAST if flat.dtype == np.int8 else flat


def _sizes(actual: tuple[int, ...], shape: Shape, known: dict[str, int]) -> tuple[int, ...] | None:
    """The sizes of an array that nothing before it says, which are then known; None if it has another shape."""
    if len(actual) != len(shape):
        return None
    said: tuple[int, ...] = ()
    for size, axis in zip(actual, shape, strict=True):
        if isinstance(axis, str) and axis not in known:
            known[axis] = size
            said = (*said, size)
        elif size != _size(axis, known):
            return None
    return said


def _size(axis: str | int, known: Mapping[str, int]) -> int:
    return known[axis] if isinstance(axis, str) else axis


def head(arrays: list[Chosen], layout: Layout) -> bytes:
    """What stands before the entries."""
    there, number, used = {each.name for each in arrays}, 0, 0
    for name, _ in layout.order:
        if name not in layout.always:
            number |= (name in there) << used
            used += 1
    for each in arrays:
        kinds = layout.kinds[each.name]
        number |= kinds[each.array.dtype] << used
        used += _width(kinds)
    for each in arrays:
        if _may_be_small(each.name, each.array.dtype, layout):
            number |= (each.code is not None) << used
            used += 1
    sizes = b"".join(_varint(size) for each in arrays for size in each.sizes)
    return number.to_bytes(-(-used // 8), "little") + sizes


def _width(types: Sized) -> int:
    """How many bits tell these types apart."""
    return (len(types) - 1).bit_length()


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def found(data: bytes, layout: Layout, *, dim: int) -> list[Found]:
    """The arrays of a layout in a run of bytes; a ValueError where they do not fill it."""
    head = _Head(data, layout)
    shapes, start = _shapes(data, head, layout, dim=dim)
    arrays = list[Found]()
    for name, dtype in head.types.items():
        shape = shapes.get(name, (max(len(data) - start, 0) // dtype.itemsize,))
        entries, start = _entries(memoryview(data), start, dtype, count=math.prod(shape), small=name in head.small)
        arrays.append(Found(name, dtype, shape, entries))
    if start != len(data):
        raise ValueError(f"arrays of {start} bytes in {len(data)}")
    return arrays


def _shapes(data: bytes, head: _Head, layout: Layout, *, dim: int) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes that follow from the sizes said, and where entries begin; of a rest that is in few bits, too."""
    known, start, shapes = {"d": dim}, head.size, dict[str, tuple[int, ...]]()
    for name, shape in layout.order:
        if name not in head.types or (name == layout.rest and name not in head.small):
            continue
        for axis in shape:
            if isinstance(axis, str) and axis not in known:
                known[axis], start = _read_varint(data, start)
        shapes[name] = tuple(_size(axis, known) for axis in shape)
    return shapes, start


def _entries(data: memoryview, start: int, dtype: np.dtype[Any], *, count: int, small: bool) -> tuple[memoryview, int]:
    """So many entries from here on, and where they end."""
    if not small:
        stop = start + count * dtype.itemsize
        return data[start:stop], stop
    if count > 8 * (len(data) - start):
        raise ValueError(f"{count} entries in few bits, in {len(data) - start} bytes")
    entries, size = rice.read(data[start:], count)
    return memoryview((entries ^ LEAST if dtype == np.int8 else entries).tobytes()), start + size


class _Head:
    """What a run of bytes says first: the type of each array that is there, which are in few bits, and its own size."""

    def __init__(self, data: bytes, layout: Layout) -> None:
        self._number, self._used = int.from_bytes(data[:MOST_HEAD], "little"), 0
        there = [name for name, _ in layout.order if name in layout.always or self._taken(1)]
        self.types = {name: self._type(name, layout.types[name]) for name in there}
        self.small = {
            name for name, dtype in self.types.items() if _may_be_small(name, dtype, layout) and self._taken(1)
        }
        self.size = -(-self._used // 8)
        if self.size > len(data) or self._taken(8 * self.size - self._used):
            raise ValueError("a run of bytes that ends early, or says what nothing follows from")

    def _taken(self, bits: int) -> int:
        """The next so many bits."""
        number = self._number >> self._used & (1 << bits) - 1
        self._used += bits
        return number

    def _type(self, name: str, types: Sequence[str]) -> np.dtype[Any]:
        kind = self._taken(_width(types))
        if kind >= len(types):
            raise ValueError(f"{name} is of type {kind} of {len(types)}")
        return np.dtype(types[kind])


def _read_varint(data: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while start < len(data) and number < MOST:
        byte = data[start]
        number |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if not byte & 0x80 and number < MOST:
            return number, start
        if shift > 35:
            break
    raise ValueError("a size that has no end, or is too large")
