"""The desk: where events happen to a server, one after the other, in a thread of their own.

Whatever a batch of events keeps is durable before anything that it sends goes out. If it cannot be stored, the server
is what it was before the batch, and who sent something of it is cut off, so that it greets and sends that again.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from laconic.errors import LaconicError, LocalProtocolError, MergeFailed, RemoteProtocolError, StateError
from laconic.protocol.codec import Codec
from laconic.protocol.messages import Ask, Digested, Down, Hello, Leave, Merged, Refused, SetAside
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.packing import Pieces
from laconic.protocol.records import Record, encode_record
from laconic.protocol.restoring import snapshot_server
from laconic.protocol.server import Sends, Server
from laconic.protocol.vetting import Vetted
from laconic.runtimes.service.chronicle import Chronicle
from laconic.runtimes.service.doors import LET_IN, Door
from laconic.runtimes.service.retrying import Pauses, put_off
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.traffic import Traffic

log = logging.getLogger("laconic.coordinator")
#: So many events share a commit at most.
MOST_EVENTS = 64
#: A message of so many bytes is read and checked beside other events; a smaller one is not worth another thread.
LARGE = 2**14


#: Runs calls where doors are, one after the other: to wake who waits there once takes less than once for each.
Post = Callable[[list[Callable[[], None]]], None]


@dataclass(frozen=True, eq=False)
class Arrived:
    """An event: bytes came on a link."""

    door: Door
    data: bytes
    handled: Callable[[], None]


@dataclass(frozen=True, eq=False)
class Opened:
    """An event: bytes that came were read beside other events, and what they carry was checked."""

    arrived: Arrived
    message: Any  # or the error of reading it
    vetted: Vetted | None


@dataclass(frozen=True, eq=False)
class Gone:
    """An event: a link is down."""

    door: Door


@dataclass(frozen=True, eq=False)
class Reviewed:
    """An event: which names are let in was looked at again."""


@dataclass(frozen=True, eq=False)
class Passed:
    """An event: it is this late."""

    now: float


@dataclass(frozen=True, eq=False)
class Worked:
    """An event: work is done."""

    work: Work
    result: Any


@dataclass(frozen=True, eq=False)
class Compacted:
    """An event: a snapshot is ready, or could not be made."""

    data: bytes | Exception
    upto: int


@dataclass(frozen=True, eq=False)
class Stopped:
    """An event, the last one."""


Event = Arrived | Opened | Gone | Reviewed | Passed | Worked | Compacted | Stopped


@dataclass(eq=False)
class Effects:
    """What a batch of events wants done."""

    keep: list[Record] = field(default_factory=list)
    send: list[Sends] = field(default_factory=list)
    compute: list[Work] = field(default_factory=list)
    end: list[tuple[Door, str, bool]] = field(default_factory=list)
    syncs: int = 0

    def add(self, outcome: Outcome[Sends]) -> None:
        """Add those of one event."""
        self.keep += outcome.keep
        self.send += outcome.send
        self.compute += outcome.compute
        self.syncs += outcome.installed is not None


@dataclass(eq=False)
class Counters:
    """What happened since the start."""

    syncs: int = 0
    refused: int = 0
    set_aside: int = 0
    dropped: int = 0
    failed_commits: int = 0
    failed_work: int = 0
    snapshots: int = 0
    failed_snapshots: int = 0


class Desk:
    """A server with its store."""

    def __init__(self, server: Server, store: Store, *, codec: Codec, pool: Executor, post: Post) -> None:
        self.server, self.store = server, store
        self.allowed: frozenset[str] | None = None  # None where every name is
        self.gone: frozenset[str] = frozenset()  # names that are not let in whatever is allowed
        self.traffic, self.counters = Traffic(server.plan), Counters()
        self.chronicle = Chronicle(server.plan, hub=server.hub, total=self.traffic.bytes)
        self.doors: dict[int, Door] = {}
        self.errors: list[str] = []  # the last few, for a status
        self._codec, self._pool, self._post = codec, pool, post
        self._calls: list[Callable[[], None]] = []  # what a batch of events wants called where doors are
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._again: list[Event] = []  # what must happen and could not be stored
        self._reading: dict[int, Gone | None] = {}  # links whose message is being read, and that they are down
        self._compacting = False  # whether a snapshot is being made
        self._pauses = Pauses()  # between snapshots that fail
        self._failed: str | None = None  # why no more events are handled
        self._put = self._done = 0  # how many events
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="laconic-desk", daemon=True)

    def start(self) -> None:
        """Begin to take events."""
        self._thread.start()

    def put(self, event: Event) -> None:
        """Let an event happen, in its turn; a large message is first read and checked, beside other events."""
        with self._counting:
            self._put += 1
            if isinstance(event, Gone) and event.door.number in self._reading:
                self._reading[event.door.number] = event  # it waits for what came on that link before
            elif isinstance(event, Arrived) and len(event.data) >= LARGE:
                self._reading[event.door.number] = None
                self._pool.submit(self._open, event)
            else:
                self._events.put(event)

    @property
    def trouble(self) -> str | None:
        """Why nothing more can be handled or stored before a restart; None where all is well."""
        return self._failed or self.store.trouble

    @property
    def is_busy(self) -> bool:
        """Whether events wait or are under way."""
        return self._put != self._done

    def stop(self) -> None:
        """Take what has come until now, and nothing more."""
        if self._thread.is_alive():
            self.put(Stopped())
            self._thread.join()
        try:
            if self._failed is None:  # else nobody knows whether the server is what its records say
                self._write_snapshot()
        except LaconicError as error:
            log.warning("the last snapshot was not written", extra={"reason": str(error)})
        self.store.close()

    def _write_snapshot(self) -> None:
        self.store.compact(encode_record(snapshot_server(self.server)), upto=self.store.last)

    # -- events --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._take_all()
        except BaseException as error:  # of our own, as those of events are caught
            log.exception("no more events are handled")
            self._failed = f"events are handled no more ({type(error).__name__}: {error}); start this again"
            self._note_error(self._failed)

    def _take_all(self) -> None:
        while True:
            batch: list[Event] = [self._events.get()]
            while len(batch) < MOST_EVENTS and not self._events.empty():
                batch.append(self._events.get())
            self._handle([event for event in batch if not isinstance(event, Stopped)])
            self._done += len(batch)
            if any(isinstance(event, Stopped) for event in batch):
                return

    def _handle(self, batch: list[Event]) -> None:
        if any(isinstance(event, Passed) for event in batch):
            batch, self._again = [*self._again, *batch], []
        before, effects = self.server.hub, Effects()
        for event in batch:
            self._try(event, effects)
        try:
            if effects.keep:
                self.store.append(effects.keep)
        except StateError as error:
            self.server.hub = before
            self._undo(batch, error)
        else:
            self._perform(effects)
        self._calls += [_arrival(event).handled for event in batch if isinstance(event, Arrived | Opened)]
        if self._calls:
            self._post(self._calls)
            self._calls = []

    def _open(self, event: Arrived) -> None:
        message, vetted = self._read(event), None
        try:
            vetted = None if isinstance(message, Exception) else self.server.vet(message)
        except Exception as error:  # as in an event: its sender alone pays for it
            message = error
        with self._counting:  # so that its link is down after this, if that has come, and not before
            gone = self._reading.pop(event.door.number)
            self._events.put(Opened(event, message, vetted))
            if gone is not None:
                self._events.put(gone)

    def _read(self, event: Arrived) -> Any:
        """The message in the bytes that came, or what is wrong with them."""
        try:
            return self._codec.decode(event.data)
        except Exception as error:  # whatever it is, the event tells its sender
            return error

    def _try(self, event: Event, effects: Effects) -> None:
        """Let an event happen; one that nobody foresaw to fail leaves the server as it was, and others go on."""
        try:
            self._happen(event, effects)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            log.exception("an event could not be handled")
            self._note_error(f"{type(event).__name__} could not be handled: {why}")
            if isinstance(event, Worked) and not isinstance(event.result, Exception):
                self.put(Worked(event.work, MergeFailed(why)))  # what waits for the work must hear of it

    def _happen(self, event: Event, effects: Effects) -> None:
        if isinstance(event, Arrived):
            self._arrive(Opened(event, self._read(event), None), effects)
        elif isinstance(event, Opened):
            self._arrive(event, effects)
        elif isinstance(event, Gone):
            self.doors.pop(event.door.number, None)
            effects.add(self.server.lose(event.door.number))
            self._retire(() if event.door.name is None else (event.door.name,), effects)
        elif isinstance(event, Reviewed):
            self._end_withdrawn(effects)
            self._retire(self.server.hub.numbers, effects)
        elif isinstance(event, Passed):
            effects.add(self.server.tick(event.now))
        elif isinstance(event, Worked):
            effects.add(self.server.done(event.work, event.result))
        elif isinstance(event, Compacted):
            self._compact(event)

    def lets_in(self, name: str) -> bool:
        """Whether a name may join."""
        return name not in self.gone and (self.allowed is None or name in self.allowed)

    def _end_withdrawn(self, effects: Effects) -> None:
        """End the links of those who are not let in, also where they greeted while that was being said.

        Nothing more is taken on them: who does not read what was sent before keeps a link from ending for a while.
        """
        for door in self.doors.values():
            if door.name is not None and not self.lets_in(door.name):
                effects.add(self.server.lose(door.number))
                self._end(door, f"{door.name!r} is no longer among the names that are let in", denied=True)

    def _retire(self, names: Iterable[str], effects: Effects) -> None:
        """Count those as having left that are away and not let in: nobody else could take them off the roster."""
        for name in [each for each in names if not self.lets_in(each)]:
            outcome = self.server.retire(name)
            effects.add(outcome)
            if outcome.keep:
                log.info("retired", extra={"member": name})

    def _arrive(self, event: Opened, effects: Effects) -> None:
        """Take a message; what no correct client sends ends its link, and nothing else."""
        door, message = event.arrived.door, event.message
        try:
            if isinstance(message, Exception):
                raise message
            self.traffic.record(message, direction="up", size=len(event.arrived.data))
            refusal = self._refusal(door, message) if isinstance(message, Hello) else None
            if refusal is not None:
                self._refuse(door, refusal, effects, denied=True)
                return
            outcome = self.server.receive(door.number, message, vetted=event.vetted)
        except RemoteProtocolError as error:
            self._refuse(door, str(error), effects)
            effects.add(self.server.lose(door.number))
            return
        except Exception as error:  # whatever a message brings about, it is its sender alone who pays for it
            log.exception("a message could not be handled", extra={"link": door.number, "member": door.name})
            self._refuse(door, f"{type(error).__name__}: {error}", effects)
            effects.add(self.server.lose(door.number))
            return
        self._note(door, message)
        effects.add(outcome)
        if any(link == door.number and isinstance(each, Refused) for link, each in outcome.send):
            self._refuse(door, outcome.dropped or "refused", effects, denied=True)
        elif outcome.dropped:
            self.counters.dropped += 1
            log.info("dropped", extra={"link": door.number, "member": door.name, "reason": outcome.dropped})

    def _note(self, door: Door, message: Any) -> None:
        self._tell(lambda chronicle: chronicle.arrived(door.name, message))
        if isinstance(message, Hello):
            door.name = message.name
            self.doors[door.number] = door
            log.info("greeted", extra={"link": door.number, "member": message.name, "count": message.count})
        if isinstance(message, Leave) and message.reason:
            self._note_error(f"{door.name} left: {message.reason}")
            log.warning("left", extra={"link": door.number, "member": door.name, "reason": message.reason})

    def _refusal(self, door: Door, hello: Hello) -> str | None:
        """Why a name is not let in, whatever its plan."""
        if door.identity is not None and door.identity != hello.name:
            return f"the certificate is of {door.identity!r}, and the greeting says {hello.name!r}; give its own name"
        if not self.lets_in(hello.name):
            return f"{hello.name!r} is not {LET_IN}"
        return None

    def _refuse(self, door: Door, reason: str, effects: Effects, *, denied: bool = False) -> None:
        self.counters.refused += 1
        self._note_error(f"{door.name or door.identity or 'somebody'} was refused: {reason}")
        log.warning("refused", extra={"link": door.number, "member": door.name or door.identity, "reason": reason})
        effects.end.append((door, reason, denied))

    def _note_error(self, line: str) -> None:
        self.errors = [*self.errors[-9:], line]

    # -- effects -------------------------------------------------------------------------------------------------

    def _undo(self, batch: list[Event], error: StateError) -> None:
        """Nothing of a batch happened; what its senders will not say again must happen later."""
        self.counters.failed_commits += 1
        self._note_error(str(error))
        log.error("records could not be stored", extra={"reason": str(error)})
        self._again += [event for event in batch if isinstance(event, Gone | Worked | Reviewed)]
        for event in batch:
            if isinstance(event, Arrived | Opened):
                self._end(_arrival(event).door, "the coordinator cannot store anything at the moment")

    def _tell(self, told: Callable[[Chronicle], None]) -> None:
        """Tell the chronicle; nothing hangs on it."""
        try:
            told(self.chronicle)
        except Exception:
            log.exception("the chronicle lacks something")

    def _perform(self, effects: Effects) -> None:
        self._tell(lambda chronicle: chronicle.kept(effects.keep))
        sent = [(self.doors[link], message) for link, message in effects.send if link in self.doors]
        for door, pieces, message in self._encoded(sent):
            size = sum(map(len, pieces))
            self.traffic.record(message, direction="down", size=size)
            self._calls.append(partial(door.put, pieces, answered=isinstance(message, Ask | Merged)))
            self._tell(partial(Chronicle.sent, name=door.name, message=message, size=size, hub=self.server.hub))
            if isinstance(message, SetAside):
                self._set_aside(door, message)
            elif isinstance(message, Digested):
                self.counters.syncs += 1
        for door, reason, denied in effects.end:
            self._end(door, reason, denied=denied)
        for work in effects.compute:
            self._pool.submit(self._work, work)
        if effects.syncs:
            self.counters.syncs += effects.syncs
            log.info("installed", extra={"epoch": self.server.epoch.number})
        if self.store.is_long and not self._compacting and self._pauses.is_over:
            self._compacting = True
            self._pool.submit(self._snapshot, copy(self.server), self.store.last)

    def _set_aside(self, door: Door, message: SetAside) -> None:
        """Note that a member is not heard any more; another link of its name, which ends this one, is no error."""
        log.warning("set aside", extra={"link": door.number, "member": door.name, "reason": message.reason})
        if message.final:
            self._end(door, message.reason)
            return
        self.counters.set_aside += 1
        self._note_error(f"{door.name} was set aside: {message.reason}")

    def _encoded(self, sent: list[tuple[Door, Down]]) -> list[tuple[Door, Pieces, Down]]:
        """What is to be sent, in pieces that links share: each joins them when its turn has come."""
        try:
            messages = self._codec.in_pieces([message for _, message in sent])
            return [(door, pieces, message) for (door, message), pieces in zip(sent, messages, strict=True)]
        except LocalProtocolError:  # one of them is too large
            return [(door, pieces, message) for door, message in sent for pieces in self._one(door, message)]

    def _one(self, door: Door, message: Down) -> list[Pieces]:
        try:
            return [*self._codec.in_pieces([message])]
        except LocalProtocolError as error:
            log.error("not sent", extra={"link": door.number, "member": door.name, "reason": str(error)})
            self._note_error(str(error))
            self._end(door, str(error))
            return []

    def _end(self, door: Door, reason: str, *, denied: bool = False) -> None:
        self._calls.append(partial(door.end, reason, denied=denied))

    def _work(self, work: Work) -> None:
        try:
            result: Any = work.result()
        except LaconicError as error:
            result = error
        except Exception as error:  # work must come back, or what it is owed for never ends
            log.exception("work failed")
            result = MergeFailed(f"{type(error).__name__}: {error}")
        if isinstance(result, Exception):
            self.counters.failed_work += 1
        self.put(Worked(work, result))

    # -- snapshots -----------------------------------------------------------------------------------------------

    def _snapshot(self, server: Server, upto: int) -> None:
        data: bytes | Exception
        try:
            data = encode_record(snapshot_server(server))
        except Exception as error:  # as with one that cannot be stored: it is tried again later
            data = error
        self.put(Compacted(data, upto=upto))

    def _compact(self, event: Compacted) -> None:
        self._compacting = False
        try:
            if isinstance(event.data, Exception):
                raise event.data
            self.store.compact(event.data, upto=event.upto)
        except Exception as error:
            self.counters.failed_snapshots += 1
            self._note_error(f"a snapshot could not be stored: {error}")
            put_off(self._pauses, error, log=log)
        else:
            self.counters.snapshots += 1
            self._pauses.succeed()


def _arrival(event: Arrived | Opened) -> Arrived:
    """The arrival that an event is of."""
    return event.arrived if isinstance(event, Opened) else event
