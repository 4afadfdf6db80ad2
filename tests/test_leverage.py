"""Sampling probabilities and the thinning of dictionaries, against the naive reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.arrays import Floats
from laconic.kernels import Gaussian, Kernel, Linear, Polynomial
from laconic.leverage import RANK_TOLERANCE, distinct, full_rank, sample
from tests import naive


def points(n: int, *, dim: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(-1, 1, (n, dim))


# Sampling


@given(
    variance=st.lists(st.floats(0, 50), max_size=30),
    qbar=st.sampled_from([1e-3, 0.3, 1.0, 10.0, 1e12, math.inf]),
    seed=st.integers(0, 99),
)
def test_a_point_is_kept_where_its_uniform_is_below_its_probability(
    variance: list[float], qbar: float, seed: int
) -> None:
    sigma2, uniforms = np.array(variance), np.random.default_rng(seed).random(len(variance))
    kept = sample(sigma2, qbar=qbar, uniforms=uniforms)
    np.testing.assert_array_equal(kept, uniforms < naive.rls_probabilities(sigma2, qbar))


def test_probabilities_stop_at_one_and_a_point_without_variance_is_never_kept() -> None:
    variance = np.array([0.0, 0.1, 0.5, 4.0])
    assert sample(variance, qbar=2.0, uniforms=np.full(4, 0.2)).tolist() == [False, False, True, True]
    assert sample(variance, qbar=2.0, uniforms=np.zeros(4)).tolist() == [False, True, True, True]
    assert sample(variance, qbar=2.0, uniforms=np.full(4, np.nextafter(1, 0))).tolist() == [False, False, True, True]


def test_an_infinite_qbar_keeps_every_point_also_one_without_variance() -> None:
    assert sample(np.array([0.0, 1.0]), qbar=math.inf, uniforms=np.full(2, 0.999)).all()


def test_points_are_kept_as_often_as_their_probability_says() -> None:
    variance = np.repeat([0.2, 1.0, 5.0], 20_000)
    kept = sample(variance, qbar=0.3, uniforms=np.random.default_rng(0).random(len(variance)))
    np.testing.assert_allclose(kept.reshape(3, -1).mean(axis=1), [0.06, 0.3, 1.0], atol=0.01)


# Thinning


@pytest.mark.parametrize("gamma", [1e-9, 0.01, 1.0, 100.0, 1e12])
@pytest.mark.parametrize(("n", "dim"), [(1, 1), (30, 1), (60, 2), (40, 6)])
def test_a_dictionary_is_thinned_in_the_order_of_whole_schur_complements(gamma: float, n: int, dim: int) -> None:
    X = points(n, dim=dim)
    chosen = full_rank(Gaussian(gamma), X)
    np.testing.assert_array_equal(X[chosen], naive.thin(naive.gaussian(gamma), X))


@settings(max_examples=30)
@given(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_equal_points_are_merged_to_the_first_of_them(numbers: list[int], seed: int) -> None:
    X = points(10, dim=3, seed=seed)[numbers]
    first = distinct(X)
    np.testing.assert_array_equal(X[first], naive.merge_equal(X))
    assert first.tolist() == [numbers.index(n) for n in dict.fromkeys(numbers)]
    chosen = full_rank(Gaussian(2.0), X)
    assert set(chosen.tolist()) <= set(first.tolist())
    np.testing.assert_array_equal(X[chosen], naive.thin(naive.gaussian(2.0), naive.merge_equal(X)))


@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (Linear(), points(30, dim=4), 4),
        (Gaussian(1e-20), points(30), 1),
        (Gaussian(1e12), points(30), 30),
        (Gaussian(1.0), np.zeros((9, 3)), 1),
        (Linear(), np.zeros((9, 3)), 0),
        (Gaussian(1.0), np.empty((0, 3)), 0),
    ],
)
def test_a_dictionary_has_the_rank_of_its_points(kernel: Kernel, X: Floats, rank: int) -> None:
    assert len(full_rank(kernel, X)) == rank


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_tolerance_is_relative_to_the_prior(scale: float) -> None:
    X = points(50, dim=1)
    np.testing.assert_array_equal(full_rank(scale * Gaussian(1.0), X), full_rank(Gaussian(1.0), X))


def left_by(kernel: Kernel, S: Floats, X: Floats) -> Floats:
    """What a dictionary leaves of points, as a part of their own k(x, x)."""
    scale = 1.0 / np.sqrt(kernel.diag(S))  # a matrix with ones on its diagonal solves better
    k = kernel(S, X) * scale[:, None]
    solved = np.linalg.solve(kernel(S, S) * np.outer(scale, scale), k)
    return np.asarray(1.0 - np.sum(k * solved, axis=0) / kernel.diag(X))


@pytest.mark.parametrize("at", [0, 17, 40])
def test_an_outlier_does_not_empty_the_dictionary(at: int) -> None:
    near, kernel = points(40), Polynomial(3)
    X = np.insert(near, at, [0.0, 100.0], axis=0)
    S = X[full_rank(kernel, X)]
    assert len(S) == len(full_rank(kernel, near)) == 10  # polynomials of two variables up to the third degree
    np.testing.assert_array_equal(S[0], [0.0, 100.0])  # the largest residual comes first
    assert np.abs(left_by(kernel, S, X)).max() < 1e-6
    np.testing.assert_array_equal(S, naive.thin(lambda X, Y: np.asarray((1 + X @ Y.T) ** 3), X))


def test_what_is_left_out_is_expressed_by_what_is_kept() -> None:
    X = points(200, dim=1)
    S = X[full_rank(Gaussian(1.0), X)]
    assert len(S) < 20
    K, k = naive.gram(naive.gaussian(1.0), S, S), naive.gram(naive.gaussian(1.0), S, X)
    rest = 1 - np.sum(k * np.linalg.solve(K, k), axis=0)
    assert rest.max() <= 1.1 * RANK_TOLERANCE
    assert np.linalg.eigvalsh(K)[0] > 0


def test_the_first_of_equal_residuals_comes_first() -> None:
    X = np.array([[3.0], [1.0], [2.0]])
    assert full_rank(Gaussian(1e12), X).tolist() == [0, 1, 2]
    assert full_rank(Linear(), np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])).tolist() == [1, 0]
