"""The confidence width: certain where there is no noise, and each inequality of its proof."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.atoms import Recipe, Version, width
from laconic.atoms.width import information, rounding
from laconic.errors import InputError
from laconic.exploration import Theory
from laconic.kernels import Gaussian
from laconic.tail import NOTHING_NEW, Tail
from tests.atoms.cases import Log, built, function, log, referenced

KERNEL = Gaussian(gamma=1.0)


def played(*, seed: int, noise: float, tail: int, lam: float = 0.1) -> tuple[Version, Tail, np.ndarray, np.ndarray]:
    """A version, a tail on it, and probes with the function's values there."""
    random = np.random.default_rng(seed)
    centres, coefficients = function(KERNEL, seed=seed)
    X = random.uniform(-1, 1, size=(150 + tail, 2))
    y = KERNEL(X, centres) @ coefficients + noise * random.standard_normal(len(X))
    version = built(referenced(KERNEL, Log(X=X[:150], y=y[:150]), lam=lam), lam=lam, settings=Recipe(share=1.0))
    belief = version.belief(kernel=KERNEL, lam=lam)
    own = Tail(belief)
    for x, reward in zip(X[150:], y[150:], strict=True):
        own.append(belief.view(x[None]), float(reward))
    probes = random.uniform(-1.5, 1.5, size=(60, 2))
    return version, own, probes, KERNEL(probes, centres) @ coefficients


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 30))
def test_without_noise_no_value_is_further_from_its_mean_than_the_width_says(seed: int, tail: int) -> None:
    version, own, probes, values = played(seed=seed, noise=0.0, tail=tail)
    alpha = width(version, own.news, lam=0.1, theory=Theory(S=1.0, R=0.0), clients=1, downloads=1)
    mean, variance = own.predict(own.belief.view(probes))
    assert (np.abs(values - mean) <= alpha * np.sqrt(variance) + 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_with_noise_the_values_lie_within_the_width(seed: int) -> None:
    version, own, probes, values = played(seed=seed, noise=0.3, tail=20)
    alpha = width(version, own.news, lam=0.1, theory=Theory(S=1.0, R=0.3, delta=0.01), clients=1, downloads=1)
    mean, variance = own.predict(own.belief.view(probes))
    assert (np.abs(values - mean) <= alpha * np.sqrt(variance)).all()


@settings(max_examples=25)
@given(st.integers(1, 120), st.integers(0, 10**6), st.floats(0.01, 10))
def test_the_information_is_no_less_than_that_of_all_points(n: int, seed: int, lam: float) -> None:
    data = log(n, seed=seed)
    version = built(referenced(KERNEL, data, lam=lam, tolerance=0.05), lam=lam, settings=Recipe(share=1.0))
    exact = np.linalg.slogdet(np.eye(n) + KERNEL(data.X, data.X) / lam)[1]
    assert information(version.certificate, observations=n, lam=lam) >= exact - 1e-8


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_noise_seen_through_a_projection_weighs_no_more_than_all_of_it(seed: int) -> None:
    """ηᵀK̃(K̃ + λI)⁻¹η ≤ ηᵀK(K + λI)⁻¹η for K̃ the Nyström approximation of K on any points."""
    random = np.random.default_rng(seed)
    X, noise = random.uniform(-1, 1, size=(40, 2)), random.standard_normal(40)
    some = X[: random.integers(1, 20)]
    K, cross = KERNEL(X, X), KERNEL(X, some)
    seen = cross @ np.linalg.lstsq(KERNEL(some, some), cross.T, rcond=1e-10)[0]
    weigh = [noise @ np.linalg.solve(k + 0.1 * np.eye(40), k @ noise) for k in (seen, K)]
    assert weigh[0] <= weigh[1] + 1e-6


def test_the_width_is_the_sum_that_the_proof_gives() -> None:
    version, own, _, _ = played(seed=1, noise=0.1, tail=7)
    figures = replace(version.certificate, e_hi=0.5, beta=0.2, missed=0.3, log_det=4.0)
    version = replace(version, certificate=figures)
    lam, n, k, p = 0.1, 150, 7, len(version.mean)
    first = math.sqrt(1.5) * (
        2 * (math.sqrt(lam) + math.sqrt(0.3) + math.sqrt(1e-3 * lam * n))
        + math.sqrt(1e-4 * lam * n)
        + 0.4 * math.sqrt(2 * math.log(2 / 0.05) + 4.0 + n * math.log(1 + 0.3 / (lam * n)))
        + 0.2
    )
    second = 2 * (math.sqrt(lam * own.news.residual) + math.sqrt(1e-3 * lam * k)) + math.sqrt(1e-4 * lam * k)
    noise = 0.4 * math.sqrt(2 * math.log(2 * 9 * 4 * 5 / 0.05) + own.news.log_det)
    expected = first + 0.03 * math.sqrt(p) / 2 + second + noise
    theory = Theory(S=2.0, R=0.4, delta=0.05)
    assert width(version, own.news, lam=lam, theory=theory, clients=9, downloads=3) == pytest.approx(expected)


def test_rounding_grows_with_the_root_of_the_count_and_bad_numbers_are_refused() -> None:
    assert rounding(0, lam=1.0, S=1.0) == 0
    assert rounding(400, lam=1.0, S=1.0) == pytest.approx(2 * rounding(100, lam=1.0, S=1.0))
    version, *_ = played(seed=1, noise=0.1, tail=0)
    with pytest.raises(InputError, match="downloads"):
        width(version, NOTHING_NEW, lam=0.1, theory=Theory(), clients=1, downloads=0)
