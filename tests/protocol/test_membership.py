"""Joining and leaving, between syncs and in the middle of one."""

import itertools

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.beliefs import FiniteBelief, Statistics
from laconic.errors import RemoteProtocolError
from laconic.protocol.client import ClientState
from laconic.protocol.codec import size
from laconic.protocol.messages import Join, Leave, Part, Request, Welcome
from laconic.protocol.saving import restore, save
from tests.protocol.federation import (
    APPROX,
    DIS,
    LIN,
    LOCAL,
    SYNCING,
    Federation,
    every_interleaving,
    name,
    phases,
    same_arrays,
    snapshot,
)
from tests.protocol.test_coverage import algorithms, stops, warm


def finish(federation: Federation) -> None:
    """Deliver everything, and see that a further sync works."""
    federation.drain()
    federation.check_quiet()
    if federation.server.members:
        federation.sync(fired=federation.server.members[0])
        federation.check_quiet()


# In the middle of a sync


@algorithms
@pytest.mark.parametrize("who", [1, 2])  # client 1 is the one that fired
def test_a_client_may_leave_at_any_moment_of_a_sync_and_come_back(algorithm: Algorithm, who: int) -> None:
    for stop, back in itertools.product(range(stops(algorithm)), ["at once", "later", "much later"]):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.leave(who)
                federation.act(who)
                if back == "at once":
                    federation.join(who)
                federation.check_all()
        if back == "much later":
            finish(federation)
        if back != "at once":
            federation.act(who)
            federation.join(who)
        finish(federation)
        assert who in federation.server.members


@algorithms
def test_everyone_may_leave_at_any_moment_of_a_sync(algorithm: Algorithm) -> None:
    for stop, newcomers in itertools.product(range(stops(algorithm)), [False, True]):
        federation = warm(algorithm)
        federation.add(7, member=False)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                if newcomers:
                    federation.join(7)
                    federation.deliver_up(7)
                for number in (0, 1, 2):
                    federation.leave(number)
        finish(federation)
        assert federation.server.members == ([7] if newcomers else [])
        for number in (0, 1, 2):
            federation.join(number)
        finish(federation)
        assert federation.server.members == ([0, 1, 2, 7] if newcomers else [0, 1, 2])


@algorithms
def test_a_newcomer_may_come_at_any_moment_of_a_sync_and_go_again(algorithm: Algorithm) -> None:
    for stop, stays in itertools.product(range(stops(algorithm)), [True, False]):
        federation = warm(algorithm)
        federation.add(7, member=False)
        federation.act(7)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.join(7)
                if not stays:
                    federation.leave(7)
        finish(federation)
        assert (7 in federation.server.members) is stays


@algorithms
def test_the_last_awaited_member_ends_a_phase_by_leaving(algorithm: Algorithm) -> None:
    for phase in range(phases(algorithm)):
        federation = warm(algorithm)
        federation.act_until_request(1)
        while federation.phase != phase:
            federation.step(*federation.waiting()[0])
        while federation.server._awaited != {2}:
            way, number = next(each for each in federation.waiting() if each != ("up", 2))
            federation.step(way, number)
        outcome = federation.server.receive(2, Leave(stay=0))
        assert federation.phase == (None if phase + 1 == phases(algorithm) else phase + 1)
        assert {number for number, _ in outcome.send} == {0, 1}


def test_those_who_leave_early_do_not_hold_up_a_first_dictionary() -> None:
    """Whoever fired must propose a point, but it is gone, and nobody else has one."""
    for algorithm in (APPROX, LOCAL):
        federation = Federation(algorithm, members=3)
        federation.act_until_request(1)
        federation.deliver_up(1)
        federation.leave(1)
        federation.drain()
        federation.check_quiet()
        assert federation.server.belief.dictionary_size == 0
        federation.sync(fired=0)
        federation.check_quiet()
        assert (federation.server.belief.dictionary_size or 0) > 0


# Between syncs


@algorithms
def test_a_newcomer_is_sent_the_installed_belief_and_the_ledger_counts_it(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.join(7)
    before = federation.ledger.total
    (_, welcome), *rest = federation.deliver_up(7).send
    assert isinstance(welcome, Welcome)
    assert not rest
    same_arrays(welcome.belief.values | welcome.belief.records, federation.server.belief.arrays())
    assert federation.ledger.total.messages == before.messages + 1
    assert federation.ledger.total.scalars == before.scalars + welcome.belief.scalars > before.scalars
    assert federation.ledger.total.bytes == before.bytes + size(welcome)
    federation.drain()
    federation.check_quiet()
    assert federation.clients[7].clients == 4


@algorithms
def test_a_newcomer_brings_its_points_to_the_next_sync(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.act(7, times=3)
    federation.join(7)
    federation.drain()
    federation.check_quiet()
    federation.sync(fired=0)
    assert federation.server.covered[7] == 3
    federation.check_quiet()


@algorithms
def test_a_newcomer_whose_trigger_has_fired_asks_for_a_sync_when_it_is_let_in(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.act(7, times=12)
    federation.join(7)
    epoch = federation.server.epoch
    federation.drain()
    assert federation.server.epoch > epoch
    federation.check_quiet()


@pytest.mark.parametrize("algorithm", [DIS, LIN], ids=name)
def test_the_points_of_a_departed_client_stay_known(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=1)
    federation.leave(2)
    federation.drain()
    gone = len(federation.observed[2])
    federation.sync(fired=0)
    known = federation.server.belief.observations  # type: ignore[attr-defined]
    assert known == len(federation.observed[0]) + len(federation.observed[1]) + gone
    assert federation.server.covered[2] == gone
    federation.check_quiet()


@pytest.mark.parametrize("algorithm", [APPROX, LOCAL], ids=name)
def test_approx_loses_the_points_of_a_departed_client_at_the_next_sync(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=1)
    federation.leave(2)
    federation.drain()
    everything = sum(len(points) for points in federation.observed.values())
    assert federation.server.belief.observations == everything  # type: ignore[attr-defined]
    federation.sync(fired=0)
    stayed = len(federation.observed[0]) + len(federation.observed[1])
    assert federation.server.belief.observations == stayed  # type: ignore[attr-defined]
    federation.check_quiet()


@algorithms
@pytest.mark.parametrize("syncs_missed", [0, 1, 2])
def test_a_client_that_comes_back_has_each_point_once(algorithm: Algorithm, syncs_missed: int) -> None:
    federation = warm(algorithm)
    federation.sync(fired=1)
    federation.leave(2)
    federation.act(2, times=2)
    for _ in range(syncs_missed):
        federation.drain()
        federation.sync(fired=0)
    federation.join(2)
    federation.drain()
    federation.check_quiet()
    federation.sync(fired=2)
    federation.check_quiet()
    everything = sum(len(points) for points in federation.observed.values())
    assert federation.server.belief.observations == everything  # type: ignore[attr-defined]


def test_whoever_is_outside_goes_on_learning_alone() -> None:
    federation = warm(DIS)
    federation.leave(0)
    federation.drain()
    federation.act(0, times=10)
    assert not federation.up[0]
    federation.check(0)


def test_members_may_all_be_gone_and_others_come() -> None:
    federation = Federation(DIS, members=0)
    assert "not a member" in (federation.server.receive(0, Request(epoch=0)).dropped or "")
    federation.add(5, member=False)
    federation.join(5)
    finish(federation)
    assert federation.server.members == [5]


# Stays


@algorithms
def test_a_welcome_to_an_earlier_stay_is_dropped(algorithm: Algorithm) -> None:
    """In, out and in again, while the first welcome is on its way and the others sync."""
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.join(7)
    federation.deliver_up(7)
    federation.leave(7)
    federation.deliver_up(7)
    first = federation.down[7].popleft()
    federation.sync(fired=0)
    federation.join(7)
    outcome = federation.to_client(7, first)
    assert "stay 1" in (outcome.dropped or "")
    assert federation.clients[7].state is ClientState.JOINING
    finish(federation)
    assert 7 in federation.server.members


def test_repeated_joins_and_leaves_of_an_earlier_stay_are_dropped() -> None:
    federation = warm(DIS)
    federation.leave(0)
    federation.join(0)
    federation.leave(0)
    federation.join(0)
    federation.drain()
    before = snapshot(federation.server)
    for message in (Leave(stay=0), Join(stay=1), Leave(stay=1), Join(stay=2)):
        assert federation.server.receive(0, message).dropped
    assert snapshot(federation.server) == before


@algorithms
def test_a_member_that_joins_again_has_left_before(algorithm: Algorithm) -> None:
    """A client that lost its connection is back before anybody noticed, at any moment of a sync."""
    for stop in range(stops(algorithm)):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                client = federation.clients[2]
                client.leave()  # this never arrives
                federation.up[2].clear()
                federation.down[2].clear()
                federation.join(2)
        finish(federation)
        assert 2 in federation.server.members


@algorithms
def test_a_client_restored_from_before_a_sync_catches_up_by_joining_again(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    saved = save(federation.clients[2])
    observed = list(federation.observed[2])
    federation.leave(2)
    federation.drain()
    federation.sync(fired=0)
    federation.clients[2] = restore(saved, plan=federation.plan)
    federation.observed[2] = observed
    federation.clients[2].leave()
    federation.join(2)
    finish(federation)


def test_a_client_that_lost_observations_the_belief_has_is_told_so() -> None:
    federation = warm(DIS)
    saved = save(federation.clients[2])
    federation.sync(fired=2)
    client = restore(saved, plan=federation.plan)
    client.leave()
    before = snapshot(client)
    (_, join), *_ = client.join().send
    (_, welcome), *_ = federation.server.receive(2, join).send
    with pytest.raises(RemoteProtocolError, match="was its history lost"):
        client.receive(welcome)
    assert client.state is ClientState.JOINING
    assert snapshot(client)["tail"] == before["tail"]


def test_the_part_of_a_stay_that_is_over_is_not_taken_in_the_next() -> None:
    for algorithm in SYNCING:
        federation = warm(algorithm)
        federation.act_until_request(1)
        federation.deliver_up(1)
        federation.deliver_down(2)
        part = federation.up[2].popleft()
        assert isinstance(part, Part)
        federation.leave(2)
        federation.join(2)
        federation.deliver_up(2)
        federation.deliver_up(2)
        assert "not a member" in (federation.to_server(2, part).dropped or "")
        federation.drain()
        assert "over" in (federation.to_server(2, part).dropped or "")
        finish(federation)


def test_a_departed_clients_statistics_are_those_of_its_last_part() -> None:
    """It left after the last part went in: the belief has its points, and says so when it is back."""
    federation = warm(APPROX)
    federation.act_until_request(1)
    while federation.phase != 1:
        federation.step(*federation.waiting()[0])
    federation.deliver_down(2)
    federation.deliver_up(2)
    federation.leave(2)
    federation.drain()
    belief = federation.server.belief
    assert isinstance(belief, FiniteBelief)
    X = np.array([x for number in (0, 1, 2) for x, _ in federation.observed[number]])
    y = np.array([reward for number in (0, 1, 2) for _, reward in federation.observed[number]])
    expected = Statistics.of(belief.embedding, X, y)
    np.testing.assert_allclose(belief.statistics.gram, expected.gram, atol=1e-9)
    federation.join(2)
    federation.drain()
    assert federation.clients[2].tail.news.count == 0
    federation.check_quiet()


def test_a_client_that_leaves_keeps_nothing_of_the_sync() -> None:
    federation = warm(APPROX)
    federation.act_until_request(1)
    federation.deliver_up(1)
    federation.deliver_down(2)
    federation.leave(2)
    assert federation.clients[2]._sync is None
