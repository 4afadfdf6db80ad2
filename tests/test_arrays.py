"""Large arrays in memory of their own."""

import mmap

import numpy as np
import pytest

from laconic.arrays import LARGE, Floats, apart, set_apart


def memory(array: Floats) -> object:
    """What an array's numbers lie in."""
    base: object = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base.obj if isinstance(base, memoryview) else base


@pytest.mark.parametrize("rows", [0, 1, LARGE // 8])
def test_only_large_arrays_have_memory_of_their_own(rows: int) -> None:
    array = apart(rows, 1)
    array[:] = 2.0
    assert (array.shape, array.dtype.name, float(array.sum())) == ((rows, 1), "float64", 2.0 * rows)
    assert isinstance(memory(array), mmap.mmap) == (rows == LARGE // 8)


def test_an_array_for_which_there_is_no_room_is_refused_as_numpy_does() -> None:
    for made in (apart, lambda *shape: np.empty(shape)):
        with pytest.raises(MemoryError):
            made(2**28, 2**28)  # more than a processor can address


def test_an_array_that_is_set_apart_has_the_same_numbers_elsewhere() -> None:
    array = np.arange(float(LARGE)).reshape(2, -1).T
    copied = set_apart(array)
    np.testing.assert_array_equal(copied, array)
    assert copied.flags.c_contiguous
    assert not np.shares_memory(copied, array)
    assert set_apart(array[:2]).base is not None  # few numbers stay where they are
