"""Every pair of a state and an event: the listed ones move as the tables say, the others change nothing."""

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from laconic.errors import LocalProtocolError, ProtocolError, UnknownDecision
from laconic.protocol import client as client_module
from laconic.protocol import server as server_module
from laconic.protocol.client import CLIENT_TRANSITIONS, Client, ClientState, Local
from laconic.protocol.messages import Ask, Install, Join, Leave, Merged, Part, Payload, Request, Up, Welcome
from laconic.protocol.server import SERVER_TRANSITIONS, Server, ServerState
from tests.protocol.federation import APPROX, Federation, snapshot

DOWN = (Ask, Merged, Install, Welcome)
UP = (Request, Part, Join, Leave)


# The tables and what the modules say of them


def drawn(module: object) -> set[tuple[str, str, str]]:
    """(from, event, to) of each arrow in a module's docstring."""
    arrow = re.compile(r"^(\w+) +--(\w+)-+> +([A-Z]+)", flags=re.MULTILINE)
    return {(a, event, b) for a, event, b in arrow.findall(module.__doc__ or "")}


def test_the_clients_table_is_what_its_module_draws() -> None:
    inside = [state.name for state in ClientState if state is not ClientState.OUTSIDE]
    expected = {
        (state, event, to) for a, event, to in drawn(client_module) for state in (inside if a == "inside" else [a])
    }
    listed = {
        (state.name, event.value if isinstance(event, Local) else event.__name__, to.name)
        for (state, event), to in CLIENT_TRANSITIONS.items()
    }
    assert listed == expected


def test_the_servers_table_is_what_its_module_draws() -> None:
    listed = {(a.name, event.__name__, b.name) for (a, event), to in SERVER_TRANSITIONS.items() for b in to}
    assert listed == drawn(server_module)


# The client


def client_in(state: ClientState) -> tuple[Federation, Client]:
    """Client 1 of three in this state, after one sync, with a point and an open decision of its own."""
    federation = Federation(APPROX, members=3)
    federation.sync()
    client = federation.clients[1]
    federation.act(1)
    federation.choose(1)
    match state:
        case ClientState.OUTSIDE:
            federation.leave(1)
        case ClientState.JOINING:
            federation.leave(1)
            federation.join(1)
        case ClientState.WAITING:
            federation.act_until_request(1)
        case ClientState.SYNCING:
            federation.act_until_request(0)
            federation.deliver_up(0)
            federation.deliver_down(1)
        case _:
            pass
    assert client.state is state
    return federation, client


def fresh(kind: type, federation: Federation, client: Client) -> object:
    """A message of this kind that a correct peer could send next to some client in the same epoch."""
    epoch, belief = client.epoch + 1, Payload(values=federation.server.belief.arrays())
    size = federation.server.belief.rank or 0
    sums = Payload(values={"gram": np.zeros((size, size)), "moment": np.zeros(size)})
    made: dict[type, Callable[[], object]] = {
        Ask: lambda: Ask(epoch=epoch, fired=False),
        Merged: lambda: Merged(epoch=epoch, phase=0, payload=Payload()),
        Install: lambda: Install(epoch=epoch, covered=len(client.history), clients=3, payload=sums),
        Welcome: lambda: Welcome(epoch=epoch, covered=0, clients=3, belief=belief, stay=client.stay),
        Request: lambda: Request(epoch=epoch),
        Part: lambda: Part(epoch=epoch, phase=0, upto=0, payload=Payload()),
        Join: lambda: Join(stay=client.stay),
        Leave: lambda: Leave(stay=client.stay),
    }
    return made[kind]()


def ready(state: ClientState, kind: type) -> tuple[Federation, Client]:
    """A client in this state; where a message ends a sync, at the sync's last phase."""
    federation, client = client_in(state)
    if (state, kind) == (ClientState.SYNCING, Install):
        client.receive(fresh(Merged, federation, client))  # type: ignore[arg-type]
    return federation, client


@pytest.mark.parametrize(("state", "kind"), list(product(ClientState, DOWN)))
def test_a_message_moves_a_client_as_listed_or_changes_nothing(state: ClientState, kind: type) -> None:
    federation, client = ready(state, kind)
    message, before = fresh(kind, federation, client), snapshot(client)
    if (state, kind) in CLIENT_TRANSITIONS:
        outcome = client.receive(message)  # type: ignore[arg-type]
        assert outcome.dropped is None
        assert client.state is CLIENT_TRANSITIONS[state, kind]
        return
    try:
        outcome = client.receive(message)  # type: ignore[arg-type]
        assert outcome.dropped
        assert not outcome.send
    except ProtocolError:
        pass
    assert snapshot(client) == before


@pytest.mark.parametrize(("state", "kind"), list(product(ClientState, UP)))
def test_a_message_for_a_server_is_refused_by_a_client(state: ClientState, kind: type) -> None:
    federation, client = client_in(state)
    before = snapshot(client)
    with pytest.raises(ProtocolError):
        client.receive(fresh(kind, federation, client))  # type: ignore[arg-type]
    assert snapshot(client) == before


@pytest.mark.parametrize(("state", "event"), list(product(ClientState, [Local.JOIN, Local.LEAVE])))
def test_joining_and_leaving_move_a_client_as_listed_or_raise(state: ClientState, event: Local) -> None:
    _, client = client_in(state)
    act, before = client.join if event is Local.JOIN else client.leave, snapshot(client)
    if (state, event) in CLIENT_TRANSITIONS:
        assert act().send
        assert client.state is CLIENT_TRANSITIONS[state, event]
        return
    with pytest.raises(LocalProtocolError):
        act()
    assert snapshot(client) == before


@pytest.mark.parametrize("state", ClientState)
def test_only_an_idle_client_asks_for_a_sync(state: ClientState) -> None:
    federation, client = client_in(state)
    federation.up[1].clear()
    for _ in range(20):
        federation.act(1)
    requests = [message for message in federation.up[1] if isinstance(message, Request)]
    assert len(requests) == (1 if state is ClientState.IDLE else 0)
    assert client.state is (ClientState.WAITING if state is ClientState.IDLE else state)


@pytest.mark.parametrize("state", ClientState)
def test_a_client_chooses_and_observes_in_every_state(state: ClientState) -> None:
    federation, client = client_in(state)
    count = len(client.history)
    federation.act(1)
    assert len(client.history) == count + 1
    federation.check(1)


@pytest.mark.parametrize("state", ClientState)
def test_a_reward_is_taken_once_in_every_state(state: ClientState) -> None:
    federation, client = client_in(state)
    decision = federation.choose(1)
    federation.observe(1, decision.id)
    before = snapshot(client)
    for unknown in (decision.id, 10**6, -1):
        with pytest.raises(UnknownDecision):
            client.observe(unknown, 1.0)
        with pytest.raises(UnknownDecision):
            client.forget(unknown)
    assert snapshot(client) == before


# The server


def server_in(state: ServerState) -> Federation:
    """A server in this state after one sync; in a sync, client 0 has sent its part."""
    federation = Federation(APPROX, members=3)
    federation.add(3, member=False)
    federation.sync()
    if state is ServerState.GATHERING:
        federation.act_until_request(0)
        federation.deliver_up(0)
        federation.deliver_down(0)
        federation.deliver_up(0)
    assert federation.server.state is state
    return federation


def from_client(kind: type, federation: Federation) -> tuple[int, Up]:
    """A message that a correct client could send now."""
    server = federation.server
    nothing = Payload(values={"points": np.empty((0, 2)), "rewards": np.empty(0)})
    upto = len(federation.clients[1].history)
    made: dict[type, tuple[int, Up]] = {
        Request: (1, Request(epoch=server.epoch)),
        Part: (1, Part(epoch=server.epoch, phase=0, upto=upto, payload=nothing)),
        Join: (3, Join(stay=1)),
        Leave: (1, Leave(stay=0)),
    }
    return made[kind]


@pytest.mark.parametrize(("state", "kind"), list(product(ServerState, UP)))
def test_a_message_moves_a_server_as_listed_or_changes_nothing(state: ServerState, kind: type) -> None:
    federation = server_in(state)
    server, (number, message) = federation.server, from_client(kind, federation)
    before = snapshot(server)
    if (state, kind) in SERVER_TRANSITIONS:
        assert server.receive(number, message).dropped is None
        assert server.state in SERVER_TRANSITIONS[state, kind]
        assert snapshot(server) != before
        return
    try:
        outcome = server.receive(number, message)
        assert outcome.dropped
        assert not outcome.send
    except ProtocolError:
        pass
    assert snapshot(server) == before


@pytest.mark.parametrize(("state", "kind"), list(product(ServerState, DOWN)))
def test_a_message_for_a_client_is_refused_by_a_server(state: ServerState, kind: type) -> None:
    federation = server_in(state)
    before = snapshot(federation.server)
    with pytest.raises(ProtocolError):
        federation.server.receive(1, fresh(kind, federation, federation.clients[1]))  # type: ignore[arg-type]
    assert snapshot(federation.server) == before


@pytest.mark.parametrize(("state", "kind"), list(product(ServerState, [Request, Part, Leave])))
def test_a_stranger_is_dropped_with_a_reason(state: ServerState, kind: type) -> None:
    federation = server_in(state)
    before = snapshot(federation.server)
    outcome = federation.server.receive(77, from_client(kind, federation)[1])
    assert "77 is not a member" in (outcome.dropped or "")
    assert snapshot(federation.server) == before


def test_every_listed_way_out_of_gathering_is_taken() -> None:
    """The second entry of each set: a part, a leave or a join that ends the sync."""
    for ending in (Part, Leave, Join):
        federation = Federation(APPROX, members=2)
        federation.sync()
        federation.act_until_request(0)
        while federation.phase != 1:
            federation.step(*federation.waiting()[0])
        federation.deliver_down(0)
        federation.deliver_up(0)
        federation.deliver_down(1)
        last = federation.up[1].popleft()
        made: dict[type, Up] = {Part: last, Leave: Leave(stay=0), Join: Join(stay=1)}
        outcome = federation.server.receive(1, made[ending])
        assert outcome.installed == 2
        assert federation.phase is None


# What cannot be built


def test_two_members_cannot_have_one_number() -> None:
    with pytest.raises(ValueError, match="same number"):
        Server(APPROX.plan(2), members=[1, 2, 1])
