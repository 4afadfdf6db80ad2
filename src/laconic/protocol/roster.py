"""What a server is: a roster, what is installed, a log, and at most one sync under way, all as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from laconic.beliefs import Belief
from laconic.checks import require_positive, require_whole
from laconic.protocol.history import NO_CHAIN, Growing64, History
from laconic.protocol.known_points import PointTable
from laconic.protocol.messages import BLANK, Down, Hello, Label, Payload
from laconic.protocol.parcels import Libraries
from laconic.protocol.persistent import Group, Map, changed
from laconic.protocol.plan import Plan
from laconic.protocol.records import Contribution, Record
from laconic.protocol.vetting import Vetted


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
    """How long a sync waits for its members, and how many must be present for one to begin.

    Args:
        seconds: Seconds that a phase of a sync waits for parts, above 0, before it goes on without those who have not
            answered. Raising it waits longer for slow members.
        quorum: Members that must be present for a sync to begin and to go on, from 1. Raising it keeps small parts of
            a federation from going on alone.
    """

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
class Roster:
    """Everybody who ever greeted, and what is looked up of them at every event: no event looks through all members."""

    members: Map[int, Member] = field(default_factory=lambda: Map.of({}))
    numbers: Map[str, int] = field(default_factory=lambda: Map.of({}))  # by name
    links: Map[int, int] = field(default_factory=lambda: Map.of({}))  # whose each link is
    held: Group[int] = field(default_factory=Group.of)
    present: int = 0  # how many
    clients: int = 0  # how many, without those who left
    fresh: int = 0  # the number of the next newcomer

    @classmethod
    def of(cls, members: Iterable[Member]) -> Roster:
        """A roster of these."""
        roster = cls()
        for member in members:
            roster = roster.put(member)
        return roster

    def put(self, member: Member) -> Roster:
        """The roster with a member as it is now."""
        number, old = member.number, self.members.get(member.number)
        before = Status.LEFT if old is None else old.status
        after = member.status
        changes: dict[str, Any] = {"members": self.members.put(number, member)}
        if old is None:
            changes |= {"numbers": self.numbers.put(member.name, number), "fresh": max(self.fresh, number + 1)}
        if member.link != (None if old is None else old.link):
            changes["links"] = _relinked(self.links, old, member)
        if after is not before:
            changes["present"] = self.present + (after is Status.PRESENT) - (before is Status.PRESENT)
            changes["clients"] = self.clients + (before is Status.LEFT) - (after is Status.LEFT)
            changes["held"] = self.held.put(number) if after is Status.HELD else self.held.without(number)
        return changed(self, **changes)

    def covering(self, members: Iterable[Member]) -> Roster:
        """The roster when all members' observations were counted anew, and nothing else about them changed."""
        return changed(self, members=Map.of({member.number: member for member in members}))


def _relinked(links: Map[int, int], old: Member | None, new: Member) -> Map[int, int]:
    if old is not None and old.link is not None:
        links = links.without(old.link)
    return links if new.link is None else links.put(new.link, new.number)


@dataclass(frozen=True, eq=False)
class InstalledBelief:
    """The belief of the last sync, and what lately led to it, for those who missed something."""

    label: Label
    belief: Belief
    mark: int  # a hash of its bits
    increments: tuple[tuple[Label, int, Payload], ...] = ()  # (label and mark of the belief before, what was added)

    @cached_property
    def whole(self) -> Payload:
        """All of it, for those who hold nothing of it: one object, so that it is encoded once."""
        return as_payload(self.belief)


def as_payload(belief: Belief) -> Payload:
    """A whole belief; what only keeps books is not counted among its scalars."""
    arrays = belief.arrays()
    records = {name: arrays.pop(name) for name in sorted(belief.bookkeeping) if name in arrays}
    return Payload(values=arrays, records=records)


@dataclass(frozen=True, eq=False)
class Sync:
    """A sync under way, as the server sees it."""

    epoch: Label
    fired: int
    draft: Belief
    members: Group[int]
    fold: Any
    opened: float | None  # when its phase began; None before anybody told the time
    phase: int = 0
    contributions: Map[int, Contribution] = field(default_factory=lambda: Map.of({}))  # to the phase under way
    gone: int = 0  # how many contributed to it and take no part any more
    counts: Map[int, int] = field(default_factory=lambda: Map.of({}))  # how many observations each said it has
    merged: Any = None  # the result of the phase before, for those who have lost it
    results: tuple[Payload, ...] = ()

    @property
    def backing(self) -> int:
        """How many members take part, or have contributed to the phase under way."""
        return len(self.members) + self.gone

    @property
    def missing(self) -> int:
        """How many parts the phase under way waits for."""
        return self.backing - len(self.contributions)

    @property
    def awaited(self) -> frozenset[int]:
        """Whose parts the phase under way waits for."""
        return frozenset(number for number in self.members if number not in self.contributions)

    def awaits(self, number: int) -> bool:
        """Whether it waits for this member's."""
        return number in self.members and number not in self.contributions


@dataclass(frozen=True, eq=False)
class Hub:
    """Everything that a server is."""

    plan: Plan
    term: int
    patience: Patience
    installed: InstalledBelief
    log: History
    points: PointTable  # those that members and the server know by number
    edition: Any  # the newest that was built of the log; None where there is no digest
    editions: Mapping[tuple[int, int], Any] = field(default_factory=dict)  # what was sent, by number and mark
    roster: Roster = Roster()
    begun: int = 0  # the number of the last epoch that was begun
    sync: Sync | None = None
    requests: Group[int] = field(default_factory=Group.of)  # who asked for a sync that has not begun
    asks: Map[int, bool] = field(default_factory=lambda: Map.of({}))  # who waits for a digest; True for a flush
    owed: object | None = None  # what work is under way for
    unbuilt: object | None = None  # the log of which no edition could be built, if that is the newest
    now: float = 0.0
    knows_time: bool = False  # whether anybody has told it yet

    @property
    def members(self) -> Map[int, Member]:
        """Everybody on the roster, by number."""
        return self.roster.members

    @property
    def numbers(self) -> Map[str, int]:
        """Their numbers, by name."""
        return self.roster.numbers

    @property
    def links(self) -> Map[int, int]:
        """Their numbers, by link."""
        return self.roster.links

    @property
    def clients(self) -> int:
        """How many are on the roster, without those who left."""
        return self.roster.clients

    def present(self) -> list[Member]:
        """Members who are here and up to date, in the order of their numbers."""
        return [each for _, each in sorted(self.members.items()) if each.status is Status.PRESENT]


class Turn:
    """One event under way: the next state as far as it is known, and its effects; dropped whole if the event raises."""

    def __init__(self, hub: Hub, *, vetted: Vetted | None = None) -> None:
        self.before = self.hub = hub
        self.vetted = vetted  # what is known of the payload that came
        self.greeted: list[int] = []  # who greeted in this event
        self.asked: list[int] = []  # who asked for a digest in this event
        self.keep: list[Record] = []
        self.send: list[tuple[int, Down]] = []
        self.dropped: str | None = None
        self.installed: Belief | None = None

    def change(self, **fields: Any) -> None:
        """Replace some fields of the state."""
        self.hub = changed(self.hub, **fields)

    def change_member(self, number: int, **fields: Any) -> Member:
        """Replace some fields of a member."""
        member = changed(self.hub.members[number], **fields)
        self.change(roster=self.hub.roster.put(member))
        return member

    def change_sync(self, **fields: Any) -> Sync:
        """Replace some fields of the sync under way."""
        assert self.hub.sync is not None
        sync = changed(self.hub.sync, **fields)
        self.change(sync=sync)
        return sync

    def ask(self, number: int, *, flush: bool) -> None:
        """Note that a member waits for a digest."""
        self.change(asks=self.hub.asks.put(number, flush))
        self.asked.append(number)

    def tell(self, number: int, message: Down) -> None:
        """Send a message to a member, if it has a link."""
        link = self.hub.members[number].link
        if link is not None:
            self.send.append((link, message))
