"""Housekeeping: a thread that writes what waits, lets a snapshot stand for what is long, and gives up what is old."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from laconic.errors import StateError
from laconic.protocol.client import Client
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome
from laconic.runtimes.service.ages import Ages
from laconic.runtimes.service.diary import Diary
from laconic.runtimes.service.retrying import Pauses, put_off

log = logging.getLogger("laconic.agent")
#: How often what waits is written, and old decisions are looked for, in seconds.
PAUSE, LOOK = 0.25, 30.0
#: So many decisions are given up at a time: `choose` waits for that, some 30 ms.
MOST_FORGOTTEN = 1000
#: Seconds before what failed is tried again, and after how many failures in a row it is said that only a restart helps.
AGAIN, HOPELESS = 1.0, 10
#: Under which name a state file notes when decisions were made.
TIMES = "decisions"


class Housekeeping:
    """What nobody asks an agent for, and what it needs all the same.

    Args:
        diary: The client with its store.
        name: Name of the agent, for its log.
        closed: Set when the agent is closed, which ends the thread.
        pause: Seconds between two looks at what waits to be written, above 0; at most 0.25.
        forget_after: Seconds after which a decision without a reward is given up, above 0.
    """

    def __init__(self, diary: Diary, *, name: str, closed: threading.Event, pause: float, forget_after: float) -> None:
        self.ages = Ages(diary.store.about(TIMES), waiting=diary.client.learner.pending)
        self.forgotten = 0
        self.trouble: str | None = None  # why it does not do what it is for
        self._diary, self._name, self._closed = diary, name, closed
        self._pause, self._forget_after = pause, forget_after
        self._pauses = Pauses()  # between snapshots that cannot be stored
        self._thread = threading.Thread(target=self._keep, name=f"laconic-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Wait until the thread has ended, as it does once the agent is closed, and note what is to be noted."""
        self._thread.join()
        try:
            self._note_times()
        except StateError as error:
            log.warning("when decisions were made was not noted", extra={"agent": self._name, "reason": str(error)})

    @property
    def pending(self) -> dict[str, float]:
        """Decisions that wait for their reward, by id, and how many seconds they have."""
        waiting: Mapping[str, Any] = self._diary.look(lambda client: client.learner.pending)
        return self.ages.of(list(waiting))  # of a value, so that nobody waits while they are put in order

    def forget_old(self) -> int:
        """Give up decisions that have waited too long, many in one commit; how many."""
        old = [name for name, seconds in self.pending.items() if seconds > self._forget_after]
        given_up = 0
        for first in range(0, len(old), MOST_FORGOTTEN):
            part = old[first : first + MOST_FORGOTTEN]
            given_up += len(self._diary.happen(partial(_forget, decisions=part)).keep)
            for name in part:
                self.ages.end(name)
        self.forgotten += given_up
        return given_up

    def _keep(self) -> None:
        looked, failures = time.monotonic(), 0
        while not self._closed.wait(min(self._pause, PAUSE)):
            try:
                self._diary.write()
                self._compact_if_long()
                if time.monotonic() - looked >= min(LOOK, self._forget_after):
                    looked = time.monotonic()
                    self.forget_old()
                    if self.ages.is_due:
                        self._note_times()
                self.trouble, failures = None, 0
            except StateError as error:
                log.error("the state file could not be written", extra={"agent": self._name, "reason": str(error)})
                self._closed.wait(AGAIN)
            except Exception as error:  # of our own: what waits is still to be written, and is tried again
                failures += 1
                log.exception("housekeeping failed", extra={"agent": self._name})
                if failures >= HOPELESS:
                    what = f"{type(error).__name__}: {error}"
                    self.trouble = f"what an agent needs besides is not done ({what}); join again"
                self._closed.wait(AGAIN)

    def _compact_if_long(self) -> None:
        """Let a snapshot stand for what is long; one that cannot be stored is tried later, and holds up nothing."""
        if not self._diary.store.is_long or not self._pauses.is_over:
            return
        try:
            self._diary.compact()
        except Exception as error:
            put_off(self._pauses, error, log=log, agent=self._name)
        else:
            self._pauses.succeed()

    def _note_times(self) -> None:
        """Note when decisions that wait were made, so that a restart does not make them younger."""
        self.ages.note(write=partial(self._diary.note, TIMES))


def _forget(client: Client, decisions: Sequence[str]) -> Outcome[Up]:
    """Give up decisions, but those whose reward came just now."""
    outcomes = [client.forget(each) for each in decisions if each in client.learner.pending]
    return Outcome(keep=tuple(record for each in outcomes for record in each.keep))
