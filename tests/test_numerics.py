"""Sound numbers where numbers are hard: nearly equal points, tiny λ, huge rewards, extreme kernels, narrow floats."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, NKernelUCB, OneKernelUCB
from laconic.arrays import Floats
from laconic.beliefs import (
    Belief,
    ExactBelief,
    FiniteBelief,
    LinearEmbedding,
    NystromEmbedding,
    Statistics,
)
from laconic.errors import LaconicError
from laconic.kernels import Gaussian, Kernel, Linear, Matern, Polynomial
from laconic.leverage import full_rank
from laconic.problems import Log
from laconic.protocol.client import Client
from laconic.runtimes import RUNTIMES, run
from laconic.tail import Tail
from tests import naive


def nearly_equal(n: int, *, dim: int = 3, spread: float = 1e-9, seed: int = 0) -> Floats:
    """Points that differ, but hardly."""
    return np.asarray(0.3 + spread * np.random.default_rng(seed).standard_normal((n, dim)))


def algorithms(*, kernel: Kernel, lam: float) -> list[Algorithm]:
    return [
        DisKernelUCB(kernel, lam=lam),
        OneKernelUCB(kernel, lam=lam),
        NKernelUCB(kernel, lam=lam),
        DisLinUCB(lam=lam),
        ApproxDisKernelUCB(kernel, lam=lam),
        ApproxDisKernelUCB(kernel, lam=lam, qbar=math.inf, cold_start="local"),
    ]


def nystrom(kernel: Kernel, X: Floats, y: Floats, *, lam: float) -> FiniteBelief:
    embedding = NystromEmbedding(kernel=kernel, dictionary=X[full_rank(kernel, X)])
    return FiniteBelief(embedding=embedding, lam=lam, statistics=Statistics.of(embedding, X, y))


def linear(X: Floats, y: Floats, *, lam: float) -> FiniteBelief:
    embedding = LinearEmbedding(X.shape[1])
    return FiniteBelief(embedding=embedding, lam=lam, statistics=Statistics.of(embedding, X, y))


def assert_sound(mean: Floats, variance: Floats) -> None:
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance >= 0).all()


# Nearly equal points


def test_five_thousand_nearly_equal_points_are_as_one_point_seen_five_thousand_times() -> None:
    n, lam = 5000, 1e-6
    X, y = nearly_equal(n), 1e6 * (1 + 0.1 * np.random.default_rng(1).standard_normal(n))
    belief = ExactBelief.empty(kernel=Gaussian(1.0), lam=lam, dim=3)
    for first in range(0, n, 1250):
        belief = belief.extended(X[first : first + 1250], y[first : first + 1250])
    view = belief.view(np.concatenate([X[::100], nearly_equal(50, seed=2)]))
    assert_sound(view.mean, view.variance)
    assert_allclose(view.variance, 1 / (n + lam), rtol=1e-3)
    assert_allclose(view.mean, y.sum() / (n + lam), rtol=1e-6)
    assert belief.information == pytest.approx(math.log1p(n / lam), rel=1e-6)
    far = belief.view(np.full((1, 3), 5.0))
    assert_allclose(far.variance, 1 / lam, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(1e6), Matern(nu=0.5), Linear()], ids=repr)
@pytest.mark.parametrize("spread", [0.0, 1e-15, 1e-9, 1e-5])
@pytest.mark.parametrize("dim", [1, 20])
def test_no_belief_doubts_negatively_on_nearly_equal_points(kernel: Kernel, spread: float, dim: int) -> None:
    X, y = nearly_equal(400, dim=dim, spread=spread), 1e6 * np.random.default_rng(1).standard_normal(400)
    Xs = np.concatenate([X[:20], nearly_equal(20, dim=dim, spread=spread, seed=2), np.zeros((1, dim))])
    exact = ExactBelief.empty(kernel=kernel, lam=1e-6, dim=dim)
    for first in range(0, 400, 100):
        exact = exact.extended(X[first : first + 100], y[first : first + 100])
    beliefs: list[Belief] = [exact, nystrom(kernel, X, y, lam=1e-6), linear(X, y, lam=1e-6)]
    for belief in beliefs:
        view = belief.view(Xs)
        assert_sound(view.mean, view.variance)
        assert math.isfinite(belief.information)
        tail = Tail(belief)
        for x, reward in zip(X[:60], y[:60], strict=True):
            tail.append(belief.view(x[None]), float(reward))
        assert_sound(*tail.predict(view))
        assert math.isfinite(tail.news.log_det)
        assert tail.news.log_det >= 0


@pytest.mark.parametrize("algorithm", algorithms(kernel=Gaussian(1.0), lam=1e-6), ids=lambda a: type(a).__name__)
@pytest.mark.parametrize(("runtime", "rounds"), [("lockstep", 100), ("loopback", 8)])
def test_every_algorithm_plays_nearly_equal_arms_with_rewards_of_a_million(
    algorithm: Algorithm, runtime: str, rounds: int
) -> None:
    steps = 20 * rounds
    arms = nearly_equal(4 * steps).reshape(steps, 4, 3)
    means = 1e6 + np.arange(4.0) * np.ones((steps, 1))
    log = Log(arms, means=means, noise=1e5 * np.random.default_rng(1).standard_normal(steps))
    one = run(algorithm, log, clients=20, rounds=rounds, runtime=runtime)
    assert np.isfinite(one.regrets).all()
    assert (one.choices >= 0).all()
    assert (one.choices < 4).all()
    assert set(np.unique(one.dictionary_sizes)) <= {1}


# Every scale


@settings(max_examples=60)
@given(
    n=st.integers(0, 40),
    dim=st.integers(1, 5),
    lam=st.sampled_from([1e-9, 1e-6, 1e-3, 1.0, 1e6]),
    scale=st.sampled_from([1e-150, 1e-6, 1.0, 1e3]),
    size=st.sampled_from([0.0, 1e-6, 1.0, 1e6, 1e100]),
    gamma=st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e300]),
    items=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_predictions_are_sound_at_every_scale(
    n: int, dim: int, lam: float, scale: float, size: float, gamma: float, items: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pool = scale * rng.standard_normal((items, dim))
    X, y = pool[rng.integers(items, size=n)], size * rng.standard_normal(n)
    Xs = np.concatenate([pool[:5], scale * rng.standard_normal((3, dim))])
    kernel = Gaussian(gamma)
    beliefs: list[Belief] = [
        ExactBelief.empty(kernel=kernel, lam=lam, dim=dim).extended(X, y),
        nystrom(kernel, X, y, lam=lam),
        linear(X, y, lam=lam),
    ]
    for belief in beliefs:
        view = belief.view(Xs)
        assert_sound(view.mean, view.variance)
        tail = Tail(belief)
        for x, reward in zip(X[:12], y[:12], strict=True):
            tail.append(belief.view(x[None]), float(reward))
        assert_sound(*tail.predict(view))


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
@pytest.mark.parametrize("batch", [1, 7])
def test_points_that_add_nothing_new_do_not_break_the_factor(scale: float, batch: int) -> None:
    X = scale * np.random.default_rng(0).standard_normal((60, 2))
    y = X @ [1.0, -2.0]
    belief = ExactBelief.empty(kernel=Linear(), lam=1e-6, dim=2)
    for first in range(0, 60, batch):
        belief = belief.extended(X[first : first + batch], y[first : first + batch])
    view = belief.view(X[:9])
    assert_sound(view.mean, view.variance)
    assert_allclose(view.mean, y[:9], rtol=1e-3, atol=1e-3 * scale)


# Extreme kernels and sizes


@pytest.mark.parametrize("gamma", [1e-300, 1e-17, 1e17, 1e300])
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("dim", [1, 6])
def test_every_algorithm_plays_kernels_that_are_the_identity_or_all_ones(gamma: float, runtime: str, dim: int) -> None:
    rng = np.random.default_rng(0)
    arms = rng.uniform(-1, 1, (8, dim))[rng.integers(8, size=(40, 3))]
    log = Log(arms, means=rng.uniform(0, 1, (40, 3)), noise=np.zeros(40))
    for algorithm in algorithms(kernel=Gaussian(gamma), lam=1e-3):
        one = run(algorithm, log, clients=4, rounds=10, runtime=runtime)
        assert np.isfinite(one.regrets).all()
        if isinstance(algorithm, ApproxDisKernelUCB):
            assert (one.dictionary_sizes <= (8 if gamma > 1 else 1)).all()


def test_with_the_identity_as_kernel_each_item_is_learnt_by_itself() -> None:
    X = np.array([[0.0], [1.0], [0.0], [0.0]])
    y = np.array([1.0, 5.0, 2.0, 3.0])
    belief = ExactBelief.empty(kernel=Gaussian(1e300), lam=0.5, dim=1).extended(X, y)
    view = belief.view(np.array([[0.0], [1.0], [2.0]]))
    assert_allclose(view.mean, [6 / 3.5, 5 / 1.5, 0.0])
    assert_allclose(view.variance, [1 / 3.5, 1 / 1.5, 2.0])


def test_with_all_ones_as_kernel_every_item_is_the_same() -> None:
    X, y = np.arange(4.0)[:, None], np.array([1.0, 5.0, 2.0, 3.0])
    belief = ExactBelief.empty(kernel=Gaussian(1e-300), lam=0.5, dim=1).extended(X, y)
    view = belief.view(np.array([[0.0], [99.0]]))
    assert_allclose(view.mean, 11 / 4.5)
    assert_allclose(view.variance, 1 / 4.5)


# Narrow floats


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_narrow_floats_are_learnt_from_as_the_wide_ones_they_are(runtime: str) -> None:
    rng = np.random.default_rng(0)
    narrow: dict[str, Any] = {
        "arms": rng.uniform(-1, 1, (60, 4, 3)).astype(np.float32),
        "means": rng.uniform(0, 1, (60, 4)).astype(np.float32),
        "noise": (0.1 * rng.standard_normal(60)).astype(np.float32),
    }
    wide = {name: array.astype(np.float64) for name, array in narrow.items()}
    for algorithm in algorithms(kernel=Gaussian(1.0), lam=1e-6):
        one, other = (run(algorithm, Log(**each), clients=3, rounds=20, runtime=runtime) for each in (narrow, wide))
        assert_array_equal(one.choices, other.choices)
        assert one.scalars == other.scalars


def test_a_client_computes_narrow_arms_in_double_precision() -> None:
    client = Client(NKernelUCB(Gaussian(1.0), lam=1e-6).plan(2), number=0, seed=0, clients=1)
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        arms = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        decision = client.choose(arms)
        X.append(arms[decision.arm].astype(np.float64))
        y.append(float(np.float32(rng.standard_normal())))
        client.observe(decision.id, np.float32(y[-1]))  # type: ignore[arg-type]
    Xs = rng.uniform(-1, 1, (5, 2))
    mean, variance = client.learner.tail.predict(client.learner.belief.view(Xs))
    expected = naive.posterior(naive.gaussian(1.0), np.array(X), np.array(y), Xs, 1e-6)
    assert_allclose(mean, expected[0], atol=1e-6)
    assert_allclose(1e-6 * variance, 1e-6 * expected[1], atol=1e-9)


# What cannot be computed is refused


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("algorithm", "scale", "size"),
    [
        (DisLinUCB(), 1e200, 1.0),
        (NKernelUCB(Linear()), 1e200, 1.0),
        (DisLinUCB(), 1e140, 1e300),
        (NKernelUCB(Polynomial(degree=4)), 1e100, 1.0),
    ],
    ids=["linear", "linear kernel", "rewards", "only the kernel overflows"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_overflows_is_refused_and_no_nan_is_chosen(
    runtime: str, algorithm: Algorithm, scale: float, size: float
) -> None:
    rng = np.random.default_rng(0)
    arms = scale * rng.uniform(0.5, 1, (30, 3, 2))

    def attempt() -> None:
        log = Log(arms, means=np.full((30, 3), size), noise=np.zeros(30))
        run(algorithm, log, clients=1, rounds=30, runtime=runtime)

    with pytest.raises(LaconicError, match=r"rescale features|larger lam|try finite numbers"):
        attempt()


# Memory


PEAK = """
import sys
from laconic import Cosine, DisKernelUCB, run
run(DisKernelUCB(), Cosine(), clients=100, rounds=20, runtime=sys.argv[1])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_hundred_clients_share_one_factor_in_less_than_300_megabytes(runtime: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, runtime],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) * 1024 < 300e6
