"""The signals that end a command which runs until it is told to stop, or make it read a file again."""

from __future__ import annotations

import queue
import signal
from collections.abc import Iterator
from contextlib import suppress

#: So often the main thread looks up. Python handles signals there alone, and one that the system has given to another
#: thread, as it may, wakes nobody.
SECONDS = 0.5


def heard(*kinds: int) -> Iterator[int]:
    """Hear signals of these kinds from now on; each comes in its turn to whoever iterates in the main thread."""
    came: queue.SimpleQueue[int] = queue.SimpleQueue()
    for kind in kinds:
        signal.signal(kind, lambda number, _: came.put(number))
    return _coming(came)


def _coming(came: queue.SimpleQueue[int]) -> Iterator[int]:
    while True:
        with suppress(queue.Empty):
            yield came.get(timeout=SECONDS)
