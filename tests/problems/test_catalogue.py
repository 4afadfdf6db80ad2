import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from laconic.errors import InputError
from laconic.problems import Catalogue, Cosine
from tests.problems.test_synthetic import f1, f2


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(0, 8), st.integers(1, 4))
def test_arms_are_bitwise_copies_of_distinct_items(seed: int, arms: int, spare: int, dim: int) -> None:
    instance = Catalogue(items=arms + spare, arms=arms, dim=dim).instance(seed=seed, clients=3, rounds=2)
    items = {item.tobytes() for item in instance.items}
    for met in (instance.round(0), instance.round(1)):
        for shown in met.arms:
            rows = {row.tobytes() for row in shown}
            assert len(rows) == arms
            assert rows <= items


@pytest.mark.parametrize(("reward", "f"), [("cosine", f1), ("polynomial", f2)])
def test_an_item_pays_the_same_mean_wherever_it_is_shown(reward: Any, f: Any) -> None:
    instance = Catalogue(reward=reward, dim=3).instance(seed=0, clients=10, rounds=5)
    theta = Cosine(dim=3).instance(seed=0, clients=1, rounds=1).theta
    paid: dict[bytes, set[float]] = {}
    for index in range(5):
        met = instance.round(index)
        for x, mean in zip(met.arms.reshape(-1, 3), met.means.ravel(), strict=True):
            paid.setdefault(x.tobytes(), set()).add(mean)
            assert mean == pytest.approx(f(x, theta), abs=1e-13)
    assert len(paid) == 30
    assert all(len(means) == 1 for means in paid.values())


def test_items_are_fixed_for_a_seed_and_differ_between_seeds() -> None:
    one, same, other = (Catalogue().instance(seed=seed, clients=1, rounds=1) for seed in (0, 0, 1))
    assert np.array_equal(one.items, same.items)
    assert not np.array_equal(one.items, other.items)


def test_items_are_uniform_in_the_unit_ball() -> None:
    items = Catalogue(items=2000, dim=4).instance(seed=1, clients=1, rounds=1).items
    assert stats.kstest(np.linalg.norm(items, axis=1) ** 4, "uniform").pvalue > 0.01


def test_every_ordered_selection_of_items_is_equally_likely() -> None:
    instance = Catalogue(items=4, arms=2, dim=1).instance(seed=0, clients=6000, rounds=1)
    shown = Counter(tuple(row) for row in instance.round(0).arms[:, :, 0].tolist())
    assert len(shown) == math.perm(4, 2)
    assert stats.chisquare(list(shown.values())).pvalue > 0.01


def test_the_whole_catalogue_can_be_shown() -> None:
    instance = Catalogue(items=5, arms=5).instance(seed=0, clients=1, rounds=1)
    met = instance.round(0)
    assert sorted(map(tuple, met.arms[0].tolist())) == sorted(map(tuple, instance.items.tolist()))


def test_more_arms_than_items_are_refused() -> None:
    with pytest.raises(InputError, match="arms=10 distinct arms cannot come from items=9; try items=10"):
        Catalogue(items=9)


@pytest.mark.parametrize("value", [0, 2.0, True, None])
def test_a_number_of_items_that_makes_no_catalogue_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^items "):
        Catalogue(items=value, arms=1)


@pytest.mark.parametrize("value", ["cos", "Cosine", None, 1])
def test_an_unknown_reward_is_refused_with_those_there_are(value: Any) -> None:
    with pytest.raises(InputError, match=r"reward cannot be .+; try one of cosine, polynomial"):
        Catalogue(reward=value)
