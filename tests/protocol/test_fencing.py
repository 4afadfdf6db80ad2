"""Late and repeated messages, and those of other epochs, are dropped with a reason and change nothing."""

from typing import Any

import msgspec
import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.protocol.messages import BLANK, Ask, Down, Install, Label, Merged, Part, Payload, Released, Request, Up
from laconic.protocol.server import ServerState
from laconic.protocol.session import ClientState
from laconic.runtimes.network import Delivery
from tests.protocol.federation import APPROX, DIS, Federation, every_interleaving, snapshot
from tests.protocol.test_coverage import algorithms, warm

E1, E2 = Label(0, 1), Label(0, 2)


def repeat_everything(federation: Federation) -> None:
    """Deliver all that was delivered once more, on the same link: each is dropped with a reason.

    A question that is asked again is answered again by a client that is still at it, and nothing else changes.
    """
    for number, message in federation.delivered:
        side = federation.server if isinstance(message, Up) else federation.clients[number]
        before = snapshot(side)
        if isinstance(message, Up):
            outcome: Any = federation.server.receive(number, message)
        else:
            outcome = federation.clients[number].receive(message)
        assert outcome.dropped or isinstance(message, Ask)
        assert not any(not isinstance(sent, Part) for sent in outcome.send)
        assert snapshot(side) == before


@algorithms
def test_whatever_was_delivered_is_dropped_when_it_comes_again_at_any_moment(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for _ in every_interleaving(federation, fired=1):
        repeat_everything(federation)
    federation.check_quiet()


@algorithms
def test_what_comes_on_an_older_link_is_dropped_at_any_moment(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=2)
    old, sent = federation.links[2], [each for number, each in federation.delivered if number == 2]
    federation.reconnect(2, noticed=False)
    federation.drain()
    for _ in every_interleaving(federation, fired=0):
        before = snapshot(federation.server)
        for message in sent:
            if isinstance(message, Up):
                assert "another link took its place" in (federation.server.receive(old, message).dropped or "")
        assert federation.server.lose(old).dropped
        assert snapshot(federation.server) == before
    federation.check_quiet()


@algorithms
def test_what_the_server_sent_before_it_was_greeted_is_dropped(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.sync(fired=2)
    sent = [each for number, each in federation.delivered if number == 2 and isinstance(each, Down)]
    federation.cut(2)
    for state in (ClientState.AWAY, ClientState.GREETING):
        client = federation.clients[2]
        assert client.state is state
        before = snapshot(client)
        assert all(client.receive(message).dropped for message in sent)
        assert snapshot(client) == before
        if state is ClientState.AWAY:
            federation.greet(2)
    federation.drain()
    federation.check_quiet()


def test_the_reason_says_what_came_too_late() -> None:
    federation = warm(APPROX)
    server, client = federation.server, federation.clients[1]
    late: list[tuple[str | None, str]] = [
        (client.receive(Ask(E1, 0, fired=False)).dropped, "epoch 1 is over, this client is in epoch 1"),
        (client.receive(Ask(BLANK, 0, fired=False)).dropped, "epoch 0 is over"),
        (server.receive(1, Request(BLANK)).dropped, "a sync since epoch 0 is under way or done"),
    ]
    federation.act_until_request(1)
    request = federation.up[1][0]
    federation.deliver_up(1)
    late.append((server.receive(1, request).dropped, "under way"))
    federation.deliver_down(1)
    part = federation.up[1][0]
    federation.deliver_up(1)
    late.append((server.receive(1, part).dropped, "a repeated part of phase 0"))
    federation.drain()
    late.append((server.receive(1, part).dropped, "a part for epoch 2, which is not under way"))
    late.append((client.receive(Released(E2, "")).dropped, "no part in the sync of epoch 2"))
    late.append((client.receive(Install(Label(9, 4), 0, 3, Payload())).dropped, "no sync of epoch 4 is under way here"))
    for reason, expected in late:
        assert expected in (reason or "")


@pytest.mark.parametrize("kind", [Ask, Merged, Install])
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_message_of_an_epoch_that_is_over_is_dropped_in_every_state(kind: type, epoch: int) -> None:
    federation = warm(APPROX)
    sent = [message for number, message in federation.delivered if number == 1 and isinstance(message, kind)]
    old = msgspec.structs.replace(sent[0], epoch=Label(0, epoch))
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
        federation.leave(number)
    federation.drain()
    assert federation.server.epoch == E1
    assert federation.server.hub.begun == 2
    for number in (0, 1, 2):
        federation.greet(number)
    federation.drain()
    federation.sync(fired=0)
    assert federation.server.epoch.number >= 3
    federation.check_quiet()


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
        beliefs.append(federation.server.belief.arrays())
    for key, array in beliefs[0].items():  # another order moves the last bits of a sum, and nothing else
        np.testing.assert_allclose(beliefs[1][key], array, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(beliefs[2][key], array, rtol=1e-12, atol=1e-12)


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
    late = federation.take("up", 1)
    federation.drain()
    epoch = federation.server.epoch
    assert federation.to_server(1, late).dropped
    assert federation.server.epoch == epoch
    federation.check_quiet()


@algorithms
def test_messages_may_cross_as_bytes(algorithm: Algorithm) -> None:
    objects = warm(algorithm)
    as_bytes = warm(algorithm, delivery=Delivery(through_bytes=True))
    for federation in (objects, as_bytes):
        federation.sync(fired=1)
        federation.check_quiet()
    for number, client in objects.clients.items():
        assert snapshot(client) == snapshot(as_bytes.clients[number])
