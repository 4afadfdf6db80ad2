"""What no signal interrupts: Python raises Ctrl-C in the main thread, between any two steps, also where a lock is held.

So the main thread does nothing that must not be cut in two: it has another thread do that, and waits by a plain lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Task(Generic[T]):
    """A call, and what came of it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call, self._result, self._error = call, [], None  # type: tuple[Callable[[], T], list[T], Any]
        self._over = threading.Lock()
        self._over.acquire()

    def run(self) -> None:
        """Make the call."""
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        finally:
            self._over.release()

    def wait(self) -> T:
        """What it gives, or the error that it raises, when it is over."""
        self._over.acquire()
        if self._error is not None:
            raise self._error
        return self._result[0]


class Scribe:
    """Makes calls of the main thread in a thread of its own, one after the other; those of others where they are.

    Calls that come before it is started are made where they are.
    """

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[_Task[Any] | None] = SimpleQueue()
        self._has_begun = self._has_ended = False
        self._thread = threading.Thread(target=self._run, name=f"{name}-scribe", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._has_begun = True

    def call(self, what: Callable[[], T]) -> T:
        """Make a call; it goes on to its end where an interrupt ends the waiting for it."""
        if not self._has_begun or threading.current_thread() is not threading.main_thread():
            return what()
        task = _Task(what)
        self._tasks.put(task)
        if self._has_ended:
            self._run_rest()
        return task.wait()

    def end(self) -> None:
        """Let go of the thread once it has made the calls that came; later ones are made where they are."""
        if not self._has_begun:
            return
        self._tasks.put(None)
        self._thread.join()  # Python ends threads of this kind wherever they are

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
        self._has_ended = True  # whoever does not see that yet has put in its task before the rest is run
        self._run_rest()

    def _run_rest(self) -> None:
        with suppress(Empty):
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    task.run()


class Bell:
    """Wakes those who wait for something to hold; a `threading.Condition` stays locked where Ctrl-C meets it."""

    def __init__(self) -> None:
        self._ears: dict[int, SimpleQueue[None]] = {}

    def ring(self) -> None:
        """Let those who wait look again."""
        for ear in list(self._ears.values()):
            ear.put(None)

    def wait(self, holds: Callable[[], bool], *, until: float, look: float) -> bool:
        """Wait until something holds, or a time of the monotonic clock; ``look`` again after so many seconds anyway."""
        ear: SimpleQueue[None] = SimpleQueue()
        self._ears[id(ear)] = ear
        try:
            while not holds():
                left = until - time.monotonic()
                if left <= 0:
                    return False
                with suppress(Empty):
                    ear.get(timeout=min(left, look))
            return True
        finally:
            self._ears.pop(id(ear), None)
