"""The exact mean as it travels: whole numbers of steps, small ones in one byte.

With L_H the root of H + λI in the coordinates of the atoms and θ the exact coefficients there, c = L_Hᵀθ is the mean as
the client's features see it: μ(x) = v(x)·c with ‖v(x)‖ ≤ σ̂(x). A step of Δ therefore moves a mean by at most
σ̂(x)·Δ√m/2, whatever the weights are.
"""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.checks import finite_array, require_positive
from laconic.errors import InputError

#: Whole numbers beyond this are not exact in float64.
MOST = 2**53
#: Bits of a number that a byte of its encoding holds; the eighth says that more follow.
GROUP = 7


def is_expressible(c: Floats, *, step: float) -> bool:
    """Whether all coefficients are whole numbers of steps that can be written."""
    return bool((np.abs(np.round(c / step)) <= MOST).all())


def quantised(c: Floats, *, step: float) -> Ints:
    """Each coefficient as the nearest whole number of steps."""
    require_positive("step", step)
    if not is_expressible(finite_array("c", c, ndim=1), step=step):
        raise InputError(f"a coefficient of the mean exceeds 2^53 steps of {step:g}; try a larger range of rewards")
    return np.round(c / step).astype(np.int64)


def packed(numbers: Ints) -> bytes:
    """Whole numbers as zigzag varints: 0, −1, 1, −2, … become 0, 1, 2, 3, …, seven bits a byte, low ones first."""
    numbers = np.asarray(numbers, dtype=np.int64)
    left = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    columns = []
    while True:
        more = left >> np.uint64(GROUP)
        columns.append(((left & np.uint64(127)) | np.where(more > 0, np.uint64(128), np.uint64(0))).astype(np.uint8))
        if not more.any():
            break
        left = more
    table = np.stack(columns, axis=1)
    # A byte is written when the one before it says that more follow.
    written = np.ones(table.shape, dtype=np.bool_)
    written[:, 1:] = np.logical_and.accumulate(table[:, :-1] >= 128, axis=1)
    return table[written].tobytes()


def unpacked(data: bytes, *, count: int) -> Ints:
    """The ``count`` whole numbers that `packed` wrote; bytes that are anything else are refused."""
    array = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(array < 128)
    if len(ends) != count or (len(array) and array[-1] >= 128):
        raise InputError(f"the packed mean holds {len(ends)} whole numbers in {len(array)} bytes, but {count} are due")
    starts = np.concatenate([[0], ends[:-1] + 1]) if count else ends
    if count and int((ends - starts).max()) > 9:
        raise InputError("a number of the packed mean is longer than 64 bits")
    place = np.arange(len(array)) - np.repeat(starts, ends - starts + 1)
    if (array[place == 9] > 1).any():
        raise InputError("a number of the packed mean is longer than 64 bits")
    parts = (array & 127).astype(np.uint64) << (GROUP * place).astype(np.uint64)
    zigzag = np.add.reduceat(parts, starts) if count else np.empty(0, dtype=np.uint64)
    return (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
