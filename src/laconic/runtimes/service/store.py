"""Stores: a state file holds the records of one client or one server, and a snapshot that stands for the first of them.

It is an SQLite database in WAL mode with synchronous=FULL: what was appended survives the death of the process and of
the machine. A file that is corrupt, foreign, newer or of another plan is refused, and never written to.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from laconic.canonical import table_bytes, table_from
from laconic.checks import require_name, require_one_of, require_path
from laconic.errors import LaconicError, ProtocolError, StateError
from laconic.protocol.codec import MOST_STATE_BYTES
from laconic.protocol.difference import difference
from laconic.protocol.plan import Plan
from laconic.protocol.records import Record, decode_record, encode_record
from laconic.runtimes.service.lockfile import LockFile
from laconic.runtimes.service.state_layout import APPLICATION, FORMAT, TABLES, carry_over, put_snapshot, snapshot_in

Role = Literal["agent", "coordinator"]
ROLES: tuple[Role, ...] = ("agent", "coordinator")
#: A snapshot is due when the records since the last one take more than this, and more than so many times what it takes:
#: a sync leaves a record about as large as a snapshot, which is not to be written twice each time.
LEAST_BYTES, TIMES_SNAPSHOT = 2**23, 4
#: Small records take longer to read again than their bytes: each counts as so many at least, against the snapshot once.
RECORD_BYTES = 2**11
#: What is left of the file of changes (-wal) once they are in the database.
MOST_WAL = 2**24
#: So many records are inserted by one statement; SQLite may have been built to take no more than 999 values.
ROWS = 400
#: No database has fewer bytes, but for one that nothing was written to.
SMALLEST = 512
#: After these errors SQLite has taken back the transaction, whatever the disk did; after others nobody knows.
_TAKEN_BACK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_TOOBIG)
#: What comes of reading a value that is not of its column's type, or no text where there should be some.
_UNREADABLE = (TypeError, ValueError)
#: What there is no room for ends in one of these.
_NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)


class Store:
    """The state file of one client or one server, held by one process; used by one thread at a time."""

    def __init__(self, path: str | os.PathLike[str], *, role: Role, name: str, plan: Plan | None = None) -> None:
        """Open a state file, or make a new one.

        Without a ``plan`` the one that is noted in the file is not compared, and no new file is made.
        """
        require_one_of("role", role, choices=ROLES)
        require_name("name", name)
        self.path = Path(require_path("state", path)).resolve()  # of one file, whatever links lead to it
        self.role, self.name, self.plan = role, name, plan
        self._broken: str | None = None
        self._first = self._last = 0  # the numbers of the last record that a snapshot stands for, and of the newest
        self._snapshot_bytes = self._bytes = 0  # of the snapshot, and of the records
        if plan is None and not self.path.is_file():
            raise StateError(f"there is no state file {self.path}; try the path under which it was made")
        self._lock = LockFile(self.path)
        try:
            self._connection = self._opened()
        except BaseException:
            self._lock.release()
            raise

    # -- opening -------------------------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = None
        try:
            self._lock.take_state()
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)
            self._begin(connection)
        except (sqlite3.DatabaseError, *_UNREADABLE) as error:
            if connection is not None:
                connection.close()
            if _code(error) in _NO_ROOM:
                raise StateError(f"{self.path} could not be written ({error}); {_cure(error)}") from None
            raise StateError(f"{self.path} cannot be read as a state file ({error}); {_ADVICE}") from None
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Check what there is before anything is written, then set the file up."""
        application, version = (_pragma(connection, name) for name in ("application_id", "user_version"))
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        is_new = application == 0 and version == 0 and tables == 0
        if is_new and 0 < self.path.stat().st_size < SMALLEST:  # SQLite takes it for an empty one
            raise StateError(f"{self.path} is damaged (it ends after {self.path.stat().st_size} bytes); {_ADVICE}")
        if not is_new:
            self._require_ours(connection, application, version)
        elif self.plan is None:
            raise StateError(f"{self.path} is empty; try the path under which a state file was made")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={MOST_WAL}")
        if is_new:
            self._set_up(connection)
        elif version < FORMAT:
            carry_over(connection)
        self._first = _number(connection, "SELECT max(number) FROM snapshot")
        self._last = max(self._first, _number(connection, "SELECT max(number) FROM records"))
        self._snapshot_bytes = _number(connection, "SELECT sum(length(data)) FROM snapshot")
        self._bytes = _number(connection, "SELECT sum(length(data)) FROM records")

    def _require_ours(self, connection: sqlite3.Connection, application: int, version: int) -> None:
        if application != APPLICATION:
            raise StateError(f"{self.path} is a database of another program; {_ADVICE}")
        if version > FORMAT:
            raise StateError(
                f"{self.path} was written by a newer laconic (format {version}, this one reads {FORMAT}); upgrade"
                " laconic, or give another path"
            )
        said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise StateError(f"{self.path} is damaged ({said}); {_ADVICE}")
        about = dict(connection.execute("SELECT name, value FROM about"))
        role, name = (bytes(about.get(key, b"")).decode(errors="replace") for key in ("role", "name"))
        if role != self.role:
            raise StateError(f"{self.path} is the state of {_article(role)}, not of {_article(self.role)}; {_ANOTHER}")
        if name != self.name:
            raise StateError(f"{self.path} is the state of {name!r}, not of {self.name!r}; {_ANOTHER}")
        self._require_plan(about)
        left = _number(
            connection, "SELECT count(*) FROM records WHERE number<=(SELECT coalesce(max(number), 0) FROM snapshot)"
        )
        if left:  # a snapshot comes in their place, so one of the two is not what it was
            raise StateError(f"{self.path} is damaged ({left} records are from before its snapshot); {_ADVICE}")

    def _require_plan(self, about: dict[str, bytes]) -> None:
        try:
            said = None if self.plan is None else difference(self.plan.table, table_from(about.get("plan", b"")))
        except ProtocolError as error:
            raise StateError(f"{self.path} is damaged ({error}); {_ADVICE}") from None
        if said is not None:
            raise StateError(f"{self.path} was made under another plan: {said}; give the same algorithm, or {_ANOTHER}")

    def _set_up(self, connection: sqlite3.Connection) -> None:
        assert self.plan is not None
        about = {"role": self.role, "name": self.name, "plan": table_bytes(self.plan.table)}
        connection.execute("BEGIN IMMEDIATE")
        for statement in TABLES:
            connection.execute(statement)
        values = [(key, value.encode() if isinstance(value, str) else value) for key, value in about.items()]
        connection.executemany("INSERT INTO about VALUES (?, ?)", values)
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")
        # Into the file itself: without its -wal it would else look like one that was never used.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _sync_directory(self.path.parent)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the newest record; 0 when there is none."""
        return self._last

    def records(self) -> Iterator[Record]:
        """The snapshot, if there is one, and the records after it."""
        self._require_usable()
        with self.reading():
            expected = self._first
            snapshot = snapshot_in(self._connection)
            if snapshot is not None:
                yield decode_record(snapshot)
            rows = self._connection.execute(
                "SELECT number, data FROM records WHERE number>? ORDER BY number", (expected,)
            )
            for number, data in rows:
                expected += 1
                if number != expected:
                    raise StateError(f"{self.path} lacks record {expected}; {_ADVICE}")
                yield decode_record(data)

    def about(self, name: str) -> bytes | None:
        """What was noted last under a name."""
        self._require_usable()
        with self.reading():
            row = self._connection.execute("SELECT value FROM about WHERE name=?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def has_table(self, name: str) -> bool:
        """Whether there is a table of a name."""
        self._require_usable()
        with self.reading():
            found = self._connection.execute("SELECT count(*) FROM sqlite_master WHERE name=?", (name,)).fetchone()
        return bool(found[0])

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While this lasts somebody makes sense of what the file holds; where that fails the file is damaged."""
        try:
            yield
        except StateError:
            raise
        except (sqlite3.Error, msgspec.MsgspecError, LaconicError, *_UNREADABLE) as error:
            raise StateError(f"{self.path} is damaged ({error}); {_ADVICE}") from error

    # -- writing -------------------------------------------------------------------------------------------------

    def append(
        self, records: Sequence[Record], *, beside: Callable[[sqlite3.Connection], object] | None = None
    ) -> None:
        """Store records durably, all of them or none, and with them what ``beside`` writes."""
        rows = [(self._last + place, encode_record(each)) for place, each in enumerate(records, start=1)]
        some = [rows[first : first + ROWS] for first in range(0, len(rows), ROWS)]
        if beside is None and len(some) == 1:  # one statement is a transaction by itself
            with self._writing():
                self._insert(rows)
        else:
            with self._transaction():
                for each in some:
                    self._insert(each)
                if beside is not None:
                    beside(self._connection)
        self._last += len(rows)
        self._bytes += sum(len(data) for _, data in rows)

    def look_again(self) -> int:
        """Find out what is there, after something that is no error of SQLite's interrupted; gives the last record."""
        self._require_usable()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        with self.reading():
            self._last = max(self._first, _number(self._connection, "SELECT max(number) FROM records"))
            self._bytes = _number(self._connection, "SELECT sum(length(data)) FROM records")
        return self._last

    def _insert(self, rows: list[tuple[int, bytes]]) -> None:
        """Insert rows by one statement: after each, a thread that computes elsewhere in this process may take over."""
        values = ", ".join(["(?, ?)"] * len(rows))
        self._connection.execute(f"INSERT INTO records VALUES {values}", [value for row in rows for value in row])

    def note(self, name: str, value: bytes) -> None:
        """Note something beside the records, in the place of what was noted under that name before."""
        with self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    @property
    def is_long(self) -> bool:
        """Whether there is so much since the last snapshot that another one is due."""
        is_many = (self._last - self._first) * RECORD_BYTES > max(LEAST_BYTES, self._snapshot_bytes)
        return is_many or self._bytes > max(LEAST_BYTES, TIMES_SNAPSHOT * self._snapshot_bytes)

    def compact(self, snapshot: bytes, *, upto: int) -> None:
        """Let an encoded snapshot stand for all records up to a number."""
        if len(snapshot) > MOST_STATE_BYTES:  # nobody could read it
            raise StateError(
                f"a snapshot of {len(snapshot):,} bytes is more than the {MOST_STATE_BYTES:,} that are read at most;"
                f" {self.path} stays as it is, and grows"
            )
        with self._transaction():
            put_snapshot(self._connection, snapshot, upto=upto)
            self._connection.execute("DELETE FROM records WHERE number<=?", (upto,))
        self._first, self._snapshot_bytes = upto, len(snapshot)
        self._bytes = _number(self._connection, "SELECT sum(length(data)) FROM records")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of what is done within, durable at its end, or nothing of it and an error that says why."""
        with self._writing():
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What goes wrong within is taken back, and said."""
        self._require_usable()
        self._require_there()
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:  # the latter where Python will not hand over so large a value
            self._take_back(error)
            raise StateError(
                f"{self.path} could not be written ({error}), and nothing of it was; {_cure(error)}"
            ) from error
        except BaseException:  # as Ctrl-C: what comes next must not become part of this transaction
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _take_back(self, error: Exception) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:  # SQLite has done so itself
            pass
        if not _is_too_large(error) and _code(error) not in _TAKEN_BACK:
            self._broken = f"{self.path} failed in a way that only a restart can judge ({error}); start this again"

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored before a restart; None where it can, or what failed may be tried again."""
        return self._broken

    @property
    def is_held(self) -> bool:
        """Whether this process holds the file, and was not forked from the one that does."""
        return self._lock.is_held

    def require_held(self) -> None:
        """Refuse a process that was forked from the holder, also for what writes nothing."""
        self._lock.require_held()

    def _require_usable(self) -> None:
        self.require_held()
        if self._broken is not None:
            raise StateError(self._broken)

    def _require_there(self) -> None:
        """Refuse to write where nobody would find it again."""
        lost = self._lock.lost()
        if lost is not None:
            self._broken = (
                f"{self.path} {lost} while this process had it open, and nothing can be stored there any more; put it,"
                " or a backup, in its place and start this again"
            )
            raise StateError(self._broken)

    def close(self) -> None:
        """Let go of the file; in a process that was forked from its holder this does nothing."""
        if self._lock.is_held:
            self._connection.close()
        self._broken = self._broken or f"{self.path} was closed here; open it anew"
        self._lock.release()


_ADVICE = "it was left as it is: move it away, or put a backup in its place"
_ANOTHER = "give another path"


def _article(role: str) -> str:
    return {"agent": "an agent", "coordinator": "a coordinator"}.get(role, "something else")


def _code(error: Exception) -> int | None:
    return getattr(error, "sqlite_errorcode", None)


def _is_too_large(error: Exception) -> bool:
    return isinstance(error, OverflowError) or _code(error) == sqlite3.SQLITE_TOOBIG


def _cure(error: Exception) -> str:
    if _is_too_large(error):
        return "a single value is larger than SQLite takes: give fewer points at a time"
    if _code(error) == sqlite3.SQLITE_BUSY:
        return "another program has the file locked: let it finish"
    if _code(error) in _NO_ROOM:
        return "free some space, or raise the limit on the size of files"
    return "look whether the disk is well and nobody else writes to the file, then start this again"


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0] or 0)


def _sync_directory(directory: Path) -> None:
    """Make the name of a new file durable, where the system lets one."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
