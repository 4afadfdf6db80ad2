"""Types of arrays, by what is in them, and large arrays in memory of their own."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: From so many bytes on, an array is worth pages of its own.
LARGE = 2**17
#: Pages that a forked process does not share; where there is no fork there are no such flags.
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def apart(*shape: int) -> Floats:
    """An array to be filled; a large one has memory of its own, which goes back to the system with it.

    Among other arrays the memory of one that is gone is a hole, into which one that is a little larger does not fit.
    Where such arrays follow each other, most of a process would soon be holes. What is never filled takes no memory.
    """
    size = 8 * int(np.prod(shape))
    if size < LARGE:
        return np.empty(shape)
    try:
        memory = mmap.mmap(-1, size, **PRIVATE)
    except OSError as error:  # which is what the system says; numpy, and so whoever catches it, calls it this
        raise MemoryError(f"there is no room for an array of shape {shape}") from error
    return np.frombuffer(memory, dtype=np.float64).reshape(shape)


def set_apart(array: Floats) -> Floats:
    """The same numbers, in memory of their own where they are many."""
    if array.nbytes < LARGE:
        return array
    copied = apart(*array.shape)
    copied[:] = array
    return copied
