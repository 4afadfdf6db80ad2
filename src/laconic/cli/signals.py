"""The signals that end a command which runs until it is told to stop, or make it read a file again."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

#: So often the main thread looks up. Python handles signals there alone, and one that the system has given to another
#: thread, as it may, wakes nobody.
SECONDS = 0.5
#: The exit code of such a command where it can do nothing more, and only a restart can help.
FAILED = 1


class Signals:
    """Signals that came and were not waited for yet."""

    def __init__(self) -> None:
        self.came: queue.SimpleQueue[int] = queue.SimpleQueue()

    def next(self, seconds: float = float("inf")) -> int | None:
        """The next signal, waited for in the main thread; None where none comes within so many seconds."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                return self.came.get(timeout=min(left, SECONDS))
        return None


def spare(words: Sequence[str]) -> None:
    """Let SIGHUP not end a command that is to hear it, before that is read: its file is not read yet either."""
    if words and words[0] == "serve" and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


@contextmanager
def heard(*kinds: int) -> Iterator[Signals]:
    """Hear signals of these kinds until the command ends, which those that still come then do not disturb."""
    signals = Signals()
    before = {kind: signal.signal(kind, lambda number, _: signals.came.put(number)) for kind in kinds}
    try:
        yield signals
    except BaseException:  # whoever is told of it, as a test, hears what it heard before
        for kind, handler in before.items():
            signal.signal(kind, handler)
        raise
    for kind in kinds:  # Python takes back its own handlers while it ends, and a second signal would end it at once
        signal.signal(kind, signal.SIG_IGN)
