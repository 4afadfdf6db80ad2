"""The log of an agent's decisions: the arms shown, the one chosen, with which probability, and what it paid.

It stands in the state file beside the records, in a table of its own that keeps the newest so many. What a decision
adds to it is written with the decision's record, behind `choose`; a reward is written with the record of `observe`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from laconic.arrays import Floats
from laconic.errors import InputError, StateError
from laconic.problems.events import Events, event_table
from laconic.protocol.learner import Decision
from laconic.protocol.records import Observed, Record
from laconic.runtimes.service.state_layout import APPLICATION
from laconic.runtimes.service.store import Store

_TABLE = """CREATE TABLE IF NOT EXISTS decisions (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
made REAL NOT NULL, arms BLOB NOT NULL, count INTEGER NOT NULL, chosen INTEGER NOT NULL, propensity REAL, error REAL,
reward REAL)"""
_FLOAT = np.dtype("<f8")


@dataclass(frozen=True, eq=False)
class Shown:
    """A decision with all arms that it was made among."""

    id: str
    made: float  # seconds since 1970
    arms: Floats  # (A, d)
    chosen: int
    propensity: float
    error: float
    reward: float | None = None

    @classmethod
    def of(cls, decision: Decision, arms: ArrayLike) -> Shown:
        """A decision that was just made; the arms are copied, as an application may go on to change its own."""
        return cls(
            id=decision.id,
            made=time.time(),
            arms=np.array(arms, dtype=_FLOAT),
            chosen=decision.arm,
            propensity=decision.propensity,
            error=decision.propensity_error,
        )

    @property
    def row(self) -> tuple[object, ...]:
        """As it stands in the table."""
        return (self.id, self.made, self.arms.tobytes(), len(self.arms), self.chosen, self.propensity, self.error)


class DecisionLog:
    """The log in a store: the newest ``most`` decisions; with 0 none are added, and those there still get rewards."""

    def __init__(self, store: Store, *, most: int) -> None:
        self.most = most
        if most:
            store.append([], beside=lambda connection: connection.execute(_TABLE))
        self.is_there = bool(most) or store.has_table("decisions")

    def write(self, connection: sqlite3.Connection, shown: Sequence[Shown], records: Sequence[Record]) -> None:
        """Add decisions, and the rewards in records, within a transaction."""
        if not self.is_there:
            return
        rewards = [(each.reward, each.id) for each in records if isinstance(each, Observed)]
        if shown:
            connection.executemany(
                "INSERT OR IGNORE INTO decisions (id, made, arms, count, chosen, propensity, error) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                [each.row for each in shown],
            )
            connection.execute(
                "DELETE FROM decisions WHERE number <= (SELECT max(number) FROM decisions) - ?", (self.most,)
            )
        connection.executemany("UPDATE decisions SET reward=? WHERE id=?", rewards)


def logged(state: str | os.PathLike[str]) -> list[Shown]:
    """The decisions in the log of a state file, in order; its agent may be running, and nothing is written to it."""
    path = Path(state).resolve()  # the -wal stands beside the file itself, whatever links lead to it
    if not path.is_file():
        raise StateError(f"there is no state file {path}; try the path that its agent was given")
    try:
        with closing(_opened(path)) as connection:
            _require_log(connection, path)
            rows = connection.execute(
                "SELECT id, made, arms, count, chosen, propensity, error, reward FROM decisions ORDER BY number"
            )
            return [_shown(row) for row in rows]
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise StateError(f"{path} cannot be read as a state file ({error}); give the state file of an agent") from None


def _opened(path: Path) -> sqlite3.Connection:
    """A state file to read; one that is closed may lie where SQLite can make no files beside it."""
    reading = f"{path.as_uri()}?mode=ro"
    connection = sqlite3.connect(reading, uri=True, timeout=10.0)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        is_in_use = path.with_name(f"{path.name}-wal").exists()
        if is_in_use or not isinstance(error, sqlite3.OperationalError):
            raise
        return sqlite3.connect(f"{reading}&immutable=1", uri=True)
    return connection


def _require_log(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size == 0:
        raise StateError(f"{path} is empty; give the state file of an agent")
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise StateError(f"{path} is a database of another program; give the state file of an agent")
    role = connection.execute("SELECT value FROM about WHERE name='role'").fetchone()
    if role == (b"coordinator",):
        raise InputError(f"{path} is the state of a coordinator, which chooses nothing; give that of an agent")
    found = connection.execute("SELECT name FROM sqlite_master WHERE name='decisions'").fetchone()
    if found is None:
        raise InputError(
            f"{path} has no log of decisions; give its agent log_decisions=100_000, the number of decisions to keep"
        )


def _shown(row: tuple[Any, ...]) -> Shown:
    name, made, data, count, chosen, propensity, error, reward = row
    arms = np.frombuffer(data, dtype=_FLOAT).reshape(count, -1)
    known = [np.nan if each is None else float(each) for each in (propensity, error)]
    return Shown(name, made, arms, chosen, known[0], known[1], reward)


def log_table(logs: Sequence[Sequence[Shown]]) -> Any:
    """The decisions of some agents whose rewards came, in the columns of `Run.log`, in the order in which they chose.

    The client of a row is the place of its agent among ``logs``.
    """
    rows = [
        (made, client, each)
        for client, log in enumerate(logs)
        # Decisions of one agent stay in order, also where its clock was set back between them.
        for made, each in zip(accumulate((each.made for each in log), max), log, strict=True)
        if each.reward is not None
    ]
    rows.sort(key=lambda row: row[:2])
    dims = sorted({each.arms.shape[1] for _, _, each in rows})
    if len(dims) > 1:
        raise InputError(f"arms have {' and '.join(map(str, dims))} features; give agents of one federation")
    shown = [each for _, _, each in rows]
    sizes = np.array([len(each.arms) for each in shown], dtype=np.int64)
    there = np.arange(sizes.max(initial=1)) < sizes[:, None]
    arms = np.zeros((*there.shape, dims[0] if dims else 0))
    if shown:
        arms[there] = np.concatenate([each.arms for each in shown])
    events = Events(
        arms=arms,
        there=there,
        chosen=np.array([each.chosen for each in shown], dtype=np.int64),
        propensity=np.array([each.propensity for each in shown], dtype=np.float64),
        reward=np.array([each.reward for each in shown], dtype=np.float64),
    )
    errors = np.array([each.error for each in shown], dtype=np.float64)
    return event_table(events, errors=errors, clients=np.array([client for _, client, _ in rows], dtype=np.int64))
