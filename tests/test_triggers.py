"""Triggers: the thresholds of Eq. 2 and Eq. 4, their margin, and how they combine."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.errors import InputError
from laconic.tail import NOTHING_NEW, News
from laconic.triggers import Always, Both, Determinant, Either, Every, Never, Trigger, Variance

NUMBERS = st.floats(0, 1e6)


def news(*, count: int = 1, log_det: float = 0.0, variance: float = 0.0) -> News:
    return News(count=count, log_det=log_det, variance=variance, residual=0.0)


@given(count=st.integers(1, 1000), log_det=NUMBERS, D=NUMBERS)
def test_the_determinant_trigger_weighs_the_log_det_by_the_number_of_points(
    count: int, log_det: float, D: float
) -> None:
    fired = Determinant(D).fires(news(count=count, log_det=log_det, variance=1e9))
    assert fired == (count * log_det > D + 1e-9 * max(1.0, D))


@given(variance=NUMBERS, count=st.integers(1, 1000), D=NUMBERS)
def test_the_variance_trigger_sums_up_and_does_not_weigh(variance: float, count: int, D: float) -> None:
    fired = Variance(D).fires(news(count=count, variance=variance, log_det=1e9))
    assert fired == (variance > D + 1e-9 * max(1.0, D))


@pytest.mark.parametrize("D", [0.0, 0.5, 1.0, 20.0, 1e6])
def test_rounding_does_not_decide_at_the_threshold(D: float) -> None:
    margin = 1e-9 * max(1.0, D)
    for value, fires in ((D, False), (D + 0.9 * margin, False), (D + 1.1 * margin, True)):
        assert Variance(D).fires(news(variance=value)) is fires
        assert Determinant(D).fires(news(log_det=value)) is fires
        assert Determinant(D).fires(news(count=4, log_det=value / 4)) is fires


def test_every_n_counts_own_points() -> None:
    assert [Every(3).fires(news(count=n)) for n in range(6)] == [False, False, False, True, True, True]
    assert [Every(1).fires(news(count=n)) for n in range(2)] == [False, True]


def test_always_needs_one_point_and_never_needs_more_than_there_are() -> None:
    for trigger in (Determinant(0.0), Variance(0.0), Every(1), Always(), Never()):
        assert not trigger.fires(NOTHING_NEW)
    busy = news(count=10**9, log_det=1e300, variance=1e300)
    assert Always().fires(news())
    assert not Never().fires(busy)


@pytest.mark.parametrize("left", [Always(), Never()])
@pytest.mark.parametrize("right", [Always(), Never()])
def test_triggers_combine_as_truth_values_do(left: Always | Never, right: Always | Never) -> None:
    one = news()
    assert (left | right).fires(one) == (left.fires(one) or right.fires(one))
    assert (left & right).fires(one) == (left.fires(one) and right.fires(one))


def test_combinations_are_values_and_nest() -> None:
    rule = Determinant(5.0) & Every(10) | Every(50)
    assert rule == Either(Both(Determinant(5.0), Every(10)), Every(50))
    assert isinstance(rule, Trigger)
    assert not rule.fires(news(count=9, log_det=10.0))
    assert rule.fires(news(count=10, log_det=10.0))
    assert not rule.fires(news(count=49, log_det=0.0))
    assert rule.fires(news(count=50, log_det=0.0))


@pytest.mark.parametrize(
    "trigger",
    [
        Determinant(2.0),
        Variance(2.0),
        Every(3),
        Always(),
        Never(),
        Determinant(2.0) | Variance(2.0),
        Determinant(2.0) & Every(3) & (Variance(1.0) | Never()),
    ],
    ids=repr,
)
def test_a_trigger_works_elementwise_on_the_news_of_many_clients(trigger: Trigger) -> None:
    rng = np.random.default_rng(0)
    count, log_det, variance = rng.integers(0, 6, 200), rng.uniform(0, 2, 200), rng.uniform(0, 4, 200)
    fired: Any = trigger.fires(News(count, log_det, variance, np.zeros(200)))  # type: ignore[arg-type]
    alone = [
        trigger.fires(news(count=int(n), log_det=float(g), variance=float(v)))
        for n, g, v in zip(count, log_det, variance, strict=True)
    ]
    np.testing.assert_array_equal(fired, alone)
    assert fired.shape == (200,)


@pytest.mark.parametrize("D", [-1e-9, math.nan, math.inf, "5", None])
def test_a_threshold_below_zero_or_without_a_value_is_refused(D: float) -> None:
    for kind in (Determinant, Variance):
        with pytest.raises(InputError, match="D must be"):
            kind(D)


@pytest.mark.parametrize("n", [0, -1, 2.0, True])
def test_a_period_that_is_no_positive_whole_number_is_refused(n: int) -> None:
    with pytest.raises(InputError, match="n must be"):
        Every(n)
