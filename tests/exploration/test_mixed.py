"""Softmax and EpsilonFloor: every arm has a chance, and it is said which."""

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import UCB, EpsilonFloor, Greedy, Softmax, Thompson
from laconic.errors import InputError
from laconic.testing import check_exploration
from laconic.testing.exploration_checks import shown_arms

MEANS = st.lists(st.floats(-3, 3), min_size=1, max_size=6)


def chances(choice: Any, arms: int) -> list[float]:
    return [choice.chance_of(arm).value for arm in range(arms)]


@given(mean=MEANS, temperature=st.floats(0.05, 5.0), variance=st.floats(0, 4))
def test_softmax_is_the_exponential_of_the_index(mean: list[float], temperature: float, variance: float) -> None:
    shown = shown_arms(np.array(mean), variance * np.eye(len(mean)))
    weights = [math.exp((each + math.sqrt(variance)) / temperature) for each in mean]
    expected = [weight / sum(weights) for weight in weights]
    assert chances(Softmax(temperature).choose(shown), len(mean)) == pytest.approx(expected)


def test_a_cold_softmax_is_ucb_and_a_hot_one_any_arm() -> None:
    shown = shown_arms(np.array([0.1, 0.5, 0.4]), np.diag([1.0, 0.01, 0.04]))
    assert chances(Softmax(1e-9).choose(shown), 3) == chances(UCB().choose(shown), 3) == [1.0, 0.0, 0.0]
    assert chances(Softmax(1e9).choose(shown), 3) == pytest.approx([1 / 3] * 3)


@given(mean=MEANS, epsilon=st.floats(0, 1), decision=st.integers(0, 50))
def test_no_arm_is_below_the_floor_and_the_rest_is_as_the_other_chooses(
    mean: list[float], epsilon: float, decision: int
) -> None:
    shown = shown_arms(np.array(mean), np.eye(len(mean)), decision=decision)
    inner = Softmax(0.5)
    found = chances(EpsilonFloor(inner, epsilon).choose(shown), len(mean))
    without = chances(inner.choose(shown), len(mean))
    assert found == pytest.approx([epsilon / len(mean) + (1 - epsilon) * each for each in without])
    assert min(found) >= epsilon / len(mean) * (1 - 1e-12)


def test_a_floor_of_nothing_changes_no_probability_and_one_of_all_is_chance() -> None:
    shown = shown_arms(np.array([0.3, 0.1]), np.eye(2))
    assert chances(EpsilonFloor(Greedy(), 0.0).choose(shown), 2) == [1.0, 0.0]
    assert chances(EpsilonFloor(Greedy(), 1.0).choose(shown), 2) == [0.5, 0.5]


def test_the_draws_of_what_is_inside_are_not_those_of_the_floor() -> None:
    mean = np.zeros(4)
    inside = [Softmax().choose(shown_arms(mean, np.eye(4), decision=t).within()).arm for t in range(50)]
    outside = [Softmax().choose(shown_arms(mean, np.eye(4), decision=t)).arm for t in range(50)]
    assert inside != outside
    within = [EpsilonFloor(Softmax(), 0.0).choose(shown_arms(mean, np.eye(4), decision=t)).arm for t in range(50)]
    assert within == inside


def test_the_error_of_an_estimate_shrinks_with_its_share() -> None:
    shown = shown_arms(np.array([0.3, 0.1, 0.2]), np.eye(3))
    whole, half = (
        Thompson().choose(shown.within()).chance_of(0),
        EpsilonFloor(Thompson(), 0.5).choose(shown).chance_of(0),
    )
    assert half.error == pytest.approx(0.5 * whole.error)
    assert half.value == pytest.approx(0.5 / 3 + 0.5 * whole.value)


@pytest.mark.parametrize(
    "exploration", [Softmax(), Softmax(1e-6), Softmax(50.0), EpsilonFloor(), EpsilonFloor(Thompson(), 0.3)], ids=repr
)
def test_mixed_choices_keep_to_what_an_exploration_must(exploration: Any) -> None:
    check_exploration(exploration)
    with pytest.raises(FrozenInstanceError):
        exploration.epsilon = 0.2


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Softmax(0.0), "temperature must be a finite number greater than 0"),
        (lambda: EpsilonFloor(UCB(), -0.1), "epsilon must be a probability, from 0 to 1, not -0.1"),
        (lambda: EpsilonFloor(UCB(), 1.5), "epsilon must be a probability, from 0 to 1, not 1.5; try epsilon=0.1"),
        (lambda: EpsilonFloor(UCB(), math.nan), "epsilon must be a probability, from 0 to 1, not nan"),
        (lambda: EpsilonFloor(UCB(), True), "epsilon must be a probability, from 0 to 1, not True"),
        (lambda: EpsilonFloor(UCB(), UCB()), r"epsilon must be a probability, from 0 to 1, not UCB\(\)"),  # type: ignore[arg-type]
        (lambda: EpsilonFloor(UCB), r"of must be a value, got the class UCB; try of=UCB\(\)"),  # type: ignore[arg-type]
        (lambda: EpsilonFloor(0.1), r"not 0.1; try EpsilonFloor\(epsilon=0.1\) around UCB"),  # type: ignore[arg-type]
        (lambda: EpsilonFloor(0.1, UCB()), r"not 0.1; .* or EpsilonFloor\(Thompson\(\), 0.1\)"),  # type: ignore[arg-type]
        (lambda: EpsilonFloor("UCB"), r"of must have a method choose\(shown\), not 'UCB'; try of=Thompson\(\)"),  # type: ignore[arg-type]
        (lambda: Thompson(joint=1), "joint must be True or False"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_exploration_is_refused_with_advice(make: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        make()
