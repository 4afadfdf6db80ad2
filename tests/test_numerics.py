"""Sound numbers where numbers are hard: nearly equal points, tiny λ, huge rewards, extreme kernels, narrow floats."""

import math
import os
import subprocess
import sys
from dataclasses import replace
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
from laconic.errors import KernelError, LaconicError
from laconic.kernels import Gaussian, Kernel, Linear, Matern, Polynomial, as_kernel
from laconic.leverage import full_rank
from laconic.linalg import lower_cholesky
from laconic.problems import Cosine, Log
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
    ]
    if scale**2 < 1e10 * lam:  # k(x, x) = ‖x‖² stays below 1e12 λ; more is refused before a belief sees it
        beliefs.append(linear(X, y, lam=lam))
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


# Where λ, or an arm's lead, is lost in rounding


def far_apart() -> Floats:
    return np.random.default_rng(0).uniform(0, 1000, (30, 2))


@pytest.mark.parametrize("batch", [1, 30])
def test_what_makes_up_for_rounding_never_stands_in_for_lambda(batch: int) -> None:
    X, y = far_apart(), np.random.default_rng(1).standard_normal(30)

    def learnt(lam: float) -> ExactBelief:
        belief = ExactBelief.empty(kernel=Polynomial(3), lam=lam, dim=2)
        for first in range(0, 30, batch):
            belief = belief.extended(X[first : first + batch], y[first : first + batch])
        return belief

    with pytest.raises(
        KernelError, match=r"ridge of 1 is lost in the rounding .* try a larger lam, or rescale features"
    ):
        learnt(1.0)
    assert learnt(1e8).view(X).variance.max() < 1


def test_a_linear_belief_refuses_a_lambda_that_is_lost_among_its_sums() -> None:
    X = np.array([[1e8, 1e8], [1e8, -1e8 + 1e-6]])[:1]
    with pytest.raises(KernelError, match="lost in the rounding"):
        linear(X, np.ones(1), lam=1e-3).view(X)


@pytest.mark.parametrize("lift", [1e-3, 1e3])
def test_a_pivot_is_lifted_by_a_part_of_its_own_size_and_not_of_the_largest(lift: float) -> None:
    A = np.array([[1e12, 0, 0], [0, 1.0, 1.0], [0, 1.0, 1.0 - 1e-16]])
    L = lower_cholesky(lift * A)
    assert_allclose(L @ L.T, lift * A, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "lam"), [("float64", 1e-13), ("float64", 1e-12), ("float32", 1e-3), ("float32", 1e-9)]
)
def test_both_runtimes_refuse_a_lambda_below_what_the_precision_can_hold(dtype: Any, lam: float) -> None:
    said = set()
    for algorithm in (DisKernelUCB(dtype=dtype, lam=lam), ApproxDisKernelUCB(dtype=dtype, lam=lam)):
        for runtime in RUNTIMES:
            with pytest.raises(LaconicError, match=r"round 0: lam=.* is lost in the rounding .*; try lam=") as refused:
                run(algorithm, Cosine(dim=3, arms=4), clients=2, rounds=2, runtime=runtime)
            said.add(str(refused.value))
    assert len(said) == 1
    wider = "dtype='float64'" in said.pop()
    assert wider == (dtype == "float32")


@pytest.mark.parametrize(("scale", "lam"), [(1e150, 0.1), (1e150, 1e150), (1e-200, 1e-300), (1e20, 1e5)])
def test_both_runtimes_refuse_kernels_scaled_beyond_what_can_be_summed(scale: float, lam: float) -> None:
    algorithm = DisKernelUCB(scale * Gaussian(1.0), lam=lam)
    for runtime in RUNTIMES:
        with pytest.raises(LaconicError, match=r"round 0: (lam=.* is lost|the kernel gives a point|rewards must be)"):
            run(algorithm, Cosine(dim=3, arms=4), clients=2, rounds=2, runtime=runtime)


def close_arms(*, apart: float, steps: int = 120) -> Log:
    rng = np.random.default_rng(3)
    arms = rng.uniform(-1, 1, (steps, 1, 3)) + apart * rng.standard_normal((steps, 5, 3))
    return Log(arms, means=np.cos(arms.sum(axis=2)), noise=0.1 * rng.standard_normal(steps))


@pytest.mark.parametrize("apart", [1e-8, 1e-7])
@pytest.mark.parametrize("lam", [0.01, 0.1])
def test_runtimes_agree_in_single_precision_on_arms_closer_than_it_tells_apart(apart: float, lam: float) -> None:
    for kind in (DisKernelUCB(D=1.0, lam=lam), ApproxDisKernelUCB(D=1.0, lam=lam)):
        algorithm = replace(kind, dtype="float32")
        one, other = (run(algorithm, close_arms(apart=apart), clients=3, rounds=40, runtime=each) for each in RUNTIMES)
        assert one.syncs > 0
        assert_array_equal(one.choices, other.choices)


def test_runtimes_agree_in_single_precision_on_ordinary_arms_down_to_the_least_lambda() -> None:
    algorithm = ApproxDisKernelUCB(Gaussian(0.2), D=500.0, lam=1.01e-3, dtype="float32")
    for seed in range(2):
        one, other = (
            run(algorithm, Cosine(dim=3, arms=10), clients=4, rounds=40, seed=seed, runtime=each) for each in RUNTIMES
        )
        assert one.syncs > 0
        assert_array_equal(one.choices, other.choices)


@pytest.mark.parametrize(
    ("dtype", "reward"), [("float64", 1e65), ("float64", 1e140), ("float32", 1e39), ("float32", 1e15)]
)
def test_a_reward_is_refused_alike_by_clients_and_by_both_runtimes(dtype: Any, reward: float) -> None:
    algorithm = DisKernelUCB(dtype=dtype, lam=1.0)
    log = Log(np.ones((4, 2, 1)), means=np.full((4, 2), reward), noise=np.zeros(4))
    client = Client(algorithm.plan(1), number=0, seed=0, clients=1)
    decision = client.choose(np.ones((1, 1)))
    with pytest.raises(LaconicError, match=r"rewards must be below .* rescale rewards") as refused:
        client.observe(decision, reward)
    for runtime in RUNTIMES:
        with pytest.raises(LaconicError) as met:
            run(algorithm, log, clients=2, rounds=2, runtime=runtime)
        assert str(met.value) == f"round 0: {refused.value}"
    below = Log(
        np.ones((4, 2, 1)),
        means=np.full((4, 2), 1e-2 * min(reward, 1e65 if dtype == "float64" else 1e15)),
        noise=np.zeros(4),
    )
    for runtime in RUNTIMES:
        assert np.isfinite(run(algorithm, below, clients=2, rounds=2, runtime=runtime).regrets).all()


# Kernels of others


def test_run_refuses_a_kernel_that_is_none_as_compare_does() -> None:
    def distance(X: Floats, Y: Floats) -> Floats:
        return np.asarray(np.linalg.norm(X[:, None] - Y[None], axis=2))

    for runtime in RUNTIMES:
        with pytest.raises(KernelError, match="not positive definite"):
            run(DisKernelUCB(distance), Cosine(dim=3), clients=2, rounds=2, runtime=runtime)


def test_a_kernel_that_writes_into_its_points_is_refused_and_changes_nothing() -> None:
    def careless(X: Floats, Y: Floats) -> Floats:
        X -= 1.0
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    X = np.ones((3, 2))
    with pytest.raises(KernelError, match="writes into the points"):
        as_kernel(careless)(X, X)
    assert_array_equal(X, np.ones((3, 2)))
    for runtime in RUNTIMES:
        with pytest.raises(KernelError, match="writes into the points"):
            run(NKernelUCB(careless), Cosine(dim=3), clients=2, rounds=2, runtime=runtime)


def test_a_kernel_that_is_undefined_at_zero_plays_under_masks_in_both_runtimes() -> None:
    def cosine_of_angle(X: Floats, Y: Floats) -> Floats:
        return np.asarray((X / np.linalg.norm(X, axis=1)[:, None]) @ (Y / np.linalg.norm(Y, axis=1)[:, None]).T)

    rng = np.random.default_rng(0)
    arms, mask = rng.uniform(0.5, 1, (60, 5, 3)), rng.random((60, 5)) < 0.6
    mask[np.arange(60), rng.integers(5, size=60)] = True
    arms[~mask] = 0.0
    log = Log(arms, means=arms.sum(axis=2), noise=0.1 * rng.standard_normal(60), mask=mask)
    for algorithm in (NKernelUCB(cosine_of_angle), DisKernelUCB(cosine_of_angle, D=1.0)):
        one, other = (run(algorithm, log, clients=3, rounds=20, runtime=runtime) for runtime in RUNTIMES)
        assert_array_equal(one.choices, other.choices)
        assert mask[np.arange(60), one.choices].all()


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
