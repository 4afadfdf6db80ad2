"""Links break at any moment and lose what is on its way; who greets anew, or is waited for in vain, stops nobody."""

import itertools
from typing import Any

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.protocol.messages import (
    Ask,
    Digested,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Newer,
    Part,
    Request,
    Upload,
    Welcome,
)
from laconic.protocol.roster import Patience, Status
from laconic.protocol.server import ServerState
from laconic.protocol.session import ClientState
from tests.protocol.federation import (
    APPROX,
    DIS,
    EXCHANGING,
    LIN,
    LONE,
    SYNCING,
    Federation,
    every_interleaving,
    name,
    phases,
)
from tests.protocol.test_coverage import warm

exchanging = pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
syncing = pytest.mark.parametrize("algorithm", SYNCING, ids=name)


def everything(federation: Federation) -> int:
    """How many observations were made."""
    return sum(len(observed) for observed in federation.observed.values())


def queued(federation: Federation, number: int, kind: type) -> bool:
    """Whether a message of this kind is the next on a client's link."""
    queue: Any = federation.up[number] if kind in (Hello, Request, Part, Upload, Leave) else federation.down[number]
    return bool(queue) and isinstance(queue[0], kind)


def on_its_way(kind: type, algorithm: Algorithm, number: int = 1) -> Federation:
    """A sync that client 0 began, stopped where a message of this kind is the next on a client's link."""
    federation = warm(algorithm)
    federation.act_until_request(number if kind in (Request, Upload) else 0)
    while not queued(federation, number, kind):
        federation.step(*federation.waiting()[0])
    return federation


def shared(federation: Federation) -> None:
    """Another exchange works, and everyone who takes part in it knows everything."""
    for number in federation.clients:
        federation.act(number)
        federation.flush(number)
        federation.rest()
    for number in federation.clients:
        federation.flush(number)
    federation.rest()
    for number in federation.clients:
        assert len(federation.known(number)) == everything(federation)


@exchanging
@pytest.mark.parametrize("who", [1, 2])  # client 1 is the one that fired
def test_a_link_may_break_at_any_moment_of_an_exchange(algorithm: Algorithm, who: int) -> None:
    moments = sum(1 for _ in every_interleaving(warm(algorithm), fired=1))
    for stop, noticed, back in itertools.product(range(moments), [True, False], ["at once", "later"]):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.cut(who, noticed=noticed)
                federation.act(who)
                federation.check_all()
                if back == "at once":
                    federation.greet(who)
        federation.rest()
    shared(federation)


@exchanging
def test_a_link_may_break_again_and_again_while_it_is_greeted(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for moment, _ in enumerate(every_interleaving(federation, fired=1)):
        if moment % 3 == 0 and moment < 60:
            federation.reconnect(moment % 2 + 1, noticed=moment % 4 == 0)
        federation.check_all()
    federation.rest()
    shared(federation)


@exchanging
def test_a_client_whose_request_was_lost_asks_again_and_is_served(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.act_until_request(1)
    federation.reconnect(1)
    assert federation.clients[1].state is ClientState.GREETING
    epoch = federation.server.epoch
    federation.drain()
    if algorithm is LONE:
        assert federation.member(1).known == len(federation.observed[1])
    else:
        assert federation.server.epoch.number == epoch.number + 1
    federation.check_quiet()
    shared(federation)


@syncing
@pytest.mark.parametrize("kind", [Ask, Part, Merged, Install])
def test_a_message_of_a_sync_that_was_lost_is_made_good_by_a_greeting_and_nobody_is_left_out(
    algorithm: Algorithm, kind: type
) -> None:
    if kind is Merged and phases(algorithm) == 1:
        return
    for noticed in (True, False):
        federation = on_its_way(kind, algorithm)
        epoch = federation.server.hub.begun
        federation.reconnect(1, noticed=noticed)
        federation.drain()  # no time passes
        assert federation.server.epoch.number == epoch
        assert federation.clients[1].learner.covered == len(federation.observed[1])
        federation.check_quiet()
        shared(federation)


@pytest.mark.parametrize("kind", [Upload, Digested])
def test_an_upload_or_a_digest_that_was_lost_comes_again_and_no_point_twice(kind: type) -> None:
    federation = on_its_way(Upload, LONE, number=1) if kind is Upload else warm(LONE)
    if kind is Digested:
        federation.flush(0)
        federation.deliver_up(0)
        federation.flush(1)
        federation.deliver_up(1)
        assert queued(federation, 1, Digested)
    federation.reconnect(1)
    federation.drain()
    federation.check_quiet()
    shared(federation)
    assert len(federation.server.log) == everything(federation)


@exchanging
@pytest.mark.parametrize("kind", [Hello, Welcome])
def test_a_greeting_or_its_answer_that_was_lost_is_said_again(algorithm: Algorithm, kind: type) -> None:
    federation = warm(algorithm)
    federation.cut(1)
    federation.sync(fired=0)
    federation.act(1)
    federation.greet(1)
    if kind is Welcome:
        federation.deliver_up(1)
    assert queued(federation, 1, kind)
    federation.reconnect(1)
    federation.drain()
    federation.check_quiet()
    assert federation.present == [0, 1, 2]
    shared(federation)


@exchanging
def test_a_newer_belief_that_was_lost_is_sent_again(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.cut(1)
    federation.sync(fired=0)
    federation.greet(1)
    federation.deliver_up(1)
    federation.deliver_down(1)
    if algorithm is not LONE:
        assert queued(federation, 1, Newer)
    federation.reconnect(1)
    federation.rest()
    shared(federation)


@syncing
def test_a_leave_that_was_lost_holds_a_sync_up_no_longer_than_patience(algorithm: Algorithm) -> None:
    federation = warm(algorithm, patience=Patience(seconds=5.0))
    federation.leave(2)
    federation.cut(2, noticed=False)
    assert federation.status(2) is Status.PRESENT
    federation.sync(fired=0)
    assert federation.server.state is ServerState.GATHERING
    federation.tick(4.9)
    federation.drain()
    assert federation.server.state is ServerState.GATHERING
    for now in (5.0, 10.0):  # a phase each
        federation.tick(now)
        federation.drain()
    federation.check_quiet()
    assert federation.server.epoch.number == 2
    federation.greet(2)
    federation.rest()
    shared(federation)


@syncing
@pytest.mark.parametrize("noticed", [True, False])
def test_a_client_that_dies_in_a_sync_stops_nobody(algorithm: Algorithm, noticed: bool) -> None:
    moments = sum(1 for _ in every_interleaving(warm(algorithm), fired=1))
    for stop in range(moments):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.cut(2, noticed=noticed)
        for _ in range(2):
            federation.tick(federation.server.hub.now + 1e3)
            federation.drain()
        assert federation.server.state is ServerState.IDLE
        federation.sync(fired=0)  # nor does it hold up the next
        for _ in range(2):
            federation.tick(federation.server.hub.now + 1e3)
            federation.drain()
        assert federation.server.epoch.number == 3
        assert federation.clients[0].session.held == federation.clients[1].session.held == federation.server.epoch
        federation.check_all()


@syncing
def test_a_client_that_missed_epochs_catches_up_and_takes_part_in_the_next_sync(algorithm: Algorithm) -> None:
    for missed in (1, 2, 3):
        federation = warm(algorithm)
        federation.cut(2)
        for _ in range(missed):
            federation.sync(fired=0)
        federation.act(2)
        federation.greet(2)
        federation.drain()
        federation.check_quiet()
        federation.sync(fired=1)
        federation.check_quiet()
        assert federation.clients[2].session.held.number == 2 + missed
        assert len(federation.known(2)) == everything(federation)


@syncing
def test_a_client_that_never_heard_of_an_abandoned_epoch_takes_the_next_question(algorithm: Algorithm) -> None:
    federation = warm(algorithm, patience=Patience(seconds=5.0, quorum=3))
    federation.act_until_request(0)
    federation.deliver_up(0)
    federation.deliver_down(0)
    federation.deliver_up(0)
    for number in (1, 2):  # the question of epoch 2 never reaches them
        federation.cut(number)
    federation.tick(6.0)
    assert federation.server.state is ServerState.IDLE
    for number in (1, 2):
        federation.greet(number)
    federation.rest()
    assert federation.server.epoch == Label(0, 3)
    shared(federation)


# Servers that start again


@syncing
def test_a_server_that_restarts_in_a_sync_abandons_it_and_reuses_no_epoch(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.act_until_request(0)
    federation.deliver_up(0)
    federation.deliver_down(1)
    old = federation.clients[1].session.sync
    assert old is not None
    federation.restart_server(term=8)
    assert federation.server.state is ServerState.IDLE
    federation.rest()
    assert federation.server.epoch == Label(8, old.epoch.number + 1)
    shared(federation)


@exchanging
def test_a_server_that_restarts_twice_under_one_roof_goes_on(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for term in (8, 9):
        federation.restart_server(term=term)
        federation.rest()
        federation.sync(fired=1)
        federation.rest()
    shared(federation)


@exchanging
def test_a_server_from_an_older_backup_gives_everyone_its_belief_and_own_points_are_offered_again(
    algorithm: Algorithm,
) -> None:
    federation = warm(algorithm)
    backup = list(federation.records[-1])
    federation.sync(fired=1)
    federation.sync(fired=2)
    federation.restart_server(term=8, records=backup)
    federation.rest()
    shared(federation)  # nothing that a member has is lost


def test_an_older_belief_replaces_a_newer_one_that_the_server_does_not_know() -> None:
    for algorithm in (DIS, LIN, APPROX):
        federation = warm(algorithm)
        backup = list(federation.records[-1])
        federation.sync(fired=1)
        covered = federation.clients[1].learner.covered
        federation.restart_server(term=8, records=backup)
        federation.greet(1)
        federation.drain()
        client = federation.clients[1]
        assert client.session.held == Label(0, 1)
        assert client.learner.covered < covered
        assert client.learner.tail.news.count == client.count - client.learner.covered
        federation.check(1)


def test_points_of_members_gone_since_the_backup_are_lost() -> None:
    federation = warm(DIS)
    backup = list(federation.records[-1])
    federation.sync(fired=2)
    lost = len(federation.observed[2])
    federation.leave(2)
    federation.drain()
    federation.restart_server(term=8, records=backup)
    federation.rest()
    federation.sync(fired=0)
    assert len(federation.known(0)) == everything(federation) - lost
    federation.check(0)


# Members restored from other times


def rewound(federation: Federation, number: int, records: list[Any]) -> None:
    """A member comes back from older records, makes other observations, and greets."""
    federation.restart(number, start=99, records=records)
    federation.act(number, times=2)
    federation.greet(number)
    federation.drain()


@exchanging
def test_a_client_from_an_older_backup_goes_on_under_a_new_incarnation_and_its_new_rewards_are_known(
    algorithm: Algorithm,
) -> None:
    federation = warm(algorithm)
    backup = list(federation.records[2])
    federation.act(2, times=2)
    federation.flush(2)
    federation.rest()
    before = federation.known(0)
    rewound(federation, 2, backup)
    assert federation.member(2).incarnation == federation.clients[2].session.incarnation == 2
    federation.check_all()
    federation.rest()
    for number in (2, 0, 2):
        federation.flush(number)
        federation.rest()
    known = set(federation.known(0))
    assert set(federation.observed[2]) <= known  # what is new is there
    if not federation.plan.forgets_departed:
        assert set(before) <= known  # and so is what the backup did not know, as of a client that left
    federation.check_all()


@exchanging
def test_a_client_that_starts_without_its_state_is_the_same_member_with_nothing(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.flush(2)
    federation.rest()
    known = federation.known(0)
    federation.cut(2)
    federation.add(2, member=False)
    federation.act(2)
    federation.greet(2)
    federation.rest()
    assert federation.member(2).number == 2
    assert federation.member(2).incarnation == 2
    federation.flush(2)
    federation.rest()
    federation.flush(0)
    federation.rest()
    assert set(federation.observed[2]) <= set(federation.known(0))
    if not federation.plan.forgets_departed:
        assert set(known) <= set(federation.known(0))


@exchanging
def test_two_copies_of_a_client_that_take_turns_count_each_observation_once(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    copies = [(list(federation.records[2]), list(federation.observed[2]))] * 2
    seen: set[Any] = set()
    for turn in range(6):
        records, observed = copies[turn % 2]
        federation.restart(2, start=100 + turn, records=records)
        federation.observed[2] = list(observed)
        federation.act(2)
        federation.greet(2)
        federation.rest()
        federation.flush(2)
        federation.rest()
        federation.check_all()
        copies[turn % 2] = (list(federation.records[2]), list(federation.observed[2]))
        seen |= set(federation.observed[2])
    federation.flush(0)
    federation.rest()
    if not federation.plan.forgets_departed:
        assert seen <= set(federation.known(0))


def test_a_new_link_under_a_name_takes_the_place_of_the_old_one_which_is_told() -> None:
    federation = warm(DIS)
    hello = federation.clients[1].greet().send[0]
    outcome = federation.server.receive(50, hello)
    told = [message for link, message in outcome.send if link == 1]
    assert [getattr(message, "final", None) for message in told] == [True]


def test_a_chain_that_is_too_short_sets_its_sender_aside() -> None:
    federation = warm(DIS)
    backup = list(federation.records[2])
    federation.sync(fired=2)
    federation.restart(2, start=9, records=backup)
    federation.greet(2)
    federation.deliver_up(2)
    federation.deliver_down(2)
    chain = federation.take("up", 2)
    chain.payload.records["hashes"] = np.zeros(0, dtype=np.uint64)
    assert federation.to_server(2, chain).dropped
    assert federation.status(2) is Status.ASIDE
    federation.rest()
    assert federation.status(2) is Status.PRESENT
