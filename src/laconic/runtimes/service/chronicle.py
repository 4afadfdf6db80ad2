"""The chronicle: what happened in a federation since its coordinator was started, as the live page shows it.

It is told of records once they are durable and of messages once they are sent, and grows with neither.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from laconic.atoms.version import Version
from laconic.protocol.messages import (
    Ask,
    Digested,
    Down,
    Install,
    Label,
    Message,
    NothingNew,
    Released,
    Request,
    Upload,
)
from laconic.protocol.phases import ShareData
from laconic.protocol.plan import Plan
from laconic.protocol.records import Installed, Record, Uploaded
from laconic.protocol.roster import Hub

#: So many exchanges are shown, and so many members' rewards; a series has at most twice so many places.
EXCHANGES, CURVES, PLACES = 40, 8, 60
#: So many uploads of whomever make a stretch of everyone's rewards.
AT_ONCE = 4
#: A float64 on the paper's wire.
WIDE = 8


@dataclass(frozen=True)
class Exchange:
    """A sync that ended, or what one member was sent of the others."""

    time: float  # seconds since 1970
    number: int  # of the epoch, or of the version
    member: str | None  # who asked for it
    why: str
    members: int  # how many took part
    bytes: int
    result: str


@dataclass(eq=False)
class Series:
    """Rewards in order, as sums over stretches of time; when there are many, each two become one."""

    counts: list[int] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # at which each stretch ended
    each: int = 1  # how many additions a stretch holds
    _open: int = 0

    def add(self, rewards: np.ndarray, now: float) -> None:
        """Add rewards that came now."""
        if self._open:
            self.counts[-1] += len(rewards)
            self.sums[-1] += float(rewards.sum())
            self.times[-1] = now
        else:
            self.counts.append(len(rewards))
            self.sums.append(float(rewards.sum()))
            self.times.append(now)
        self._open = (self._open + 1) % self.each
        if len(self.counts) > 2 * PLACES and not self._open:
            self._halve()

    def _halve(self) -> None:
        even = len(self.counts) // 2 * 2
        for name in ("counts", "sums"):
            old = getattr(self, name)
            setattr(self, name, [*map(sum, zip(old[:even:2], old[1:even:2], strict=True)), *old[even:]])
        self.times = [*self.times[1:even:2], *self.times[even:]]
        self.each *= 2

    @property
    def count(self) -> int:
        """How many rewards there are."""
        return sum(self.counts)

    @property
    def mean(self) -> float:
        """The mean of them all."""
        return sum(self.sums) / max(self.count, 1)

    def points(self) -> list[tuple[float, float]]:
        """When, and the mean of the stretch that ended then."""
        return [
            (round(when, 2), total / count)
            for when, total, count in zip(self.times, self.sums, self.counts, strict=True)
            if count
        ]


class Chronicle:
    """What happened since the start; told by the desk, in its thread, and read by anybody."""

    def __init__(self, plan: Plan, *, hub: Hub, total: Callable[[], int]) -> None:
        """A chronicle of a server; ``total`` says how many bytes crossed all links until now."""
        self._plan, self._total = plan, total
        self._exchanges: deque[Exchange] = deque(maxlen=EXCHANGES)
        self._series: dict[int, Series] = {}
        self._everyone = Series(each=AT_ONCE)
        self._asked: dict[str | None, str] = {}  # why each member asked
        self._begun: tuple[int, str | None, int, int] = (-1, None, 0, 0)  # epoch, who fired, members, bytes before
        self._known = _observations(hub)  # before the start: what these cost was not counted either
        self._paper = 0.0
        self._lock = threading.Lock()
        self._ahead = time.time() - time.monotonic()  # of the start: a clock that is set does not turn curves back

    def _now(self) -> float:
        return time.monotonic() + self._ahead

    # -- what is told --------------------------------------------------------------------------------------------

    def arrived(self, name: str | None, message: Message) -> None:
        """A member sent something."""
        if isinstance(message, Request) or (isinstance(message, Upload) and message.ask):
            self._asked[name] = "flush" if message.flush else "trigger"

    def kept(self, records: Iterable[Record]) -> None:
        """Records are durable."""
        now = self._now()
        came = [(number, rewards) for record in records for number, rewards in self._rewards(record) if len(rewards)]
        with self._lock:
            for number, rewards in came:
                self._series.setdefault(number, Series()).add(rewards, now)
                self._everyone.add(rewards, now)

    def _rewards(self, record: Record) -> Iterator[tuple[int, np.ndarray]]:
        """The rewards in a record, by member, where it has them."""
        if isinstance(record, Uploaded):
            yield record.number, record.rewards
        phase = self._plan.phases[-1] if self._plan.phases else None
        if not (isinstance(record, Installed) and isinstance(phase, ShareData)):
            return
        _, rewards = phase.shown(record.results[-1], self._plan.belief.dim)
        new = {number: len(each.hashes) for number, each in sorted(record.contributions.items())}
        if sum(new.values()) == len(rewards):  # they stand in the order of members
            yield from zip(new, np.split(rewards, np.cumsum([*new.values()])[:-1]), strict=True)

    def sent(self, *, name: str | None, message: Down, size: int, hub: Hub) -> None:
        """A message went down to a member."""
        with self._lock:
            self._sent(name, message, size=size, hub=hub)

    def _sent(self, name: str | None, message: Down, *, size: int, hub: Hub) -> None:
        belief = hub.installed.belief
        if isinstance(message, Ask):
            self._begin(name, message)
        elif isinstance(message, Install):
            rank = belief.rank or 0
            self._paper += self._paper_bytes(rank, points=belief.dictionary_size or 0, clients=hub.clients)
            self._end(message.epoch.number, "installed")
        elif isinstance(message, Released) and _is_over(hub, message.epoch):
            self._end(message.epoch.number, f"given up: {message.reason}")
        elif isinstance(message, Digested):
            new = np.size(message.payload.values.get("rewards", ())) if message.raw else 0
            atoms = 0 if message.raw else atoms_in(hub) or 0
            self._paper += WIDE * new * (self._plan.belief.dim + 1)
            self._paper += self._paper_bytes(atoms, points=atoms, clients=hub.clients)
            self._answer(name, message.version, size, "points" if message.raw else f"{atoms} atoms")
        elif isinstance(message, NothingNew) and name in self._asked:  # and no digest went before it
            number = hub.numbers.get(name or "")
            held = 0 if number is None else hub.members[number].held.number
            self._answer(name, held, size, "nothing new for it")

    def _begin(self, name: str | None, message: Ask) -> None:
        number, fired, members, before = self._begun
        if message.epoch.number != number:
            fired, members, before = None, 0, self._total()
        self._begun = (message.epoch.number, name if message.fired else fired, members + 1, before)

    def _end(self, epoch: int, result: str) -> None:
        number, fired, members, before = self._begun
        if epoch == number:  # once, though every member is told
            spent, self._begun = self._total() - before, (-1, None, 0, 0)
            why = self._asked.pop(fired, "asked")
            self._exchanges.append(Exchange(self._now(), epoch, fired, why, members, spent, result))

    def _answer(self, name: str | None, version: int, size: int, result: str) -> None:
        why = self._asked.pop(name, "asked")
        self._exchanges.append(Exchange(self._now(), version, name, why, 1, size, result))

    def _paper_bytes(self, rank: int, *, points: int, clients: int) -> float:
        """What one client's part of a sync takes on the paper's wire: its share of a dictionary up, all of it down."""
        dictionary = points * (self._plan.belief.dim + 1) * (1 + 1 / max(clients, 1))
        return WIDE * (dictionary + 2 * (rank**2 + rank))

    # -- what is shown -------------------------------------------------------------------------------------------

    def view(self, hub: Hub) -> dict[str, Any]:
        """Exchanges, rewards and what others would have cost, as plain values."""
        with self._lock:
            return self._view(hub)

    def _view(self, hub: Hub) -> dict[str, Any]:
        dim, new = self._plan.belief.dim, max(0, _observations(hub) - self._known)
        raw = WIDE * (dim + 1) * new * max(hub.clients, 1)
        known = {number: each for number, each in self._series.items() if number in hub.members}
        most = sorted(known, key=lambda number: (-known[number].count, number))[:CURVES]
        return {
            "exchanges": [asdict(each) for each in reversed(list(self._exchanges))],
            "costs": {
                "sent": self._total(),
                # Without a dictionary the paper's wire is that of raw points.
                "paper": round(self._paper) if self._paper else raw,
                "raw": raw,
            },
            "rewards": {
                "count": self._everyone.count,
                "mean": self._everyone.mean if self._everyone.count else None,
                "points": self._everyone.points(),
                "means": {number: each.mean for number, each in known.items()},
                "members": [{"name": hub.members[each].name, "points": known[each].points()} for each in sorted(most)],
            },
        }


def _observations(hub: Hub) -> int:
    return sum(each.known for _, each in hub.members.items())


def _is_over(hub: Hub, epoch: Label) -> bool:
    """Whether a sync was given up; one that goes on without a member is not."""
    return hub.installed.label != epoch and (hub.sync is None or hub.sync.epoch != epoch)


def atoms_in(hub: Hub) -> int | None:
    """How many atoms the newest version has; None where there is none."""
    version = getattr(hub.edition, "outcome", None)
    return len(version.atoms) if isinstance(version, Version) else None
