"""Work beside choosing, observations from elsewhere, sharing on demand, plans that differ, and what a server holds."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from laconic import ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, InputError
from laconic.algorithms import Algorithm
from laconic.beliefs import FiniteBelief
from laconic.errors import LocalProtocolError, RemoteProtocolError
from laconic.protocol.client import Client
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import BLANK, Install, Label, NothingNew, Part, Payload, Refused, Request
from laconic.protocol.phases import Member as ClientView
from laconic.protocol.phases.statistics import STATISTICS_WIRES
from laconic.protocol.records import Learnt
from laconic.protocol.roster import Patience, Status
from laconic.protocol.server import Server, ServerState
from laconic.protocol.session import ClientState
from laconic.runtimes.network import Network
from tests.protocol.federation import (
    DIS,
    EXCHANGING,
    LONE,
    SYNCING,
    Federation,
    Observation,
    every_interleaving,
    name,
    snapshot,
)
from tests.protocol.test_coverage import warm

exchanging = pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
syncing = pytest.mark.parametrize("algorithm", SYNCING, ids=name)


# Work beside choosing


def absorbing(algorithm: Algorithm) -> Federation:
    """Client 1 has been sent the last result of a sync, or a digest, and is at work on it."""
    federation = warm(algorithm)
    federation.flush(1 if algorithm is LONE else 0)
    if algorithm is LONE:
        federation.flush(0)
    while not (federation.down[1] and hasattr(federation.down[1][0], "covered")):
        federation.step(*federation.waiting()[0])
    federation.slow.add(1)
    while not federation.owed[1]:
        federation.deliver_down(1)
    return federation


@exchanging
def test_observations_made_while_a_belief_is_absorbed_are_kept(algorithm: Algorithm) -> None:
    federation = absorbing(algorithm)
    belief = federation.clients[1].learner.belief
    federation.act(1, times=3)
    assert federation.clients[1].learner.belief is belief  # nobody waits for the new one
    federation.check(1)
    federation.slow.clear()
    federation.finish(1)
    assert federation.clients[1].learner.belief is not belief
    federation.rest()
    federation.check(1)


@syncing
def test_messages_that_come_while_work_is_under_way_wait_for_it(algorithm: Algorithm) -> None:
    federation = absorbing(algorithm)
    federation.drain()
    federation.act(0, times=1)
    federation.flush(0)
    federation.deliver_up(0)
    assert federation.down[1]
    before = federation.clients[1].session.owed
    federation.deliver_down(1)
    assert len(federation.clients[1].session.inbox) == 1
    assert federation.clients[1].session.owed is before
    federation.slow.clear()
    federation.finish(1)
    assert not federation.clients[1].session.inbox
    federation.drain()
    federation.check_quiet()
    assert federation.server.epoch.number == 3


@exchanging
@pytest.mark.parametrize("again", [False, True])
def test_a_link_that_is_lost_while_a_belief_is_absorbed_loses_nothing(algorithm: Algorithm, again: bool) -> None:
    federation = absorbing(algorithm)
    federation.cut(1)
    federation.act(1)
    if again:
        federation.greet(1)
    federation.slow.clear()
    federation.finish(1)
    federation.check(1)
    federation.rest()


@syncing
def test_work_for_a_sync_that_went_on_without_its_owner_is_dropped_or_told_too_late(algorithm: Algorithm) -> None:
    federation = warm(algorithm, patience=Patience(seconds=5.0))
    federation.slow.add(1)
    federation.act_until_request(0)
    federation.drain()
    for _ in range(2):
        federation.tick(federation.server.hub.now + 5.0)
        federation.drain()
    assert federation.server.state is ServerState.IDLE
    assert federation.status(1) is Status.SLOW
    federation.slow.clear()
    while federation.owed[1]:
        federation.finish(1)
        federation.drain()
    federation.rest()


@exchanging
def test_a_client_may_leave_while_it_works(algorithm: Algorithm) -> None:
    federation = absorbing(algorithm)
    federation.leave(1)
    federation.slow.clear()
    federation.finish(1)  # no longer owed
    assert federation.clients[1].state is ClientState.OUTSIDE
    federation.drain()
    federation.check(1)
    federation.greet(1)
    federation.rest()


# Observations from elsewhere


@exchanging
def test_what_was_observed_elsewhere_is_learnt_like_own_observations(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0, 0.5])
    outcome = federation.clients[1].learn(X, y)
    assert [type(record) for record in outcome.keep] == [Learnt]
    federation.observed[1] += [Observation(x, float(reward)) for x, reward in zip(X, y, strict=True)]
    federation.post(1, outcome)
    federation.check(1)
    federation.rest()


@pytest.mark.parametrize(
    ("points", "rewards"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], [1.0]),
        ([[0.0, 1.0]], [float("nan")]),
        ([[0.0, 1.0], [np.inf, 0.0]], [1.0, 2.0]),
        ([[0.0, 1.0, 2.0]], [1.0]),
        ([0.0, 1.0], [1.0, 1.0]),
        ([[0.0, 1.0]], [[1.0]]),
    ],
)
def test_observations_from_elsewhere_are_learnt_all_or_none(points: Any, rewards: Any) -> None:
    federation = warm(DIS)
    before = snapshot(federation.clients[1])
    with pytest.raises(InputError):
        federation.clients[1].learn(points, rewards)
    assert snapshot(federation.clients[1]) == before


def test_many_observations_from_elsewhere_may_ask_for_an_exchange() -> None:
    federation = warm(DIS)
    outcome = federation.clients[1].learn(np.random.default_rng(0).normal(size=(20, 2)), np.zeros(20))
    assert [type(message) for message in outcome.send] == [Request]


# Sharing on demand


@syncing
def test_a_flush_shares_everything_whatever_the_trigger_says(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    assert not federation.clients[1].learner.fires
    federation.flush(1)
    federation.drain()
    federation.check_quiet()
    assert federation.server.epoch.number == 2
    assert federation.clients[1].learner.covered == len(federation.observed[1])


@syncing
def test_a_flush_in_a_sync_that_began_before_its_points_is_followed_by_another(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for moment, _ in enumerate(every_interleaving(federation, fired=0)):
        if moment == 4:
            federation.act(1)
            federation.flush(1)
    federation.rest()
    assert federation.clients[1].learner.covered == len(federation.observed[1])


@exchanging
def test_a_flush_while_the_link_is_down_is_done_when_it_is_up(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.cut(1)
    federation.act(1)
    federation.flush(1)
    federation.greet(1)
    federation.drain()
    assert federation.member(1).known == len(federation.observed[1])
    federation.check_quiet()


def test_a_flush_outside_is_refused() -> None:
    federation = warm(DIS)
    federation.leave(1)
    with pytest.raises(LocalProtocolError, match="outside cannot flush"):
        federation.clients[1].flush()


def test_a_flush_alone_is_answered_at_once_with_what_others_have_or_with_nothing_new() -> None:
    federation = Federation(LONE, members=2)
    federation.act(0)
    federation.flush(0)
    federation.deliver_up(0)
    answer = federation.down[0][0]
    assert isinstance(answer, NothingNew)
    assert answer.known == 1
    federation.drain()
    assert federation.clients[0].state is ClientState.IDLE
    federation.act(1)
    federation.flush(1)
    federation.drain()
    assert len(federation.known(1)) == 2
    assert federation.clients[1].session.held == Label(0, 2)
    federation.check_quiet()


def answered() -> Federation:
    """Client 0 has asked, as its trigger fired, and the answer is on its way."""
    federation = Federation(LONE, members=2)
    federation.act(1)
    federation.flush(1)
    federation.deliver_up(1)
    federation.act_until_request(0)
    federation.deliver_up(0)
    return federation


def crossing() -> Federation:
    """Client 0 flushes while the answer to what it asked for before is on its way."""
    federation = answered()
    federation.act(0)
    federation.flush(0)
    return federation


def test_a_flush_is_not_over_when_what_was_asked_for_before_it_is_answered() -> None:
    federation = crossing()
    federation.deliver_down(0)
    client = federation.clients[0]
    assert client.session.held != BLANK
    assert federation.member(0).known < client.session.goal == client.count
    assert client.session.flushing
    federation.drain()
    assert not client.session.flushing
    assert federation.member(0).known == client.count
    federation.check_quiet()


def test_a_flush_while_work_is_under_way_goes_up_when_that_is_done() -> None:
    federation = answered()
    federation.slow.add(0)
    federation.deliver_down(0)
    federation.act(0)
    federation.flush(0)
    assert not federation.up[0]
    federation.finish(0)
    federation.slow.clear()
    assert federation.clients[0].session.flushing
    federation.drain()
    assert not federation.clients[0].session.flushing
    assert federation.member(0).known == federation.clients[0].count
    federation.check_quiet()


def test_a_flush_is_not_over_when_an_earlier_one_is_answered_late_or_again() -> None:
    federation = Federation(LONE, members=2)
    client = federation.clients[0]
    federation.act(0)
    federation.flush(0)
    federation.deliver_up(0)
    answer = federation.down[0][0]
    federation.act(0)
    federation.flush(0)
    for message in (federation.take("down", 0), answer):
        federation.to_client(0, message)
        assert client.session.flushing
        assert client.state is ClientState.WAITING
    assert len(federation.up[0]) == 1, "it asks no third time"
    federation.drain()
    assert not client.session.flushing
    federation.check_quiet()


def test_a_flush_that_went_up_and_was_lost_goes_up_again() -> None:
    federation = crossing()
    federation.reconnect(0)
    federation.drain()
    assert not federation.clients[0].session.flushing
    assert federation.member(0).known == federation.clients[0].count
    federation.check_quiet()


def test_a_client_restored_between_a_flush_and_its_answer_still_waits_for_it() -> None:
    federation = crossing()
    federation.deliver_down(0)
    client = federation.restart(0)
    assert client.session.flushing
    federation.greet(0)
    federation.drain()
    assert not client.session.flushing
    assert federation.member(0).known == client.count
    federation.check_quiet()


def test_an_ask_alone_that_cannot_be_answered_stays_open_until_somebody_has_something() -> None:
    federation = Federation(LONE, members=2)
    federation.act_until_request(0)
    federation.drain()
    assert federation.clients[0].state is ClientState.WAITING
    assert not federation.waiting()
    federation.act(1)
    federation.flush(1)
    federation.drain()
    assert federation.clients[0].session.held.number == len(federation.server.log)
    federation.check_all()


def test_alone_each_is_sent_only_what_it_lacks_and_never_its_own() -> None:
    federation = Federation(LONE, members=3)
    for _ in range(3):
        for number in range(3):
            federation.act(number, times=2)
            federation.flush(number)
            federation.drain()
    down = sum(count.scalars for (way,), count in federation.ledger.by("direction").items() if way == "down")
    held = {number: client.session.held.number for number, client in federation.clients.items()}
    others = sum(held[number] - federation.clients[number].session.covered for number in range(3))
    assert down == 3 * others
    up = sum(count.scalars for (way,), count in federation.ledger.by("direction").items() if way == "up")
    assert up == 3 * len(federation.server.log)


def test_alone_points_go_up_when_the_trigger_fires_and_at_a_flush_and_never_otherwise() -> None:
    plan, random = DisKernelUCB(Gaussian(1.0), D=1e9, together=False).plan(2), np.random.default_rng(0)
    ledger = Ledger(plan)
    network = Network(plan, clients=2, seed=0, ledger=ledger)

    def gone_up() -> int:
        """How many observations of three numbers each."""
        return sum(count.scalars for (way,), count in ledger.by("direction").items() if way == "up") // 3

    def learn(number: int) -> None:
        network.settle(number, network.clients[number].learn(random.normal(size=(3, 2)), random.normal(size=3)))

    def greet_anew(number: int) -> None:
        network.cut(number)
        network.greet(number)
        network.drain()

    learn(0)
    greet_anew(0)  # neither a new link brings them up
    assert gone_up() == 0
    learn(1)
    network.settle(1, network.clients[1].flush())
    assert gone_up() == 3
    greet_anew(0)  # nor news of others
    assert gone_up() == 3
    network.settle(0, network.clients[0].flush())
    assert gone_up() == 6


def test_clients_of_a_process_that_exchange_alone_hold_one_growing_factor() -> None:
    plan, random = DisKernelUCB(Gaussian(1.0), D=1e9, together=False).plan(2), np.random.default_rng(0)
    network = Network(plan, clients=5, seed=0)
    for number in range(5):
        network.settle(number, network.clients[number].learn(random.normal(size=(3, 2)), random.normal(size=3)))
        network.settle(number, network.clients[number].flush())
    for number in range(5):
        network.settle(number, network.clients[number].flush())
    beliefs = [client.learner.belief for client in network.clients.values()]
    assert [len(belief.arrays()["points"]) for belief in beliefs] == [15] * 5
    assert len({id(belief) for belief in beliefs}) == 1


# Plans that differ


def test_a_client_with_another_plan_is_refused_and_told_which_parameter_differs() -> None:
    server = Server(DIS.plan(2))
    client = Client(DisKernelUCB(Gaussian(0.5), D=1.5).plan(2), member=False, name="edge")
    outcome = server.receive(1, client.greet().send[0])
    (_, refusal), *_ = outcome.send
    assert isinstance(refusal, Refused)
    assert not server.members
    assert "another plan: kernel.gamma is 1 here and 0.5 there" in (outcome.dropped or "")  # what the server says of it
    with pytest.raises(RemoteProtocolError, match=r"kernel\.gamma is 0\.5 here and 1 there"):
        client.receive(refusal)


def test_no_more_members_are_let_in_than_are_allowed() -> None:
    server = Server(DIS.plan(2), members=[0], most_members=1)
    newcomer = Client(DIS.plan(2), member=False, name="edge")
    (_, refusal), *_ = server.receive(9, newcomer.greet().send[0]).send
    with pytest.raises(RemoteProtocolError, match="no more are allowed"):
        newcomer.receive(refusal)


# What a server holds


DIM, MEMBERS = 200, 60


def part_of(number: int, algorithm: DisLinUCB) -> Part:
    """The sums of as many points of a client as there are coordinates, so that no factor is smaller than a triangle."""
    X, plan = np.random.default_rng(number).normal(size=(DIM, DIM)) / DIM, algorithm.plan(DIM)
    member = ClientView(plan.belief, plan.belief, X, np.ones(DIM), 0, fired=False, random=np.random.default_rng)
    sums = plan.phases[0].contribute(member)
    hashes = np.zeros(DIM, dtype=np.uint64)
    payload = Payload(values=sums.values, control=sums.control, records={"hashes": hashes})
    return Part(epoch=Label(0, 1), phase=0, upto=DIM, payload=payload)


@pytest.mark.parametrize("wire", STATISTICS_WIRES)
@pytest.mark.parametrize("slow", [1, MEMBERS - 1])
def test_a_server_that_waits_for_a_slow_member_holds_sums_and_not_everyones_parts(wire: Any, slow: int) -> None:
    algorithm, square = DisLinUCB(wire=wire), 8 * DIM**2
    server = Server(algorithm.plan(DIM), members=range(MEMBERS))
    server.receive(0, Request(epoch=BLANK))
    server.receive(0, part_of(0, algorithm))
    tracemalloc.start()
    try:
        for number in range(1, MEMBERS):
            if number != slow:
                server.receive(number, part_of(number, algorithm))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    sync = server.hub.sync
    assert sync is not None
    assert len(sync.contributions) == MEMBERS - 1
    assert held < 3 * square
    assert peak < 12 * square


def test_what_everyone_is_sent_is_one_object_so_that_it_is_encoded_once() -> None:
    for algorithm in (DisLinUCB(), ApproxDisKernelUCB(D=1.0)):
        federation = Federation(algorithm, members=20)
        federation.act_until_request(0)
        while not any(isinstance(each, Install) for queue in federation.down.values() for each in queue):
            federation.step(*federation.waiting()[0])
        payloads = {
            id(each.payload) for queue in federation.down.values() for each in queue if isinstance(each, Install)
        }
        assert len(payloads) == 1


def test_a_server_keeps_increments_only_as_long_as_they_are_less_than_the_whole() -> None:
    federation = warm(DIS)
    for turn in range(12):
        federation.sync(fired=turn % 3)
    installed = federation.server.hub.installed
    kept = sum(payload.scalars for _, _, payload in installed.increments)
    assert kept <= sum(array.size for array in installed.belief.arrays().values())
    assert not isinstance(installed.belief, FiniteBelief)
