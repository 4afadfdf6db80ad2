"""Loopback: the executable specification against the naive reference, the closed forms and other ways to deliver."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    NKernelUCB,
    OneKernelUCB,
    ProblemError,
    Random,
    Run,
    run,
)
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.problems.base import Instance, Round
from laconic.protocol.ledger import Count, Direction, Ledger
from laconic.protocol.messages import Message
from laconic.randomness import Role, generator
from laconic.runtimes.loopback import play
from laconic.runtimes.network import Delivery, Network
from tests import naive

DIM, ARMS = 3, 5
#: As `agrees` has them of the naive reference.
PARTS: dict[str, Any] = {"kernel": Gaussian(1.0), "lam": 1.0, "alpha": 1.0}
EVERY: list[Algorithm] = [
    DisKernelUCB(**PARTS, D=3.0),
    OneKernelUCB(**PARTS),
    NKernelUCB(**PARTS),
    DisLinUCB(D=3.0, lam=1.0, alpha=1.0),
    ApproxDisKernelUCB(**PARTS, D=3.0, qbar=0.5),
    ApproxDisKernelUCB(**PARTS, D=3.0, qbar=0.5, cold_start="local"),
    Random(),
]
algorithms = pytest.mark.parametrize("algorithm", EVERY, ids=lambda each: type(each).__name__)


def opened(*, clients: int, rounds: int, seed: int = 0, repeat: bool = False) -> Instance:
    """An instance with fresh arms, or with few items that come again and again."""
    problem = Catalogue(dim=DIM, items=7, arms=ARMS) if repeat else Cosine(dim=DIM, arms=ARMS)
    return problem.instance(seed=seed, clients=clients, rounds=rounds)


def played(algorithm: Algorithm, *, clients: int = 4, rounds: int = 12, **options: object) -> Run:
    """A run on a small instance."""
    repeat = bool(options.pop("repeat", False))
    instance = opened(clients=clients, rounds=rounds, repeat=repeat)
    return play(algorithm, instance, clients=clients, rounds=rounds, seed=0, **options)  # type: ignore[arg-type]


def same_run(a: Run, b: Run) -> None:
    """The same choices, syncs and costs."""
    np.testing.assert_array_equal(a.choices, b.choices)
    np.testing.assert_array_equal(a.regrets, b.regrets)
    np.testing.assert_array_equal(a.sync_steps, b.sync_steps)
    np.testing.assert_array_equal(a.dictionary_sizes, b.dictionary_sizes)
    np.testing.assert_array_equal(a.scalars_at_sync, b.scalars_at_sync)
    assert a.ledger.total == b.ledger.total


# Delivery


@algorithms
@pytest.mark.parametrize("repeat", [False, True], ids=["fresh", "repeated"])
def test_order_of_delivery_and_encoding_change_nothing(algorithm: Algorithm, repeat: bool) -> None:
    plain = played(algorithm, repeat=repeat)
    for through_bytes in (False, True):
        for seed in (None, 0, 1):
            shuffle = None if seed is None else generator(seed, Role.DELIVERY)
            delivery = Delivery(shuffle=shuffle, through_bytes=through_bytes)
            same_run(plain, played(algorithm, repeat=repeat, delivery=delivery))


@algorithms
def test_a_run_repeats_itself(algorithm: Algorithm) -> None:
    same_run(played(algorithm), played(algorithm))


# The naive reference


def table(instance: Instance, *, clients: int, rounds: int) -> tuple[Floats, Floats, Floats]:
    """Arms, means and noise of every step t = N(l−1)+i."""
    all_rounds = [instance.round(index) for index in range(rounds)]
    arms = np.concatenate([each.arms for each in all_rounds])
    means = np.concatenate([each.means for each in all_rounds])
    return arms, means, np.concatenate([each.rewards for each in all_rounds]) - means


def agrees(
    algorithm: Algorithm, *, clients: int, rounds: int, repeat: bool, seed: int = 0, **naive_options: float
) -> None:
    """Where the reference follows our choices, each of them ties with its best, and syncs and scalars are its own."""
    instance = opened(clients=clients, rounds=rounds, seed=seed, repeat=repeat)
    ours = play(algorithm, instance, clients=clients, rounds=rounds, seed=seed)
    arms, means, noise = table(instance, clients=clients, rounds=rounds)
    theirs = naive.play(
        type(algorithm).__name__,
        arms=arms,
        means=means,
        noise=noise,
        clients=clients,
        kernel=naive.gaussian(1.0),
        lam=1.0,
        alpha=1.0,
        forced=ours.choices,
        **naive_options,  # type: ignore[arg-type]
    )
    assert (theirs.within <= 1e-7 * np.maximum(theirs.scales, 1.0)).all()
    assert theirs.syncs == ours.sync_steps.tolist()
    assert theirs.scalars == ours.scalars
    assert np.cumsum(theirs.scalars_by_sync).tolist() == ours.scalars_at_sync.tolist()
    assert theirs.dictionary_sizes == ours.dictionary_sizes.tolist()
    np.testing.assert_allclose(ours.regrets, theirs.regrets, atol=1e-12)


@pytest.mark.parametrize("repeat", [False, True], ids=["fresh", "repeated"])
@pytest.mark.parametrize(("clients", "rounds"), [(1, 1), (1, 20), (2, 9), (5, 6)])
@pytest.mark.parametrize(
    ("algorithm", "D"),
    [
        (DisKernelUCB(**PARTS, D=2.0), 2.0),
        (DisKernelUCB(**PARTS, D=0.0), 0.0),
        (OneKernelUCB(**PARTS), 0.0),
        (NKernelUCB(**PARTS), 0.0),
        (DisLinUCB(D=2.0, lam=1.0, alpha=1.0), 2.0),
        (ApproxDisKernelUCB(**PARTS, D=3.0, qbar=1e9), 3.0),
        (ApproxDisKernelUCB(**PARTS, D=0.0, qbar=1e9), 0.0),
    ],
    ids=["dis", "dis at D=0", "one", "n", "lin", "approx", "approx at D=0"],
)
def test_every_choice_sync_and_scalar_is_that_of_the_naive_reference(
    algorithm: Algorithm, D: float, clients: int, rounds: int, repeat: bool
) -> None:
    agrees(algorithm, clients=clients, rounds=rounds, repeat=repeat, D=D)


@settings(max_examples=15)
@given(clients=st.integers(1, 6), rounds=st.integers(1, 6), seed=st.integers(0, 1000), D=st.floats(0.0, 8.0))
def test_other_sizes_and_thresholds_agree_with_the_naive_reference(
    clients: int, rounds: int, seed: int, D: float
) -> None:
    for algorithm in (DisKernelUCB(**PARTS, D=D), DisLinUCB(D=D, lam=1.0, alpha=1.0)):
        agrees(algorithm, clients=clients, rounds=rounds, repeat=bool(seed % 2), seed=seed, D=D)


# Closed forms


def up_and_down(one: Run, epoch: int, phase: str) -> tuple[int, int]:
    """The scalars of one phase of one sync, both ways."""
    counts = one.ledger.by("epoch", "phase", "direction")
    up, down = (counts.get((epoch, phase, way), Count()).scalars for way in ("up", "down"))
    return up, down


def between_syncs(one: Run) -> list[int]:
    """How many new points each sync shares."""
    return np.diff(one.sync_steps, prepend=0).tolist()


def test_sharing_data_costs_its_closed_form_at_every_sync() -> None:
    for algorithm in (DisKernelUCB(**PARTS, D=3.0), OneKernelUCB(**PARTS)):
        one = played(algorithm)
        assert one.syncs > 2
        for epoch, new in enumerate(between_syncs(one), start=1):
            assert up_and_down(one, epoch, "share data") == (new * (DIM + 1), 3 * new * (DIM + 1))


def test_sharing_linear_statistics_costs_its_closed_form_at_every_sync() -> None:
    one = played(DisLinUCB(D=3.0, lam=1.0, alpha=1.0))
    assert one.syncs > 2
    for epoch in range(1, one.syncs + 1):
        assert up_and_down(one, epoch, "share statistics") == (4 * (DIM**2 + DIM), 4 * (DIM**2 + DIM))


@pytest.mark.parametrize("clients", [1, 4])
def test_approx_costs_its_closed_form_at_every_sync(clients: int) -> None:
    one = played(ApproxDisKernelUCB(**PARTS, D=3.0, qbar=0.5), clients=clients, rounds=20)
    assert one.syncs > 2
    for epoch, rank in enumerate(one.dictionary_sizes.tolist(), start=1):
        up, down = up_and_down(one, epoch, "agree on dictionary")
        assert up % (DIM + 1) == 0
        assert down in (0, clients * rank * (DIM + 1))
        assert (down == 0) is (up == 0)
        assert up_and_down(one, epoch, "share statistics") == (clients * (rank**2 + rank),) * 2


@algorithms
def test_the_ledger_is_the_sum_of_the_encoded_messages(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    record = Ledger.record

    def noting(self: Ledger, message: Message, *, direction: Direction, client: int) -> None:
        lengths.append(len(self.codec.encode(message)))
        record(self, message, direction=direction, client=client)

    monkeypatch.setattr(Ledger, "record", noting)
    one = played(algorithm)
    assert one.messages == len(lengths)
    assert one.bytes == sum(lengths)


def test_a_sync_has_one_request_and_then_a_question_and_an_answer_for_everyone_and_phase() -> None:
    for algorithm, phases in ((DisKernelUCB(**PARTS, D=3.0), 1), (ApproxDisKernelUCB(**PARTS, D=3.0), 2)):
        one = played(algorithm)
        assert one.messages == one.syncs * (1 + 4 + phases * 2 * 4)


def test_what_never_syncs_sends_nothing() -> None:
    for algorithm in (NKernelUCB(**PARTS), Random(), DisKernelUCB(**PARTS, D=1e9)):
        one = played(algorithm)
        assert (one.messages, one.bytes, one.scalars, one.syncs) == (0, 0, 0, 0)
        assert one.dictionary is None


# Runs


def test_a_trigger_is_looked_at_after_each_interaction_so_a_sync_may_fall_inside_a_round() -> None:
    one = played(DisKernelUCB(**PARTS, D=3.0))
    assert any(step % 4 for step in one.sync_steps)
    assert played(OneKernelUCB(**PARTS)).sync_steps.tolist() == list(range(1, 49))


@dataclass(frozen=True)
class Masked:
    """Client i has i+1 arms, and what does not exist would be the best."""

    dim: int = 2

    def round(self, index: int) -> Round:
        arms = np.random.default_rng(index).normal(size=(3, 4, 2))
        mask = np.arange(4)[None, :] <= np.arange(3)[:, None]
        means = np.where(mask, 0.0, 100.0)
        return Round(arms=arms, means=means, rewards=means, mask=mask)


@algorithms
def test_an_arm_that_does_not_exist_is_never_chosen_and_never_regretted(algorithm: Algorithm) -> None:
    one = play(algorithm, Masked(), clients=3, rounds=10, seed=0)
    assert (one.choices.reshape(10, 3) <= [0, 1, 2]).all()
    assert one.regret == 0.0


@dataclass(frozen=True)
class Broken:
    """Its third round has an arm that is no number."""

    dim: int = 2

    def round(self, index: int) -> Round:
        arms = np.zeros((1, 2, 2))
        if index == 2:
            arms[0, 1, 0] = np.nan
        return Round(arms=arms, means=np.zeros((1, 2)), rewards=np.zeros((1, 2)))


def test_a_round_that_cannot_be_played_is_refused_by_its_number() -> None:
    with pytest.raises(ProblemError, match="round 2"):
        play(Random(), Broken(), clients=1, rounds=3, seed=0)


def test_progress_is_told_the_steps_that_are_done() -> None:
    told: list[int] = []
    played(Random(), clients=3, rounds=4, progress=told.append)
    assert told == [3, 6, 9, 12]


def test_run_plays_loopback_by_name() -> None:
    problem = Cosine(dim=DIM, arms=ARMS)
    by_name = run(DisKernelUCB(**PARTS, D=3.0), problem, clients=4, rounds=12, runtime="loopback")
    same_run(by_name, played(DisKernelUCB(**PARTS, D=3.0)))


def test_the_members_of_a_run_share_one_belief_in_memory() -> None:
    plan = DisKernelUCB(**PARTS, D=0.0).plan(2)
    network = Network(plan, clients=5, seed=0, ledger=Ledger(plan))
    client = network.clients[0]
    network.settle(0, client.observe(client.choose(np.eye(2)).id, 1.0))
    assert {id(each.learner.belief) for each in network.clients.values()} == {id(network.server.belief)}
