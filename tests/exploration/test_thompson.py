"""Thompson sampling draws from the joint posterior of the arms shown, and knows how likely each arm is the best."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Choice,
    Client,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    NKernelUCB,
    Shown,
    Theory,
    Thompson,
    run,
)
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief, FiniteBelief, LinearEmbedding, Statistics
from laconic.exploration.thompson import best_chance
from laconic.randomness import Role, generator
from laconic.tail import Tail
from laconic.testing import check_exploration
from laconic.testing.exploration_checks import SEED, shown_arms
from tests import naive


def some(count: int, dim: int, seed: int) -> Floats:
    return np.random.default_rng(seed).uniform(-1, 1, (count, dim))


def covariance_of(n: int, seed: int) -> Floats:
    root = np.random.default_rng(seed).normal(size=(n, n + 1))
    return np.asarray(root @ root.T)


# The joint posterior, by the literal formulas


def tail_on(belief: Any, X: Floats, y: Floats) -> Tail:
    tail = Tail(belief)
    for x, reward in zip(X, y, strict=True):
        tail.append(belief.view(x[None]), float(reward))
    return tail


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 7), (9, 0), (6, 5), (4, 40)])
@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_the_covariance_of_an_exact_belief_and_its_tail_is_that_of_all_points(
    before: int, after: int, lam: float
) -> None:
    X, Xs = some(before + after, 2, 1), some(6, 2, 2)
    X[before + after // 2 :] = X[before : before + (after + 1) // 2]  # points repeat, and long tails collapse them
    y, kernel = np.sin(X.sum(axis=1)), naive.gaussian(0.7)
    belief = ExactBelief.empty(kernel=Gaussian(0.7), lam=lam, dim=2).extended(X[:before], y[:before])
    found = tail_on(belief, X[before:], y[before:]).covariance(belief.view(Xs))
    K, k = naive.gram(kernel, X, X) + lam * np.eye(len(X)), naive.gram(kernel, X, Xs)
    expected = (naive.gram(kernel, Xs, Xs) - k.T @ np.linalg.solve(K, k)) / lam
    assert_allclose(found, expected, atol=1e-9 / lam)


@pytest.mark.parametrize("after", [0, 3, 20])
def test_the_covariance_of_a_linear_belief_and_its_tail_is_that_of_ridge_regression(after: int) -> None:
    X, Xs, lam = some(5 + after, 3, 3), some(6, 3, 4), 0.3
    y, linear = X @ np.array([1.0, -1.0, 0.5]), DisLinUCB(lam=lam).plan(3).belief
    belief = linear.with_statistics(Statistics.of(LinearEmbedding(3), X[:5], y[:5]))
    tail = tail_on(belief, X[5:], y[5:])  # of twenty points it is folded into another basis
    assert (tail.basis is not None) == (after > 3)
    expected = Xs @ np.linalg.solve(X.T @ X + lam * np.eye(3), Xs.T)
    assert_allclose(tail.covariance(belief.view(Xs)), expected, atol=1e-10)


@pytest.mark.parametrize("after", [0, 2, 15])
def test_what_a_dictionary_misses_is_added_to_variances_alone(after: int) -> None:
    S, X, Xs, lam = some(4, 2, 5), some(after, 2, 6), some(6, 2, 7), 0.5
    belief = FiniteBelief.nystrom(kernel=Gaussian(1.0), dictionary=S, lam=lam)
    kernel = naive.gaussian(1.0)
    Z, z = naive.embedding(kernel, S, X), naive.embedding(kernel, S, Xs)
    expected = z @ np.linalg.solve(Z.T @ Z + lam * np.eye(4), z.T)
    residual = (naive.diagonal(kernel, Xs) - (z**2).sum(axis=1)) / lam
    found = tail_on(belief, X, np.ones(after)).covariance(belief.view(Xs))
    assert_allclose(found, expected + np.diag(residual), atol=1e-9)


def test_with_the_root_of_lambda_as_alpha_it_is_the_posterior_of_scikit_learn() -> None:
    X, Xs, lam = some(8, 2, 8), some(5, 2, 9), 0.2
    y = np.sin(3 * X.sum(axis=1))
    client = Client(DisKernelUCB(Gaussian(0.5), lam=lam, alpha=math.sqrt(lam), exploration=Watching()).plan(2))
    client.learn(X, y)
    client.choose(Xs)
    shown = Watching.seen[-1]
    regressor = GaussianProcessRegressor(RBF(1.0), alpha=lam, optimizer=None).fit(X, y)
    mean, covariance = regressor.predict(Xs, return_cov=True)
    assert_allclose(shown.mean, mean, atol=1e-9)
    assert_allclose(shown.covariance(), covariance, atol=1e-9)
    assert_allclose(shown.width**2, np.diagonal(covariance), atol=1e-9)


# Both runtimes show the same


@dataclass(frozen=True)
class Watching:
    """Thompson sampling that notes what it is shown."""

    seen: ClassVar[list[Shown]] = []

    def choose(self, shown: Shown, /) -> Choice:
        self.seen.append(shown)
        return Thompson().choose(shown)


ALGORITHMS: dict[str, Any] = {
    "exact": DisKernelUCB(D=2.0, lam=0.3, exploration=Watching()),
    "exact with theory": DisKernelUCB(D=2.0, alpha=Theory(), exploration=Watching()),
    "linear": DisLinUCB(D=2.0, exploration=Watching()),
    "Nyström": ApproxDisKernelUCB(D=1.0, lam=0.3, qbar=1.0, exploration=Watching()),
    "never synced": NKernelUCB(exploration=Watching()),
}


@pytest.mark.parametrize("problem", [Cosine(dim=2, arms=4), Catalogue(dim=2, items=5, arms=4)], ids=repr)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_lockstep_shows_the_means_widths_and_covariances_of_loopback(name: str, problem: Any) -> None:
    noted: dict[str, dict[Any, Shown]] = {"loopback": {}, "lockstep": {}}
    for runtime, seen in noted.items():
        Watching.seen.clear()
        run(ALGORITHMS[name], problem, clients=3, rounds=45, seed=2, runtime=runtime)
        seen |= {shown.draws.address(): shown for shown in Watching.seen}
    assert noted["loopback"].keys() == noted["lockstep"].keys()
    for address, shown in noted["loopback"].items():
        other = noted["lockstep"][address]
        assert np.array_equal(shown.same, other.same)
        for one, two in (
            (shown.mean, other.mean),
            (shown.width, other.width),
            (shown.covariance(), other.covariance()),
        ):
            assert_allclose(one, two, atol=1e-8)


# Draws


def test_the_draw_is_a_root_of_the_covariance_times_normal_numbers() -> None:
    mean, C = np.array([0.1, 0.0, -0.1, 0.05]), covariance_of(4, 1)
    for decision in range(30):
        z = generator(SEED, Role.TIES, 0, decision).standard_normal(4)
        expected = int(np.argmax(mean + np.linalg.cholesky(C) @ z))
        assert Thompson().choose(shown_arms(mean, C, decision=decision)).arm == expected
        alone = int(np.argmax(mean + np.sqrt(np.diagonal(C)) * z))
        assert Thompson(joint=False).choose(shown_arms(mean, C, decision=decision)).arm == alone


def test_arms_that_move_together_are_ordered_by_their_means() -> None:
    mean, C = np.array([0.0, 0.3, 0.2]), np.full((3, 3), 4.0)
    choice = Thompson().choose(shown_arms(mean, C))
    assert choice.arm == 1
    assert choice.chance.value == pytest.approx(1.0, abs=1e-6)
    assert Thompson(joint=False).choose(shown_arms(mean, C)).chance_of(1).value == pytest.approx(1 / 3, abs=0.1)


def test_without_a_width_it_is_greedy() -> None:
    choice = Thompson().choose(shown_arms(np.array([0.2, 0.2, 0.1]), np.zeros((3, 3))))
    assert [choice.chance_of(arm).value for arm in range(3)] == [0.5, 0.5, 0.0]


def test_arms_that_are_one_point_share_its_probability() -> None:
    mean, C = np.array([0.0, 0.1, 0.0]), covariance_of(2, 3)[np.ix_([0, 1, 0], [0, 1, 0])]
    choice = Thompson().choose(shown_arms(mean, C, same=[0, 1, 0]))
    distinct = Thompson().choose(shown_arms(mean[:2], C[:2, :2]))
    assert choice.chance_of(0).value == choice.chance_of(2).value == pytest.approx(distinct.chance_of(0).value / 2)
    assert choice.chance_of(1) == distinct.chance_of(1)


@pytest.mark.parametrize("exploration", [Thompson(), Thompson(joint=False)])
def test_thompson_keeps_to_what_an_exploration_must(exploration: Any) -> None:
    check_exploration(exploration)


# Probabilities


def estimated(mean: Floats, C: Floats, arm: int, seed: int = 0) -> Any:
    return best_chance(mean, C, arm, random=generator(seed, Role.PROPENSITY))


@given(gap=st.floats(-4, 4), variance=st.floats(0.1, 9), correlation=st.floats(-0.95, 0.95))
def test_of_two_arms_the_probability_is_exact(gap: float, variance: float, correlation: float) -> None:
    C = np.array([[1.0, correlation * math.sqrt(variance)], [correlation * math.sqrt(variance), variance]])
    sd = math.sqrt(1 + variance - 2 * correlation * math.sqrt(variance))
    found = estimated(np.array([gap, 0.0]), C, 0)
    assert found.value == pytest.approx(norm.cdf(gap / sd), rel=1e-9)
    assert found.error == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), arms=st.integers(3, 8))
def test_the_estimate_agrees_with_the_multivariate_normal_of_scipy_within_six_errors(seed: int, arms: int) -> None:
    C, mean = covariance_of(arms, seed), np.random.default_rng(seed).normal(size=arms)
    B = np.delete(np.eye(arms), 0, axis=0) - np.eye(arms)[0]
    exact = multivariate_normal(mean=B @ mean, cov=B @ C @ B.T, seed=seed).cdf(np.zeros(arms - 1))
    found = estimated(mean, C, 0, seed)
    assert abs(found.value - exact) <= 6 * found.error + 1e-4


def test_of_independent_arms_the_estimate_agrees_with_the_integral() -> None:
    mean, sd = np.array([0.3, 0.0, 0.5, -0.4]), np.array([0.5, 1.0, 0.2, 2.0])

    def density(x: float, arm: int) -> float:
        others = [norm.cdf((x - mean[j]) / sd[j]) for j in range(4) if j != arm]
        return float(norm.pdf((x - mean[arm]) / sd[arm]) / sd[arm] * np.prod(others))

    for arm in range(4):
        exact = quad(density, -12, 12, args=(arm,), limit=200)[0]
        found = estimated(mean, np.diag(sd**2), arm)
        assert abs(found.value - exact) <= 6 * found.error + 1e-6
        assert found.error < 0.03


def test_an_arm_that_is_hardly_ever_the_best_has_a_probability_above_zero() -> None:
    found = estimated(np.array([-8.0, 0.0, 0.0]), np.eye(3), 0)
    assert 0.0 < found.value < 1e-6
    assert 0.0 < found.error < found.value


def test_the_stated_error_is_the_spread_of_the_estimates() -> None:
    mean, C = np.array([0.2, 0.0, 0.1, -0.3, 0.3]), covariance_of(5, 11)
    found = [estimated(mean, C, 2, seed) for seed in range(200)]
    spread = np.std([each.value for each in found])
    assert spread == pytest.approx(np.mean([each.error for each in found]), rel=0.2)
