"""The worker: does the work that an agent's client owes, and hands back what comes of it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from laconic.errors import LaconicError, LinkError, StateError
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome, Work
from laconic.runtimes.service.background import background
from laconic.runtimes.service.diary import Diary, Entry
from laconic.runtimes.service.sharing import Shared

log = logging.getLogger("laconic.agent")
#: Work that took fewer seconds than this is done next time by the thread that takes messages.
QUICK = 0.01


class Worker:
    """Does work in whichever thread suits it.

    Args:
        diary: Diary of the client that owes the work.
        name: Name of the agent.
        share: What agents of one federation do together.
        told: Function that is called with what came of handing work back.
        closed: Set when the agent is closed; what comes of work is then let go of.
    """

    def __init__(
        self,
        diary: Diary,
        *,
        name: str,
        share: Shared,
        told: Callable[[Outcome[Up]], None],
        closed: threading.Event,
    ) -> None:
        self._name, self._diary, self._share, self._told, self._closed = name, diary, share, told, closed
        self._under_way, self._counting = 0, threading.Lock()
        self._took: dict[type, float] = {}  # how long work took last, by what it was for

    @property
    def is_busy(self) -> bool:
        """Whether work is under way, or what a message led to is being stored."""
        return self._under_way > 0

    def begin(self, works: tuple[Work, ...]) -> None:
        """Have work done in a thread for what takes long."""
        background().works.submit(self._do, works)

    def _do(self, works: tuple[Work, ...]) -> None:
        """Do work, and the work that it leads to at once."""
        while works:
            works = self._step(works)

    def go_on(self, entry: Entry) -> None:
        """Do here what work a message asks for, if it is quick; others do what takes long or waits for a disk."""
        if not entry.performed:
            self._count(1)
            background().pool.submit(self._settle, entry)
            return
        works = entry.outcome.compute
        while works and self._are_quick(works):
            works = self._step(works)
        if works:
            self.begin(works)

    def _are_quick(self, works: tuple[Work, ...]) -> bool:
        return all(self._took.get(type(work.of), math.inf) < QUICK for work in works)

    def _settle(self, entry: Entry) -> None:
        """Wait until what a message led to is stored; where it cannot be, its link ends."""
        try:
            self._diary.settle(entry)
        except Exception as error:
            if not isinstance(error, StateError):
                log.exception("what a message led to could not be stored", extra={"agent": self._name})
            if entry.link is not None:
                entry.link.end(str(error))
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self._under_way += more

    def _step(self, works: tuple[Work, ...]) -> tuple[Work, ...]:
        """Do work; the work that it leads to."""
        self._count(len(works))
        return tuple(more for work in works for more in self._hand_back(work, self._result(work)))

    def _result(self, work: Work) -> Any:
        """What work comes to, or what went wrong: it must come back, or the exchange that it is for never ends."""
        begun, charged = time.thread_time(), self._share.charged
        try:
            return work.result(self._share)
        except LaconicError as error:
            return error
        except Exception as error:
            log.exception("work failed", extra={"agent": self._name})
            return LinkError(f"{type(error).__name__}: {error}")
        finally:
            # What another agent has built counts as well: next time it may be this one that builds.
            built = self._share.charged - charged
            self._took[type(work.of)] = max(time.thread_time() - begun, built)

    def _hand_back(self, work: Work, result: Any) -> tuple[Work, ...]:
        """Hand back what came of work, and give the work that it leads to at once."""
        if self._closed.is_set():
            return self._handed_back(Outcome())
        try:
            entry = self._diary.enter(lambda client: client.done(work, result))
        except Exception as error:  # nobody foresaw it; the client is as it was, and hears that the work failed
            if self._closed.is_set():  # it was foreseen: nothing more happens to the client
                return self._handed_back(Outcome())
            log.exception("what came of work could not be taken", extra={"agent": self._name})
            if isinstance(result, Exception):
                return self._handed_back(Outcome())
            return self._hand_back(work, LinkError(f"{type(error).__name__}: {error}"))
        if entry.performed:
            return self._handed_back(entry.outcome)
        background().pool.submit(self._settle_work, entry, work, result)
        return ()

    def _settle_work(self, entry: Entry, work: Work, result: Any) -> None:
        """Wait until what came of work is stored; while it cannot be, it is handed back again."""
        try:
            self._diary.settle(entry)
        except StateError as error:
            log.error("what came of work could not be stored", extra={"agent": self._name, "reason": str(error)})
            self._closed.wait(1.0)
            self._do(self._hand_back(work, result))
        except Exception as error:  # nobody foresaw it
            log.exception("what came of work could not be stored", extra={"agent": self._name})
            self._handed_back(Outcome(dropped=f"{type(error).__name__}: {error}"))
        else:
            self._handed_back(Outcome(dropped=entry.outcome.dropped))

    def _handed_back(self, outcome: Outcome[Up]) -> tuple[Work, ...]:
        self._count(-1)
        self._told(outcome)
        return outcome.compute
