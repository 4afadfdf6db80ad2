"""Entries in few bits: what goes in comes out, in as many bits as the code says, and nothing else is read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from laconic.protocol import rice, tight
from laconic.protocol.messages import Payload
from tests.protocol.test_overhead import LAYOUT

bytes_of_any_size = arrays(np.uint8, st.integers(0, 200), elements=st.integers(0, 255))
close_bytes = arrays(np.uint8, st.integers(8, 200), elements=st.integers(100, 109))
codes = st.builds(rice.Code, st.integers(0, 255), st.integers(0, rice.MOST_LOW), st.just(0))


def bit_by_bit(entries: Any, code: rice.Code) -> bytes:
    """The same as `rice.written`, as one would say it."""
    lowest, unary = "", ""
    for entry in map(int, entries):
        apart = (entry - code.middle + 128) % 256 - 128
        distance = 2 * apart if apart >= 0 else -2 * apart - 1
        lowest += "".join(str(distance >> place & 1) for place in range(code.low))
        unary += "0" * (distance >> code.low) + "1"
    bits = lowest + unary
    bits += "0" * (-len(bits) % 8)
    return bytes([code.middle, code.low, *(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))])


@given(bytes_of_any_size, codes)
def test_entries_are_written_as_bit_by_bit_and_read_again(entries: Any, code: rice.Code) -> None:
    data = rice.written(entries, code)
    assert data == bit_by_bit(entries, code)
    again, size = rice.read(memoryview(data + b"more"), len(entries))
    assert size == len(data)
    assert again.tobytes() == entries.tobytes()


@given(bytes_of_any_size | close_bytes)
def test_the_best_code_takes_the_fewest_bytes_about_its_middle(entries: Any) -> None:
    best = rice.best(entries)
    middle = int(np.sort(entries)[(len(entries) - 1) // 2]) if len(entries) else 0
    sizes = [len(bit_by_bit(entries, rice.Code(middle, low, 0))) for low in range(rice.MOST_LOW + 1)]
    if best is None:
        assert len(entries) <= max(min(sizes), rice.HEAD)
    else:
        assert best.size == min(sizes) == len(rice.written(entries, best)) < len(entries)


@given(st.binary(max_size=40), st.integers(0, 100))
def test_anything_else_is_refused_or_is_what_would_be_written(data: bytes, count: int) -> None:
    try:
        entries, size = rice.read(memoryview(data), count)
    except ValueError:
        return
    assert len(entries) == count
    assert rice.written(entries, rice.Code(data[0], data[1], 0)) == data[:size]


SMALL = replace(LAYOUT, small=("points", "weights", "mean", "rest"))


@pytest.mark.parametrize("spread", [0.5, 3.0, 30.0, 300.0])
def test_arrays_in_few_bits_are_found_as_they_were(spread: float) -> None:
    drawn = np.random.default_rng(3).normal(0.0, spread, size=400)
    small = np.clip(drawn, -128, 127).astype(np.int8)
    sent = Payload(
        values={"points": small.reshape(-1, 2), "weights": small.view(np.uint8) ^ np.uint8(128), "mean": small},
        records={"rest": small.view(np.uint8) ^ np.uint8(128)},
    )
    chosen = tight.chosen(sent, SMALL, dim=2)
    assert chosen is not None
    data = tight.head(chosen, SMALL) + b"".join(each.entries() for each in chosen)
    assert sum(each.size for each in chosen) == sum(len(each.entries()) for each in chosen)
    assert len(data) < 1700 or spread == 300.0
    for each in tight.found(data, SMALL, dim=2):
        array = {**sent.values, **sent.records}[each.name]
        assert (each.dtype, each.shape, bytes(each.entries)) == (array.dtype, array.shape, array.tobytes())


def test_few_bits_claim_no_more_than_they_have() -> None:
    sent = Payload(values={"points": np.zeros((50, 2), np.int8)}, records={"rest": np.zeros(40, np.uint8)})
    chosen = tight.chosen(sent, SMALL, dim=2)
    assert chosen is not None
    data = tight.head(chosen, SMALL) + b"".join(each.entries() for each in chosen)
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"bytes|bits|size"):
            tight.found(data[:end], SMALL, dim=2)
    with pytest.raises(ValueError, match=r"bytes|bits|size"):
        tight.found(data[:1] + b"\xff\xff\xff\x7f" + data[2:], SMALL, dim=2)
