"""The diary: where events happen to a client, and no effect of one is seen before its records are durable.

Two locks: one around the client, held for as long as an event takes, and one around the store, held while records are
written. So `choose` waits for another event at most, and never for a disk. Whoever waits for its records first writes
those of all who came before it, so that many threads share a commit. If the store refuses, the client goes back to
what it was before the first event that was not written, and those who wait are told. The main thread, where Ctrl-C
comes, writes nothing itself, and leaves that to a scribe.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from laconic.errors import NotYetWritten, StateError
from laconic.protocol.client import Client
from laconic.protocol.learner import Decision
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.persistent import changed
from laconic.protocol.records import Decided, Finished, Record, encode_record
from laconic.protocol.restoring import snapshot_client
from laconic.runtimes.service.decisions import DecisionLog, Shown
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.uninterrupted import Scribe

log = logging.getLogger("laconic.agent")
#: So many decisions may wait to be written; of those beyond it only the `Decision` itself can be reported on.
MOST_WAITING = 10_000
#: Under which name a store that failed is tried.
TRIED = "tried"
CLOSED = "this agent was closed; join again"
#: So many bytes of arms may wait to be logged; a decision beyond that is made, and not in the log.
MOST_SHOWN = 2**26


@dataclass(eq=False)
class Entry:
    """An event on its way to the store."""

    records: tuple[Record, ...]
    outcome: Outcome[Up]
    link: Any  # the link that there was, on which it sends
    before: Client  # what to go back to if it cannot be written
    answered: bool = False  # whether somebody was told that it happened before it was written
    written: bool = False
    performed: bool = False  # whether its effects were seen before it was written, which only work may be
    is_over: bool = False  # whether it is written, and its effects were seen
    error: StateError | None = None
    shown: Shown | None = None  # a choice with its arms, for the log

    @property
    def decided(self) -> Decided | None:
        """The choice that was made, if it is that; nobody waits for it to be written."""
        record = self.records[0] if len(self.records) == 1 else None
        return record if isinstance(record, Decided) else None

    @property
    def is_work_done(self) -> bool:
        """Whether work was handed back, and nobody waits for that to be written."""
        return self.performed and any(isinstance(record, Finished) for record in self.records)


@dataclass(frozen=True, eq=False)
class Interrupted:
    """Entries whose writing has begun, and the number of the last record before them."""

    entries: list[Entry]
    last: int


class Diary:
    """A client with its store, for many threads. ``perform`` is given each entry once it is written, in order."""

    def __init__(
        self, client: Client, store: Store, *, perform: Callable[[Entry], None], log_decisions: int = 0
    ) -> None:
        self.client, self.store = client, store
        self.log = DecisionLog(store, most=log_decisions)
        self.link: Any = None  # the one on which events send
        self.failing: str | None = None  # why the last attempt to write failed
        self._perform, self._scribe = perform, Scribe(f"laconic-{store.name}")
        self._brief, self._disk = threading.Lock(), threading.Lock()
        self._queue: deque[Entry] = deque()
        self._shown = 0  # bytes of arms that wait
        self._interrupted: Interrupted | None = None  # what is being written, or was when an interrupt came
        self._is_closed = False  # whether the last that is ever written is on its way

    def start(self) -> None:
        """From now on have what the main thread writes written by a scribe."""
        self._scribe.start()

    # -- events --------------------------------------------------------------------------------------------------

    def choose(self, arms: Any, **options: Any) -> Decision:
        """A decision; its record is written behind it."""
        with self._brief:
            self._require_open()
            before = changed(self.client)
            decision = self.client.choose(arms, **options)
            if len(self._queue) < MOST_WAITING:
                self._queue.append(
                    Entry((decision.record,), Outcome(), None, before, shown=self._to_log(decision, arms))
                )
        return decision

    def _to_log(self, decision: Decision, arms: Any) -> Shown | None:
        if not self.log.most or self._shown > MOST_SHOWN:
            return None
        shown = Shown.of(decision, arms)
        self._shown += shown.arms.nbytes
        return shown

    def happen(
        self, event: Callable[[Client], Outcome[Up]], *, early: bool = False, linked: Callable[[], Any] | None = None
    ) -> Outcome[Up]:
        """Let an event happen, and wait until it is written; with ``early`` somebody else will write it.

        ``linked`` gives the link that there is from this event on.
        """
        with self._brief:
            entry = self._happened(event, linked=linked)
            entry.answered = early
        if not early:
            self.settle(entry)
        return entry.outcome

    def enter(self, event: Callable[[Client], Outcome[Up]]) -> Entry:
        """Let an event happen, and wait for nothing.

        One that sends nothing counts as performed: its work is pure, and may begin before what it is owed for is
        written. Nobody counts on it: if it cannot be written it did not happen, and its link ends. One that sends
        something is to be settled, by whoever can wait.
        """
        with self._brief:
            entry = self._happened(event)
            entry.performed = not entry.outcome.send
        return entry

    def _happened(self, event: Callable[[Client], Outcome[Up]], *, linked: Callable[[], Any] | None = None) -> Entry:
        self._require_open()
        before, waiting = changed(self.client), len(self._queue)
        try:
            outcome = event(self.client)
            if linked is not None:
                self.link = linked()
            entry = Entry(outcome.keep, outcome, self.link, before)
            self._queue.append(entry)
        except BaseException:  # Ctrl-C comes anywhere: what is not on its way to the store did not happen
            if len(self._queue) == waiting:
                self.client = before
            raise
        return entry

    def _require_open(self) -> None:
        """Refuse what would be written by nobody; it is looked at under the lock that events take turns by."""
        if self._is_closed:
            raise StateError(CLOSED)

    def look(self, at: Callable[[Client], Any]) -> Any:
        """Something about the client at one moment."""
        with self._brief:
            return at(self.client)

    def frozen(self) -> Client:
        """The client as it is now, for those who look at it for longer than others can wait."""
        with self._brief:
            return changed(self.client)

    # -- writing -------------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """Wait until an event is written, and its effects are seen; write it if nobody has."""
        try:
            self.store.require_held()  # a forked process has no scribe either
        except StateError:
            if not entry.is_over:  # else whoever closed the store has written it
                raise
        else:
            self._scribe.call(partial(self._settle, entry))
        if entry.error is not None:
            raise entry.error

    def _settle(self, entry: Entry) -> None:
        with self._disk:
            if not entry.written and entry.error is None:
                self._write()

    def write(self) -> None:
        """Write whatever waits."""
        self.store.require_held()
        self._scribe.call(self._write_now)

    def _write_now(self) -> None:
        with self._disk:
            self._write()
        if self.failing is not None:
            raise StateError(self.failing)

    def _write(self) -> Client:
        """Write whatever waits; the client as it was after the last of that."""
        if self._interrupted is not None:
            self._resume(self._interrupted)
        with self._brief:
            entries, client = list(self._queue), changed(self.client)
        if entries:
            self._write_all(entries)
        elif self.failing is not None and self.store.trouble is None:
            self._try_again()
        return client

    def _try_again(self) -> None:
        """Find out whether the store takes anything now: nothing waits that would show it."""
        try:
            self.store.note(TRIED, b"")
        except StateError as error:
            self.failing = str(error)
        else:
            self.failing = None

    def _write_all(self, entries: list[Entry]) -> None:
        """Write what stands at the head of the queue, where it stays until it is written and its effects are seen.

        Ctrl-C may come anywhere in between; whoever writes next goes on from there.
        """
        records = [record for entry in entries for record in entry.records]
        shown = [entry.shown for entry in entries if entry.shown is not None]
        self._interrupted = Interrupted(entries, last=self.store.last)
        try:
            if records:
                self.store.append(records, beside=self._logging(shown, records))
        except StateError as error:
            self._interrupted = None
            self._fail(error)
            return
        self._written(entries)

    def _resume(self, interrupted: Interrupted) -> None:
        """Go on where an interrupt ended the writing of some entries: what there is of them says how far it came."""
        has_records = any(entry.records for entry in interrupted.entries)
        if not has_records or self.store.look_again() > interrupted.last:
            self._written(interrupted.entries)
        self._interrupted = None

    def _written(self, entries: list[Entry]) -> None:
        if any(entry.records for entry in entries):
            self.failing = None
        for entry in entries:
            entry.written = True
            if not (entry.performed or entry.is_over):
                try:
                    self._perform(entry)
                except Exception as error:  # of our own: tried again it may fail again, and nothing more be stored
                    log.exception("what follows from an event was not done", extra={"agent": self.store.name})
                    if entry.link is not None:  # what was not sent is asked for on the next one
                        entry.link.end(f"{type(error).__name__}: {error}")
            entry.is_over = True
        with self._brief:
            while self._queue and self._queue[0].is_over:
                first = self._queue.popleft()
                self._shown -= 0 if first.shown is None else first.shown.arms.nbytes
        self._interrupted = None

    def _logging(self, shown: list[Shown], records: list[Record]) -> Callable[[sqlite3.Connection], object] | None:
        """What is written into the log of decisions with records; None where there is no log."""
        return (lambda connection: self.log.write(connection, shown, records)) if self.log.is_there else None

    def _fail(self, error: StateError) -> None:
        with self._brief:
            everything = list(self._queue)
            # Somebody counts on what was answered: that, and all before it, stays in memory and is tried again.
            stay = max((place for place, entry in enumerate(everything, start=1) if entry.answered), default=0)
            self._queue = deque(everything[:stay])
            kept = NotYetWritten(f"{error}; it happened all the same, and is tried again: do not repeat it")
            for entry in everything[:stay]:
                if not entry.answered:  # else whoever waits for it may still have to be told what was said first
                    entry.error, entry.answered = kept, True
            owed = self._go_back(everything[stay:], error) if stay < len(everything) else ()
        self.failing = str(error)
        if owed:
            self._perform(Entry((), Outcome(compute=owed), None, self.client))

    def _go_back(self, entries: list[Entry], error: StateError) -> tuple[Work, ...]:
        """Undo events, but not decisions: those were given away. Gives the work that is to be done again."""
        self.client = entries[0].before
        for entry in entries:
            if entry.decided is not None:
                self.client.learner.recall(entry.decided)
            else:
                entry.error = error
            if entry.performed and entry.link is not None:
                entry.link.end(f"what came on it could not be stored: {error}")
        decisions = [each for each in entries if each.decided is not None]
        self._queue.extend(
            Entry(each.records, Outcome(), None, changed(self.client), shown=each.shown) for each in decisions
        )
        # Whoever handed it back has gone, and a client that owes work does not greet before that is done.
        return self.client.owed if any(entry.is_work_done for entry in entries) else ()

    # -- snapshots -----------------------------------------------------------------------------------------------

    def note(self, name: str, value: bytes) -> None:
        """Note something beside the records."""
        self._scribe.call(partial(self._note, name, value))

    def _note(self, name: str, value: bytes) -> None:
        with self._disk:
            self.store.note(name, value)

    def compact(self) -> None:
        """Let a snapshot stand for all records until now; it is made beside everything else."""
        frozen, upto = self._still()
        data = encode_record(snapshot_client(frozen))
        with self._disk:
            self.store.compact(data, upto=upto)

    def _still(self) -> tuple[Client, int]:
        """The client at a moment, and the number of the last record until then, which is written.

        What happens while that is being written is not waited for: somebody who chooses all the time would never let
        this end, and nobody else could write meanwhile.
        """
        with self._disk:
            client = self._write()
            if self.failing is not None:
                raise StateError(self.failing)
            return client, self.store.last

    def close(self) -> None:
        """Write what waits, and let go of the store."""
        try:
            self._scribe.call(self._let_go)
        finally:
            self._scribe.end()

    def _let_go(self) -> None:
        with self._disk:  # SQLite crashes where it is closed in the middle of a write
            try:
                with self._brief:
                    self._is_closed = True
                self._write()
            finally:
                self.store.close()
            if self.failing is not None:
                raise StateError(self.failing)
