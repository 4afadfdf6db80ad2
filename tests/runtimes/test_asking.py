"""Clients that ask a server at every decision: whose choices these are, and what the asking weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from laconic import AskServer, Catalogue, Cosine, Gaussian, Log, OneKernelUCB, Problem, compare, run
from laconic.arrays import Floats
from laconic.errors import InputError
from laconic.problems.base import Instance, Round
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Ledger
from laconic.protocol.wire import Int8Wire
from laconic.runtimes import RUNTIMES, loopback
from laconic.runtimes.asking import asked
from laconic.runtimes.network import Delivery
from laconic.testing import check_algorithm
from laconic.testing.runs import require_same_run
from laconic.testing.wording import Subject, points, rewards

KERNEL = Gaussian(0.5)
ASK = AskServer(KERNEL, lam=0.1, alpha=0.1)


def varying() -> Log:
    """Arm sets of varying size."""
    mask = np.arange(20)[:, None] % 4 >= np.arange(4)
    arms = points(80, dim=3).reshape(20, 4, 3)
    return Log(arms, means=arms[..., 0], noise=0.1 * rewards(20), mask=mask)


GAMES = [
    pytest.param(Cosine(dim=3, arms=5), 4, 8, id="fresh arms"),
    pytest.param(Catalogue(dim=3, items=8, arms=5), 3, 12, id="points that repeat"),
    pytest.param(varying(), 4, 5, id="arm sets of varying size"),
    pytest.param(Cosine(dim=1, arms=1), 1, 6, id="one client and one arm"),
]


@pytest.mark.parametrize(("problem", "clients", "rounds"), GAMES)
@pytest.mark.parametrize("algorithm", [ASK, AskServer(KERNEL, ranges=0.4)], ids=["in range", "beyond its range"])
def test_all_runtimes_choose_and_count_alike(algorithm: Any, problem: Problem, clients: int, rounds: int) -> None:
    one, other = (
        run(algorithm, problem, clients=clients, rounds=rounds, seed=5, runtime=runtime) for runtime in RUNTIMES
    )
    require_same_run(Subject("AskServer"), one, other, "in another runtime")
    through_bytes = asked(
        loopback.play,
        algorithm,
        problem.instance(seed=5, clients=clients, rounds=rounds),
        clients=clients,
        rounds=rounds,
        seed=5,
        delivery=Delivery(through_bytes=True),
    )
    require_same_run(Subject("AskServer"), through_bytes, other, "through bytes")


@dataclass(frozen=True)
class Rounded:
    """A problem whose arms and rewards are whole steps of a wire, rounded one by one."""

    problem: Problem

    def instance(self, *, seed: int, clients: int, rounds: int) -> RoundedInstance:
        return RoundedInstance(self.problem.instance(seed=seed, clients=clients, rounds=rounds))


@dataclass(frozen=True)
class RoundedInstance:
    inner: Instance

    @property
    def dim(self) -> int:
        return self.inner.dim

    def round(self, index: int) -> Round:
        met = self.inner.round(index)
        arms, paid = np.empty_like(met.arms), np.empty_like(met.rewards)
        for place in np.ndindex(paid.shape):
            arms[place], paid[place] = rounded(met.arms[place], float(met.rewards[place]))
        return Round(arms, means=met.means, rewards=paid, mask=met.mask)


def rounded(point: Floats, reward: float) -> tuple[Floats, float]:
    X, y = Int8Wire().rounded(point[None], np.array([reward]), kernel=KERNEL, lam=0.1)
    return X[0], y[0]


@pytest.mark.parametrize(("problem", "clients", "rounds"), GAMES[:2])
def test_its_choices_are_those_of_everyone_knowing_everything_on_rounded_arms(
    problem: Problem, clients: int, rounds: int
) -> None:
    asked = run(ASK, problem, clients=clients, rounds=rounds, seed=2)
    one = run(OneKernelUCB(KERNEL, lam=0.1, alpha=0.1), Rounded(problem), clients=clients, rounds=rounds, seed=2)
    assert np.array_equal(asked.choices, one.choices)
    assert np.array_equal(asked.regrets, one.regrets)


def test_a_decision_weighs_its_arms_and_a_few_bytes_of_framing() -> None:
    asked = run(AskServer(Gaussian(0.1), lam=0.1), Cosine(dim=20, arms=20), clients=3, rounds=4)
    arms = 3 + 1 + 1 + 1 + (1 + 4 + 20 * 20) + 1 + 1  # head, list, tag, number, payload in a list, ask, flush
    choice = 3 + 1 + 1 + 1
    reward = 3 + 1 + 1 + 1 + (2 + 1 + 2) + 1 + 1  # in one run of bytes: its length, which arrays, the reward
    assert asked.bytes == 12 * (arms + choice + reward)
    assert asked.scalars == 12 * (20 * 20 + 1)
    assert asked.messages == 36
    assert asked.syncs == 12


@pytest.mark.parametrize(("problem", "clients", "rounds"), GAMES)
def test_the_ledger_has_the_bytes_of_the_encoded_messages(
    problem: Problem, clients: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, record = 0, Ledger.record

    def counting(self: Ledger, message: Any, **more: Any) -> None:
        nonlocal encoded
        encoded += len(Codec(self.plan).encode(message))
        record(self, message, **more)

    # in lockstep what OneKernelUCB would send is counted without encoding it
    monkeypatch.setattr(Ledger, "record", counting)
    asked = run(ASK, problem, clients=clients, rounds=rounds)
    assert asked.bytes == encoded


def test_an_arm_that_was_shown_before_goes_as_a_number() -> None:
    fresh, again = (
        run(ASK, problem, clients=2, rounds=30)
        for problem in (Cosine(dim=10, arms=5), Catalogue(dim=10, items=5, arms=5))
    )
    first = 2 * (5 * 10 + 1)  # a round in which every client shows all five
    assert again.scalars_at_sync[1] == first
    assert again.scalars == first + 29 * 2 * (5 + 1)  # numbers from then on
    assert again.bytes < 0.6 * fresh.bytes  # the rest is framing


def test_what_only_simulates_makes_no_plan_for_clients_and_servers() -> None:
    with pytest.raises(InputError, match=r"simulated only.*try run\(AskServer"):
        AskServer().plan(3)
    with pytest.raises(AssertionError, match="simulated only"):
        check_algorithm(AskServer())


def test_it_is_compared_by_name_like_any_other() -> None:
    results = compare(["AskServer", "OneKernelUCB"], problem=Cosine(dim=3), clients=3, rounds=5, seeds=1)
    asked, one = results.groups
    assert (asked.mean("bytes") or 0) > 0
    assert abs((asked.mean("regret") or 0) - (one.mean("regret") or 0)) < 3


@pytest.mark.parametrize("ranges", [0.0, (), (1.0, -1.0)])
def test_ranges_that_are_no_sizes_are_refused(ranges: Any) -> None:
    with pytest.raises(InputError, match="ranges"):
        AskServer(ranges=ranges)
