"""The layout of state files: their tables, how a snapshot stands in rows, and how files of earlier layouts are read."""

from __future__ import annotations

import sqlite3

#: Marks the databases of laconic ("lcnc"), and counts up when their layout changes.
APPLICATION, FORMAT = 0x6C636E63, 2
#: A snapshot stands in rows of so many bytes at most: SQLite takes no value above 1,000,000,000.
ROW_BYTES = 2**26
#: The one snapshot that there is, in parts from 0; each of them has the number of the last record that it stands for.
_SNAPSHOT = "CREATE TABLE snapshot (part INTEGER PRIMARY KEY, number INTEGER NOT NULL, data BLOB NOT NULL)"
TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE records (number INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    _SNAPSHOT,
)


def put_snapshot(connection: sqlite3.Connection, snapshot: bytes, *, upto: int) -> None:
    """Put a snapshot in the place of the one there is, within a transaction."""
    connection.execute("DELETE FROM snapshot")
    data = memoryview(snapshot)
    for part, first in enumerate(range(0, len(data), ROW_BYTES)):
        row = (part, upto, data[first : first + ROW_BYTES])
        connection.execute("INSERT INTO snapshot VALUES (?, ?, ?)", row)


def snapshot_in(connection: sqlite3.Connection) -> bytes | None:
    """The snapshot, if there is one."""
    parts = [data for (data,) in connection.execute("SELECT data FROM snapshot ORDER BY part")]
    return b"".join(parts) if parts else None


def carry_over(connection: sqlite3.Connection) -> None:
    """Bring a file of format 1, whose snapshot is one row, to the present layout: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    before = connection.execute("SELECT number, data FROM snapshot ORDER BY number DESC LIMIT 1").fetchone()
    connection.execute("DROP TABLE snapshot")
    connection.execute(_SNAPSHOT)
    if before is not None:
        put_snapshot(connection, before[1], upto=before[0])
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute("COMMIT")
