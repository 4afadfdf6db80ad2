"""The tables are the mechanism: every pair of a state and an event moves as they say, or changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest

from laconic.algorithms import Algorithm
from laconic.errors import LocalProtocolError, ProtocolError, UnknownDecision
from laconic.protocol.client import Client
from laconic.protocol.messages import (
    Ask,
    Chain,
    Digested,
    Down,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Message,
    Newer,
    NothingNew,
    Part,
    Payload,
    Refused,
    Released,
    Request,
    SetAside,
    Up,
    Upload,
    Welcome,
)
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.roster import as_payload
from laconic.protocol.server import SERVER_TRANSITIONS, Done, Heard, Lost, Server, ServerState, Tick
from laconic.protocol.session import TRANSITIONS, Adopted, ClientState, Local, OwnSync, stale, stepped
from laconic.runtimes.network import SERVER
from tests.protocol.federation import APPROX, DIS, LONE, Federation, snapshot

DOWN: tuple[type, ...] = get_args(Down)
UP: tuple[type, ...] = get_args(Up)
OF_DIGESTS = (Digested, NothingNew)


# The client


def client_in(state: ClientState, algorithm: Algorithm = APPROX) -> tuple[Federation, Client]:
    """Client 1 of three in this state, after one exchange, with a point and an open decision of its own."""
    federation = Federation(algorithm, members=3)
    federation.sync()
    client = federation.clients[1]
    federation.act(1)
    federation.choose(1)
    match state:
        case ClientState.OUTSIDE:
            federation.leave(1)
        case ClientState.AWAY:
            federation.cut(1)
        case ClientState.GREETING:
            federation.cut(1)
            federation.greet(1)
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


def fresh(kind: type, federation: Federation, client: Client) -> Message:
    """A message of this kind that a correct peer could send next to some client in the same epoch."""
    held, belief = client.session.held, federation.server.belief
    epoch, size = Label(held.term, held.number + 1), belief.rank or 0
    sums = Payload(values={"gram": np.zeros((size, size)), "moment": np.zeros(size)})
    points = Payload(values={"points": np.ones((1, 2)), "rewards": np.ones(1)}, records={"runs": np.array([1], "u4")})
    known = client.learner.covered
    made: dict[type, Callable[[], Message]] = {
        Ask: lambda: Ask(epoch=epoch, phase=0, fired=False),
        Merged: lambda: Merged(epoch=epoch, phase=0, payload=Payload()),
        Install: lambda: Install(epoch=epoch, covered=client.count, clients=3, payload=sums),
        Newer: lambda: Newer(epoch=epoch, base=held, covered=known, clients=3, payload=as_payload(belief), whole=True),
        Welcome: lambda: Welcome(
            number=1, clients=3, incarnation=1, known=known, tip=client.chain.at(known), syncing=None
        ),
        Released: lambda: Released(epoch=epoch, reason="too late"),
        Digested: lambda: Digested(
            base=held.number, version=epoch.number, covered=known, clients=3, length=3, raw=True, payload=points
        ),
        NothingNew: lambda: NothingNew(known=known),
        SetAside: lambda: SetAside(reason="nonsense"),
        Refused: lambda: Refused(reason="full"),
        Request: lambda: Request(epoch=epoch),
        Part: lambda: Part(epoch=epoch, phase=0, upto=0, payload=Payload()),
        Upload: lambda: Upload(first=0, payload=Payload(), ask=True),
        Hello: lambda: Hello(name="1", plan=b"", incarnation=1, count=0, held=held, mark=0),
        Chain: lambda: Chain(payload=Payload()),
        Leave: lambda: Leave(),
    }
    return made[kind]()


def ready(state: ClientState, kind: type) -> tuple[Federation, Client]:
    """A client in this state; where a message ends a sync, at the sync's last phase."""
    federation, client = client_in(state, LONE if kind in OF_DIGESTS else APPROX)
    if (state, kind) == (ClientState.SYNCING, Install):
        federation.to_client(1, fresh(Merged, federation, client))  # type: ignore[arg-type]
    return federation, client


def pairs(kinds: tuple[type, ...]) -> list[tuple[ClientState, type]]:
    """States and messages; whoever exchanges alone is never in a sync."""
    return [
        each for each in product(ClientState, kinds) if not (each[0] is ClientState.SYNCING and each[1] in OF_DIGESTS)
    ]


@pytest.mark.parametrize(("state", "kind"), pairs(DOWN))
def test_a_message_moves_a_client_as_listed_or_changes_nothing(state: ClientState, kind: type) -> None:
    federation, client = ready(state, kind)
    message, before = fresh(kind, federation, client), snapshot(client)
    way = TRANSITIONS.get((state, kind))
    if way is not None and way.to:
        client.receive(message)  # type: ignore[arg-type]
        assert client.state in way.to
        return
    try:
        outcome = client.receive(message)  # type: ignore[arg-type]
        assert outcome.dropped
        assert not outcome.send
        assert not outcome.keep
    except ProtocolError:
        pass
    assert snapshot(client) == before


@pytest.mark.parametrize(("state", "kind"), pairs(UP))
def test_a_message_for_a_server_is_refused_by_a_client(state: ClientState, kind: type) -> None:
    federation, client = client_in(state)
    before = snapshot(client)
    with pytest.raises(ProtocolError):
        client.receive(fresh(kind, federation, client))  # type: ignore[arg-type]
    assert snapshot(client) == before


@pytest.mark.parametrize(
    ("state", "kind"),
    [(state, kind) for state, kind in product(ClientState, (Ask, Newer)) if state is not ClientState.SYNCING],
)
def test_a_client_that_exchanges_alone_takes_no_part_in_syncs(state: ClientState, kind: type) -> None:
    federation, client = client_in(state, LONE)
    before = snapshot(client)
    if state in (ClientState.IDLE, ClientState.WAITING):
        with pytest.raises(ProtocolError):
            client.receive(fresh(kind, federation, client))  # type: ignore[arg-type]
    else:
        assert client.receive(fresh(kind, federation, client)).dropped  # type: ignore[arg-type]
    assert snapshot(client) == before


ACTS: dict[Local, Callable[[Client], Outcome[Up]]] = {
    Local.GREET: Client.greet,
    Local.LOST: Client.lose,
    Local.LEAVE: Client.leave,
    Local.FLUSH: Client.flush,
}


@pytest.mark.parametrize(("state", "event"), list(product(ClientState, ACTS)))
def test_what_a_client_does_itself_moves_it_as_listed_or_raises(state: ClientState, event: Local) -> None:
    _, client = client_in(state)
    before, way = snapshot(client), TRANSITIONS.get((state, event))
    if way is not None:
        outcome = ACTS[event](client)
        assert client.state in way.to
        assert len(outcome.keep) == 1
        return
    with pytest.raises(LocalProtocolError, match=f"{state.value} cannot {event.value}"):
        ACTS[event](client)
    assert snapshot(client) == before


@pytest.mark.parametrize(("state", "event"), list(product(ClientState, Local)))
def test_the_table_alone_decides_what_its_own_events_do_to_a_session(state: ClientState, event: Local) -> None:
    _, client = client_in(state)
    session, label = client.session, Label(0, 9)
    what: dict[Local, object] = {
        Local.CONTRIBUTED: OwnSync(epoch=label, fired=False, upto=0, own=Payload()),
        Local.ADOPTED: Adopted(held=label, covered=0, clients=3),
        Local.FAILED: ValueError("a belief of nothing"),
    }
    way = TRANSITIONS.get((state, event))
    if way is None:
        with pytest.raises(LocalProtocolError):
            stepped(session, client, event, what.get(event))
    else:
        assert stepped(session, client, event, what.get(event)).session.state in way.to
    assert client.session is session


def test_a_step_that_leads_where_it_must_not_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = client_in(ClientState.IDLE)
    way = TRANSITIONS[ClientState.IDLE, Local.GREET]
    monkeypatch.setitem(TRANSITIONS, (ClientState.IDLE, Local.GREET), type(way)(way.handler, frozenset()))
    before = snapshot(client)
    with pytest.raises(LocalProtocolError, match="which is not listed"):
        client.greet()
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
    count = client.count
    federation.act(1)
    assert client.count == count + 1
    federation.check(1)


@pytest.mark.parametrize("state", ClientState)
def test_a_reward_is_taken_once_in_every_state(state: ClientState) -> None:
    federation, client = client_in(state)
    decision = federation.choose(1)
    federation.observe(1, decision.id)
    before = snapshot(client)
    for unknown in (decision.id, "7.99", "0.9999", "", "reward", "x.y"):
        with pytest.raises(UnknownDecision):
            client.observe(unknown, 1.0)
        with pytest.raises(UnknownDecision):
            client.forget(unknown)
    with pytest.raises(UnknownDecision, match="report a reward once"):
        client.observe(decision, 1.0)
    assert snapshot(client) == before


@pytest.mark.parametrize(
    ("life", "base", "version", "taken"),
    [
        ("this", 3, 1, False),  # its base was the third of a life before
        ("this", 2, 3, False),
        ("this", 3, 3, True),  # more points of the same version, or all of it anew
        ("this", 3, 4, True),
        ("before", 3, 1, True),  # the server lost later ones
    ],
)
def test_a_digest_never_takes_a_client_back_within_one_life_of_its_server(
    life: str, base: int, version: int, *, taken: bool
) -> None:
    _, client = client_in(ClientState.IDLE, LONE)
    term = client.session.term if life == "this" else client.session.term + 1
    session = replace(client.session, held=Label(term, 3))
    message = Digested(
        base=base, version=version, covered=0, clients=3, length=3, raw=True, payload=Payload(), whole=True
    )
    assert (stale(session, message) is None) is taken


def test_work_that_is_no_longer_owed_changes_nothing() -> None:
    federation, client = client_in(ClientState.IDLE)
    before = snapshot(client)
    assert client.done(Work(object(), lambda share: None), None).dropped
    assert federation.server.done(Work(object(), lambda share: None), None).dropped
    assert snapshot(client) == before


# The server

TOGETHER = (ServerState.IDLE, ServerState.GATHERING, ServerState.MERGING)
EVENTS: tuple[type, ...] = (*UP, Lost, Tick, Done, Heard)


def server_in(state: ServerState, algorithm: Algorithm) -> Federation:
    """A server in this state after one exchange; in a sync, client 0 has sent its part."""
    federation = Federation(algorithm, members=3)
    federation.add(3, member=False)
    federation.sync()
    federation.act(1)
    federation.slow.add(SERVER)
    if state in (ServerState.GATHERING, ServerState.MERGING):
        federation.act_until_request(0)
        federation.deliver_up(0)
        for number in (0,) if state is ServerState.GATHERING else (0, 1, 2):
            federation.deliver_down(number)
            federation.deliver_up(number)
    if state is ServerState.BUILDING:
        for number in (0, 2):
            federation.flush(number)
            federation.act(number)
        federation.flush(1)
        while federation.waiting() and federation.server.state is not ServerState.BUILDING:
            federation.step(*federation.waiting()[0])
    assert federation.server.state is state
    return federation


def happens(event: type, federation: Federation) -> Outcome:
    """Let something happen that a correct client, or time, could bring about now."""
    server, client = federation.server, federation.clients[1]
    sync, epoch = server.hub.sync, server.epoch
    nothing = Payload(values={"points": np.empty((0, 2)), "rewards": np.empty(0)})
    if event is Tick:
        return server.tick(1.0)
    if event is Lost:
        return server.lose(1)
    if event is Done:
        work = federation.owed[SERVER].popleft() if federation.owed[SERVER] else Work(server.hub, lambda share: None)
        return server.done(work, work.result())
    made: dict[type, tuple[int, Up]] = {
        Request: (1, Request(epoch=epoch)),
        Part: (1, Part(epoch=epoch if sync is None else sync.epoch, phase=0, upto=client.count, payload=nothing)),
        Upload: (1, Upload(first=federation.member(1).known, payload=nothing, ask=True)),
        Hello: (9, federation.clients[3].greet().send[0]),
        Chain: (1, Chain(payload=Payload(records={"hashes": client.chain.values}))),
        Leave: (1, Leave()),
    }
    return server.receive(*made[event])


def states(kinds: tuple[type, ...]) -> list[tuple[Algorithm, ServerState, type]]:
    """Each kind of server in its states, and events; what is heard of the slow has tests of its own."""
    servers = [(APPROX, state) for state in TOGETHER] + [
        (LONE, state) for state in (ServerState.IDLE, ServerState.BUILDING)
    ]
    return [(*server, kind) for server, kind in product(servers, kinds) if kind is not Heard]


@pytest.mark.parametrize(("algorithm", "state", "event"), states(EVENTS))
def test_an_event_moves_a_server_as_listed_or_changes_nothing(
    algorithm: Algorithm, state: ServerState, event: type
) -> None:
    federation = server_in(state, algorithm)
    server, before = federation.server, snapshot(federation.server)
    way = SERVER_TRANSITIONS.get((state, event))
    try:
        outcome = happens(event, federation)
    except ProtocolError:
        assert snapshot(server) == before
        assert way is None or (algorithm, event) in [(APPROX, Upload), (LONE, Request)]
        return
    if outcome.dropped and event is not Chain:
        assert snapshot(server) == before
        assert not outcome.send
        assert way is None or (state, event) == (ServerState.IDLE, Part) or event is Request  # it takes part
        return
    assert way is not None
    assert server.state in way.to


@pytest.mark.parametrize(("algorithm", "state", "kind"), states(DOWN))
def test_a_message_for_a_client_is_refused_by_a_server(algorithm: Algorithm, state: ServerState, kind: type) -> None:
    federation = server_in(state, algorithm)
    before = snapshot(federation.server)
    with pytest.raises(ProtocolError):
        federation.server.receive(1, fresh(kind, federation, federation.clients[1]))  # type: ignore[arg-type]
    assert snapshot(federation.server) == before


@pytest.mark.parametrize(("algorithm", "state", "kind"), states((Request, Part, Upload, Chain, Leave)))
def test_what_comes_on_a_link_that_nobody_greeted_on_is_dropped_with_a_reason(
    algorithm: Algorithm, state: ServerState, kind: type
) -> None:
    federation = server_in(state, algorithm)
    before, message = snapshot(federation.server), fresh(kind, federation, federation.clients[1])
    outcome = federation.server.receive(77, message)  # type: ignore[arg-type]
    assert "nobody has greeted on link 77" in (outcome.dropped or "")
    assert federation.server.lose(77).dropped
    assert snapshot(federation.server) == before


def test_every_listed_way_out_of_gathering_is_taken() -> None:
    """A part, a leave, a greeting or time that ends the last phase leads to a merge."""
    for ending in (Part, Leave, Hello, Tick):
        federation = Federation(APPROX, members=2)
        federation.sync()
        federation.slow.add(SERVER)
        federation.act_until_request(0)
        federation.deliver_up(0)
        federation.deliver_down(0)
        federation.deliver_up(0)
        federation.deliver_down(1)
        if ending is Hello:  # of a client that does not know of the sync, and has missed its first phase
            federation.deliver_up(1)
            federation.finish(SERVER)
            federation.deliver_down(0)
            federation.deliver_up(0)
            federation.server.receive(55, Hello("1", federation.clients[1].plan_table, 1, 99, Label(0, 1), 0))
        elif ending is Tick:
            federation.tick(1e9)
        else:
            federation.server.receive(1, federation.up[1][0] if ending is Part else Leave())
        assert federation.server.state is ServerState.MERGING


# What cannot be built


def test_two_members_cannot_have_one_number() -> None:
    with pytest.raises(ValueError, match="have the number 1"):
        Server(DIS.plan(2), members=[1, 2, 1])
