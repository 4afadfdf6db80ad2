"""Small numbers in few bits: entries of one byte each, as how far they are from a middle.

A distance u, with its sign folded in, is its k lowest bits and then u >> k in unary (Rice's code); k and the middle are
those that suit the entries. Where weights and the coefficients of a mean lie close together that is five bits an entry
instead of eight. The lowest bits of all entries stand first, so that both parts are read without a loop.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Entries = NDArray[np.uint8]
#: The middle, and k.
HEAD = 2
MOST_LOW = 7
_LOW = np.arange(MOST_LOW + 1)
#: How many bits an entry at each distance takes, by k.
_COSTS = (np.arange(256)[:, None] >> _LOW) + 1 + _LOW


class Code(NamedTuple):
    """How some entries are written: their middle, how many bits stand as they are, and the bytes that it takes."""

    middle: int
    low: int
    size: int


def best(entries: Entries) -> Code | None:
    """The code in which entries take the fewest bytes; None where they take fewer as they are."""
    if len(entries) <= HEAD:
        return None
    counts = np.bincount(entries, minlength=256)
    middle = int(counts.cumsum().searchsorted((len(entries) + 1) // 2))
    bits = counts @ _costs(middle)
    low = int(bits.argmin())
    size = HEAD - (-int(bits[low]) // 8)
    return Code(middle, low, size) if size < len(entries) else None


def written(entries: Entries, code: Code) -> bytes:
    """Entries in a code."""
    distance = _folded(entries, code.middle)
    lowest = (distance[:, None] >> np.arange(code.low)) & 1
    unary = np.zeros(int((distance >> code.low).sum()) + len(distance), dtype=np.uint8)
    unary[np.cumsum((distance >> code.low) + 1) - 1] = 1  # a one ends each
    bits = np.concatenate([lowest.astype(np.uint8).reshape(-1), unary])
    return bytes([code.middle, code.low]) + np.packbits(bits, bitorder="little").tobytes()


def read(data: memoryview, count: int) -> tuple[Entries, int]:
    """So many entries from the beginning of some bytes, and how many bytes they took; else a ValueError."""
    if len(data) < HEAD or data[1] > MOST_LOW:
        raise ValueError("no entries in few bits")
    middle, low = data[0], data[1]
    most = HEAD - (-count * int(_COSTS[-1, low]) // 8)
    bits = np.unpackbits(np.frombuffer(data[HEAD:most], dtype=np.uint8), bitorder="little")
    lowest, unary = bits[: count * low].reshape(-1, low) if low else bits[:0], bits[count * low :]
    ends = np.flatnonzero(unary)[:count]
    if len(ends) < count or count * low > len(bits):
        raise ValueError(f"{len(ends)} entries in few bits, where {count} are expected")
    high = np.diff(ends, prepend=-1) - 1
    distance = (high << low) + (lowest @ (1 << np.arange(low)) if low else 0)
    used = count * low + (int(ends[-1]) + 1 if count else 0)
    size = -(-used // 8)
    if distance.max(initial=0) > 255 or bits[used : 8 * size].any():
        raise ValueError("entries in few bits that are none")
    return _unfolded(distance, middle).astype(np.uint8), HEAD + size


def _folded(entries: NDArray[np.integer[Any]], middle: int) -> NDArray[np.int64]:
    """0, 1, 2, 3, … for the middle, one less, one more, two less, …; all within a byte, as on a ring."""
    apart = (entries.astype(np.int64) - middle + 128) % 256 - 128
    return np.where(apart < 0, -2 * apart - 1, 2 * apart)


@cache
def _costs(middle: int) -> NDArray[np.int64]:
    """How many bits each entry takes beside a middle, by k."""
    return np.asarray(_COSTS[_folded(np.arange(256), middle)])


def _unfolded(distance: NDArray[np.int64], middle: int) -> NDArray[np.int64]:
    apart = np.where(distance % 2 == 1, -(distance + 1) // 2, distance // 2)
    return (apart + middle) % 256
