"""Lockstep is loopback in batches: the same choices, syncs, scalars and bytes, whatever the sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from laconic import (
    UCB,
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    EpsilonFloor,
    Every,
    Gaussian,
    Greedy,
    LaconicUCB,
    Linear,
    Log,
    Matern,
    NKernelUCB,
    OneKernelUCB,
    Plan,
    Polynomial,
    Random,
    RationalQuadratic,
    Run,
    Softmax,
    Theory,
    Thompson,
    Variance,
    run,
)
from laconic.beliefs import Statistics
from laconic.exploration import Choice, Shown
from laconic.protocol.messages import Payload
from laconic.protocol.phases import AgreeOnDictionary, Member, ShareData, ShareStatistics
from laconic.runtimes.lockstep import finite_rows
from laconic.runtimes.lockstep import scores as scores_
from laconic.runtimes.lockstep.arms import distinct_rows, first_equal_of, hashes_of
from laconic.runtimes.lockstep.batch import Exploring, Scores
from laconic.runtimes.lockstep.tails import Tails
from laconic.tail import COLLAPSE_FROM, Tail

KERNELS = st.sampled_from(
    [
        Gaussian(1e-6),
        Gaussian(0.1),
        Gaussian(1.0),
        Gaussian(1e4),
        Matern(nu=0.5),
        Matern(nu=2.5, length=0.5),
        RationalQuadratic(),
        Linear(),
        Polynomial(degree=2),
        Gaussian(1.0) + 0.5 * Linear(),
        RBF(0.7),
    ]
)


EXPLORATIONS = st.sampled_from(
    [
        UCB(),
        Greedy(),
        Softmax(0.3),
        EpsilonFloor(epsilon=0.3),
        EpsilonFloor(Thompson(), epsilon=0.1),
        Thompson(),
        Thompson(joint=False),
    ]
)


BY_INDEX = st.just(UCB())


@st.composite
def algorithms(draw: st.DrawFn, explorations: Any = BY_INDEX) -> Any:
    exploration = draw(explorations)
    kernel, lam = draw(KERNELS), draw(st.sampled_from([1e-2, 0.1, 1.0, 10.0]))
    alpha: Any = draw(st.sampled_from([0.0, 0.1, 1.0, 5.0, Theory()]))
    D = draw(st.sampled_from([0.0, 0.3, 2.0, 6.0]))
    cold: Any = draw(st.sampled_from(["paper", "local"]))
    qbar = draw(st.sampled_from([0.05, 0.5, 1e9]))
    return draw(
        st.sampled_from(
            [
                DisKernelUCB(kernel, D=D, lam=lam, alpha=alpha, exploration=exploration),
                OneKernelUCB(kernel, lam=lam, alpha=alpha, exploration=exploration),
                NKernelUCB(kernel, lam=lam, alpha=alpha, exploration=exploration),
                DisLinUCB(D=D, lam=lam, alpha=alpha, exploration=exploration),
                ApproxDisKernelUCB(
                    kernel, D=D, lam=lam, alpha=alpha, qbar=qbar, cold_start=cold, exploration=exploration
                ),
                DisKernelUCB(kernel, D=D, lam=lam, alpha=alpha, together=False, exploration=exploration),
                LaconicUCB(kernel, lam=lam, alpha=alpha, delta=D / 4, ranges=2.0, exploration=exploration),
                Random(),
            ]
        )
    )


@st.composite
def logs(draw: st.DrawFn) -> Any:
    """A log with arm sets of varying size, arms that repeat within a set and points that repeat over time."""
    steps, size, dim = 40, draw(st.integers(1, 5)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    items = random.normal(size=(draw(st.integers(1, 12)), dim))
    arms = items[random.integers(len(items), size=(steps, size))]
    mask = random.random((steps, size)) < 0.7
    mask[np.arange(steps), random.integers(size, size=steps)] = True
    return Log(arms, means=np.sin(arms.sum(axis=2)), noise=0.1 * random.normal(size=steps), mask=mask)


PROBLEMS = st.one_of(
    st.builds(Cosine, dim=st.integers(1, 4), arms=st.integers(1, 6)),
    st.builds(Catalogue, dim=st.integers(1, 4), items=st.integers(6, 9), arms=st.integers(1, 6)),
    logs(),
)


def assert_equal_runs(one: Run, other: Run) -> None:
    assert np.array_equal(one.choices, other.choices)
    assert np.array_equal(one.sync_steps, other.sync_steps)
    assert np.array_equal(one.dictionary_sizes, other.dictionary_sizes)
    counts, others = (each.ledger.by("epoch", "phase", "direction", "client") for each in (one, other))
    assert counts == others
    assert one.ledger.total == other.ledger.total


def both(algorithm: Any, problem: Any, *, clients: int, rounds: int, seed: int = 0) -> tuple[Run, Run]:
    sizes: Any = {"clients": clients, "rounds": rounds, "seed": seed}
    return run(algorithm, problem, runtime="loopback", **sizes), run(algorithm, problem, runtime="lockstep", **sizes)


@settings(max_examples=100)
@given(
    algorithm=algorithms(),
    problem=PROBLEMS,
    clients=st.integers(1, 6),
    rounds=st.integers(1, 6),
    seed=st.integers(0, 9),
)
def test_lockstep_equals_loopback(algorithm: Any, problem: Any, clients: int, rounds: int, seed: int) -> None:
    assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))


@settings(max_examples=100)
@given(
    algorithm=algorithms(EXPLORATIONS),
    problem=PROBLEMS,
    clients=st.integers(1, 6),
    rounds=st.integers(1, 6),
    seed=st.integers(0, 9),
)
def test_lockstep_equals_loopback_however_arms_are_chosen(
    algorithm: Any, problem: Any, clients: int, rounds: int, seed: int
) -> None:
    assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))


@settings(max_examples=15)
@given(
    kernel=KERNELS,
    delta=st.sampled_from([0.1, 0.5, 4.0]),
    problem=PROBLEMS,
    clients=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_lockstep_equals_loopback_where_atoms_come_down(
    kernel: Any, delta: float, problem: Any, clients: int, seed: int
) -> None:
    rounds = 40 // clients if isinstance(problem, Log) else 40
    algorithm = LaconicUCB(kernel, lam=0.1, alpha=0.3, delta=delta, ranges=2.0)
    one, other = both(algorithm, problem, clients=clients, rounds=rounds, seed=seed)
    assert_equal_runs(one, other)
    assert one.versions == other.versions


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=["gaussian", "linear"])
@pytest.mark.parametrize("problem", [Cosine(dim=2, arms=6), Catalogue(items=9, dim=2, arms=4)], ids=["fresh", "items"])
def test_lockstep_holds_the_versions_of_atoms_that_loopback_holds(kernel: Any, problem: Any) -> None:
    algorithm = LaconicUCB(kernel, lam=0.1, alpha=0.3, delta=0.5, ranges=2.0)
    one, other = both(algorithm, problem, clients=4, rounds=60)
    assert sum(version.atoms > 0 for version in one.versions) > 4  # more than one for a client
    assert_equal_runs(one, other)
    assert one.versions == other.versions


@pytest.mark.parametrize(
    "algorithm",
    [
        OneKernelUCB(Gaussian(1.0), alpha=0.3),
        DisKernelUCB(Gaussian(1.0), D=3.0, alpha=0.3),
        NKernelUCB(Gaussian(1.0), alpha=0.3),
        DisLinUCB(D=3.0, alpha=0.3),
        ApproxDisKernelUCB(Gaussian(0.3), D=4.0, alpha=0.3, qbar=1.0),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
@pytest.mark.parametrize("problem", [Cosine(dim=5, arms=8), Catalogue(items=20, dim=4, arms=8)], ids=["fresh", "items"])
def test_lockstep_equals_loopback_over_many_rounds(algorithm: Any, problem: Any) -> None:
    clients = 5 if isinstance(algorithm, OneKernelUCB) else 12  # all of whom sync after each step
    one, other = both(algorithm, problem, clients=clients, rounds=60)
    assert_equal_runs(one, other)


def test_long_tails_fold_and_collapse_without_changing_a_choice() -> None:
    seldom = ApproxDisKernelUCB(Gaussian(1.0), D=20.0, qbar=1.0, alpha=0.5)
    one, other = both(seldom, Cosine(dim=2, arms=5), clients=3, rounds=150)
    assert one.syncs
    assert max(int(one.dictionary_sizes.max()) * finite_rows.FOLD_SHARE, finite_rows.FOLD_FROM) < 50
    assert_equal_runs(one, other)
    alone = NKernelUCB(Gaussian(1.0), alpha=0.5)
    assert_equal_runs(*both(alone, Catalogue(items=6, dim=3, arms=4), clients=3, rounds=2 * COLLAPSE_FROM + 7))


@settings(max_examples=60)
@given(
    algorithm=algorithms(),
    problem=PROBLEMS,
    clients=st.integers(1, 4),
    rounds=st.integers(1, 10),
    fold_from=st.sampled_from([1, 2, 5, 32]),
    batch_entries=st.sampled_from([1, 8_000_000]),  # 1: a batch holds one client
    seed=st.integers(0, 9),
)
def test_arms_that_are_dropped_and_rows_that_are_folded_change_no_choice(
    algorithm: Any, problem: Any, clients: int, rounds: int, fold_from: int, batch_entries: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores_, "BATCH_ENTRIES", batch_entries)
        patch.setattr(finite_rows, "DROP_FROM", 0)
        patch.setattr(finite_rows, "FOLD_FROM", fold_from)
        patch.setattr(finite_rows, "FOLD_SHARE", 0.0)
        assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))


@pytest.mark.parametrize("drop_from", [0, 10**12])
@pytest.mark.parametrize("lam", [1e-2, 1.0])
def test_tails_of_all_clients_predict_what_the_tail_of_each_predicts(
    drop_from: int, lam: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finite_rows, "DROP_FROM", drop_from)
    monkeypatch.setattr(finite_rows, "FOLD_SHARE", 0.0)
    monkeypatch.setattr(finite_rows, "FOLD_FROM", 3)
    random, clients, alpha = np.random.default_rng(0), 3, 0.5
    blank = ApproxDisKernelUCB(Gaussian(0.5), lam=lam).plan(2).belief
    agreed = blank.on_dictionary(random.normal(size=(6, 2)))
    known = Statistics.of(agreed.coordinates, random.normal(size=(20, 2)), random.normal(size=20))
    belief = agreed.with_statistics(known)
    together, apart = Tails(belief, clients), [Tail(belief) for _ in range(clients)]
    for _ in range(25):
        arms, rewards = random.normal(size=(clients, 4, 2)), random.normal(size=clients)
        together.begin_round()
        batch = scores_.arranged(belief.view(arms.reshape(-1, 2)), clients)
        prediction = together.predict(batch, 0, clients, exploring=Exploring(alpha))
        index = prediction.mean + alpha * np.sqrt(prediction.signal + batch.residual)
        picked = index.argmax(axis=1)
        for client, tail in enumerate(apart):
            mean, variance = tail.predict(belief.view(arms[client]))
            np.testing.assert_allclose(prediction.mean[client], mean, atol=1e-12)
            own = mean + alpha * np.sqrt(variance)
            assert picked[client] == own.argmax()
            assert index[client].max() == pytest.approx(own.max(), abs=1e-12)
            tail.append(belief.view(arms[client]).at(int(picked[client])), float(rewards[client]))
        made = together.count + 1
        new, news = together.learnt(batch, prediction, picked, first=0, rewards=rewards, own=made)
        together.commit(new, news, first=0, count=clients)
        np.testing.assert_allclose(together.log_det, [tail.news.log_det for tail in apart], atol=1e-12)


def test_an_arm_behind_one_that_is_not_there_has_its_own_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_rows, "DROP_FROM", 0)
    clients, rounds = 8, 40
    for seed in range(3):
        random = np.random.default_rng(seed)
        arms = random.normal(size=(clients * rounds, 6, 2))
        arms[:, 3] = 0.0  # as an arm looks that is not there
        mask = np.ones(arms.shape[:2], dtype=bool)
        mask[:, 0] = False
        noise = 0.1 * random.normal(size=len(arms))
        problem = Log(arms, means=np.sin(arms.sum(axis=2)) + 0.5, noise=noise, mask=mask)
        algorithm = ApproxDisKernelUCB(Gaussian(1.0), D=60.0, qbar=2.0, alpha=3.0)
        assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))
    arms, mask = np.array([[[0.0], [1.0], [0.0], [0.0], [1.0]]]), np.array([[False, True, True, True, True]])
    first = first_equal_of(arms, mask, hashes_of(arms))
    assert first is not None
    assert first.tolist() == [[0, 1, 2, 2, 1]]


@pytest.mark.parametrize(
    "algorithm", [OneKernelUCB(alpha=0.3), DisKernelUCB(D=5.0, alpha=0.3), DisLinUCB(D=5.0, alpha=0.3)], ids=repr
)
def test_messages_with_long_numbers_are_as_long_as_they_are(algorithm: Any) -> None:
    one, other = both(algorithm, Catalogue(items=5, dim=2, arms=3), clients=2, rounds=140)
    assert one.syncs
    assert_equal_runs(one, other)


def test_only_arms_that_can_win_are_looked_at() -> None:
    scores = Scores(
        points=np.zeros((2, 3, 1)),
        features=np.zeros((2, 4, 3)),
        mean=np.array([[1.0, 0.0, 0.99], [0.0, 0.0, 5.0]]),
        signal=np.full((2, 3), 0.04),
        residual=np.zeros((2, 3)),
    )
    there = np.array([[True, True, True], [True, True, False]])
    candidates = finite_rows._candidates(scores, scores.mean, np.full(2, 3.0), Exploring(1.0, there))
    assert candidates.tolist() == [[True, False, True], [True, True, False]]
    assert finite_rows._candidates(scores, scores.mean, np.zeros(2), Exploring(1.0, there)).tolist()[0] == [
        True,
        False,
        False,
    ]


@dataclass(frozen=True)
class NewestPoints(AgreeOnDictionary):
    """A phase of somebody else's, of which lockstep knows nothing but what every phase has."""

    qbar: float = 1.0

    def pick(self, member: Member, variance: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.arange(len(variance)) >= len(variance) - 2


@dataclass(frozen=True)
class PlainShareData(ShareData):
    """ShareData that lockstep does not know, and so plays client by client."""


@dataclass(frozen=True)
class Boasting(ShareData):
    """A phase that changes what a client contributes, of which the pass for all of them would know nothing."""

    def contribute(self, member: Member) -> Payload:
        part = super().contribute(member)
        return Payload(values=part.values | {"rewards": 2.0 * part.values["rewards"]})


@dataclass(frozen=True)
class Newest:
    def plan(self, dim: int, /) -> Plan:
        belief = ApproxDisKernelUCB(Gaussian(1.0)).plan(dim).belief
        confidence = DisKernelUCB().plan(dim).confidence
        phases = (NewestPoints(), ShareStatistics(source="history"))
        return Plan(belief=belief, trigger=Variance(3.0) | Every(5), phases=phases, confidence=confidence)


@dataclass(frozen=True)
class PlainDis:
    def plan(self, dim: int, /) -> Plan:
        plan = DisKernelUCB(Gaussian(1.0), D=2.0).plan(dim)
        return replace(plan, phases=(PlainShareData(),))


@dataclass(frozen=True)
class BoastingDis:
    def plan(self, dim: int, /) -> Plan:
        return replace(DisKernelUCB(Gaussian(1.0), D=2.0).plan(dim), phases=(Boasting(),))


@pytest.mark.parametrize("algorithm", [Newest(), PlainDis(), BoastingDis()], ids=lambda each: type(each).__name__)
def test_algorithms_made_of_other_parts_run_in_lockstep_too(algorithm: Any) -> None:
    assert_equal_runs(*both(algorithm, Cosine(dim=3, arms=4), clients=5, rounds=20))


@dataclass(frozen=True)
class Seldom:
    """An algorithm that syncs after so many own observations, that numbers outgrow a byte or two."""

    of: Any

    def plan(self, dim: int, /) -> Plan:
        return replace(self.of.plan(dim), trigger=Every(110))


@pytest.mark.parametrize(
    "of",
    [DisKernelUCB(Gaussian(1.0)), DisLinUCB(), ApproxDisKernelUCB(qbar=0.05)],
    ids=lambda each: type(each).__name__,
)
def test_messages_are_as_long_as_in_loopback_where_numbers_are_wide(of: Any) -> None:
    """Observations and offsets from 0 to more than 256, of clients that had their turn in a round and that had not."""
    assert_equal_runs(*both(Seldom(of), Catalogue(dim=2, items=5, arms=3), clients=3, rounds=270))


@settings(max_examples=25)
@given(
    algorithm=algorithms(),
    problem=PROBLEMS,
    lam=st.sampled_from([1e-6, 1e-4]),
    clients=st.integers(1, 4),
    rounds=st.integers(1, 6),
)
def test_where_rounding_may_decide_each_choice_is_within_rounding_of_the_best(
    algorithm: Any, problem: Any, lam: float, clients: int, rounds: int
) -> None:
    """At such λ rounding shows: lockstep's choices, replayed in loopback, are no worse than it explains."""
    if hasattr(algorithm, "lam"):
        algorithm = replace(algorithm, lam=lam)
    forced = run(algorithm, problem, clients=clients, rounds=rounds, runtime="lockstep").choices
    gaps: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UCB, "choose", _follow(forced, problem, gaps))
        run(algorithm, problem, clients=clients, rounds=rounds, runtime="loopback")
    assert max(gaps) <= 1e-5


def _follow(forced: NDArray[np.int32], problem: Any, gaps: list[float]) -> Any:
    """A choice of the forced arm that notes how far, relative to the largest |μ| + ασ, it is from the best."""
    own = UCB.choose

    def choose(self: UCB, shown: Shown) -> Choice:
        step = len(gaps)  # as loopback goes from client to client
        arm = int(forced.reshape(-1)[step])
        if isinstance(problem, Log) and problem.mask is not None:
            arm = int(np.flatnonzero(np.flatnonzero(problem.mask[step]) == arm)[0])
        index, scale = shown.mean + shown.width, float(np.max(np.abs(shown.mean) + shown.width))
        gaps.append(float(index.max() - index[arm]) / max(scale, 1e-300))
        return replace(own(self, shown), arm=arm)

    return choose


def test_thousands_of_clients_take_part_in_a_sync() -> None:
    many = run(DisLinUCB(D=1.0), Cosine(dim=3, arms=4), clients=5000, rounds=2)
    assert many.syncs > 0
    assert many.scalars == many.syncs * 2 * 5000 * (9 + 3)


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("algorithm", [DisKernelUCB(Gaussian(0.1), D=2.0), ApproxDisKernelUCB(Gaussian(0.1), qbar=1e9)])
def test_equal_arms_of_a_set_are_scored_once(algorithm: Any, clients: int) -> None:
    """At such a λ two copies of a point would differ in their last bits, and rounding would break the tie."""
    random = np.random.default_rng(3)
    arms = np.repeat(random.normal(size=(60, 4, 2)), 3, axis=1)[:, random.permutation(12)]
    problem = Log(arms, means=np.cos(arms.sum(axis=2)), noise=0.1 * random.normal(size=60))
    assert_equal_runs(*both(replace(algorithm, lam=1e-6, alpha=0.5), problem, clients=clients, rounds=60 // clients))


def test_equal_rows_are_found_and_unequal_ones_kept_apart() -> None:
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    found = distinct_rows(rows, hashes_of(rows), at_most=4)
    assert found is not None
    first, number = found
    assert len(first) == 2
    assert number[0] == number[1] == number[3] != number[2]
    assert distinct_rows(rows, hashes_of(rows), at_most=1) is None


def test_round_numbers_are_told_apart_as_well_as_others() -> None:
    rows = np.array(list(product([0.0, 1.0], repeat=12)))
    assert len(np.unique(hashes_of(rows))) == len(rows)
    twice = np.concatenate([rows[:40], rows[:40]])
    found = distinct_rows(twice, hashes_of(twice), at_most=40)
    assert found is not None
    assert len(found[0]) == 40


@pytest.mark.parametrize("drop_from", [0, finite_rows.DROP_FROM])
def test_a_float32_belief_learns_nearly_what_a_float64_one_learns(
    drop_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finite_rows, "DROP_FROM", drop_from)
    monkeypatch.setattr(finite_rows, "FOLD_SHARE", 0.0)
    monkeypatch.setattr(finite_rows, "FOLD_FROM", 3)
    problem = Cosine(dim=4, arms=6)
    for algorithm in (DisKernelUCB(alpha=0.3, D=3.0), ApproxDisKernelUCB(alpha=0.3, qbar=1.0)):
        exact = run(algorithm, problem, clients=6, rounds=30)
        single = run(replace(algorithm, dtype="float32"), problem, clients=6, rounds=30)
        assert abs(single.regret - exact.regret) <= 0.1 * exact.regret


def test_payloads_of_a_float32_belief_travel_in_float64() -> None:
    plan = ApproxDisKernelUCB(D=0.5, qbar=1e9, dtype="float32").plan(2)
    points = np.random.default_rng(0).normal(size=(5, 2))
    draft = plan.phases[0].absorb(plan.belief, Payload(values={"points": points, "rewards": np.zeros(5)}))
    member = Member(plan.belief, draft, points, np.zeros(5), 0, True, lambda: np.random.default_rng(0))
    assert {array.dtype for array in plan.phases[1].contribute(member).values.values()} == {np.dtype(np.float64)}


@dataclass(frozen=True)
class HalfRevealed:
    """Rounds of another problem in which the rewards of even arms alone are known, from a round on."""

    of: Any
    since: int

    def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
        return HalfRevealedInstance(self.of.instance(seed=seed, clients=clients, rounds=rounds), since=self.since)


@dataclass(frozen=True)
class HalfRevealedInstance:
    """One seed of it; it says nothing of itself but what its rounds say."""

    of: Any
    since: int

    @property
    def dim(self) -> int:
        dim: int = self.of.dim
        return dim

    def round(self, index: int) -> Any:
        met = self.of.round(index)
        even = np.broadcast_to(np.arange(met.rewards.shape[1]) % 2 == 0, met.rewards.shape)
        return replace(met, revealed=even if index >= self.since else None)


@pytest.mark.parametrize("algorithm", [DisKernelUCB(D=3.0), LaconicUCB()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("since", [0, 3])
def test_a_reward_that_is_not_revealed_is_learnt_in_neither_runtime(algorithm: Any, since: int) -> None:
    problem = HalfRevealed(Cosine(dim=2, arms=4), since=since)
    one, other = both(algorithm, problem, clients=3, rounds=8)
    assert_equal_runs(one, other)
    assert one.used is not None
    assert other.used is not None
    assert 0 < other.used.sum() < len(other.used)
    assert np.array_equal(one.used, other.used)
    told: list[int] = []
    run(algorithm, problem, clients=3, rounds=8, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 24
