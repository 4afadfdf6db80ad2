"""Ages: how long decisions have waited for their reward, by a clock that nobody sets, and over restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

WEEK = 7 * 24 * 3600.0


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
        self._noted: tuple[dict[str, float], int] = ({}, 0)

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

    def note(self, waiting: Iterable[str], *, write: Callable[[bytes], object]) -> None:
        """Write when these decisions were made, unless that is written: a restart then makes none of them younger."""
        made = {decision: self._made[decision] for decision in waiting if decision in self._made}
        ahead = time.time() - time.monotonic()  # the time of day, which another process knows too
        if (made, round(ahead)) != self._noted:
            write(msgspec.json.encode({decision: at + ahead for decision, at in made.items()}))
            self._noted = (made, round(ahead))


def _read(noted: bytes | None) -> Mapping[str, float]:
    try:
        return msgspec.json.decode(noted or b"{}", type=dict[str, float])
    except msgspec.MsgspecError:
        return {}
