"""Tight payloads: what stands before the entries of arrays that travel in one run of bytes.

First a bit for each array of the layout that says whether it is there, unless it always is; then for each that is
there, and may have entries of several types, which of these; then each size that does not follow, seven bits a byte;
then all entries, those of the layout's ``rest`` last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from typing import NamedTuple

import numpy as np

from laconic.protocol.messages import Payload
from laconic.protocol.shapes import MOST_FIELDS, Layout, Shape

#: Sizes are below this.
MOST = 2**32
#: No head has more bytes before its sizes: a bit and a type for each array.
MOST_HEAD = 5 * MOST_FIELDS // 8


class Chosen(NamedTuple):
    """An array that travels."""

    name: str
    array: np.ndarray
    sizes: tuple[int, ...]  # those of its shape that nothing else says


class Place(NamedTuple):
    """Where an array's entries are."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def chosen(payload: Payload, layout: Layout, *, dim: int) -> list[Chosen] | None:
    """The arrays of a payload as a tight layout has them; None if it has others, or the layout is not tight."""
    given = {**payload.values, **payload.records}
    follows = payload.values.keys() <= layout.values.keys() and payload.records.keys() <= layout.records.keys()
    if not layout.types or not follows or payload.control or dim == 0 or not given.keys() >= set(layout.always):
        return None
    known, found = {"d": dim}, list[Chosen]()
    for name, shape in layout.order:
        if name not in given:
            continue
        array = given[name]
        sizes = _sizes(array.shape, shape, known)
        if sizes is None or array.dtype not in layout.kinds[name]:
            return None
        found.append(Chosen(name, array, () if name == layout.rest else sizes))
    return found


def _sizes(actual: tuple[int, ...], shape: Shape, known: dict[str, int]) -> tuple[int, ...] | None:
    """The sizes of an array that nothing before it says, which are then known; None if it has another shape."""
    if len(actual) != len(shape):
        return None
    said = []
    for size, axis in zip(actual, shape, strict=True):
        if isinstance(axis, str) and axis not in known:
            known[axis] = size
            said.append(size)
        if size != _size(axis, known):
            return None
    return tuple(said)


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


def places(data: bytes, layout: Layout, *, dim: int) -> list[Place]:
    """Where the arrays of a layout are in a run of bytes; a ValueError where they do not fill it."""
    types, start = _types(data, layout)
    known, sized = {"d": dim}, dict[str, tuple[int, ...]]()
    for name, shape in layout.order:
        if name not in types or name == layout.rest:
            continue
        for axis in shape:
            if isinstance(axis, str) and axis not in known:
                known[axis], start = _read_varint(data, start)
        sized[name] = tuple(_size(axis, known) for axis in shape)
    found = list[Place]()
    for name, dtype in types.items():
        width = np.dtype(dtype).itemsize
        shape = sized[name] if name in sized else (max(len(data) - start, 0) // width,)
        stop = start + math.prod(shape) * width
        found.append(Place(name, dtype, shape, start, stop))
        start = stop
    if start != len(data):
        raise ValueError(f"arrays of {start} bytes in {len(data)}")
    return found


def _types(data: bytes, layout: Layout) -> tuple[dict[str, str], int]:
    """The type of each array that is there, in the order in which they travel, and where sizes begin."""
    number, used, there = int.from_bytes(data[:MOST_HEAD], "little"), 0, list[str]()
    for name, _ in layout.order:
        if name in layout.always:
            there.append(name)
            continue
        if number >> used & 1:
            there.append(name)
        used += 1
    found = dict[str, str]()
    for name in there:
        types = layout.types[name]
        kind = number >> used & (1 << _width(types)) - 1
        if kind >= len(types):
            raise ValueError(f"{name} is of type {kind} of {len(types)}")
        found[name] = types[kind]
        used += _width(types)
    start = -(-used // 8)
    if start > len(data) or number >> used & (1 << 8 * start - used) - 1:
        raise ValueError("a run of bytes that ends early, or says what nothing follows from")
    return found, start


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
