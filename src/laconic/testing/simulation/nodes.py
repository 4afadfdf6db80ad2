"""Nodes: a client or a server with its store, and its effects in the order in which a runtime performs them.

An outcome becomes effects: records first, then messages, then work, then the answer to the caller. They are performed
one by one, now or later, and a crash loses those that were not. So the simulation stops between any two of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from laconic.beliefs import Belief, belief_hash
from laconic.protocol.client import Client
from laconic.protocol.learner import Decision
from laconic.protocol.messages import NOTHING
from laconic.protocol.outcome import Work
from laconic.protocol.records import Record, encode_record
from laconic.protocol.restoring import snapshot_client, snapshot_server
from laconic.protocol.server import Server
from laconic.testing.simulation.links import Envelope, Link
from laconic.testing.simulation.stores import Store


@dataclass(frozen=True, eq=False)
class Keep:
    """Store a record; ``after`` is the state after its event, None where more records follow from the same one."""

    record: Record
    after: bytes | None


@dataclass(frozen=True, eq=False)
class Send:
    """Send a message on a link."""

    link: int
    envelope: Envelope


@dataclass(frozen=True, eq=False)
class Compute:
    """Begin some work."""

    work: Work


@dataclass(frozen=True, eq=False)
class Answer:
    """Tell the application that a call was taken."""

    tell: Callable[[], None]


Effect = Keep | Send | Compute | Answer


@dataclass(eq=False)
class Node:
    """What clients and the server have in common."""

    store: Store = field(default_factory=Store)
    effects: deque[Effect] = field(default_factory=deque)
    works: list[Work] = field(default_factory=list)
    starts: int = 0

    def forget_all(self) -> None:
        """A crash: what was only in memory is lost."""
        self.effects.clear()
        self.works.clear()


@dataclass(eq=False)
class ClientNode(Node):
    """A client, its application and its disk; ``machine`` is None while its process is down."""

    index: int = 0
    name: str = ""
    hostile: bool = False
    machine: Client | None = None
    link: Link | None = None
    dead: bool = False
    state: bytes = b""  # after its last event
    open: list[Decision] = field(default_factory=list)  # decisions whose reward the application will report
    reported: dict[str, tuple[Decision, float]] = field(default_factory=dict)  # reported, and not answered
    unwritten: list[Record] = field(default_factory=list)  # written behind, in order before the next record
    acknowledged: list[float] = field(default_factory=list)  # rewards, each of which names its observation

    @property
    def running(self) -> Client:
        """The client, which is up."""
        assert self.machine is not None
        return self.machine


@dataclass(eq=False)
class ServerNode(Node):
    """The server and its disk."""

    machine: Server | None = None
    state: bytes = b""

    @property
    def running(self) -> Server:
        """The server, which is up."""
        assert self.machine is not None
        return self.machine


def client_state(client: Client) -> bytes:
    """All that a client must not lose, bit by bit; decisions may be lost before they are written."""
    saved = snapshot_client(client)
    mark = belief_mark(client.learner.belief)
    return encode_record(msgspec.structs.replace(saved, start=mark, belief={}, starts={}, pending={}, odds={}, lost=[]))


def server_state(server: Server) -> bytes:
    """All that a server must not lose, bit by bit."""
    saved, mark = snapshot_server(server), belief_mark(server.belief)
    steps = [(label, known, NOTHING) for label, known, _ in saved.increments]
    return encode_record(msgspec.structs.replace(saved, term=mark, belief={}, increments=steps))


def belief_mark(belief: Belief) -> int:
    """The hash of a belief, which is computed once for each."""
    known = _MARKS.get(id(belief))
    if known is None or known[0] is not belief:
        if len(_MARKS) > 500:
            _MARKS.clear()
        known = _MARKS[id(belief)] = belief, belief_hash(belief)
    return known[1]


_MARKS: dict[int, tuple[Belief, int]] = {}
