"""The background: one thread with an event loop for all links of a process, and a few threads for work beside it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from laconic.runtimes.service.sharing import Sharing

T = TypeVar("T")
#: So many calls, and so many pieces of work, are under way at a time: most of them wait for a disk, not for a core.
THREADS = 16


@dataclass(frozen=True, eq=False)
class Background:
    """A loop in a thread of its own, threads for calls that may wait and for long work, and what agents share."""

    loop: asyncio.AbstractEventLoop
    pool: ThreadPoolExecutor
    works: ThreadPoolExecutor
    sharing: Sharing
    process: int

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for what it comes to."""
        return self.start(coroutine).result()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin to run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)


def heeded(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    """A task whose error nobody need ask for: links end in many ways, and whoever waits for one looks at it first."""
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return task


_first = threading.Lock()
_known: list[Background] = []


def background() -> Background:
    """The background of this process, started when first asked for; a forked process has one of its own."""
    with _first:
        if not _known or _known[-1].process != os.getpid():
            _known[:] = [_started()]
        return _known[-1]


def _started() -> Background:
    loop = asyncio.new_event_loop()
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="laconic-call")
    works = ThreadPoolExecutor(THREADS, thread_name_prefix="laconic-work")
    loop.set_default_executor(pool)
    threading.Thread(target=loop.run_forever, name="laconic-links", daemon=True).start()
    return Background(loop=loop, pool=pool, works=works, sharing=Sharing(), process=os.getpid())
