"""A federation of real clients and a real server, whose runtime, disks, links and time are simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.canonical import table_bytes
from laconic.errors import LaconicError, RemoteProtocolError
from laconic.protocol.client import Client
from laconic.protocol.codec import Codec
from laconic.protocol.digests import Held
from laconic.protocol.messages import Digested, Down, Label, Part, SetAside, Up
from laconic.protocol.outcome import BuildOnce, Outcome, Share, build_alone
from laconic.protocol.records import Record
from laconic.protocol.roster import Patience
from laconic.protocol.server import Sends, Server
from laconic.protocol.session import ClientState
from laconic.testing.simulation import hostile, invariants
from laconic.testing.simulation.failure import require
from laconic.testing.simulation.journal import Journal
from laconic.testing.simulation.links import Envelope, Link
from laconic.testing.simulation.nodes import (
    Answer,
    ClientNode,
    Compute,
    Effect,
    Keep,
    Node,
    Send,
    ServerNode,
    client_state,
    server_state,
)
from laconic.testing.simulation.schedule import Event, Schedule


class World:
    """Everything that is simulated."""

    def __init__(self, algorithm: Algorithm, schedule: Schedule) -> None:
        self.schedule = schedule
        self.plan = algorithm.plan(schedule.dim)
        self.plan_table = table_bytes(self.plan.table)
        self.codec = Codec(self.plan)
        liars = frozenset({str(schedule.clients - 1)} if schedule.hostile else ())
        self.journal = Journal(self.plan, liars=liars)
        self.patience = Patience(seconds=schedule.seconds, quorum=schedule.quorum)
        self.share: Share = BuildOnce() if schedule.shared else build_alone
        self.links: dict[int, Link] = {}
        self.now = 0.0
        self.trace: list[str] = []
        self.event = Event(0, "begin", (0, 0, 0))
        self.went_back = False  # whether the server was ever restored from an older backup
        self.lazy = False  # whether effects wait to be performed
        self.numbers = schedule.generator(2**20)  # starts, terms
        self.catalogue = np.round(schedule.generator(2**20 + 1).uniform(-1, 1, (6, schedule.dim)), 1)
        members = range(schedule.clients) if schedule.roster else ()
        self.server = ServerNode(
            machine=Server(self.plan, members=members, term=self.random_number(), patience=self.patience)
        )
        self.server.running.tick(self.now)
        self.journal.edited(self.server.running.hub)
        self.server.state = server_state(self.server.running)
        self.server.store.append(self.server.running.opened, after=self.server.state)
        self.clients = [self._client(index) for index in range(schedule.clients)]

    def _client(self, index: int) -> ClientNode:
        schedule = self.schedule
        node = ClientNode(index=index, name=str(index), hostile=schedule.hostile and index == schedule.clients - 1)
        self.begin_client(node, member=schedule.roster)
        if schedule.roster:
            node.link = self.links[index] = Link(index, index)
        return node

    def begin_client(self, node: ClientNode, *, member: bool) -> None:
        """A client without any state."""
        client = Client(
            self.plan,
            number=node.index,
            seed=self.schedule.seed,
            clients=self.schedule.clients,
            member=member,
            name=node.name,
            start=self.random_number(),
            term=self.server.running.term if member else 0,
        )
        node.machine = client
        node.store.entries = []
        node.state = client_state(client)
        node.store.append(client.born, after=node.state)

    # -- small things --------------------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.event.number} {self.event.kind}: {line}")

    def random_number(self) -> int:
        """A start or a term."""
        return int(self.numbers.integers(1, 2**40))

    def draws(self, address: int = 0) -> np.random.Generator:
        """Draws of the event under way."""
        return self.schedule.generator(self.event.number, address)

    def arms(self) -> Floats:
        """Some arms: of a catalogue, so that points repeat, and new ones."""
        draw = self.draws()
        fresh = draw.uniform(-1, 1, (2, self.schedule.dim))
        arms = np.concatenate([self.catalogue[draw.choice(6, size=2, replace=False)], fresh])
        return self._rougher(arms, draw) if self.compresses else arms

    @property
    def compresses(self) -> bool:
        """Whether points travel in few bits, and by numbers where they are known."""
        return self.plan.wire.by_reference

    def _rougher(self, points: Floats, draw: np.random.Generator) -> Floats:
        """Most points near those of the catalogue; a few beyond what the wire expects."""
        near = self.catalogue[draw.integers(6, size=len(points))] + 0.02 * draw.integers(-2, 3, points.shape)
        points = np.where(draw.random((len(points), 1)) < 0.8, near, points)
        return np.where(draw.random((len(points), 1)) < 0.02, 3.0 * points, points)

    def seen_elsewhere(self, event: Event) -> Floats:
        """Points to learn from: a few, or so many that it pays to send less than all of them."""
        if not self.compresses:
            return self.arms()[: 1 + event.pick(1, 3)]
        draw, many = self.draws(), [2, 8, 20, 40][event.pick(1, 4)]
        return self._rougher(draw.uniform(-1, 1, (many, self.schedule.dim)), draw)

    def rewards(self, points: Floats) -> list[float]:
        """A reward for each point, as it will travel unlike every other."""
        draw, taken = self.draws(1), self.journal.seen
        while True:
            rewards = draw.normal(size=len(points))
            if self.compresses:  # some need more bits
                rewards *= np.where(draw.random(len(points)) < 0.02, 64.0, 1.0)
            travels = self.plan.rounded(points, rewards)[1].tolist()
            if len(set(travels)) == len(travels) and not any(each in taken for each in travels):
                return list(map(float, rewards))

    def new_link(self, node: ClientNode) -> Link:
        """A new link of a client."""
        number = max(self.links, default=self.schedule.clients) + 1
        link = self.links[number] = Link(number, node.index)
        node.link = link
        return link

    @property
    def nodes(self) -> list[Node]:
        """The server and all clients."""
        return [self.server, *self.clients]

    # -- a client's events ---------------------------------------------------------------------------------------

    def at_client(
        self, node: ClientNode, call: Callable[[Client], Outcome[Up]], *, answer: Callable[[], None] | None = None
    ) -> Outcome[Up]:
        """Let an event happen at a client, check what must hold, and put its effects in line."""
        client = node.running
        before, session, held, version = node.state, client.session, client.session.held, client.held
        try:
            outcome = call(client)
        except LaconicError:
            require(client_state(client) == before, f"{node.name}: an event that was refused changed something")
            raise
        after = node.state = client_state(client)
        require(outcome.keep or after == before, f"{node.name}: something changed that no record keeps")
        if outcome.dropped:
            self.say(f"client {node.name} dropped it: {outcome.dropped}")
        if not node.hostile:
            invariants.check_step(node, held, client, known=self.went_back)
            invariants.check_flush(node, session, self.journal)
            if client.session.held != held:
                self.say(f"client {node.name} is in {_label(client.session.held)}{_made_of(client, version)}")
                invariants.check_mark(node, self.journal)
        behind, node.unwritten = node.unwritten, []
        self._put(node, (*behind, *outcome.keep), after)
        for message in outcome.send:
            self._post(node, message)
        self._finish(node, outcome, answer)
        return outcome

    def _put(self, node: Node, records: tuple[Record, ...], after: bytes) -> None:
        for place, record in enumerate(records):
            node.effects.append(Keep(record, after if place + 1 == len(records) else None))

    def _finish(self, node: Node, outcome: Outcome[Any], answer: Callable[[], None] | None = None) -> None:
        node.effects.extend(Compute(work) for work in outcome.compute)
        if answer is not None:
            node.effects.append(Answer(answer))
        if not self.lazy:
            self.perform(node)

    def _post(self, node: ClientNode, message: Up) -> None:
        """Put a client's message in line, with what the simulation knows of it."""
        if node.link is None:
            return
        changed = message
        draw = self.draws(7)
        if node.hostile and draw.random() < 0.4:
            changed = hostile.twisted(message, draw)
        note = None
        if isinstance(changed, Part) and changed.phase + 1 == len(self.plan.phases):
            note = self.journal.noted(node.running, changed)
        envelope = Envelope(self.codec.encode(changed), note=note, kind=type(changed).__name__)
        node.effects.append(Send(node.link.number, envelope))

    def lie(self, node: ClientNode, message: Up) -> None:
        """A hostile member sends something that its client never said."""
        assert node.link is not None
        note = None
        if isinstance(message, Part) and message.phase + 1 == len(self.plan.phases):
            note = self.journal.noted(node.running, message)
        node.link.send_up(Envelope(self.codec.encode(message), note=note, kind=type(message).__name__))

    # -- the server's events -------------------------------------------------------------------------------------

    def at_server(self, call: Callable[[Server], Outcome[Sends]]) -> Outcome[Sends]:
        """Let an event happen at the server, check what must hold, and put its effects in line."""
        server = self.server.running
        before, hub = self.server.state, server.hub
        try:
            outcome = call(server)
        except LaconicError:
            require(server.hub is hub, "an event that was refused changed the server")
            raise
        after = self.server.state = before if server.hub is hub else server_state(server)
        require(outcome.keep or after == before, "the server changed something that no record keeps")
        if outcome.dropped:
            self.say(f"the server dropped it: {outcome.dropped}")
        invariants.check_server(server, hub, outcome, self.journal)
        if server.hub.installed is not hub.installed:
            self.say(f"the server installed {_label(server.epoch)}")
        self._put(self.server, outcome.keep, after)
        for link, message in outcome.send:
            self._check_aside(link, message)
            self.server.effects.append(Send(link, Envelope(self.codec.encode(message), kind=_kind(message))))
        self._finish(self.server, outcome)
        return outcome

    def _check_aside(self, number: int, message: Down) -> None:
        """No correct client is set aside."""
        link = self.links[number]
        if isinstance(message, SetAside) and not message.final and link.pure:
            require(self.clients[link.client].hostile, f"client {link.client} was set aside: {message.reason}")

    # -- effects -------------------------------------------------------------------------------------------------

    def perform(self, node: Node, most: int = 10**9) -> None:
        """Perform effects in order."""
        while node.effects and most > 0:
            self._perform(node, node.effects.popleft())
            most -= 1

    def _perform(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Keep):
            node.store.append(effect.record, after=effect.after)
        elif isinstance(effect, Compute):
            node.works.append(effect.work)
        elif isinstance(effect, Answer):
            effect.tell()
        elif isinstance(node, ServerNode):
            self.links[effect.link].send_down(effect.envelope)
        else:
            self.links[effect.link].send_up(effect.envelope)

    def work(self, node: Node, place: int) -> None:
        """Do some work and hand back what it comes to."""
        work = node.works.pop(place % len(node.works))
        try:
            result: Any = work.result(build_alone if getattr(node, "hostile", False) else self.share)
        except LaconicError as error:
            result = error
        if isinstance(node, ServerNode):
            self.say("the server's work is done")
            self.at_server(lambda server: server.done(work, result))
        else:
            assert isinstance(node, ClientNode)
            self.say(f"client {node.name}'s work is done" + (f": {result}" if isinstance(result, Exception) else ""))
            require(node.hostile or not isinstance(result, Exception), f"client {node.name}'s work failed: {result}")
            self.at_client(node, lambda client: client.done(work, result))
            self.after_client(node)

    # -- messages ------------------------------------------------------------------------------------------------

    def arrive_up(self, link: Link, envelope: Envelope) -> None:
        """A message reaches the server."""
        if self.server.machine is None or not link.server_has:
            return
        self.say(f"{envelope.kind} of client {link.client} on link {link.number}")
        server, hub = self.server.running, self.server.running.hub
        try:
            message: Up = self.codec.decode(envelope.data)
            outcome = self.at_server(lambda server: server.receive(link.number, message))
        except RemoteProtocolError as error:
            blamed = self.clients[link.client].hostile or not link.pure
            require(blamed, f"the server refused {envelope.kind} of client {link.client}: {error}")
            self.say(f"refused: {error}")
            self.close_at_server(link)
            return
        invariants.check_welcome(message, outcome, self.plan_table)
        number = hub.links.get(link.number)
        if isinstance(message, Part) and number is not None:
            invariants.check_taken(hub, server.hub, number, message, envelope.note, self.journal)

    def arrive_down(self, link: Link, envelope: Envelope) -> None:
        """A message reaches a client."""
        node = self.clients[link.client]
        if node.machine is None or node.link is not link:
            return
        self.say(f"{envelope.kind} for client {node.name} on link {link.number}")
        message: Down = self.codec.decode(envelope.data)
        try:
            self.at_client(node, lambda client: client.receive(message))
        except RemoteProtocolError as error:
            require(node.hostile or not link.pure, f"client {node.name} refused {envelope.kind}: {error}")
            self.say(f"refused: {error}")
            self.close_at_client(node)
            return
        self.after_client(node)

    def after_client(self, node: ClientNode) -> None:
        """A client that gave up its link while it is up greets anew, on the same link or later on another."""
        if node.link is None or node.running.state is not ClientState.AWAY:
            return
        if self.event.chance(2, 0.5) and not node.link.broken:
            self.at_client(node, lambda client: client.greet())
        else:
            node.link.close_for_client()
            node.link = None

    def close_at_client(self, node: ClientNode) -> None:
        """A client's runtime gives up its link."""
        if node.link is None:
            return
        node.link.broken = True
        node.link.close_for_client()
        node.link = None
        if node.running.state is not ClientState.OUTSIDE:
            self.at_client(node, lambda client: client.lose())

    def close_at_server(self, link: Link) -> None:
        """The server's runtime gives up a link."""
        link.broken = True
        link.close_for_server()
        self.at_server(lambda server: server.lose(link.number))

    # -- checks --------------------------------------------------------------------------------------------------

    def check(self, *, numbers: bool) -> None:
        """All invariants of all clients that are up."""
        for node in self.clients:
            if node.machine is not None and not node.hostile:
                invariants.check_client(node, self.journal)
                if numbers:
                    invariants.check_mark(node, self.journal)
                    invariants.check_numbers(node, self.journal)


def _label(label: Label) -> str:
    return f"{label.number} of term {label.term:x}"


def _kind(message: Down) -> str:
    """What the trace calls a message."""
    whole = isinstance(message, Digested) and message.whole
    return type(message).__name__ + (" whole" if whole else "")


def _made_of(client: Client, before: Held | None) -> str:
    """What the version that a client holds is made of, for the trace."""
    held = client.held
    if held is None:
        return ""
    if held.atoms is None:
        return f": {held.built.length} points" + (" instead of atoms" if before and before.atoms is not None else "")
    kept = {x.tobytes() for x in held.atoms}
    old = () if before is None or before.atoms is None else before.atoms
    dropped = sum(x.tobytes() not in kept for x in old)
    return f": {len(kept)} atoms for {held.built.length} points" + (f", {dropped} dropped" if dropped else "")
