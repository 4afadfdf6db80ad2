"""The evidence and its gradient, each by a second route: a library's density, and differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from laconic import Gaussian, Linear, Matern, Polynomial, RationalQuadratic
from laconic.suggestion import evidence, fit
from laconic.suggestion.fitting import RIDGES, _with
from laconic.suggestion.likelihood import derivatives, parameters
from laconic.suggestion.weight import Noise, left_out, weight

KERNELS: list[Any] = [
    Gaussian(0.7),
    *(Matern(nu=nu, length=0.8) for nu in (0.5, 1.5, 2.5)),
    RationalQuadratic(length=0.6, mix=1.7),
    Linear(),
    Polynomial(degree=2),
]


def data(n: int = 25, *, seed: int = 0, dim: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, dim))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n) + 1.0


def slope(function: Callable[[float], float], at: float, *, step: float = 1e-5) -> float:
    return (function(at + step) - function(at - step)) / (2 * step)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_evidence_is_the_density_of_the_rewards_at_its_best_signal(kernel: Any) -> None:
    X, y = data()
    found = evidence(kernel, X, y, lam=0.3)
    covariance = kernel(X, X) + 0.3 * np.eye(len(X))

    def log_density(signal: float) -> float:
        return float(multivariate_normal.logpdf(y, mean=np.zeros(len(y)), cov=signal**2 * covariance))

    assert found.log == pytest.approx(log_density(found.signal), rel=1e-9)
    assert all(log_density(found.signal * factor) < found.log for factor in (0.9, 0.99, 1.01, 1.1))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("lam", [0.02, 1.0])
def test_the_gradient_is_that_of_differences(kernel: Any, lam: float) -> None:
    X, y = data()
    names = (*parameters(kernel), "lam")
    here = np.array([*(math.log(getattr(kernel, name)) for name in names[:-1]), math.log(lam)])
    found = evidence(kernel, X, y, lam=lam).gradient
    assert len(found) == len(names)
    for place in range(len(names)):

        def along(value: float, place: int = place) -> float:
            theta = here.copy()
            theta[place] = value
            return evidence(_with(kernel, names, theta), X, y, lam=math.exp(theta[-1])).log

        assert found[place] == pytest.approx(slope(along, here[place]), rel=1e-5, abs=1e-5)


def test_a_kernels_derivatives_stay_finite_where_points_are_the_same() -> None:
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    for kernel in KERNELS:
        assert all(np.isfinite(each).all() for each in derivatives(kernel, X))


def test_repeated_points_are_no_obstacle() -> None:
    X, y = data(10)
    found = evidence(Gaussian(1.0), np.tile(X, (5, 1)), np.tile(y, 5), lam=0.1)
    assert np.isfinite(found.log)
    assert np.isfinite(found.gradient).all()


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Matern(nu=1.5), RationalQuadratic()], ids=repr)
def test_no_setting_nearby_is_more_likely_than_the_fit(kernel: Any) -> None:
    X, y = data(60)
    best = fit(kernel, X, y)
    names = (*parameters(best.kernel), "lam")
    here = np.array([*(math.log(getattr(best.kernel, name)) for name in names[:-1]), math.log(best.lam)])
    for place, name in enumerate(names):
        for step in (-0.2, 0.2):
            theta = here.copy()
            theta[place] += step
            inside = RIDGES[0] <= math.exp(theta[-1]) <= RIDGES[1] and name not in best.at_limit
            there = evidence(_with(best.kernel, names, theta), X, y, lam=math.exp(theta[-1])).log
            assert there < best.log + 1e-3 or not inside


def test_a_fit_finds_the_kernel_that_rewards_were_drawn_from() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(300, 2))
    K = Gaussian(4.0)(X, X) + 1e-9 * np.eye(300)
    y = 2.0 * (np.linalg.cholesky(K) @ rng.standard_normal(300)) + 0.5 * rng.standard_normal(300)
    best = fit(Gaussian(0.3), X, y)
    assert best.kernel.gamma == pytest.approx(4.0, rel=0.5)  # type: ignore[attr-defined]
    assert best.signal * math.sqrt(best.lam) == pytest.approx(0.5, rel=0.15)
    assert best.at_limit == ()


def test_rewards_without_a_signal_end_at_the_largest_ridge() -> None:
    rng = np.random.default_rng(0)
    best = fit(Gaussian(1.0), rng.uniform(-1, 1, size=(80, 2)), rng.standard_normal(80))
    assert best.lam > 1


def test_what_is_left_out_is_predicted_from_all_others() -> None:
    X, y = data(12)
    residuals, variances = left_out(Gaussian(1.0), X, y, lam=0.2)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        A = Gaussian(1.0)(X[rest], X[rest]) + 0.2 * np.eye(len(X) - 1)
        k = Gaussian(1.0)(X[i : i + 1], X[rest])[0]
        assert residuals[i] == pytest.approx(y[i] - k @ np.linalg.solve(A, y[rest]), rel=1e-8)
        assert variances[i] == pytest.approx(1.2 - k @ np.linalg.solve(A, k), rel=1e-8)


def test_rewards_that_are_certain_where_they_are_good_have_little_noise_there() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(np.linspace(0, 1, 10), 30)[:, None]
    noisy = (X[:, 0] < 0.5) * rng.standard_normal(300)
    evenly = 0.5 * rng.standard_normal(300)
    found = [Noise.of(Gaussian(20.0), X, X[:, 0] * 4 + noise, lam=0.3) for noise in (noisy, evenly)]
    assert found[0].best < 0.3 * found[0].all
    assert found[1].best == pytest.approx(found[1].all, rel=0.3)
    assert found[1].all == pytest.approx(0.5, rel=0.15)
    assert weight(found[0]) < weight(found[1])
