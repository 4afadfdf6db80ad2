"""Onlookers: those who watch a coordinator's health over gRPC, and how many of them there may be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from laconic.errors import LinkError

#: So many health streams of one certificate there may be.
MOST_STREAMS_EACH = 4


class Onlookers:
    """Those who look on, at most so many, who sleep until there is something to see; used in the loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._streams: Counter[str | None] = Counter()
        self._seen: bool | None = None  # what `look` was told of last
        self.news = asyncio.Event()  # set once there is something to see, and another then takes its place

    @property
    def count(self) -> int:
        """How many streams are open."""
        return self._streams.total()

    @contextmanager
    def watching(self, identity: str | None) -> Iterator[None]:
        """While this lasts somebody looks on.

        Raises:
            LinkError: There are too many already.
        """
        if self.count >= self._most:
            raise LinkError("there are as many health streams as are allowed")
        if identity is not None and self._streams[identity] >= MOST_STREAMS_EACH:
            raise LinkError(f"there are {MOST_STREAMS_EACH} health streams of {identity!r} already")
        self._streams[identity] += 1
        try:
            yield
        finally:
            self._streams[identity] -= 1
            self._streams += Counter()  # names that nobody looks on under any more are forgotten

    def look(self, *, ready: bool) -> None:
        """Wake them if the coordinator is no longer as it was."""
        if ready != self._seen:
            self._seen = ready
            self.wake()

    def wake(self) -> None:
        """Have all of them look again."""
        self.news.set()
        self.news = asyncio.Event()
