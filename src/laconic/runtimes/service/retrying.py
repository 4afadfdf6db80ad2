"""Pauses after what failed and would fail again at once: each is twice as long as the one before."""

from __future__ import annotations

import logging
import time

from laconic.errors import StateError

#: The first pause and the longest one, in seconds.
FIRST, LONGEST = 30.0, 1800.0


class Pauses:
    """When something that may fail is to be tried again; used by one thread at a time."""

    def __init__(self) -> None:
        self.seconds = 0.0  # how long the pause is; 0 where nothing failed
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it may be tried now."""
        return self.seconds == 0.0 or time.monotonic() >= self._until

    def fail(self) -> None:
        """It failed: the next pause begins."""
        self.seconds = min(max(FIRST, 2 * self.seconds), LONGEST)
        self._until = time.monotonic() + self.seconds

    def succeed(self) -> None:
        """It went well."""
        self.seconds = 0.0


def put_off(pauses: Pauses, error: Exception, *, log: logging.Logger, **about: str) -> None:
    """A snapshot could not be stored: say so, and when it is tried again, as it would fail again at once."""
    pauses.fail()
    told = {**about, "reason": str(error), "again_in_seconds": pauses.seconds}
    traceback = None if isinstance(error, StateError) else error  # a disk that fails needs none
    log.error("a snapshot could not be stored", extra=told, exc_info=traceback)
