"""UCB and Greedy: which arms tie, and what that says of their probabilities."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from laconic import UCB, Greedy
from laconic.arrays import Floats
from laconic.exploration import TIE, tied_with_best
from laconic.randomness import Role, generator
from laconic.testing import check_exploration
from laconic.testing.exploration_checks import SEED, shown_arms


def tied(mean: Any, width: Any) -> list[int]:
    return np.flatnonzero(tied_with_best(np.asarray(mean, float), np.asarray(width, float))).tolist()


def test_the_largest_index_wins() -> None:
    assert tied([1.0, 0.0, 0.5], [0.0, 3.0, 1.0]) == [1]
    assert tied([5.0], [0.0]) == [0]


def test_all_arms_that_tie_are_found_wherever_they_are() -> None:
    assert tied([1.0, 2.0, 1.5, 2.0], [0.5, 0.0, 0.5, 0.0]) == [1, 2, 3]
    assert tied(np.zeros(4), np.zeros(4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_tie_is_relative_to_the_largest_mean_and_width(scale: float) -> None:
    mean = scale * np.array([1.0, 1.0 - 0.9 * TIE, 1.0 - 1.2 * TIE])
    assert tied(mean, np.zeros(3)) == [0, 1]
    assert tied(-mean, np.zeros(3)) == [1, 2]  # the index is negative, the scale is not


def test_a_poor_arm_of_large_mean_and_width_widens_the_tie() -> None:
    assert tied([1.0, 1.0 - 1e-8, -1e3], [0.0, 0.0, 1.0]) == [0, 1]
    assert tied([1.0, 1.0 - 1e-8, -10.0], [0.0, 0.0, 1.0]) == [0]


@given(
    rows=st.lists(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 1.0 + 1e-11, 2.0]), min_size=3, max_size=3), min_size=1),
    width=st.floats(0, 3),
)
def test_each_row_of_many_clients_ties_by_itself(rows: list[list[float]], width: float) -> None:
    mean: Floats = np.array(rows)
    together: NDArray[np.bool_] = tied_with_best(mean, np.full(mean.shape, width))
    for row, each in zip(mean, together, strict=True):
        np.testing.assert_array_equal(each, tied_with_best(row, np.full(3, width)))
        assert each.any()
        index = row + width
        np.testing.assert_array_equal(each, index >= index.max() - TIE * np.max(np.abs(row) + width))


# Choices and their probabilities


def test_the_choice_among_arms_that_tie_is_the_draw_addressed_by_seed_client_and_decision() -> None:
    for decision in range(20):
        shown = shown_arms(np.zeros(6), np.zeros((6, 6)), decision=decision, client=3)
        expected = generator(SEED, Role.TIES, 3, decision).integers(6)
        assert UCB().choose(shown).arm == Greedy().choose(shown).arm == expected


def test_an_arm_that_ties_has_its_share_and_others_have_none() -> None:
    choice = UCB().choose(shown_arms(np.array([1.0, 2.0, 1.5, 2.0]), np.diag([1.0, 0.0, 0.25, 0.0])))
    assert choice.arm in (0, 1, 2, 3)
    assert [choice.chance_of(arm).value for arm in range(4)] == [0.25] * 4
    choice = UCB().choose(shown_arms(np.array([1.0, 2.0, 0.0, 2.0]), np.zeros((4, 4))))
    assert [choice.chance_of(arm).value for arm in range(4)] == [0.0, 0.5, 0.0, 0.5]
    assert choice.chance.error == 0.0


def test_greedy_looks_at_means_only_as_ucb_does_without_a_width() -> None:
    mean, wide = np.array([0.2, 0.1]), np.diag([0.0, 9.0])
    assert UCB().choose(shown_arms(mean, wide)).arm == 1
    assert Greedy().choose(shown_arms(mean, wide)).arm == UCB().choose(shown_arms(mean, np.zeros((2, 2)))).arm == 0


@pytest.mark.parametrize("exploration", [UCB(), Greedy()])
def test_the_greatest_index_keeps_to_what_an_exploration_must(exploration: Any) -> None:
    check_exploration(exploration)
