"""Belief and tail together have every own point exactly once, whenever it was observed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import InputError
from laconic.algorithms import Algorithm
from laconic.errors import UnknownDecision
from laconic.protocol.session import ClientState
from laconic.tail import NOTHING_NEW
from tests.protocol.federation import APPROX, DIS, LIN, LOCAL, ONE, Federation, every_interleaving, name

algorithms = pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)


def warm(algorithm: Algorithm, members: int = 3, **more: Any) -> Federation:
    """A federation that has synced once and has new points everywhere."""
    federation = Federation(algorithm, members=members, **more)
    federation.sync()
    for number in range(members):
        federation.act(number)
    return federation


def stops(algorithm: Algorithm) -> int:
    """How many moments there are between the messages of a sync."""
    return sum(1 for _ in every_interleaving(warm(algorithm), fired=1))


@algorithms
@pytest.mark.parametrize("who", [(1,), (2,), (0, 1, 2)], ids=str)  # client 1 is the one that fired
def test_points_observed_at_any_moment_of_a_sync_are_kept_once(algorithm: Algorithm, who: tuple[int, ...]) -> None:
    for stop in range(stops(algorithm)):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                for number in who:
                    federation.act(number)
                federation.check_all()
        federation.drain()
        federation.check_quiet()


@algorithms
def test_points_observed_at_every_moment_of_a_sync_are_kept_once(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for moment, _ in enumerate(every_interleaving(federation, fired=1)):
        if moment < 60:  # each new point may bring about another sync
            federation.act(moment % 3)
        federation.check_all()
    federation.check_quiet()
    assert federation.server.epoch.number >= 2


@algorithms
def test_a_decision_may_be_observed_under_a_later_belief(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    early = [federation.choose(number).id for number in range(3)]
    epoch = federation.server.epoch
    federation.sync(fired=1)
    assert federation.server.epoch > epoch
    for number in range(3):
        federation.observe(number, early[number])
    federation.drain()
    federation.check_quiet()


@algorithms
@settings(max_examples=max(settings().max_examples // 3, 10))
@given(order=st.permutations(range(6)), left_out=st.sets(st.integers(0, 5)))
def test_rewards_may_come_in_any_order_or_never(algorithm: Algorithm, order: list[int], left_out: set[int]) -> None:
    federation = warm(algorithm, members=2)
    decisions = [federation.choose(0).id for _ in range(6)]
    for which in order:
        if which not in left_out:
            federation.observe(0, decisions[which])
        federation.drain()
        federation.check_quiet()
    client = federation.clients[0]
    assert set(client.learner.pending) == {decisions[which] for which in left_out}
    for which in left_out:
        client.forget(decisions[which])
        with pytest.raises(UnknownDecision):
            client.observe(decisions[which], 1.0)
    assert not client.learner.pending


def test_decisions_have_numbers_of_their_own() -> None:
    federation = warm(DIS)
    numbers = [federation.choose(0).id for _ in range(20)]
    assert len(set(numbers)) == 20


def test_a_reward_that_is_no_number_leaves_the_decision_open() -> None:
    federation = warm(DIS)
    decision = federation.choose(0)
    for reward in (float("nan"), float("inf"), "1", None, True):
        with pytest.raises(InputError):
            federation.clients[0].observe(decision.id, reward)  # type: ignore[arg-type]
    federation.observe(0, decision.id)
    federation.check(0)


@pytest.mark.parametrize("arms", [[], [[]], [[1.0]], [[1.0, 2.0, 3.0]], [1.0, 2.0], [[1.0, np.nan]], [["a", "b"]]])
def test_arms_that_cannot_be_scored_are_refused_and_no_number_is_used_up(arms: object) -> None:
    federation = warm(DIS)
    before = federation.clients[0].learner.decisions
    with pytest.raises(InputError):
        federation.clients[0].choose(arms)  # type: ignore[arg-type]
    assert federation.clients[0].learner.decisions == before


def test_what_the_caller_does_to_its_arms_later_changes_nothing() -> None:
    federation = warm(DIS)
    arms = np.array([[0.5, 0.5], [1.0, -1.0]])
    decision = federation.clients[0].choose(arms)
    chosen = arms[decision.arm].copy()
    arms[:] = 99.0
    federation.observe(0, decision.id)
    np.testing.assert_array_equal(federation.clients[0].learner.history.points[-1], chosen)
    federation.check(0)


@algorithms
def test_points_replayed_after_a_sync_do_not_ask_for_another(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.act_until_request(0)
    federation.deliver_up(0)
    federation.deliver_down(0)  # its part is fixed here
    assert federation.clients[0].state is ClientState.SYNCING
    federation.act(0, times=12)
    epoch = federation.server.epoch
    federation.drain()
    assert federation.server.epoch.number == epoch.number + 1
    assert federation.clients[0].learner.tail.news.count == 12
    assert federation.clients[0].learner.tail.fresh == NOTHING_NEW
    federation.check_quiet()
    federation.act_until_request(0)
    assert federation.clients[0].learner.tail.fresh.count >= 1
    federation.drain()
    assert federation.server.epoch.number == epoch.number + 2
    federation.check_quiet()


@algorithms
def test_a_client_that_waits_is_served_by_the_sync_of_another(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.act_until_request(0)
    federation.act_until_request(1)
    assert federation.clients[1].state is ClientState.WAITING
    epoch = federation.server.epoch
    federation.drain()
    federation.check_quiet()
    assert federation.server.epoch.number == epoch.number + 1


@pytest.mark.parametrize("algorithm", [DIS, LIN, ONE], ids=name)
def test_everything_observed_is_known_to_everyone_after_a_sync(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=2)
    everything = sum(len(points) for points in federation.observed.values())
    assert federation.server.belief.observations == everything  # type: ignore[attr-defined]
    for client in federation.clients.values():
        assert client.learner.tail.news.count == 0


def test_a_cold_start_on_local_models_knows_its_own_points_before_any_sync() -> None:
    federation = Federation(LOCAL, members=2)
    federation.act(0)
    federation.act(1)
    federation.check_all()
