"""Stores: records as bytes, in memory, and what the machine that wrote them was after each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from laconic.protocol.records import Record, decode_record, encode_record


@dataclass(frozen=True, eq=False)
class Entry:
    """A stored record; ``after`` is the state that it led to, None where that was not seen."""

    data: bytes
    after: bytes | None


@dataclass(eq=False)
class Store:
    """What survives a crash."""

    entries: list[Entry] = field(default_factory=list)
    backups: list[list[Entry]] = field(default_factory=list)

    def append(self, record: Record, *, after: bytes | None) -> None:
        """Store a record durably."""
        self.entries.append(Entry(encode_record(record), after))

    def records(self) -> Iterator[Record]:
        """All records, from their bytes."""
        return (decode_record(entry.data) for entry in self.entries)

    @property
    def state(self) -> bytes | None:
        """What a machine that is restored from here must be; None where that is not known."""
        return self.entries[-1].after

    def compact(self, snapshot: Record) -> None:
        """Let a snapshot stand for everything before it."""
        self.entries = [Entry(encode_record(snapshot), self.state)]

    def back_up(self) -> None:
        """Put a copy aside."""
        self.backups.append(list(self.entries))

    def go_back(self, draw: int) -> bool:
        """Become an older copy, or a beginning of what there is; False when that is all there is."""
        copies = [*self.backups, self.entries]
        chosen = copies[draw % len(copies)]
        length = 1 + (draw // len(copies)) % len(chosen)
        changed = chosen is not self.entries or length < len(chosen)
        self.entries = list(chosen[:length])
        return changed
