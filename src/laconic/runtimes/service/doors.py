"""Doors: a coordinator's ends of links, and how many of them there may be, so that nobody locks the others out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from laconic.protocol.packing import Pieces

log = logging.getLogger("laconic.coordinator")
#: So many links of one certificate may be silent, as one of an agent is until it has greeted.
MOST_SILENT = 4
#: So many links of one certificate there may be: one that greeted, those that are silent, and those that end slowly.
MOST_EACH = 8
#: So many seconds the other end has to read what was sent before the end of a link.
FAREWELL = 10.0
#: Among which names one must be, and where they are said.
LET_IN = "among the names that this coordinator lets in (`names` without `gone` in its file, read again on SIGHUP)"
#: So often it is logged that links are refused, in seconds: whoever makes them may make many.
LOG_EVERY = 10.0


@dataclass(frozen=True, eq=False)
class Sending:
    """Something in an outbox: bytes to send, and whether they are answered with something large."""

    pieces: Pieces
    answered: bool


@dataclass(eq=False)
class Ending:
    """The last thing in an outbox: how the link ends."""

    reason: str
    denied: bool


class Door:
    """The coordinator's end of a link; used in the loop alone."""

    def __init__(self, number: int, identity: str | None) -> None:
        self.number = number
        self.identity = identity  # the name in the certificate at the other end; None where there is none
        self.name: str | None = None  # under which somebody greeted on it
        self.is_silent = True  # whether nothing came on it yet
        self.ending: Ending | None = None  # how it ends, once it is told to
        self._is_told = asyncio.Event()
        self.outbox: asyncio.Queue[Sending | Ending] = asyncio.Queue()

    def put(self, pieces: Pieces, *, answered: bool) -> None:
        """Send bytes, after all that was put before; ``answered`` if the other end sends something large then."""
        self.outbox.put_nowait(Sending(pieces, answered))

    def end(self, reason: str, *, denied: bool = False) -> None:
        """End the link, after all that was put before."""
        ending = Ending(reason, denied)
        self.ending = self.ending or ending
        self._is_told.set()
        self.outbox.put_nowait(ending)

    @property
    def is_ending(self) -> bool:
        """Whether it was told to end."""
        return self.ending is not None

    async def overdue(self) -> Ending | None:
        """How it ends, when it was told to and the other end has had its time to read what was put before."""
        await self._is_told.wait()
        await asyncio.sleep(FAREWELL)
        return self.ending


class Doors:
    """Those that are open, at most so many; used in the loop alone."""

    def __init__(self, most: int) -> None:
        self.open: set[Door] = set()
        self.refused = 0  # how many links were refused, or gave way, since the start
        self._most, self._logged = most, float("-inf")

    def admit(self, door: Door) -> str | None:
        """Open a door, for which the oldest silent one gives way if there are too many; why it stays closed, if so.

        Without a certificate nobody can tell whose a link is: then half of all may be silent.
        """
        # What was silent has nothing to send, so it is as good as over once it is told to end.
        here = [each for each in self.open if not (each.is_silent and each.is_ending)]
        reason = self._refusal(door, here)
        if reason is not None:
            self._note(door, reason)
            return reason
        silent = [each for each in here if each.is_silent and each.identity == door.identity]
        if len(silent) >= (max(1, self._most // 2) if door.identity is None else MOST_SILENT):
            oldest, why = min(silent, key=lambda each: each.number), "nobody greeted on this link, and another came"
            oldest.end(why)
            self._note(oldest, why)
        self.open.add(door)
        return None

    def _refusal(self, door: Door, here: Sequence[Door]) -> str | None:
        if len(here) >= self._most:
            return "there are as many links as are allowed"
        if door.identity is not None and sum(each.identity == door.identity for each in here) >= MOST_EACH:
            return f"there are {MOST_EACH} links of {door.identity!r} already"
        return None

    def _note(self, door: Door, reason: str) -> None:
        self.refused += 1
        if time.monotonic() - self._logged >= LOG_EVERY:
            self._logged = time.monotonic()
            log.warning("link refused", extra={"member": door.identity, "reason": reason, "refused": self.refused})
