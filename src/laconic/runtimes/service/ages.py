"""Ages: how long decisions have waited for their reward, by a clock that nobody sets, and over restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

WEEK = 7 * 24 * 3600.0
#: After a note so many times what it took is waited until the next one: noting takes a hundredth of the time at most.
TIMES_REST = 100


class Ages:
    """When decisions were made.

    Args:
        noted: What `note` wrote last; None where it never did.
        waiting: Decisions that wait; those of which it is not known when they were made count from now.
    """

    def __init__(self, noted: bytes | None, *, waiting: Iterable[str]) -> None:
        known, now = _read(noted), time.time()
        ages = {decision: max(0.0, now - known.get(decision, now)) for decision in waiting}
        self._made = {decision: time.monotonic() - age for decision, age in ages.items()}
        self._noted: tuple[dict[str, float], float] = ({}, 0.0)
        self._rests_until = 0.0

    def begin(self, decision: str) -> None:
        """A decision is made."""
        self._made[decision] = time.monotonic()

    def end(self, decision: str) -> None:
        """A decision waits no more."""
        self._made.pop(decision, None)

    def of(self, waiting: Iterable[str]) -> dict[str, float]:
        """How many seconds old these decisions are."""
        now = time.monotonic()
        return {decision: now - self._made.get(decision, now) for decision in waiting}

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last note for what that took."""
        return time.monotonic() >= self._rests_until

    def note(self, *, write: Callable[[bytes], object]) -> None:
        """Write when decisions that wait were made, unless that is written: a restart then makes none of them younger.

        It takes time that grows with their number; nobody need wait for it but whoever writes meanwhile.
        """
        begun = time.monotonic()
        made = dict(self._made)  # a copy, as others go on to choose and to observe
        ahead = time.time() - begun  # the time of day, which another process knows too
        before, then = self._noted
        try:
            if made != before or (made and abs(ahead - then) > 1.0):  # the latter where the clock was set
                write(msgspec.json.encode({decision: at + ahead for decision, at in made.items()}))
                self._noted = (made, ahead)
        finally:
            now = time.monotonic()
            self._rests_until = now + TIMES_REST * (now - begun)


def _read(noted: bytes | None) -> Mapping[str, float]:
    try:
        return msgspec.json.decode(noted or b"{}", type=dict[str, float])
    except msgspec.MsgspecError:
        return {}
