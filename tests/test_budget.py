"""LaconicUCB with a budget: what a client counts, how δ follows, and what is said when a budget cannot be met."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import Cosine, Gaussian, InputError, LaconicUCB, compare, grid, run
from laconic.budget import least_budget
from laconic.protocol.restoring import restore_client, snapshot_client
from laconic.runtimes.needs import memory_needed
from laconic.runtimes.network import Network
from laconic.tail import News
from laconic.testing import check_algorithm, check_trigger
from laconic.triggers import AIM, GAIN, MOST, BudgetedVariance, ScaledVariance
from laconic.uploads import Growth, WithAsk

DIM, CLIENTS = 3, 4
LEAN = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1)
TIGHT = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, budget=12_000)
TRIGGER = BudgetedVariance(0.5, budget=10_000)


def news(*, own: int, sent: int = 0, received: int = 0, **more: Any) -> News:
    sums = {"count": 1, "log_det": 0.1, "variance": 1.0, "residual": 0.0}
    return News(**(sums | more), own=own, sent=sent, received=received)


def played(algorithm: LaconicUCB, *, rounds: int, keep: bool = False) -> Network:
    network = Network(algorithm.plan(DIM), clients=CLIENTS, seed=0, keep=keep, strict=True)
    random = np.random.default_rng(0)
    for _ in range(rounds):
        for number, client in network.clients.items():
            decision = client.choose(random.uniform(-1, 1, size=(5, DIM)))
            network.settle(number, client.observe(decision, float(np.cos(decision.point.sum()))))
    return network


def test_it_keeps_to_the_contract() -> None:
    check_algorithm(TIGHT)
    check_trigger(TRIGGER)


# What a client counts


def test_a_client_counts_the_bytes_that_the_ledger_counts() -> None:
    network = played(TIGHT, rounds=15)
    counted = network.ledger.by("client", "direction")
    for number, client in network.clients.items():
        assert client.learner.sent == counted[number, "up"].bytes
        assert client.learner.received == counted[number, "down"].bytes


def test_a_greeting_counts_too() -> None:
    network = played(TIGHT, rounds=3)
    network.cut(1)
    network.greet(1)
    network.drain()
    counted = network.ledger.by("client", "direction")
    client = network.clients[1]
    assert (client.learner.sent, client.learner.received) == (counted[1, "up"].bytes, counted[1, "down"].bytes)


@pytest.mark.parametrize("whole", [False, True])
def test_a_restored_client_has_counted_what_it_had(whole: bool) -> None:
    network = played(TIGHT, rounds=12, keep=True)
    for number, client in network.clients.items():
        records = [snapshot_client(client)] if whole else network.records[number]
        twin, _ = restore_client(records, plan=network.plan, start=7)
        assert (twin.learner.sent, twin.learner.received) == (client.learner.sent, client.learner.received)
        assert twin.fires == client.fires


def test_both_runtimes_choose_alike_and_spend_the_same() -> None:
    lockstep, loopback = (
        run(TIGHT, Cosine(dim=DIM), clients=CLIENTS, rounds=40, runtime=runtime) for runtime in ("lockstep", "loopback")
    )
    assert lockstep.choices.tolist() == loopback.choices.tolist()
    assert lockstep.ledger.entries == loopback.ledger.entries


# How δ follows


def test_a_budget_that_is_never_neared_changes_nothing() -> None:
    plain, rich = (
        run(each, Cosine(dim=DIM), clients=CLIENTS, rounds=30)
        for each in (LEAN, LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, budget=1e9))
    )
    assert plain.choices.tolist() == rich.choices.tolist()
    assert plain.bytes == rich.bytes


def test_a_tight_budget_saves_bytes() -> None:
    # At five features digests are most of what is sent; at three a plain run hardly spends more than the allowance.
    tight, plain = (
        run(LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, budget=budget), Cosine(dim=5), clients=8, rounds=60).bytes
        for budget in (10_000, None)
    )
    assert tight < 0.7 * plain


def test_delta_rises_with_what_came_down_beside_what_is_left_of_the_allowance() -> None:
    # After 1,000 interactions 10,000 bytes are allowed; 6,000 of them went up.
    assert TRIGGER.delta_after(news(own=1000, sent=6000, received=3000)) == 0.5
    risen = TRIGGER.delta_after(news(own=1000, sent=6000, received=4000))
    assert risen == pytest.approx(0.5 * (1 / AIM) ** GAIN)


def test_early_interactions_are_allowed_more_than_their_part() -> None:
    # After 10 interactions √(250·10)/1000 of the budget is allowed, five times what is their part.
    allowed = 10_000 * math.sqrt(250 * 10) / 1000
    assert TRIGGER.delta_after(news(own=10, received=int(AIM * allowed))) == 0.5
    assert TRIGGER.delta_after(news(own=10, received=int(allowed))) == pytest.approx(0.5 / AIM**GAIN)


@given(st.integers(0, 10**6), st.integers(0, 10**12), st.integers(0, 10**12))
def test_delta_stays_between_its_least_and_a_multiple_of_it(own: int, sent: int, received: int) -> None:
    assert 0.5 <= TRIGGER.delta_after(news(own=own, sent=sent, received=received)) <= 0.5 * MOST * (1 + 1e-9)


def test_it_fires_as_a_plain_trigger_with_that_delta_does() -> None:
    for received in (0, 3800, 4200, 9000):
        for variance in (0.4, 0.6, 3.0, 40.0):
            seen = news(own=1000, sent=6000, received=received, variance=variance, share=1.0)
            assert bool(TRIGGER.fires(seen)) == bool(ScaledVariance(TRIGGER.delta_after(seen)).fires(seen))


def test_before_the_first_version_every_point_asks_whatever_was_spent() -> None:
    assert TRIGGER.fires(news(own=1, sent=10**6, received=10**6))
    assert not TRIGGER.fires(news(own=1, count=0))


# What cannot be


def test_a_budget_below_what_new_points_take_on_their_way_up_is_said_with_the_figure() -> None:
    said = r"budget=8,000 is less than the 8,575 bytes for 1,000 interactions in which new points of 5 features go up"
    with pytest.warns(UserWarning, match=said):
        LaconicUCB(budget=8000).plan(5)
    LaconicUCB(budget=8575).plan(5)  # warnings are errors here
    LaconicUCB(budget=7000, upload=WithAsk()).plan(5)  # where no upload goes by itself, points are all that is known
    with pytest.warns(UserWarning, match=r"the 7,387 bytes"):
        LaconicUCB(budget=7000, upload=Growth(0.5)).plan(5)


@pytest.mark.parametrize("rounds", [60, 250])
def test_a_budget_that_is_warned_of_is_exceeded_by_uploads_alone_at_some_time_and_the_least_is_not(rounds: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        least = least_budget(Growth(), dim=5)
        played = run(
            LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, budget=3000), Cosine(dim=5), clients=3, rounds=rounds
        )
    up = played.ledger.by("direction")["up",].bytes / 3 / max(rounds, math.sqrt(250 * rounds)) * 1000
    assert up < 1.02 * least
    if rounds == 250:
        assert up > 0.98 * least  # which is where early uploads cost most beside what is allowed


@pytest.mark.parametrize("asked", [run, lambda one, problem, **how: compare(one, problem=problem, seeds=2, **how)])
def test_a_budget_that_is_too_small_is_said_once(asked: Any) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # as it is for whoever runs laconic
        asked(LaconicUCB(budget=3456), Cosine(dim=5, arms=3), clients=2, rounds=3)
    assert len([each for each in told if "budget=3,456" in str(each.message)]) == 1


def test_what_a_run_needs_is_asked_without_saying_anything_of_its_budget() -> None:
    instance = Cosine(dim=5).instance(seed=0, clients=100, rounds=1000)
    assert memory_needed(LaconicUCB(budget=3456), instance, clients=100, rounds=1000) is not None


def test_a_budget_below_what_known_points_take_is_refused() -> None:
    with pytest.raises(InputError, match=r"budget must be .* at least 3000, not 2999"):
        LaconicUCB(budget=2999)
    LaconicUCB(budget=grid(3000, 20_000))
