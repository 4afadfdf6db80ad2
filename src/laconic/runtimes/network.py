"""One process that holds the server and all clients, and moves their messages; the ledger counts what passes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.beliefs import Belief
from laconic.errors import LaconicError
from laconic.protocol.client import Client
from laconic.protocol.codec import Codec
from laconic.protocol.digests import Held
from laconic.protocol.known_points import PointTable
from laconic.protocol.ledger import Direction, Ledger
from laconic.protocol.messages import Digested, Down, Up
from laconic.protocol.outcome import BuildOnce, Outcome, Work
from laconic.protocol.plan import Plan
from laconic.protocol.records import Record
from laconic.protocol.roster import Patience
from laconic.protocol.server import Server
from laconic.protocol.session import TRANSITIONS, Local
from laconic.tail import Learning


@dataclass(frozen=True)
class Delivery:
    """How messages travel: first come, first served or in an order that a generator draws, as objects or through bytes.

    Each link keeps its order, as a connection does.

    Args:
        shuffle: Generator that draws which link is served next; None: the one whose message was sent first.
        through_bytes: True: every message is encoded and decoded, as on a network. False: it travels as an object.
    """

    shuffle: np.random.Generator | None = None
    through_bytes: bool = False


#: Where the server's own records and work are found, among those of clients by number.
SERVER = -1


class Network:
    """Clients and a server joined by links, one for each client; each link keeps its order, and may be cut.

    Work is done as soon as it is owed, but for members who are ``slow``. ``network.clients`` has the clients by number,
    ``network.server`` the server, and ``network.ledger`` what was sent.

    Args:
        plan: The parts that all of them run on.
        clients: How many clients there are, from 0, or their numbers.
        seed: Seed of their draws, from 0.
        ledger: Where messages are counted; None: a ledger of its own.
        delivery: How messages travel; None: as objects, first come, first served.
        share: True: what all members need is built once. False: each does its own work, as in processes of their own.
        keep: True: all records are kept, in memory.
        patience: How long a sync waits for its members, and how many must be present; None: as `Patience()` says.
        strict: True: work that fails raises. False: a member whose work fails gives up its link and greets anew.
        learning: How beliefs learn where work is shared; None: as they do by themselves.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        clients: int | Iterable[int],
        seed: int,
        ledger: Ledger | None = None,
        delivery: Delivery | None = None,
        share: bool = True,
        keep: bool = False,
        patience: Patience | None = None,
        strict: bool = False,
        learning: Learning | None = None,
    ) -> None:
        numbers = list(range(clients) if isinstance(clients, int) else clients)
        self.plan, self.seed, self.keep, self.strict = plan, seed, keep, strict
        self.server = Server(plan, members=numbers, patience=patience)
        self.server.tick(0.0)
        self.clients: dict[int, Client] = {}
        self.ledger = Ledger(plan) if ledger is None else ledger
        self.installed: list[Belief] = []  # by syncs, or where there are none by clients
        #: versions of a digest that clients came to hold, and why they are points as they are where they are
        self.downloads: list[tuple[int, Held, str]] = []
        self._why: dict[tuple[int, int], str] = {}  # by client and version, on their way
        self.up: dict[int, deque[Up]] = {}
        self.down: dict[int, deque[Down]] = {}
        self.links: dict[int, int] = {}  # each client's newest
        self._receivers: dict[int, int] = {}  # whose a link is
        self.slow: set[int] = set()
        self.owed: dict[int, deque[Work]] = defaultdict(deque)  # by those who are slow
        self.records: dict[int, list[Record]] = {SERVER: [self.server.opened]}
        self._arrived: deque[tuple[Direction, int]] = deque()  # which queues got a message, in that order
        self._codec = Codec(plan)
        self._delivery = delivery or Delivery()
        self._share = BuildOnce(learning=learning) if share else None
        self._points = PointTable(plan.belief.dim) if share else None
        for number in numbers:
            self.add(number, clients=len(numbers))

    def add(self, number: int, *, clients: int = 1, member: bool = True) -> Client:
        """One more client, with nothing observed.

        Args:
            number: Its number, which no other has; its first link has it too.
            clients: Clients N of the federation, from 1, as far as it knows yet.
            member: True: the server has it on its roster. False: it has yet to greet.
        """
        client = Client(self.plan, number=number, seed=self.seed, clients=clients, member=member, points=self._points)
        self.clients[number] = client
        self._link(number, number)
        self.up[number], self.down[number] = deque(), deque()
        self.records[number] = [client.born]
        return client

    # -- links ---------------------------------------------------------------------------------------------------

    def cut(self, number: int, *, noticed: bool = True) -> None:
        """Break a client's link: what is on its way is lost.

        Args:
            number: Number of the client.
            noticed: True: the server is told. False: it finds out when the client greets anew.
        """
        self.up[number].clear()
        self.down[number].clear()
        self._arrived = deque(each for each in self._arrived if each[1] != number)
        if TRANSITIONS.get((self.clients[number].state, Local.LOST)) is not None:
            self.post(number, self.clients[number].lose())
        if noticed:
            self.post_down(self.server.lose(self.links[number]))

    def greet(self, number: int) -> None:
        """Give a client a new link, on which it greets.

        Args:
            number: Number of the client.
        """
        self._link(number, max(*self.links.values(), *self.links) + 1)
        self.post(number, self.clients[number].greet())

    def _link(self, number: int, link: int) -> None:
        self._receivers.pop(self.links.get(number, link), None)
        self.links[number], self._receivers[link] = link, number

    def tick(self, now: float) -> None:
        """Tell the server the time.

        Args:
            now: Seconds by any clock, which never goes back.
        """
        self.post_down(self.server.tick(now))

    # -- moving messages -----------------------------------------------------------------------------------------

    def post(self, number: int, outcome: Outcome[Up]) -> None:
        """Queue what a client sends, and do what work it owes.

        Args:
            number: Number of the client.
            outcome: What one of its calls gave.
        """
        self._keep(number, outcome)
        if outcome.installed is not None and not self.plan.phases:
            self.installed.append(outcome.installed)
            held = self.clients[number].held
            if held is not None:
                self.downloads.append((number, held, self._why.pop((number, held.number), "")))
        for message, travelling in self._travelling(outcome.send):
            self._put("up", number, message, travelling)
        self._work(number, outcome.compute)

    def post_down(self, outcome: Outcome[tuple[int, Down]]) -> None:
        """Queue what the server sends, and do what work it owes.

        Args:
            outcome: What one of its calls gave.
        """
        self._keep(SERVER, outcome)
        if outcome.installed is not None:
            self.installed.append(outcome.installed)
        sent = [(self._receivers[link], message) for link, message in outcome.send if link in self._receivers]
        messages = self._travelling([message for _, message in sent])  # a link that is not there was cut
        for (number, _), (message, travelling) in zip(sent, messages, strict=True):
            self._note_why(number, message)
            self._put("down", number, message, travelling)
        self._work(SERVER, outcome.compute)

    def _note_why(self, number: int, message: Down) -> None:
        """Keep why a client is sent points as they are, which only the server knows."""
        if isinstance(message, Digested) and message.raw and self.plan.digest is not None:
            self._why[number, message.version] = self.plan.digest.why_raw(self.server.hub.edition)

    def settle(self, number: int, outcome: Outcome[Up]) -> None:
        """Deliver what a client sends and all that follows from it.

        Args:
            number: Number of the client.
            outcome: What one of its calls gave.
        """
        self.post(number, outcome)
        self.drain()

    def drain(self) -> None:
        """Deliver everything, and all that follows from it."""
        while self._arrived:
            self.deliver(*self._next())

    def deliver(self, direction: Direction, number: int) -> Outcome[Any]:
        """Hand over the oldest message of a queue."""
        message = self.take(direction, number)
        return self.to_server(number, message) if direction == "up" else self.to_client(number, message)

    def take(self, direction: Direction, number: int) -> Any:
        """Take the oldest message out of a queue."""
        self._arrived.remove((direction, number))
        return (self.up if direction == "up" else self.down)[number].popleft()

    def to_server(self, number: int, message: Up) -> Outcome[tuple[int, Down]]:
        """Hand the server a message, now."""
        outcome = self.server.receive(self.links[number], message)
        self.post_down(outcome)
        return outcome

    def to_client(self, number: int, message: Down) -> Outcome[Up]:
        """Hand a client a message, now."""
        outcome = self.clients[number].receive(message)
        self.post(number, outcome)
        return outcome

    def waiting(self) -> list[tuple[Direction, int]]:
        """The queues that are not empty, those of clients first."""
        ways: tuple[tuple[Direction, Mapping[int, deque[Any]]], ...] = (("up", self.up), ("down", self.down))
        return [(way, number) for way, queues in ways for number, queue in queues.items() if queue]

    def finish(self, who: int) -> None:
        """Do the oldest work of somebody who is slow, or of the `SERVER`."""
        self._done(who, self.owed[who].popleft())

    def _work(self, who: int, compute: tuple[Work, ...]) -> None:
        for work in compute:
            if who in self.slow:
                self.owed[who].append(work)
            else:
                self._done(who, work)

    def _done(self, who: int, work: Work) -> None:
        result = self._result(work)
        if who == SERVER:
            self.post_down(self.server.done(work, result))
        else:
            self.post(who, self.clients[who].done(work, result))

    def _result(self, work: Work) -> Any:
        try:
            return work.result() if self._share is None else work.result(self._share)
        except LaconicError as error:
            if self.strict:
                raise
            return error

    def _keep(self, who: int, outcome: Outcome[Any]) -> None:
        if self.keep:
            self.records[who] += outcome.keep

    def _travelling(self, messages: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Messages, and what arrives of each; a payload that goes to many is encoded once."""
        if not self._delivery.through_bytes:
            return zip(messages, messages, strict=True)
        return zip(messages, map(self._codec.decode, self._codec.encode_many(messages)), strict=True)

    def _put(self, direction: Direction, number: int, message: Any, travelling: Any) -> None:
        self.ledger.record(message, direction=direction, client=number)
        (self.up if direction == "up" else self.down)[number].append(travelling)
        self._arrived.append((direction, number))

    def _next(self) -> tuple[Direction, int]:
        if self._delivery.shuffle is None:
            return self._arrived[0]
        return self._arrived[int(self._delivery.shuffle.integers(len(self._arrived)))]
