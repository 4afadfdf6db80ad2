"""Turns: only so many links move something large at a time, so that a coordinator's memory does not grow with them."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

#: So many links have a turn at a time, and each for so many seconds at most: one whose other end does not read, or does
#: not answer, holds up nobody for longer.
AT_A_TIME, LONGEST = 24, 0.25


class Turns:
    """Who has a turn; of one event loop, and used in that alone."""

    def __init__(self, *, at_a_time: int = AT_A_TIME, longest: float = LONGEST) -> None:
        self._free, self._longest = asyncio.Semaphore(at_a_time), longest
        self._ends: dict[Hashable, asyncio.TimerHandle] = {}

    async def begin(self, who: Hashable) -> None:
        """Wait for a turn; one that ``who`` has already is over."""
        self.end(who)
        await self._free.acquire()
        self._ends[who] = asyncio.get_running_loop().call_later(self._longest, self.end, who)

    def end(self, who: Hashable) -> None:
        """A turn is over, if there is one."""
        timer = self._ends.pop(who, None)
        if timer is not None:
            timer.cancel()
            self._free.release()
