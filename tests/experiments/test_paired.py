"""Verdicts of chance: the paired interval by another route, and what it says."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from laconic.experiments.paired import Answer, all_of, at_most, interval, nearer, ratio
from laconic.experiments.results import Group
from tests.experiments.making import row

REGRETS = st.lists(st.integers(1, 1000).map(lambda n: n / 8), min_size=6, max_size=6)


def group(*regrets: float, first: int = 0) -> Group:
    rows = tuple(row("A", seed=seed, regret=regret) for seed, regret in enumerate(regrets, start=first))
    return Group("A", params={}, rows=rows, label="A")


@given(REGRETS)
def test_the_interval_is_that_of_a_paired_t_test(values: list[float]) -> None:
    mine, theirs = np.array(values[:3]), np.array(values[3:])
    found = interval(mine - theirs)
    if np.ptp(mine - theirs) == 0:
        assert found.low == found.high
        return
    wanted = stats.ttest_rel(mine, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


@given(REGRETS, st.sampled_from([0.5, 1.0, 1.5]))
def test_what_is_said_agrees_with_two_tests_of_one_side_each(values: list[float], factor: float) -> None:
    mine, theirs = np.array(values[:3]), factor * np.array(values[3:])
    if np.ptp(mine - theirs) == 0:
        return
    less, more = (stats.ttest_rel(mine, theirs, alternative=side).pvalue for side in ("less", "greater"))
    wanted = "holds" if less < 0.025 else "fails" if more < 0.025 else "too close to tell"
    assert at_most(group(*values[:3]), group(*values[3:]), metric="regret", factor=factor) == wanted


@given(REGRETS)
def test_nearer_to_one_than_to_another_agrees_with_a_test_against_their_middle(values: list[float]) -> None:
    mine, low = np.array(values[:3]), np.array(values[3:])
    high = low + 7.0
    if np.ptp(mine - low) == 0:
        return
    less, more = (
        stats.ttest_1samp(np.abs(mine - low) ** 2 - np.abs(mine - high) ** 2, 0.0, alternative=side).pvalue
        for side in ("less", "greater")
    )
    wanted = "holds" if less < 0.025 else "fails" if more < 0.025 else "too close to tell"
    assert nearer(group(*values[:3]), group(*low), group(*high), metric="regret") == wanted


@given(REGRETS)
def test_the_interval_of_a_ratio_has_the_factors_that_are_too_close_to_tell(values: list[float]) -> None:
    one, other = group(*values[:3]), group(*values[3:])
    found = ratio(one, other, metric="regret")
    if found is None or found.high - found.low < 1e-6:
        return
    width = found.high - found.low
    said = [
        at_most(one, other, metric="regret", factor=factor)
        for factor in (found.low - width / 50, found.low + width / 50, found.high - width / 50, found.high + width / 50)
    ]
    assert said == ["fails", "too close to tell", "too close to tell", "holds"]


def test_a_ratio_to_what_may_be_nothing_has_no_bounds() -> None:
    assert ratio(group(1.0, 2.0), group(0.0, 5.0), metric="regret") is None
    assert ratio(group(1.0), group(1.0), metric="regret") is None


def test_of_one_seed_nothing_is_told() -> None:
    assert at_most(group(1.0), group(100.0), metric="regret") == "too close to tell"
    assert interval(np.array([3.0])).high == math.inf


def test_only_seeds_that_both_have_are_compared() -> None:
    assert at_most(group(1.0, 2.0, 3.0), group(90.0, 90.0, first=2), metric="regret") == "too close to tell"
    assert at_most(group(1.0, 2.0, 3.0), group(90.0, 91.0, first=1), metric="regret") == "holds"


def test_a_difference_that_is_the_same_on_every_seed_is_no_chance() -> None:
    assert at_most(group(1.0, 5.0), group(2.0, 6.0), metric="regret") == "holds"
    assert at_most(group(2.0, 6.0), group(1.0, 5.0), metric="regret") == "fails"
    assert at_most(group(1.0, 5.0), group(1.0, 5.0), metric="regret") == "holds"
    assert at_most(group(1.0, 5.0), group(1.0, 5.0), metric="regret", strictly=True) == "fails"


def test_pairing_sees_what_two_means_with_their_spread_would_not() -> None:
    hard = (10.0, 100.0, 1000.0)
    assert at_most(group(*hard), group(*(each + 1.0 for each in hard)), metric="regret") == "holds"


def test_one_part_that_fails_is_enough_and_all_have_to_hold() -> None:
    order: list[Answer] = ["holds", "too close to tell", "fails"]
    for weaker, stronger in pairwise(order):
        assert all_of([weaker, stronger, "holds"]) == stronger
    assert all_of([]) == "holds"
