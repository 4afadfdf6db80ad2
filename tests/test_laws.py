"""The laws of the whole: every run is replayed by the naive reference, every count by its closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, NKernelUCB, OneKernelUCB
from laconic.arrays import Floats
from laconic.exploration import Theory
from laconic.kernels import Gaussian, Linear, Matern
from laconic.problems import Catalogue, Cosine, Log, Problem
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Message, payload_of
from laconic.protocol.plan import Plan
from laconic.randomness import Role, generator
from laconic.runtimes import RUNTIMES, Run, loopback, run
from laconic.runtimes.network import Delivery, Network
from laconic.triggers import Always, Never, Trigger
from tests import naive
from tests.naive import Naive

CLOSE = 1e-8
SEED = 7
FEW = settings(max_examples=max(settings().max_examples // 3, 1))


#: The parameters of a case that says nothing else.
GAMMA, LAM, ALPHA = 1.0, 1.0, 1.0
PARTS: dict[str, Any] = {"kernel": Gaussian(GAMMA), "lam": LAM, "alpha": ALPHA}


@dataclass(frozen=True)
class Case:
    """A recorded problem of some size, and the parameters that all algorithms share."""

    log: Log
    clients: int
    rounds: int
    gamma: float = GAMMA
    lam: float = LAM
    alpha: float = ALPHA
    D: float = 2.0
    runtime: str = "loopback"

    @property
    def steps(self) -> int:
        return self.clients * self.rounds

    def run(self, algorithm: Algorithm, *, seed: int = SEED) -> Run:
        return run(algorithm, self.log, clients=self.clients, rounds=self.rounds, seed=seed, runtime=self.runtime)

    def replay(self, name: str, one: Run, **changed: Any) -> Naive:
        """The same run by the naive reference, which makes the same choices and says how good they were."""
        steps, log = slice(self.steps), self.log
        settings: dict[str, Any] = {
            "arms": log.arms[steps],
            "means": log.means[steps],
            "noise": log.noise[steps],
            "mask": None if log.mask is None else log.mask[steps],
            "clients": self.clients,
            "kernel": naive.gaussian(self.gamma),
            "lam": self.lam,
            "alpha": self.alpha,
            "D": self.D,
            "forced": one.choices,
            "uniforms": uniforms(one.seed),
        }
        return naive.play(name, **(settings | changed))


def uniforms(seed: int) -> naive.Uniforms:
    """The draws of the package; its first sync makes epoch 1, while the reference counts earlier syncs."""
    return lambda client, epoch, n: generator(seed, Role.LEVERAGE, client, epoch + 1).random(n)


def draw_log(
    steps: int,
    *,
    arms: int,
    dim: int,
    kind: str = "fresh",
    masked: bool = False,
    rewards: str = "smooth",
    seed: int = 0,
) -> Log:
    """Arms that are fresh at every step, from a catalogue, or all equal; perhaps not all of them exist."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (steps, arms, dim))
    if kind == "catalogue":
        x = x[0][rng.integers(arms, size=(steps, arms))]  # arms repeat between steps and within a step
    elif kind == "equal":
        x[:] = x[:, :1]
    mask = rng.random((steps, arms)) < 0.6 if masked else None
    if mask is not None:
        mask[np.arange(steps), rng.integers(arms, size=steps)] = True
    means = np.cos(3 * x @ rng.uniform(-1, 1, dim))
    if rewards == "none":
        means[:] = 0.0
    elif rewards == "yes or no":
        means = (means > 0.5).astype(float)
    noise = 0.1 * rng.standard_normal(steps) if rewards == "smooth" else np.zeros(steps)
    return Log(x, means=means, noise=noise, mask=mask)


def recorded(problem: Problem, *, clients: int, rounds: int, seed: int = SEED) -> Log:
    """What a problem deals, as a log."""
    instance = problem.instance(seed=seed, clients=clients, rounds=rounds)
    met = [instance.round(index) for index in range(rounds)]
    arms, means, rewards = (
        np.concatenate([getattr(each, name) for each in met]) for name in ("arms", "means", "rewards")
    )
    return Log(arms, means=means, noise=(rewards - means)[:, 0])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Odd sizes and scales of all kinds."""
    clients = draw(st.sampled_from([1, 2, 3, 5]))
    rounds = draw(st.sampled_from([1, 2, 7, 48 // clients]))
    log = draw_log(
        clients * rounds,
        arms=draw(st.sampled_from([1, 2, 5])),
        dim=draw(st.sampled_from([1, 2, 4])),
        kind=draw(st.sampled_from(["fresh", "catalogue", "equal"])),
        masked=draw(st.booleans()),
        rewards=draw(st.sampled_from(["smooth", "exact", "none", "yes or no"])),
        seed=draw(st.integers(0, 2**32)),
    )
    return Case(
        log,
        clients=clients,
        rounds=rounds,
        gamma=draw(st.sampled_from([1e-14, 0.1, 1.0, 20.0, 1e15])),
        lam=draw(st.sampled_from([0.05, 0.3, 1.0])),
        alpha=draw(st.sampled_from([0.0, 0.3, 1.0])),
        D=draw(st.sampled_from([0.0, 0.4, 2.0, 5.0, 20.0])),
        runtime=draw(st.sampled_from(list(RUNTIMES))),
    )


def assert_agree(one: Run, reference: Naive) -> None:
    """Every choice is a best one for the reference, and syncs, scalars, dictionaries and regrets are the same."""
    assert (reference.within <= CLOSE * reference.scales).all()
    assert one.sync_steps.tolist() == reference.syncs
    assert one.scalars_at_sync.tolist() == np.cumsum(reference.scalars_by_sync).tolist()
    assert one.scalars == reference.scalars
    assert one.dictionary_sizes.tolist() == reference.dictionary_sizes
    assert_allclose(one.regrets, reference.regrets, atol=1e-12)


# Choices, syncs and scalars are those of the naive reference


@FEW
@given(case=cases())
def test_dis_kernel_ucb_chooses_as_the_reference_on_any_size(case: Case) -> None:
    one = case.run(DisKernelUCB(Gaussian(case.gamma), D=case.D, lam=case.lam, alpha=case.alpha))
    assert_agree(one, case.replay("DisKernelUCB", one))


@FEW
@given(case=cases())
def test_dis_lin_ucb_chooses_as_the_reference_on_any_size(case: Case) -> None:
    one = case.run(DisLinUCB(D=case.D, lam=case.lam, alpha=case.alpha))
    assert_agree(one, case.replay("DisLinUCB", one))


@FEW
@given(case=cases())
def test_one_kernel_ucb_chooses_as_the_reference_on_any_size(case: Case) -> None:
    one = case.run(OneKernelUCB(Gaussian(case.gamma), lam=case.lam, alpha=case.alpha))
    assert_agree(one, case.replay("OneKernelUCB", one))


@FEW
@given(case=cases())
def test_n_kernel_ucb_chooses_as_the_reference_on_any_size(case: Case) -> None:
    one = case.run(NKernelUCB(Gaussian(case.gamma), lam=case.lam, alpha=case.alpha))
    assert_agree(one, case.replay("NKernelUCB", one))


@pytest.mark.parametrize("cold_start", ["paper", "local"])
@FEW
@given(case=cases(), qbar=st.sampled_from([0.05, 0.5, 3.0, 1e9, math.inf]), seed=st.integers(0, 99))
def test_approx_chooses_as_the_reference_on_any_size(cold_start: Any, case: Case, qbar: float, seed: int) -> None:
    algorithm = ApproxDisKernelUCB(
        Gaussian(case.gamma), D=case.D, lam=case.lam, alpha=case.alpha, qbar=qbar, cold_start=cold_start
    )
    one = case.run(algorithm, seed=seed)
    assert_agree(one, case.replay("ApproxDisKernelUCB", one, qbar=qbar, cold_start=cold_start))


def longer(kind: str, *, runtime: str = "loopback") -> Case:
    """Long enough for several syncs, tails that fold and points that collapse."""
    masked = kind == "masked"
    log = draw_log(96, arms=6, dim=3, kind="fresh" if masked else kind, masked=masked, seed=11)
    return Case(log, clients=4, rounds=24, gamma=1.3, lam=0.4, alpha=0.5, D=3.0, runtime=runtime)


@pytest.mark.parametrize("kind", ["fresh", "catalogue", "masked"])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("DisKernelUCB", lambda c: DisKernelUCB(Gaussian(c.gamma), D=c.D, lam=c.lam, alpha=c.alpha)),
        ("DisLinUCB", lambda c: DisLinUCB(D=c.D, lam=c.lam, alpha=c.alpha)),
        ("OneKernelUCB", lambda c: OneKernelUCB(Gaussian(c.gamma), lam=c.lam, alpha=c.alpha)),
        ("NKernelUCB", lambda c: NKernelUCB(Gaussian(c.gamma), lam=c.lam, alpha=c.alpha)),
    ],
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_longer_run_is_that_of_the_reference(
    kind: str, name: str, make: Callable[[Case], Algorithm], runtime: str
) -> None:
    case = longer(kind, runtime=runtime)
    one = case.run(make(case))
    assert (one.syncs > 2) == (name != "NKernelUCB")
    assert_agree(one, case.replay(name, one))


@pytest.mark.parametrize("kind", ["fresh", "catalogue", "masked"])
@pytest.mark.parametrize("qbar", [0.3, math.inf])
@pytest.mark.parametrize(("cold_start", "runtime"), [("paper", "lockstep"), ("local", "loopback")])
def test_a_longer_run_of_approx_is_that_of_the_reference(kind: str, qbar: float, cold_start: Any, runtime: str) -> None:
    case = longer(kind, runtime=runtime)
    algorithm = ApproxDisKernelUCB(
        Gaussian(case.gamma), D=case.D, lam=case.lam, alpha=case.alpha, qbar=qbar, cold_start=cold_start
    )
    one = case.run(algorithm)
    assert one.syncs > 2
    assert_agree(one, case.replay("ApproxDisKernelUCB", one, qbar=qbar, cold_start=cold_start))


@pytest.mark.parametrize("problem", [Cosine(dim=3, arms=5), Catalogue(dim=3, items=6, arms=4)])
def test_the_built_in_problems_are_played_as_their_logs(problem: Problem) -> None:
    case = Case(recorded(problem, clients=3, rounds=12), clients=3, rounds=12)
    algorithm = DisKernelUCB(**PARTS, D=2.0)
    one = run(algorithm, problem, clients=3, rounds=12, seed=SEED)
    assert_array_equal(one.choices, case.run(algorithm).choices)
    assert_agree(one, case.replay("DisKernelUCB", one))


def test_another_kernel_is_replayed_too() -> None:
    case = longer("fresh")
    one = case.run(DisKernelUCB(Matern(nu=1.5, length=0.7), D=case.D, lam=case.lam, alpha=case.alpha))
    theirs = sk.Matern(nu=1.5, length_scale=0.7)
    assert_agree(one, case.replay("DisKernelUCB", one, kernel=lambda X, Y: theirs(X, Y)))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["fresh", "catalogue"])
def test_in_single_precision_no_choice_is_much_worse_than_the_best(kind: str, runtime: str) -> None:
    case = longer(kind, runtime=runtime)
    kernel = Gaussian(case.gamma)
    for name, algorithm in (
        ("DisKernelUCB", DisKernelUCB(kernel, D=case.D, lam=case.lam, alpha=case.alpha, dtype="float32")),
        ("OneKernelUCB", OneKernelUCB(kernel, lam=case.lam, alpha=case.alpha, dtype="float32")),
        (
            "ApproxDisKernelUCB",
            ApproxDisKernelUCB(kernel, D=case.D, lam=case.lam, alpha=case.alpha, qbar=0.3, dtype="float32"),
        ),
    ):
        one = case.run(algorithm)
        replayed = case.replay(name, one, qbar=0.3)
        assert (replayed.within <= 1e-4 * replayed.scales).all()
        assert one.sync_steps.tolist() == replayed.syncs


THEORY = Theory(S=0.8, R=0.2, delta=0.05, epsilon=0.02)


def theoretical(context: naive.Context) -> float:
    """The paper's exact α for what a client knows."""
    return naive.exact_alpha(
        context.kernel, context.X, lam=context.lam, clients=context.clients, S=0.8, R=0.2, delta=0.05
    )


def theoretical_nystrom(context: naive.Context) -> float:
    """The Nyström α, also on the exact local model of a cold start."""
    if context.estimator == "exact":
        information = naive.log_det(context.kernel, context.X, context.lam)
    else:
        information = naive.log_det_bound(context.kernel, context.dictionary, context.X, context.lam)
    return naive.nystrom_alpha(
        information, lam=context.lam, clients=context.clients, S=0.8, R=0.2, delta=0.05, eps=0.02, D=3.0
    )


@pytest.mark.parametrize(("kind", "runtime"), [("fresh", "loopback"), ("catalogue", "lockstep")])
def test_the_theoretical_alpha_follows_what_a_client_knows(kind: str, runtime: str) -> None:
    case = replace(longer(kind, runtime=runtime), rounds=15)
    for name, algorithm, alpha in (
        ("DisKernelUCB", DisKernelUCB(Gaussian(case.gamma), D=3.0, lam=case.lam, alpha=THEORY), theoretical),
        ("NKernelUCB", NKernelUCB(Gaussian(case.gamma), lam=case.lam, alpha=THEORY), theoretical),
        ("DisLinUCB", DisLinUCB(D=3.0, lam=case.lam, alpha=THEORY), theoretical),
    ):
        one = case.run(algorithm)
        assert_agree(one, case.replay(name, one, alpha=alpha))
    starts: list[Any] = ["paper", "local"]
    for cold_start in starts:
        approx = ApproxDisKernelUCB(
            Gaussian(case.gamma),
            D=3.0,
            lam=case.lam,
            alpha=THEORY,
            qbar=0.5,
            cold_start=cold_start,
        )
        one = case.run(approx)
        assert one.syncs > 1
        replayed = case.replay("ApproxDisKernelUCB", one, alpha=theoretical_nystrom, qbar=0.5, cold_start=cold_start)
        assert_agree(one, replayed)


# Ties


def test_equal_arms_are_drawn_and_the_draw_does_not_depend_on_the_algorithm() -> None:
    log = draw_log(120, arms=4, dim=2, kind="equal", seed=3)
    case = Case(log, clients=4, rounds=30)
    runs = [case.run(algorithm) for algorithm in (DisKernelUCB(), OneKernelUCB(), NKernelUCB(), DisLinUCB())]
    for one in runs:
        assert_array_equal(one.choices, runs[0].choices)
    shares = np.bincount(runs[0].choices, minlength=4) / 120
    assert_allclose(shares, 0.25, atol=0.12)
    assert not np.array_equal(runs[0].choices, case.run(DisKernelUCB(), seed=SEED + 1).choices)


# Approx with every point kept is exact right after a sync


def steps_of(
    case: Case, algorithm: Algorithm, *, delivery: Delivery | None = None
) -> Iterator[tuple[int, Network, bool]]:
    """Play step by step: (steps done, the network, whether a sync ran)."""
    instance = case.log.instance(seed=SEED, clients=case.clients, rounds=case.rounds)
    plan = algorithm.plan(instance.dim)
    net = Network(plan, clients=case.clients, seed=SEED, ledger=Ledger(plan), delivery=delivery)
    for index in range(case.rounds):
        met = instance.round(index)
        for i, client in net.clients.items():
            decision = client.choose(met.arms[i])
            outcome = client.observe(decision.id, float(met.rewards[i, decision.arm]))
            syncs = len(net.installed)
            net.settle(i, outcome)
            yield index * case.clients + i + 1, net, len(net.installed) > syncs


def known_to(net: Network) -> tuple[Floats, Floats]:
    """All points of all clients."""
    histories = [client.learner.history for client in net.clients.values()]
    return np.concatenate([h.points for h in histories]), np.concatenate([h.rewards for h in histories])


@pytest.mark.parametrize(
    ("dim", "gamma", "kind", "tolerance"),
    [
        (3, 8.0, "fresh", 1e-8),
        (3, 8.0, "catalogue", 1e-8),
        (4, 1e15, "fresh", 1e-8),
        (1, 0.5, "fresh", 1e-5),
        (2, 0.05, "fresh", 1e-5),
        (2, 1e-14, "fresh", 1e-5),
    ],
)
@pytest.mark.parametrize("qbar", [1e9, math.inf])
def test_right_after_a_sync_approx_with_every_point_kept_is_exact(
    dim: int, gamma: float, kind: str, tolerance: float, qbar: float
) -> None:
    case = Case(draw_log(60, arms=5, dim=dim, kind=kind, seed=5), clients=3, rounds=20, gamma=gamma, lam=0.5)
    Xs = np.random.default_rng(1).uniform(-1, 1, (30, dim))
    dropped, syncs = False, 0
    for _, net, synced in steps_of(case, ApproxDisKernelUCB(Gaussian(gamma), D=2.0, lam=0.5, qbar=qbar)):
        if not synced:
            continue
        X, y = known_to(net)
        mean, variance = naive.posterior(naive.gaussian(gamma), X, y, Xs, 0.5)
        for belief in [net.server.belief, *(client.learner.belief for client in net.clients.values())]:
            view = belief.view(Xs)
            assert_allclose(view.mean, mean, atol=tolerance)
            assert_allclose(view.variance, variance, atol=tolerance)
        dropped |= net.server.belief.dictionary_size != len(naive.merge_equal(X))
        syncs += 1
    assert syncs >= 1
    assert dropped == (tolerance == 1e-5)


# Equal algorithms


@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("kind", ["fresh", "catalogue"])
@pytest.mark.parametrize("D", [0.0, 5.0])
def test_with_a_linear_kernel_dis_kernel_ucb_and_dis_lin_ucb_choose_the_same_arms(
    dim: int, kind: str, D: float
) -> None:
    case = Case(draw_log(80, arms=5, dim=dim, kind=kind, seed=dim), clients=4, rounds=20)
    kernelised = case.run(DisKernelUCB(Linear(), D=D, lam=0.5, alpha=0.7))
    primal = case.run(DisLinUCB(D=D, lam=0.5, alpha=0.7))
    assert_array_equal(kernelised.choices, primal.choices)
    assert_array_equal(kernelised.sync_steps, primal.sync_steps)
    assert primal.syncs > 1


@dataclass(frozen=True)
class ByHand:
    """DisKernelUCB with another trigger."""

    trigger: Trigger

    def plan(self, dim: int, /) -> Plan:
        return replace(DisKernelUCB(lam=0.5).plan(dim), trigger=self.trigger)


@pytest.mark.parametrize("kind", ["fresh", "catalogue", "equal"])
def test_one_and_n_are_dis_with_a_trigger_that_always_and_never_fires(kind: str) -> None:
    case = Case(draw_log(80, arms=4, dim=2, kind=kind, seed=2), clients=4, rounds=20)
    for algorithm, twin in (
        (OneKernelUCB(lam=0.5), ByHand(Always())),
        (NKernelUCB(lam=0.5), ByHand(Never())),
    ):
        one, other = case.run(algorithm), case.run(twin)
        assert_array_equal(one.choices, other.choices)
        assert_array_equal(one.sync_steps, other.sync_steps)
        assert one.ledger.total == other.ledger.total
        assert one.syncs == (80 if isinstance(algorithm, OneKernelUCB) else 0)


@pytest.mark.parametrize("kind", ["fresh", "catalogue"])
def test_a_lone_client_is_kernel_ucb_whatever_the_threshold(kind: str) -> None:
    case = Case(draw_log(60, arms=4, dim=2, kind=kind, seed=2), clients=1, rounds=60)
    alone = case.run(NKernelUCB(Gaussian(2.0), lam=0.5, alpha=0.7))
    for D in (0.0, 1.0, 20.0, 1e9):
        one = case.run(DisKernelUCB(Gaussian(2.0), D=D, lam=0.5, alpha=0.7))
        assert_array_equal(one.choices, alone.choices)
        assert one.scalars == 3 * max(one.sync_steps, default=0)


@pytest.mark.parametrize("D", [0.0, 5.0, 1e9])
@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_a_lone_clients_posterior_is_that_of_scikit_learn(D: float, lam: float) -> None:
    case = Case(draw_log(40, arms=4, dim=2, seed=4), clients=1, rounds=40)
    Xs = np.random.default_rng(1).uniform(-1, 1, (9, 2))
    rbf = sk.RBF(length_scale=1 / math.sqrt(2 * 2.0))
    for step, net, _ in steps_of(case, DisKernelUCB(Gaussian(2.0), D=D, lam=lam)):
        if step % 7 == 1:
            process = GaussianProcessRegressor(rbf, alpha=lam, optimizer=None).fit(*known_to(net))
            mean, std = process.predict(Xs, return_std=True)
            tail = net.clients[0].learner.tail
            mu, variance = tail.predict(tail.belief.view(Xs))
            assert_allclose(mu, mean, atol=1e-9)
            assert_allclose(np.sqrt(lam * variance), std, atol=1e-7)


# The ledger


encode_many = Codec.encode_many


@dataclass
class Spy:
    """Counts every message at the codec, where it becomes bytes."""

    messages: int = 0
    scalars: int = 0
    size: int = 0

    def encode(self, codec: Codec, messages: Iterable[Message]) -> Iterator[bytes]:
        for data in encode_many(codec, messages):
            self.messages += 1
            self.size += len(data)
            self.scalars += sum(array.size for array in payload_of(codec.decode(data)).values.values())
            yield data


ALGORITHMS: list[Algorithm] = [
    DisKernelUCB(**PARTS, D=2.0),
    OneKernelUCB(**PARTS),
    NKernelUCB(**PARTS),
    DisLinUCB(D=2.0, lam=LAM, alpha=ALPHA),
    ApproxDisKernelUCB(**PARTS, D=2.0, qbar=0.4),
    ApproxDisKernelUCB(**PARTS, D=2.0, qbar=math.inf),
    ApproxDisKernelUCB(**PARTS, D=2.0, qbar=0.01, cold_start="local"),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
@pytest.mark.parametrize(("clients", "kind"), [(1, "fresh"), (4, "fresh"), (4, "catalogue")])
def test_the_ledger_is_the_sum_of_the_encoded_messages(algorithm: Algorithm, clients: int, kind: str) -> None:
    case = Case(draw_log(60, arms=4, dim=3, kind=kind, seed=6), clients=clients, rounds=60 // clients)
    spy = Spy()
    with patch.object(Codec, "encode_many", lambda codec, messages: spy.encode(codec, messages)):
        for _, net, _ in steps_of(case, algorithm, delivery=Delivery(through_bytes=True)):
            total = net.ledger.total
            assert (total.messages, total.scalars, total.bytes) == (spy.messages, spy.scalars, spy.size)
    assert (spy.messages > 0) == (not isinstance(algorithm, NKernelUCB))
    one = case.run(algorithm)
    assert one.ledger.total == net.ledger.total
    by_client = net.ledger.by("client", "direction").values()
    assert sum(count.bytes for count in by_client) == spy.size


def scalars_by(one: Run) -> dict[tuple[int | str, ...], int]:
    return {key: count.scalars for key, count in one.ledger.by("epoch", "phase", "direction").items()}


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_every_sync_of_shared_data_costs_its_closed_form(clients: int) -> None:
    case = Case(draw_log(60, arms=4, dim=3, seed=6), clients=clients, rounds=60 // clients)
    for algorithm in (DisKernelUCB(**PARTS, D=1.0), OneKernelUCB(**PARTS)):
        one = case.run(algorithm)
        assert one.syncs > 1
        counted = scalars_by(one)
        for epoch, new in enumerate(np.diff([0, *one.sync_steps]), start=1):
            assert counted[epoch, "share data", "up"] == new * 4
            assert counted[epoch, "share data", "down"] == (clients - 1) * new * 4
        assert sum(counted.values()) == one.scalars == clients * 4 * one.sync_steps[-1]


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize("dim", [1, 3])
def test_every_sync_of_dis_lin_ucb_costs_its_closed_form(clients: int, dim: int) -> None:
    case = Case(draw_log(60, arms=4, dim=dim, seed=6), clients=clients, rounds=60 // clients)
    one = case.run(DisLinUCB(D=0.5, lam=LAM, alpha=ALPHA))
    assert one.syncs > 1
    counted = scalars_by(one)
    for epoch in range(1, one.syncs + 1):
        assert counted[epoch, "share statistics", "up"] == clients * (dim**2 + dim)
        assert counted[epoch, "share statistics", "down"] == clients * (dim**2 + dim)
    assert sum(counted.values()) == one.scalars == one.syncs * 2 * clients * (dim**2 + dim)


@pytest.mark.parametrize("clients", [1, 2, 5])
@pytest.mark.parametrize("qbar", [0.02, 0.5, math.inf])
@pytest.mark.parametrize("kind", ["fresh", "catalogue"])
def test_every_sync_of_approx_costs_its_closed_form(clients: int, qbar: float, kind: str) -> None:
    case = Case(draw_log(60, arms=4, dim=3, kind=kind, seed=6), clients=clients, rounds=60 // clients)
    one = case.run(ApproxDisKernelUCB(**PARTS, D=2.0, qbar=qbar))
    reference = case.replay("ApproxDisKernelUCB", one, qbar=qbar)
    assert one.syncs > 1
    counted = scalars_by(one)
    for epoch, (picked, r) in enumerate(zip(reference.picked_by_sync, one.dictionary_sizes, strict=True), start=1):
        assert counted[epoch, "agree on dictionary", "up"] == sum(picked) * 4  # with repetitions, y included
        assert counted[epoch, "agree on dictionary", "down"] == (clients * r * 4 if sum(picked) else 0)
        assert counted[epoch, "share statistics", "up"] == clients * (r * r + r)
        assert counted[epoch, "share statistics", "down"] == clients * (r * r + r)
    assert sum(counted.values()) == one.scalars
    assert_array_equal(one.scalars_at_sync, np.cumsum(reference.scalars_by_sync))


def test_a_sync_in_which_nothing_is_picked_keeps_the_dictionary_and_sends_none_down() -> None:
    case = Case(draw_log(60, arms=4, dim=3, seed=6), clients=3, rounds=20)
    one = case.run(ApproxDisKernelUCB(**PARTS, D=1.0, qbar=1e-6))
    assert one.syncs > 2
    assert_array_equal(one.dictionary_sizes, 1)
    counted = scalars_by(one)
    down = [counted[epoch, "agree on dictionary", "down"] for epoch in range(1, one.syncs + 1)]
    assert down == [3 * 4, *[0] * (one.syncs - 1)]


def test_messages_without_scalars_are_counted_as_messages() -> None:
    case = Case(draw_log(24, arms=4, dim=3, seed=6), clients=3, rounds=8)
    one = case.run(DisLinUCB(D=1.0, lam=LAM, alpha=ALPHA))
    control = {key: count for key, count in one.ledger.by("phase").items() if key == ("control",)}
    assert control[("control",)].messages == one.syncs * (1 + 3)  # a request up, an ask down to each
    assert control[("control",)].scalars == 0
    assert control[("control",)].bytes > 0
    assert one.messages == one.syncs * (1 + 3 + 3 + 3)


# Order of delivery, bytes, and runtimes


def play(case: Case, algorithm: Algorithm, delivery: Delivery | None) -> Run:
    instance = case.log.instance(seed=SEED, clients=case.clients, rounds=case.rounds)
    return loopback.play(algorithm, instance, clients=case.clients, rounds=case.rounds, seed=SEED, delivery=delivery)


def assert_same_run(one: Run, other: Run) -> None:
    assert_array_equal(one.choices, other.choices)
    assert_array_equal(one.sync_steps, other.sync_steps)
    assert_array_equal(one.dictionary_sizes, other.dictionary_sizes)
    assert_array_equal(one.scalars_at_sync, other.scalars_at_sync)
    assert_array_equal(one.regrets, other.regrets)
    assert one.ledger.total == other.ledger.total
    assert one.ledger.by("epoch", "phase", "direction", "client") == other.ledger.by(
        "epoch", "phase", "direction", "client"
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
@pytest.mark.parametrize("kind", ["fresh", "catalogue"])
def test_order_of_delivery_and_bytes_change_no_choice(algorithm: Algorithm, kind: str) -> None:
    case = Case(draw_log(60, arms=4, dim=3, kind=kind, seed=8), clients=5, rounds=9)
    plain = play(case, algorithm, None)
    for delivery in (
        Delivery(through_bytes=True),
        Delivery(shuffle=generator(1, Role.DELIVERY)),
        Delivery(shuffle=generator(2, Role.DELIVERY), through_bytes=True),
    ):
        assert_same_run(play(case, algorithm, delivery), plain)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
@pytest.mark.parametrize("kind", ["fresh", "catalogue", "equal"])
def test_the_runtime_changes_no_choice(runtime: str, algorithm: Algorithm, kind: str) -> None:
    case = Case(draw_log(60, arms=4, dim=3, kind=kind, masked=kind == "fresh", seed=9), clients=5, rounds=12)
    assert_same_run(replace(case, runtime=runtime).run(algorithm), case.run(algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_a_run_is_the_same_when_it_is_run_again(algorithm: Algorithm) -> None:
    case = Case(draw_log(60, arms=4, dim=3, kind="catalogue", seed=9), clients=5, rounds=12)
    assert_same_run(case.run(algorithm), case.run(algorithm))


def test_one_plan_serves_many_runs() -> None:
    """What a run learns must not leak through the plan's belief into the next one."""
    plan = OneKernelUCB(lam=0.5).plan(3)

    class Again:
        def plan(self, dim: int, /) -> Plan:
            return plan

    case = Case(draw_log(60, arms=4, dim=3, kind="catalogue", seed=9), clients=5, rounds=12)
    first, second = case.run(Again()), case.run(Again())
    assert_same_run(first, second)
    beliefs: list[NDArray[np.float64]] = []
    for _ in range(2):
        *_, (_, net, _) = steps_of(case, Again())
        beliefs.append(net.server.belief.arrays()["growth"])
    assert_array_equal(beliefs[0], beliefs[1])
