"""What a server is: a roster, what is installed, a log, and at most one sync under way, all as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from laconic.beliefs import Belief
from laconic.checks import require_positive, require_whole
from laconic.protocol.history import NO_CHAIN, Growing64, History
from laconic.protocol.messages import BLANK, Down, Hello, Label, Payload
from laconic.protocol.parcels import Libraries
from laconic.protocol.plan import Plan
from laconic.protocol.records import Contribution, Record


class Status(Enum):
    """How a member stands to its server."""

    PRESENT = "present"
    HELD = "held"  # it greeted anew while its part is in a sync under way, and is answered after that
    PROVING = "proving"  # it has been asked for the chain of its observations
    SLOW = "slow"  # it did not answer in time, and counts as away until it is heard again
    ASIDE = "set aside"  # it sent what no correct client sends, and is not heard until it greets anew
    AWAY = "away"  # its link is down
    LEFT = "left"


@dataclass(frozen=True)
class Patience:
    """How long a sync waits for its members, and how many must be present for one to begin."""

    seconds: float = 30.0
    quorum: int = 1

    def __post_init__(self) -> None:
        require_positive("seconds", self.seconds)
        require_whole("quorum", self.quorum, least=1)


@dataclass(frozen=True, eq=False)
class Lineage:
    """The observations of one incarnation that the server has: their hashes, and their places in the log."""

    chain: Growing64 = NO_CHAIN
    places: Growing64 = NO_CHAIN

    def upto(self, count: int) -> Lineage:
        """Those up to a number."""
        chain, places = self.chain.values[:count], self.places.values[:count]
        return Lineage(Growing64.of(chain), Growing64.of(places))


NO_LINEAGE = Lineage()


@dataclass(frozen=True, eq=False)
class Member:
    """A name on the roster."""

    name: str
    number: int
    status: Status
    link: int | None = None
    incarnation: int = 1
    lineage: Lineage = NO_LINEAGE
    past: Mapping[int, Lineage] = field(default_factory=dict)  # of earlier incarnations
    held: Label = BLANK
    base: Any = None  # the version of the digest that it holds
    hello: Hello | None = None  # its last greeting
    proved: bool = False  # whether it has sent its chain since
    libraries: Libraries | None = None  # the points that it and the server know by number

    @property
    def known(self) -> int:
        """How many of its observations the server has."""
        return len(self.lineage.chain)


@dataclass(frozen=True, eq=False)
class Installed:
    """The belief of the last sync, and what lately led to it, for those who missed something."""

    label: Label
    belief: Belief
    mark: int
    increments: tuple[tuple[Label, int, Payload], ...] = ()  # (label and mark of the belief before, what was added)


@dataclass(frozen=True, eq=False)
class Sync:
    """A sync under way, as the server sees it."""

    epoch: Label
    fired: int
    draft: Belief
    members: frozenset[int]
    awaited: frozenset[int]
    fold: Any
    opened: float | None  # when its phase began; None before anybody told the time
    phase: int = 0
    contributions: Mapping[int, Contribution] = field(default_factory=dict)  # to the phase under way
    merged: Any = None  # the result of the phase before, for those who have lost it
    results: tuple[Payload, ...] = ()


@dataclass(frozen=True, eq=False)
class Hub:
    """Everything that a server is."""

    plan: Plan
    term: int
    patience: Patience
    installed: Installed
    log: History
    edition: Any  # the newest that was built of the log; None where there is no digest
    editions: Mapping[tuple[int, int], Any] = field(default_factory=dict)  # what was sent, by number and mark
    members: Mapping[int, Member] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[int, int] = field(default_factory=dict)
    begun: int = 0  # the number of the last epoch that was begun
    sync: Sync | None = None
    requests: tuple[int, ...] = ()  # who asked for a sync that has not begun
    asks: Mapping[int, bool] = field(default_factory=dict)  # who waits for a digest; True for a flush
    owed: object | None = None  # what work is under way for
    unbuilt: object | None = None  # the log of which no edition could be built, if that is the newest
    now: float = 0.0
    knows_time: bool = False  # whether anybody has told it yet

    @property
    def clients(self) -> int:
        """How many are on the roster, without those who left."""
        return sum(member.status is not Status.LEFT for member in self.members.values())

    def present(self) -> Iterator[Member]:
        """Members who are here and up to date, in the order of their numbers."""
        return (self.members[n] for n in sorted(self.members) if self.members[n].status is Status.PRESENT)


class Turn:
    """One event under way: the next state as far as it is known, and its effects; dropped whole if the event raises."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.keep: list[Record] = []
        self.send: list[tuple[int, Down]] = []
        self.dropped: str | None = None
        self.installed: Belief | None = None

    def change(self, **fields: Any) -> None:
        """Replace some fields of the state."""
        self.hub = replace(self.hub, **fields)

    def change_member(self, number: int, **fields: Any) -> Member:
        """Replace some fields of a member."""
        member = replace(self.hub.members[number], **fields)
        self.change(members={**self.hub.members, number: member})
        return member

    def change_sync(self, **fields: Any) -> Sync:
        """Replace some fields of the sync under way."""
        assert self.hub.sync is not None
        sync = replace(self.hub.sync, **fields)
        self.change(sync=sync)
        return sync

    def tell(self, number: int, message: Down) -> None:
        """Send a message to a member, if it has a link."""
        link = self.hub.members[number].link
        if link is not None:
            self.send.append((link, message))
