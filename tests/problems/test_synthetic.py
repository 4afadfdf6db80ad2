import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from laconic.errors import InputError
from laconic.problems import Catalogue, Cosine, Instance, PolynomialReward, Problem

BOTH: list[Any] = [Cosine, PolynomialReward]
ALL = [*BOTH, Catalogue]


def f1(x: Any, theta: Any) -> Any:
    return math.cos(3 * math.fsum(a * b for a, b in zip(x, theta, strict=True)))


def f2(x: Any, theta: Any) -> Any:
    u = math.fsum(a * b for a, b in zip(x, theta, strict=True))
    return u**3 - 3 * u**2 - u + 3


@pytest.mark.parametrize(("kind", "f"), [(Cosine, f1), (PolynomialReward, f2)])
@pytest.mark.parametrize("dim", [1, 2, 20])
def test_the_mean_of_every_arm_is_the_formula_of_the_paper(kind: Any, f: Any, dim: int) -> None:
    instance = kind(dim=dim, arms=4).instance(seed=3, clients=3, rounds=2)
    for index in range(2):
        met = instance.round(index)
        for i in range(3):
            for a in range(4):
                assert met.means[i, a] == pytest.approx(f(met.arms[i, a], instance.theta), abs=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_arms_are_uniform_in_the_unit_ball(dim: int) -> None:
    met = Cosine(dim=dim, arms=20).instance(seed=7, clients=100, rounds=1).round(0)
    points = met.arms.reshape(-1, dim)
    radii = np.linalg.norm(points, axis=1)
    assert radii.max() <= 1
    assert stats.kstest(radii**dim, "uniform").pvalue > 0.01  # P(‖x‖ ≤ r) = r^d
    # Along any direction, (1 + x₁)/2 of a uniform point is Beta((d+1)/2, (d+1)/2).
    direction = np.ones(dim) / math.sqrt(dim)
    half = (dim + 1) / 2
    assert stats.kstest((1 + points @ direction) / 2, stats.beta(half, half).cdf).pvalue > 0.01


def test_theta_is_uniform_in_the_unit_ball_over_seeds() -> None:
    thetas = [Cosine(dim=3).instance(seed=seed, clients=1, rounds=1).theta for seed in range(500)]
    assert stats.kstest(np.linalg.norm(thetas, axis=1) ** 3, "uniform").pvalue > 0.01
    assert stats.kstest(np.array(thetas)[:, 0], stats.beta(2, 2, loc=-1, scale=2).cdf).pvalue > 0.01


def test_noise_is_normal_with_the_given_deviation_and_one_draw_a_step() -> None:
    instance = Cosine(dim=2, arms=3, noise=0.5).instance(seed=1, clients=50, rounds=20)
    rounds = [instance.round(index) for index in range(20)]
    noise = np.concatenate([met.rewards - met.means for met in rounds])
    assert np.ptp(noise, axis=1).max() < 1e-15
    assert stats.kstest(noise[:, 0], stats.norm(scale=0.5).cdf).pvalue > 0.01
    assert stats.kstest(noise[:, 0] ** 2, (stats.norm(scale=0.5).rvs(2000, random_state=1)) ** 2).pvalue > 0.01


def test_without_noise_the_reward_is_the_mean() -> None:
    met = PolynomialReward(noise=0).instance(seed=0, clients=2, rounds=1).round(0)
    assert np.array_equal(met.rewards, met.means)


@pytest.mark.parametrize("kind", ALL)
@given(seed=st.integers(0, 2**40), order=st.permutations(range(4)))
def test_a_round_is_the_same_whenever_it_is_asked_for(kind: Any, seed: int, order: Any) -> None:
    one = kind(dim=3, arms=2).instance(seed=seed, clients=3, rounds=4)
    other = kind(dim=3, arms=2).instance(seed=seed, clients=3, rounds=9)
    in_order = [one.round(index) for index in range(4)]
    for index in order:
        again = other.round(index)
        assert np.array_equal(again.arms, in_order[index].arms)
        assert np.array_equal(again.means, in_order[index].means)
        assert np.array_equal(again.rewards, in_order[index].rewards)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_more_clients_leave_what_the_first_ones_meet_unchanged(kind: Any, noise: float) -> None:
    few = kind(noise=noise).instance(seed=5, clients=3, rounds=2).round(1)
    many = kind(noise=noise).instance(seed=5, clients=41, rounds=2).round(1)
    assert np.array_equal(few.arms, many.arms[:3])
    assert np.array_equal(few.means, many.means[:3])
    assert np.array_equal(few.rewards, many.rewards[:3])


@pytest.mark.parametrize("kind", ALL)
def test_seeds_and_rounds_and_clients_meet_different_arms(kind: Any) -> None:
    problem = kind(dim=2, arms=3)
    first = problem.instance(seed=0, clients=2, rounds=2)
    other = problem.instance(seed=1, clients=2, rounds=2)
    assert not np.array_equal(first.round(0).arms, first.round(1).arms)
    assert not np.array_equal(first.round(0).arms, other.round(0).arms)
    assert not np.array_equal(first.round(0).arms[0], first.round(0).arms[1])


def test_both_rewards_meet_the_same_arms_so_that_they_can_be_compared() -> None:
    one, other = (kind().instance(seed=2, clients=4, rounds=1) for kind in BOTH)
    assert np.array_equal(one.round(0).arms, other.round(0).arms)
    assert np.array_equal(one.theta, other.theta)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("clients", "arms", "dim"), [(1, 1, 1), (1, 20, 20), (5, 1, 3), (7, 6, 1)])
def test_every_size_is_a_parameter(kind: Any, clients: int, arms: Any, dim: int) -> None:
    instance = kind(dim=dim, arms=arms).instance(seed=0, clients=clients, rounds=1)
    met = instance.round(0)
    assert instance.dim == dim
    assert met.arms.shape == (clients, arms, dim)
    assert met.means.shape == met.rewards.shape == (clients, arms)
    assert met.mask is None
    assert met.arms.dtype == met.means.dtype == met.rewards.dtype == np.float64
    assert met.arms.flags.c_contiguous


@pytest.mark.parametrize("kind", ALL)
def test_a_synthetic_problem_is_a_problem_and_a_frozen_value(kind: Any) -> None:
    assert isinstance(kind(), Problem)
    assert isinstance(kind().instance(seed=0, clients=1, rounds=1), Instance)
    assert kind() == kind()
    assert hash(kind()) == hash(kind())
    with pytest.raises(FrozenInstanceError):
        kind().dim = 3


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in ("dim", "arms") for value in (0, -1, 2.0, True, "3", None)]
    + [("noise", value) for value in (-0.1, math.nan, math.inf, True, "0.1", None)],
)
def test_a_size_that_makes_no_problem_is_refused_by_name(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} "):
        kind(**{name: value})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", ["dim", "arms", "noise"])
def test_a_problem_takes_no_grid(kind: Any, name: str) -> None:
    class Several:
        is_grid = True

    with pytest.raises(InputError, match=f"{name} takes one value"):
        kind(**{name: Several()})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "wrong", [{"clients": 0}, {"rounds": 0}, {"seed": -1}, {"seed": 1.5}, {"clients": True}], ids=repr
)
def test_an_opening_that_makes_no_instance_is_refused_by_name(kind: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} "):
        kind().instance(**{"seed": 0, "clients": 1, "rounds": 1, **wrong})
