"""Growing arrays against plain lists, in any order of branching, and the collapse of repeated points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.arrays import Floats
from laconic.growing import GrowingPoints, GrowingRows, collapsed, first_appearances, key
from tests.naive import merge_equal

#: Which earlier version to extend, and by which points of a small alphabet, so that points repeat.
STEPS = st.lists(st.tuples(st.integers(0, 30), st.lists(st.integers(0, 6), max_size=6)), max_size=14)


def column(values: list[int]) -> Floats:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


@given(steps=STEPS)
def test_every_version_keeps_its_own_rows_however_versions_branch(steps: list[tuple[int, list[int]]]) -> None:
    versions: list[tuple[GrowingRows, list[int]]] = [(GrowingRows.empty(1), [])]
    for which, new in steps:
        rows, model = versions[which % len(versions)]
        versions.append((rows.appended(column(new)), model + new))
    for rows, model in versions:
        assert rows.values[:, 0].tolist() == model


@given(steps=STEPS)
def test_every_version_knows_its_own_points_however_versions_branch(steps: list[tuple[int, list[int]]]) -> None:
    versions: list[tuple[GrowingPoints, list[int]]] = [(GrowingPoints.empty(1), [])]
    for which, new in steps:
        stored, model = versions[which % len(versions)]
        versions.append((stored.appended(column(new)), model + new))
    alphabet = list(range(8))
    for stored, model in versions:
        assert stored.rows.values[:, 0].tolist() == model
        assert stored.distinct == len(set(model))
        expected = [model.index(value) if value in model else -1 for value in alphabet]
        assert stored.rows_of(column(alphabet)).tolist() == expected


def test_two_extensions_of_nothing_do_not_know_each_others_points() -> None:
    empty = GrowingPoints.empty(1)
    one, other = empty.appended(column([1])), empty.appended(column([2]))
    assert one.rows_of(column([1, 2])).tolist() == [0, -1]
    assert other.rows_of(column([1, 2])).tolist() == [-1, 0]
    assert empty.rows_of(column([1, 2])).tolist() == [-1, -1]


def test_appending_to_the_newest_version_copies_nothing_while_there_is_room() -> None:
    first = GrowingRows.empty(2).appended(np.ones((5, 2)))
    second = first.appended(np.zeros((3, 2)))
    assert np.shares_memory(first.values, second.values)
    assert not np.shares_memory(first.appended(np.zeros((3, 2))).values, second.values)


def test_rows_of_unknown_width_take_that_of_the_first() -> None:
    assert GrowingRows.empty().appended(np.ones((2, 3))).values.shape == (2, 3)


@given(values=st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e-300]), max_size=20))
def test_distinct_points_are_numbered_in_order_of_appearance(values: list[float]) -> None:
    X = np.array(values).reshape(-1, 1)
    number = first_appearances(X)
    distinct = merge_equal(X)
    assert number.max(initial=-1) + 1 == len(distinct)
    np.testing.assert_array_equal(distinct[number] if len(X) else X, X)


@given(steps=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(-9, 9)), max_size=20))
def test_collapsing_adds_up_counts_and_sums(steps: list[tuple[int, int, int]]) -> None:
    table = np.array(steps, dtype=np.float64).reshape(-1, 3)
    X, counts, sums = collapsed(table[:, :1], table[:, 1], table[:, 2])
    np.testing.assert_array_equal(X, merge_equal(table[:, :1]))
    for x, count, total in zip(X[:, 0], counts, sums, strict=True):
        same = table[:, 0] == x
        assert count == table[same, 1].sum()
        assert total == table[same, 2].sum()


def test_zero_has_one_identity_and_neighbouring_numbers_have_two() -> None:
    assert key(np.array([0.0, 1.0])) == key(np.array([-0.0, 1.0]))
    assert key(np.array([1.0])) != key(np.array([np.nextafter(1.0, 2.0)]))


@pytest.mark.parametrize("dim", [1, 5])
def test_points_that_differ_anywhere_are_different(dim: int) -> None:
    X = np.zeros((dim + 1, dim))
    X[np.arange(dim), np.arange(dim)] = 1e-16
    np.testing.assert_array_equal(first_appearances(X), np.arange(dim + 1))
