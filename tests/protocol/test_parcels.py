"""Parcels: points of any mixture of forms and references come out as they went in, and nothing else does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.arrays import Floats
from laconic.errors import RemoteProtocolError
from laconic.growing import keys
from laconic.protocol.parcels import Libraries, packed, unpacked
from laconic.protocol.wire import FloatWire, Int8Wire, Wire

WIRE = Int8Wire()
#: Two points each that take a byte, two bytes and four bytes a coordinate.
POINTS = np.array(
    [
        [0.0, 0.0],
        [10 / 127, -127 / 127],
        [1 / 32767, 0.0],
        [5 / 32767, 32766 / 32767],
        [1.5, 0.25],
        [-1e6, 0.0],
    ]
)
rows = st.lists(st.integers(0, len(POINTS) - 1), max_size=12)


def libraries(up: list[int], down: list[int]) -> Libraries:
    return Libraries.empty(2).sent_up(POINTS[up]).sent_down(POINTS[down])


def through(X: Floats, known: Libraries, wire: Wire = WIRE) -> Floats:
    values, records = packed(X, wire, known)
    return unpacked(values, records, wire, known, dim=2)


@given(which=rows, up=rows, down=rows)
def test_unpacking_is_the_inverse_of_packing_whatever_is_known(
    which: list[int], up: list[int], down: list[int]
) -> None:
    X, known = POINTS[which], libraries(up, down)
    np.testing.assert_array_equal(through(X, known), X)


@given(which=rows, up=rows, down=rows)
def test_no_point_that_the_other_side_knows_is_sent_again_nor_one_of_the_same_parcel(
    which: list[int], up: list[int], down: list[int]
) -> None:
    values, _ = packed(POINTS[which], WIRE, libraries(up, down))
    fresh = {row for row in which if row not in {*up, *down}}
    assert sum(len(values.get(name, ())) for name in ("points", "wide", "exact")) == len(fresh)
    assert len(values.get("ids", ())) == len(which) - len(fresh)


def test_a_parcel_may_name_its_own_points_only_by_numbers_that_no_other_has() -> None:
    known = libraries([0, 1], [2])
    values, _ = packed(POINTS[[4, 0, 4, 5, 5]], WIRE, known)
    assert values["ids"].tolist() == [2 + 1, 0, 1]  # two points go as they are, so that others begin at 2


@given(which=rows, up=rows, down=rows)
def test_floats_go_without_references(which: list[int], up: list[int], down: list[int]) -> None:
    values, records = packed(POINTS[which], FloatWire(), libraries(up, down))
    assert not records
    assert set(values) == {"points"}
    np.testing.assert_array_equal(through(POINTS[which], libraries(up, down), FloatWire()), POINTS[which])


def test_points_of_one_form_need_not_say_their_order() -> None:
    for which in ([0, 1], [2, 3], [4, 5]):
        assert packed(POINTS[which], WIRE, Libraries.empty(2))[1] == {}
    assert packed(POINTS[[0, 2]], WIRE, Libraries.empty(2))[1].keys() == {"forms"}


@pytest.mark.parametrize(("count", "dtype"), [(100, np.uint8), (20_000, np.uint16), (70_000, np.uint32)])
def test_numbers_are_as_wide_as_they_must_be(count: int, dtype: Any) -> None:
    X = np.round(np.arange(count) / 32767 / 4, 9)[:, None] * np.array([1.0, 0.0])
    known = Libraries.empty(2).sent_down(X)
    values, _ = packed(X[-1:], WIRE, known)
    assert values["ids"].dtype == dtype
    np.testing.assert_array_equal(unpacked(values, {}, WIRE, known, dim=2), X[-1:])


def test_a_library_has_each_point_once_and_numbers_stay() -> None:
    known = libraries([0, 1, 0], [2, 2, 3])
    assert (known.up.size, known.down.size) == (2, 2)
    before = known.numbers_at(keys(POINTS[:4])).tolist()
    longer = known.sent_up(POINTS[[4]]).sent_down(POINTS[[0, 5]])
    assert known.numbers_at(keys(POINTS[:6])).tolist() == [*before, -1, -1]
    np.testing.assert_array_equal(longer.at(np.array(before)), POINTS[:4])


def test_of_a_library_that_lost_its_end_the_beginning_stays_valid() -> None:
    known = libraries([], [0, 1, 2])
    shorter = known.received(1, mark=libraries([], [0]).down.mark)
    assert shorter.numbers_at(keys(POINTS[:1])) == known.numbers_at(keys(POINTS[:1]))
    assert shorter.numbers_at(keys(POINTS[2:3])).tolist() == [-1]
    other = shorter.sent_down(POINTS[[5, 2]])
    numbers = other.numbers_at(keys(POINTS[[0, 5, 2]]))
    np.testing.assert_array_equal(other.at(numbers), POINTS[[0, 5, 2]])
    np.testing.assert_array_equal(known.down.points, POINTS[[0, 1, 2]])
    assert known.received(0, mark=0).down.size == 0


@pytest.mark.parametrize(("count", "other"), [(2, [1, 0]), (2, [0, 5]), (1, [1]), (4, [0, 1, 2, 3])])
def test_a_library_of_other_points_is_of_no_use(count: int, other: list[int]) -> None:
    known = libraries([4], [0, 1, 2])
    kept = known.received(count, mark=libraries([], other).down.mark)
    assert kept.down.size == 0
    assert kept.up is known.up


@given(which=rows, up=rows, down=rows, more=rows)
def test_numbers_mean_the_same_to_a_side_that_knows_more(
    which: list[int], up: list[int], down: list[int], more: list[int]
) -> None:
    """Messages cross: when one is read, its reader may have sent or received others that its writer did not know of."""
    values, records = packed(POINTS[which], WIRE, libraries(up, down))
    for ahead in (
        libraries([*up, *more], down),
        libraries(up, [*down, *more]),
        libraries([*up, *more], [*down, *more]),
    ):
        np.testing.assert_array_equal(unpacked(values, records, WIRE, ahead, dim=2), POINTS[which])


def test_libraries_of_both_ways_do_not_mix() -> None:
    known = libraries([0], [1])
    assert {number % 2 for number in known.numbers_at(keys(POINTS[:2])).tolist()} == {0, 1}
    with pytest.raises(RemoteProtocolError, match="are known"):
        known.at(np.array([2], dtype=np.uint8))
    with pytest.raises(RemoteProtocolError, match="are known"):
        known.at(np.array([3], dtype=np.uint8))


def spoilt(**changes: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A parcel of one point of each form and two references, with something else in it."""
    values, records = packed(POINTS, WIRE, libraries([0], [3]))
    everything = {**values, **records, **changes}
    present = {name: array for name, array in everything.items() if array is not None}
    return {name: a for name, a in present.items() if name != "forms"}, {
        name: a for name, a in present.items() if name == "forms"
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"points": None},
        {"ids": None},
        {"forms": None},
        {"points": np.zeros((1, 3), np.int8)},
        {"points": np.zeros(2, np.int8)},
        {"points": np.zeros((4, 2), np.int8)},
        {"points": np.zeros((1, 2))},
        {"wide": np.zeros((1, 2), np.int8)},
        {"exact": np.zeros((2, 2), np.float64)},
        {"ids": np.array([0.0, 1.0])},
        {"ids": np.array([0, 200], dtype=np.uint8)},
        {"ids": np.array([0, 6], dtype=np.uint8)},
        {"ids": np.array([[0, 1]], dtype=np.uint8)},
        {"ids": np.array([0, -1], dtype=np.int8)},
        {"forms": np.zeros(1, np.uint8)},
        {"forms": np.zeros(2, np.uint8)},
        {"forms": np.zeros(3, np.uint8)},
        {"forms": np.zeros(2)},
    ],
    ids=str,
)
def test_a_parcel_with_anything_wrong_is_refused(changes: dict[str, Any]) -> None:
    values, records = spoilt(**changes)
    with pytest.raises(RemoteProtocolError):
        unpacked(values, records, WIRE, libraries([0], [3]), dim=2)


def test_an_empty_parcel_has_no_points() -> None:
    assert through(np.empty((0, 2)), Libraries.empty(2)).shape == (0, 2)
    assert unpacked({}, {}, WIRE, Libraries.empty(2), dim=2).shape == (0, 2)
