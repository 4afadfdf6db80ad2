"""Coming and going, between syncs and in the middle of one."""

import itertools

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.beliefs import FiniteBelief, Statistics
from laconic.protocol.messages import BLANK, Leave, Newer, Part, Request, Welcome
from laconic.protocol.roster import Status
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
)
from tests.protocol.test_coverage import algorithms, stops, warm


def finish(federation: Federation) -> None:
    """Deliver everything, and see that a further sync works."""
    federation.drain()
    federation.check_quiet()
    if federation.present:
        federation.sync(fired=federation.present[0])
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
                    federation.greet(who)
                federation.check_all()
        if back == "much later":
            finish(federation)
        if back != "at once":
            federation.act(who)
            federation.greet(who)
        finish(federation)
        assert who in federation.present


@algorithms
def test_everyone_may_leave_at_any_moment_of_a_sync(algorithm: Algorithm) -> None:
    for stop, newcomers in itertools.product(range(stops(algorithm)), [False, True]):
        federation = warm(algorithm)
        federation.add(7, member=False)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                if newcomers:
                    federation.greet(7)
                    federation.deliver_up(7)
                for number in (0, 1, 2):
                    federation.leave(number)
        finish(federation)
        assert federation.present == ([7] if newcomers else [])
        for number in (0, 1, 2):
            federation.greet(number)
        finish(federation)
        assert federation.present == ([0, 1, 2, 7] if newcomers else [0, 1, 2])


@algorithms
def test_a_newcomer_may_come_at_any_moment_of_a_sync_and_go_again(algorithm: Algorithm) -> None:
    for stop, stays in itertools.product(range(stops(algorithm)), [True, False]):
        federation = warm(algorithm)
        federation.add(7, member=False)
        federation.act(7)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.greet(7)
                if not stays:
                    federation.leave(7)
        finish(federation)
        assert (7 in federation.present) is stays


@algorithms
def test_the_last_awaited_member_ends_a_phase_by_leaving(algorithm: Algorithm) -> None:
    for phase in range(phases(algorithm)):
        federation = warm(algorithm)
        federation.act_until_request(1)
        while federation.phase != phase:
            federation.step(*federation.waiting()[0])
        while federation.server.hub.sync is not None and federation.server.hub.sync.awaited != {2}:
            way, number = next(each for each in federation.waiting() if each != ("up", 2))
            federation.step(way, number)
        federation.down[2].clear()
        federation.to_server(2, Leave())
        assert federation.phase == (None if phase + 1 == phases(algorithm) else phase + 1)
        assert {number for way, number in federation.waiting() if way == "down"} == {0, 1}


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
    federation.greet(7)
    before = federation.ledger.total
    federation.deliver_up(7)
    welcome, newer = federation.down[7]
    assert isinstance(welcome, Welcome)
    assert isinstance(newer, Newer)
    total, sent = federation.ledger.total, newer.payload
    assert total.messages == before.messages + 2
    assert total.scalars == before.scalars + sent.scalars > before.scalars
    assert total.bytes == before.bytes + federation.codec.size(welcome) + federation.codec.size(newer)
    federation.drain()
    federation.check_quiet()
    same_arrays(federation.clients[7].learner.belief.arrays(), federation.server.belief.arrays())
    assert federation.clients[7].session.clients == 4


@algorithms
def test_a_newcomer_brings_its_points_to_the_next_sync(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.act(7, times=3)
    federation.greet(7)
    federation.drain()
    federation.check_quiet()
    federation.sync(fired=0)
    assert federation.clients[7].learner.covered == 3
    federation.check_quiet()


@algorithms
def test_a_newcomer_asks_for_a_sync_by_what_it_observes_once_it_is_let_in(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.drain()  # one more point may have been enough for another
    federation.add(7, member=False)
    federation.act(7, times=12)
    federation.greet(7)
    epoch = federation.server.epoch
    federation.drain()
    assert federation.server.epoch == epoch
    federation.check_quiet()
    federation.act_until_request(7)
    federation.drain()
    assert federation.server.epoch.number == epoch.number + 1
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
    assert federation.member(2).known == gone
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
    federation.greet(2)
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
    assert "nobody has greeted" in (federation.server.receive(0, Request(epoch=BLANK)).dropped or "")
    federation.add(5, member=False)
    federation.greet(5)
    finish(federation)
    assert federation.present == [5]


# Greetings


@algorithms
def test_a_client_that_greets_again_and_again_is_welcomed_once_by_each_link(algorithm: Algorithm) -> None:
    """In, out and in again, while the first welcome is on its way and the others sync."""
    federation = warm(algorithm)
    federation.add(7, member=False)
    federation.greet(7)
    federation.deliver_up(7)
    federation.leave(7)
    federation.deliver_up(7)
    federation.down[7].clear()
    federation.cut(7)
    federation.sync(fired=0)
    federation.greet(7)
    finish(federation)
    assert 7 in federation.present


@algorithms
def test_a_member_is_back_before_anybody_noticed_that_it_was_gone(algorithm: Algorithm) -> None:
    for stop in range(stops(algorithm)):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.reconnect(2, noticed=False)
        finish(federation)
        assert 2 in federation.present


def test_a_part_sent_on_an_older_link_is_not_taken_and_is_asked_for_again() -> None:
    for algorithm in SYNCING:
        federation = warm(algorithm)
        federation.act_until_request(1)
        federation.deliver_up(1)
        federation.deliver_down(2)
        old, part = federation.links[2], federation.up[2][0]
        assert isinstance(part, Part)
        federation.reconnect(2, noticed=False)
        federation.deliver_up(2)
        assert federation.server.receive(old, part).dropped
        finish(federation)
        assert federation.clients[2].learner.covered == len(federation.observed[2])


def test_a_name_that_left_is_the_same_member_when_it_is_back() -> None:
    federation = warm(DIS)
    number = federation.member(2).number
    federation.leave(2)
    federation.drain()
    assert federation.status(2) is Status.LEFT
    assert federation.server.hub.clients == 2
    federation.greet(2)
    federation.drain()
    assert federation.member(2).number == number
    federation.sync(fired=0)
    assert {client.session.clients for client in federation.clients.values()} == {3}


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
    X = np.array([each.point for number in (0, 1, 2) for each in federation.observed[number]])
    y = np.array([each.reward for number in (0, 1, 2) for each in federation.observed[number]])
    expected = Statistics.of(belief.embedding, X, y)
    np.testing.assert_allclose(belief.statistics.gram, expected.gram, atol=1e-9)
    federation.greet(2)
    federation.drain()
    assert federation.clients[2].learner.tail.news.count == 0
    federation.check_quiet()


def test_a_client_that_leaves_keeps_nothing_of_the_sync() -> None:
    federation = warm(APPROX)
    federation.act_until_request(1)
    federation.deliver_up(1)
    federation.deliver_down(2)
    federation.leave(2)
    assert federation.clients[2].session.sync is None


# Retiring


@algorithms
@pytest.mark.parametrize("when", ["before", "during"])
def test_who_is_away_for_good_is_retired_and_joins_again_when_it_greets(algorithm: Algorithm, when: str) -> None:
    federation = warm(algorithm)
    server, who = federation.server, federation.member(2).name
    assert server.retire(who).dropped == f"{who!r} is linked"
    assert server.retire("nobody").dropped == "no 'nobody' is away"
    if when == "during":
        next(iter(every_interleaving(federation, fired=1)))
    federation.cut(2)
    before = server.hub.clients
    outcome = server.retire(who)
    federation.post_down(outcome)
    assert server.hub.clients == before - 1
    assert type(outcome.keep[0]).__name__ == "Departed"
    assert server.retire(who).dropped == f"no {who!r} is away"
    finish(federation)
    federation.greet(2)
    finish(federation)
    assert 2 in federation.present
    assert server.hub.clients == before
