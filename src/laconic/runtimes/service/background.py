"""The background: one thread with an event loop for all links of a process, one for messages, and a few beside them."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from laconic.errors import LinkError
from laconic.runtimes.service.sharing import Sharing

T = TypeVar("T")
#: So many calls that wait are under way at a time, most of them for a disk.
CALLS = 16
#: So many pieces of long work are under way at a time: more threads than cores only take Python's lock from each other.
WORKS = max(2, os.cpu_count() or 1)
#: What gRPC's threads held when a process was forked is held in the child for ever: who asks gRPC for anything hangs.
FORKED = (
    "this process was forked from one that had an agent or a coordinator, and gets no link: join first after the fork, "
    "or begin processes anew (multiprocessing: spawn)"
)


@dataclass(frozen=True, eq=False)
class Background:
    """A loop in a thread of its own, other threads beside it, and what agents share.

    Attributes:
        loop: The loop.
        hand: One thread, which takes the messages of all links: if each had its own they would take Python's lock from
            each other, which takes longer than what they do.
        works: Threads for work that takes long.
        pool: Threads for calls that wait.
        sharing: What agents share.
        process: The process that this belongs to.
        is_forked: Whether this process is a fork of one that had a background.
    """

    loop: asyncio.AbstractEventLoop
    hand: ThreadPoolExecutor
    works: ThreadPoolExecutor
    pool: ThreadPoolExecutor
    sharing: Sharing
    process: int
    is_forked: bool

    def require_links(self, otherwise: str = "") -> None:
        """Refuse links in a process that was forked from one with a background, and say what to do ``otherwise``."""
        if self.is_forked:
            raise LinkError(f"{FORKED}; {otherwise}" if otherwise else FORKED)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for what it comes to."""
        return self.start(coroutine).result()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin to run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def post(self, calls: list[Callable[[], None]]) -> None:
        """Have some calls made there, one after the other."""
        self.loop.call_soon_threadsafe(_call_all, calls)


def _call_all(calls: list[Callable[[], None]]) -> None:
    for call in calls:
        call()


def heeded(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    """A task whose error nobody need ask for: links end in many ways, and whoever waits for one looks at it first."""
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    return task


_first = threading.Lock()
_known: list[Background] = []  # that of this process comes last, after those of the processes it was forked from


def background() -> Background:
    """The background of this process, started when first asked for; a forked process has one of its own."""
    with _first:
        if not _known or _known[-1].process != os.getpid():
            _known.append(_started(is_forked=bool(_known)))
        return _known[-1]


def _begin_fork() -> None:
    """In a forked process let nothing go that its parent had: gRPC's objects wait, when they go, for a thread there."""
    if _known:
        gc.freeze()
    _first.release()


# Held while a process is forked, so that nobody is in the middle of starting a background.
os.register_at_fork(before=_first.acquire, after_in_parent=_first.release, after_in_child=_begin_fork)


def _started(*, is_forked: bool) -> Background:
    loop = asyncio.new_event_loop()
    pool = ThreadPoolExecutor(CALLS, thread_name_prefix="laconic-call")
    loop.set_default_executor(pool)
    threading.Thread(target=loop.run_forever, name="laconic-links", daemon=True).start()
    return Background(
        loop=loop,
        hand=ThreadPoolExecutor(1, thread_name_prefix="laconic-hand"),
        works=ThreadPoolExecutor(WORKS, thread_name_prefix="laconic-work"),
        pool=pool,
        sharing=Sharing(),
        process=os.getpid(),
        is_forked=is_forked,
    )
