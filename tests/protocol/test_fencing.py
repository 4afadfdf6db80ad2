"""Late and repeated messages, and those of other epochs, are dropped with a reason and change nothing."""

import msgspec
import pytest

from laconic.algorithms import Algorithm
from laconic.protocol.client import ClientState
from laconic.protocol.codec import decode, encode
from laconic.protocol.messages import Ask, Install, Merged, Request, Up
from laconic.protocol.server import ServerState
from tests.protocol.federation import APPROX, DIS, Federation, every_interleaving, snapshot
from tests.protocol.test_coverage import algorithms, warm


def repeat_everything(federation: Federation, *, since: int = 0) -> None:
    """Deliver all that was delivered once more: each is dropped with a reason."""
    for number, message in federation.delivered[since:]:
        side = federation.server if isinstance(message, Up) else federation.clients[number]
        before = snapshot(side)
        if isinstance(message, Up):
            reason = federation.server.receive(number, message).dropped
        else:
            reason = federation.clients[number].receive(message).dropped
        assert reason
        assert snapshot(side) == before


@algorithms
def test_whatever_was_delivered_is_dropped_when_it_comes_again_at_any_moment(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for _ in every_interleaving(federation, fired=1):
        repeat_everything(federation)
    federation.check_quiet()


@algorithms
def test_messages_of_an_earlier_stay_are_dropped_at_any_moment_of_the_next(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=2)
    first_stay = len(federation.delivered)
    federation.leave(2)
    federation.drain()
    repeat_everything(federation)
    federation.join(2)
    federation.deliver_up(2)
    repeat_everything(federation)
    federation.drain()
    assert len(federation.delivered) > first_stay
    for _ in every_interleaving(federation, fired=0):
        repeat_everything(federation)
    federation.check_quiet()


def test_the_reason_says_what_came_too_late() -> None:
    federation = warm(APPROX)
    server, client = federation.server, federation.clients[1]
    late: list[tuple[str | None, str]] = [
        (client.receive(Ask(epoch=1, fired=False)).dropped, "epoch 1 is over, this client is in epoch 1"),
        (client.receive(Ask(epoch=0, fired=False)).dropped, "epoch 0 is over"),
        (server.receive(1, Request(epoch=0)).dropped, "a sync since epoch 0 is under way or done"),
    ]
    federation.act_until_request(1)
    request = federation.up[1][0]
    federation.deliver_up(1)
    late.append((server.receive(1, request).dropped, "under way"))
    ask = federation.down[1][0]
    federation.deliver_down(1)
    late.append((client.receive(ask).dropped, "the sync of epoch 2 is under way already"))
    part = federation.up[1][0]
    federation.deliver_up(1)
    late.append((server.receive(1, part).dropped, "a repeated part of phase 0"))
    federation.drain()
    late.append((server.receive(1, part).dropped, "a part for epoch 2, which is over"))
    for reason, expected in late:
        assert expected in (reason or "")


@pytest.mark.parametrize("kind", [Ask, Merged, Install])
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_message_of_an_epoch_that_is_over_is_dropped_in_every_state(kind: type, epoch: int) -> None:
    federation = warm(APPROX)
    sent = [message for number, message in federation.delivered if number == 1 and isinstance(message, kind)]
    old = msgspec.structs.replace(sent[0], epoch=epoch)
    for _ in every_interleaving(federation, fired=1):
        client = federation.clients[1]
        before = snapshot(client)
        assert client.receive(old).dropped  # type: ignore[arg-type]
        assert snapshot(client) == before


@algorithms
def test_the_epoch_of_a_sync_that_everyone_left_is_never_used_again(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.act_until_request(1)
    federation.deliver_up(1)
    for number in (0, 1, 2):
        federation.deliver_down(number)
        federation.leave(number)
    federation.drain()
    abandoned = federation.server.epoch
    for number in (0, 1, 2):
        federation.join(number)
    federation.deliver_up(0)
    repeat_everything(federation)
    federation.drain()
    repeat_everything(federation)
    federation.check_quiet()
    assert federation.server.epoch >= abandoned == 2


def test_parts_may_come_in_any_order_and_the_belief_is_the_same() -> None:
    beliefs = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        federation = warm(APPROX)
        federation.act_until_request(1)
        while federation.waiting():
            for number in order:
                while federation.up[number]:
                    federation.deliver_up(number)
                if federation.down[number]:
                    federation.deliver_down(number)
        federation.check_quiet()
        beliefs.append({key: array.tobytes() for key, array in federation.server.belief.arrays().items()})
    assert beliefs[0] == beliefs[1] == beliefs[2]


def test_a_request_that_comes_during_a_sync_is_served_by_it() -> None:
    federation = warm(DIS)
    federation.act_until_request(0)
    federation.act_until_request(1)
    federation.deliver_up(0)
    assert federation.server.state is ServerState.GATHERING
    assert "under way" in (federation.deliver_up(1).dropped or "")
    assert federation.clients[1].state is ClientState.WAITING
    federation.drain()
    federation.check_quiet()


def test_a_request_that_comes_after_a_sync_it_did_not_know_of_starts_no_other() -> None:
    federation = warm(DIS)
    federation.act_until_request(0)
    federation.act_until_request(1)
    late = federation.up[1].popleft()
    federation.drain()
    epoch = federation.server.epoch
    assert federation.to_server(1, late).dropped
    assert federation.server.epoch == epoch
    federation.check_quiet()


@algorithms
def test_messages_may_cross_as_bytes(algorithm: Algorithm) -> None:
    objects, as_bytes = warm(algorithm), warm(algorithm)
    objects.sync(fired=1)
    as_bytes.act_until_request(1)
    while as_bytes.waiting():
        way, number = as_bytes.waiting()[0]
        queue = as_bytes.up[number] if way == "up" else as_bytes.down[number]
        as_bytes.repeat(number, decode(encode(queue.popleft())))
    as_bytes.check_quiet()
    for number, client in objects.clients.items():
        assert snapshot(client) == snapshot(as_bytes.clients[number])
