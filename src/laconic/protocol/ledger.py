"""The ledger: messages, scalars and bytes by epoch, phase, direction and client, counted where messages pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from laconic.checks import require_one_of
from laconic.protocol.codec import Codec
from laconic.protocol.messages import (
    Ask,
    Chain,
    Digested,
    Hello,
    Install,
    Leave,
    Merged,
    Message,
    Newer,
    NothingNew,
    Part,
    Refused,
    Released,
    Request,
    SetAside,
    Upload,
    Welcome,
    payload_of,
)
from laconic.protocol.plan import Plan

Direction = Literal["up", "down"]
#: The epoch that a message counts towards, None where it names none, and the phase under which it counts.
Counted = tuple[int | None, str]

#: How each message is counted: a request towards the sync that it starts.
LABELS: Mapping[type[Message], Callable[[Plan, Any], Counted]] = {
    Request: lambda plan, request: (request.epoch.number + 1, "control"),
    Ask: lambda plan, ask: (ask.epoch.number, "control"),
    Released: lambda plan, released: (released.epoch.number, "control"),
    Part: lambda plan, part: (part.epoch.number, _named(plan, part.phase)),
    Merged: lambda plan, merged: (merged.epoch.number, _named(plan, merged.phase)),
    Install: lambda plan, install: (install.epoch.number, _named(plan, -1)),
    Newer: lambda plan, newer: (newer.epoch.number, "membership"),
    Upload: lambda plan, upload: (None, "upload"),
    Digested: lambda plan, digested: (None, _digest(plan)),
    NothingNew: lambda plan, nothing: (None, _digest(plan)),
    **{kind: lambda plan, greeting: (None, "greeting") for kind in (Hello, Chain, Welcome, SetAside, Refused, Leave)},
}


def _digest(plan: Plan) -> str:
    return "control" if plan.digest is None else plan.digest.name


def _named(plan: Plan, number: int) -> str:
    try:
        return plan.phases[number].name
    except IndexError:  # somebody speaks of a phase that there is not
        return "control"


class Entry(NamedTuple):
    """Messages of one kind to or from clients ``first`` … ``last``: ``scalars`` and ``bytes`` are those of each."""

    epoch: int
    phase: str
    direction: Direction
    first: int
    last: int
    messages: int
    scalars: int
    bytes: int


@dataclass(frozen=True)
class Count:
    """A sum over entries."""

    messages: int = 0
    scalars: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.messages + other.messages, self.scalars + other.scalars, self.bytes + other.bytes)


class Sizes(NamedTuple):
    """How long messages to or from many clients are, a value that many syncs may share."""

    runs: tuple[tuple[int, int, int, int], ...]  # (first, last, scalars, bytes) of clients that send alike
    total: Count

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int, int, int]]) -> Sizes:
        """The sizes of these runs of clients."""
        runs = tuple(runs)
        lengths = [last - first + 1 for first, last, _, _ in runs]
        scalars, octets = (sum(n * run[place] for n, run in zip(lengths, runs, strict=True)) for place in (2, 3))
        return cls(runs=runs, total=Count(sum(lengths), scalars, octets))


class _Mailing(NamedTuple):
    """One message for each client in one phase of a sync."""

    epoch: int
    phase: str
    direction: Direction
    sizes: Sizes

    def entries(self) -> Iterator[Entry]:
        for first, last, scalars, octets in self.sizes.runs:
            yield Entry(self.epoch, self.phase, self.direction, first, last, last - first + 1, scalars, octets)


class Ledger:
    """Counts messages as they pass; runs of clients that send alike take one entry, so that it stays small.

    Args:
        plan: The plan by which messages are encoded, and so how many bytes they have.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.codec = plan, Codec(plan)
        self._records: list[Entry | _Mailing] = []
        self._messages = self._scalars = self._bytes = 0
        self._epoch = 0  # the latest one seen

    def record(self, message: Message, *, direction: Direction, client: int) -> None:
        """Count one message.

        Args:
            message: Message that passes.
            direction: Where it goes: up, from a client to the server, or down.
            client: Number of the client that sends it or is sent it.
        """
        epoch, phase = self._label(message)
        scalars, octets = payload_of(message).scalars, self.codec.size(message)
        new = Entry(epoch, phase, direction, client, client, 1, scalars, octets)
        self._messages += 1
        self._scalars += scalars
        self._bytes += octets
        old = self._records[-1] if self._records else None
        if isinstance(old, Entry) and _continues(old, new):
            self._records[-1] = old._replace(last=client, messages=old.messages + 1)
        else:
            self._records.append(new)

    def record_mailing(self, sizes: Sizes, *, like: Message, direction: Direction) -> None:
        """Count messages to or from many clients at once.

        Args:
            sizes: How long they are, by runs of clients that send alike.
            like: One of them, which says under which epoch and phase they count.
            direction: Where they go: up, from clients to the server, or down.
        """
        epoch, phase = self._label(like)
        total = sizes.total
        self._messages += total.messages
        self._scalars += total.scalars
        self._bytes += total.bytes
        self._records.append(_Mailing(epoch, phase, direction, sizes))

    def _label(self, message: Message) -> tuple[int, str]:
        epoch, phase = LABELS[type(message)](self.plan, message)
        if epoch is None:
            return self._epoch, phase
        if epoch > self._epoch:
            self._epoch = epoch
        return epoch, phase

    @property
    def entries(self) -> list[Entry]:
        """All that was counted, in order."""
        records = self._records
        return [entry for each in records for entry in ([each] if isinstance(each, Entry) else each.entries())]

    @property
    def total(self) -> Count:
        """Everything counted so far."""
        return Count(self._messages, self._scalars, self._bytes)

    def by(self, *keys: Literal["epoch", "phase", "direction", "client"]) -> dict[tuple[int | str, ...], Count]:
        """Counts grouped by some of epoch, phase, direction and client.

        Each key of the result is a tuple with a value for each of the keys given: the number of an epoch or of a
        client, up or down, or the name of a phase or digest. Other messages count under control, greeting, membership
        or upload.

        Args:
            keys: Any of epoch, phase, direction and client, in the order wanted; without any there is one sum.

        Examples:
            >>> from laconic import Cosine, DisLinUCB, run
            >>> sent = run(DisLinUCB(D=2.0), Cosine(dim=3), clients=2, rounds=5).ledger.by("phase", "direction")
            >>> sorted(sent)
            [('control', 'down'), ('control', 'up'), ('share statistics', 'down'), ('share statistics', 'up')]
        """
        for key in keys:
            require_one_of("a key", key, choices=("epoch", "phase", "direction", "client"))
        groups: dict[tuple[int | str, ...], Count] = {}
        for entry in self.entries:
            for address, count in _expanded(entry, keys):
                groups[address] = groups.get(address, Count()) + count
        return groups


def _continues(old: Entry, new: Entry) -> bool:
    return old.last + 1 == new.first and old[:3] == new[:3] and old[6:] == new[6:]


def _expanded(entry: Entry, keys: tuple[str, ...]) -> Iterator[tuple[tuple[int | str, ...], Count]]:
    clients = range(entry.first, entry.last + 1) if "client" in keys else [entry.first]
    each = 1 if "client" in keys else entry.messages
    for client in clients:
        fields: dict[str, int | str] = {
            "epoch": entry.epoch,
            "phase": entry.phase,
            "direction": entry.direction,
            "client": client,
        }
        yield tuple(fields[key] for key in keys), Count(each, each * entry.scalars, each * entry.bytes)
