"""How long a sync waits, for whom, and how whoever was left out catches up."""

import msgspec
import pytest

from laconic import InputError
from laconic.algorithms import Algorithm
from laconic.protocol.messages import BLANK, Ask, Label, Newer, Released, Request
from laconic.protocol.roster import Patience, Status
from laconic.protocol.server import ServerState
from laconic.protocol.session import ClientState
from tests.protocol.federation import DIS, LIN, SYNCING, Federation, name
from tests.protocol.test_coverage import warm

syncing = pytest.mark.parametrize("algorithm", SYNCING, ids=name)
PATIENCE = Patience(seconds=5.0, quorum=2)


def without_answer(algorithm: Algorithm, patience: Patience = PATIENCE, silent: tuple[int, ...] = (2,)) -> Federation:
    """A sync of three to which some are asked and do not answer."""
    federation = warm(algorithm, patience=patience)
    federation.act_until_request(0)
    while any(number not in silent for _, number in federation.waiting()):
        federation.step(*next(each for each in federation.waiting() if each[1] not in silent))
    assert federation.server.state is ServerState.GATHERING
    return federation


def wait(federation: Federation, seconds: float = 5.0) -> None:
    """Let time pass, and deliver what follows to those who answer."""
    federation.tick(federation.server.hub.now + seconds)
    while any(number != 2 for _, number in federation.waiting()):
        federation.step(*next(each for each in federation.waiting() if each[1] != 2))


@syncing
def test_who_does_not_answer_in_time_is_left_out_and_told_so(algorithm: Algorithm) -> None:
    federation = without_answer(algorithm)
    wait(federation, 4.999)
    assert federation.phase is not None
    wait(federation, 0.001)
    assert federation.status(2) is Status.SLOW
    assert federation.server.state is ServerState.IDLE
    assert federation.server.epoch.number == 2
    ask, told = federation.down[2]
    assert isinstance(ask, Ask)
    assert isinstance(told, Released)
    assert "did not answer in time" in told.reason
    federation.check_all()


@syncing
def test_who_was_left_out_catches_up_as_soon_as_it_is_heard_and_its_points_are_counted_once(
    algorithm: Algorithm,
) -> None:
    federation = without_answer(algorithm)
    wait(federation)
    federation.act(2, times=2)
    federation.drain()  # the question, the part that comes too late, and what it missed
    assert federation.status(2) is Status.PRESENT
    federation.check_quiet()
    federation.sync(fired=1)
    federation.check_quiet()
    assert len(federation.known(2)) == sum(map(len, federation.observed.values()))


@syncing
def test_a_slow_member_is_not_asked_until_it_is_heard(algorithm: Algorithm) -> None:
    federation = without_answer(algorithm)
    wait(federation)
    federation.act_until_request(0)
    while federation.up[0] or federation.up[1] or federation.down[0] or federation.down[1]:
        federation.step(*next(each for each in federation.waiting() if each[1] != 2))
    assert federation.server.epoch.number == 3  # at once, without waiting for it
    federation.drain()
    federation.check_quiet()


@syncing
def test_below_the_quorum_the_sync_is_abandoned_and_the_request_waits(algorithm: Algorithm) -> None:
    federation = without_answer(algorithm, Patience(seconds=5.0, quorum=3))
    federation.tick(5.0)
    assert federation.server.state is ServerState.IDLE
    released = federation.down[0][-1]
    assert isinstance(released, Released)
    assert released.pending
    epoch = federation.server.epoch
    federation.deliver_down(0)
    assert federation.clients[0].state is ClientState.WAITING
    federation.drain()  # client 2 is heard again, so that there are enough
    assert federation.server.epoch.number > epoch.number
    federation.check_quiet()


@syncing
def test_a_request_waits_until_enough_members_are_here(algorithm: Algorithm) -> None:
    federation = warm(algorithm, patience=Patience(quorum=3))
    federation.cut(2)
    federation.act_until_request(0)
    federation.drain()
    assert federation.server.state is ServerState.IDLE
    assert federation.server.epoch.number == 1
    federation.greet(2)
    federation.drain()
    assert federation.server.epoch.number == 2
    federation.check_quiet()


def test_the_quorum_counts_those_who_are_here_and_not_the_roster() -> None:
    federation = warm(DIS, members=4, patience=Patience(quorum=2))
    for number in (2, 3):
        federation.cut(number)
    federation.sync(fired=0)
    assert federation.server.epoch.number == 2
    assert federation.clients[0].session.clients == 4  # away, and not gone


def test_each_phase_has_its_own_time() -> None:
    federation = without_answer(SYNCING[2])
    federation.tick(3.0)
    for _ in range(2):
        federation.deliver_down(2) if federation.down[2] else None
    federation.deliver_up(2)
    assert federation.phase == 1
    federation.tick(7.0)  # 4 seconds into the second phase
    assert federation.server.state is ServerState.GATHERING
    federation.drain()
    federation.check_quiet()


def test_time_never_goes_back() -> None:
    federation = without_answer(DIS)
    federation.tick(4.0)
    federation.tick(1.0)
    assert federation.server.hub.now == 4.0


def test_patience_is_a_positive_time_and_a_quorum_at_least_one() -> None:
    for wrong in ({"seconds": 0.0}, {"seconds": -1.0}, {"quorum": 0}):
        with pytest.raises(InputError):
            Patience(**wrong)


# Catching up


def caught_up(federation: Federation) -> Newer:
    """Client 2 greets; what it is sent to catch up."""
    federation.greet(2)
    federation.deliver_up(2)
    newer = federation.down[2][1]
    assert isinstance(newer, Newer)
    return newer


def test_an_exact_belief_catches_up_by_the_points_since_its_epoch_only() -> None:
    federation = warm(DIS)
    federation.cut(2)
    known = len(federation.knows[federation.server.epoch])
    for fired in (0, 1):
        federation.sync(fired=fired)
    new = len(federation.knows[federation.server.epoch]) - known
    newer = caught_up(federation)
    assert not newer.whole
    assert newer.base == Label(0, 1)
    assert newer.payload.scalars == new * 3
    federation.drain()
    federation.check_quiet()


def test_a_belief_whose_hash_is_another_is_replaced_by_the_whole() -> None:
    federation = warm(DIS)
    federation.cut(2)
    federation.sync(fired=0)
    federation.greet(2)
    hello = federation.take("up", 2)
    federation.to_server(2, msgspec.structs.replace(hello, mark=hello.mark ^ 1))
    newer = federation.down[2][1]
    assert isinstance(newer, Newer)
    assert newer.whole
    federation.drain()
    federation.check_quiet()


def test_sums_are_sent_whole_and_who_is_up_to_date_is_sent_nothing() -> None:
    federation = warm(LIN)
    federation.cut(2)
    federation.sync(fired=0)
    assert caught_up(federation).whole
    federation.drain()
    federation.reconnect(2)
    federation.deliver_up(2)
    assert len(federation.down[2]) == 1  # the welcome alone
    federation.drain()
    federation.check_quiet()


def test_after_catching_up_the_triggers_sums_start_at_zero() -> None:
    federation = warm(DIS)
    federation.cut(2)
    federation.act(2, times=12)
    federation.sync(fired=0)
    epoch = federation.server.epoch
    federation.greet(2)
    federation.drain()
    assert federation.server.epoch == epoch
    learner = federation.clients[2].learner
    assert learner.tail.news.count == len(federation.observed[2]) - learner.covered
    assert not federation.clients[2].learner.fires


def test_a_request_of_who_is_behind_is_dropped_and_it_catches_up_by_its_greeting() -> None:
    federation = warm(DIS)
    federation.sync(fired=0)
    assert federation.server.receive(2, Request(epoch=BLANK)).dropped
