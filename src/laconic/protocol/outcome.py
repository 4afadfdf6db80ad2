"""What a state machine wants done: messages to send, or the reason why a message was dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from laconic.beliefs import Belief

M = TypeVar("M")


@dataclass(frozen=True)
class Outcome(Generic[M]):
    """The effects of an event; all empty when nothing is to be done."""

    send: tuple[
        tuple[int, M], ...
    ] = ()  # (client, message): the receiver on the server's side, the sender on a client's
    dropped: str | None = None
    installed: int | None = None  # the epoch whose belief was just installed


#: absorb(epoch, phase, build) → the draft after a phase; a process that hosts many clients builds it once.
Absorb = Callable[[int, int, Callable[[], Belief]], Belief]


def absorb_alone(epoch: int, phase: int, build: Callable[[], Belief]) -> Belief:
    """Build the draft for this member alone."""
    return build()


class AbsorbTogether:
    """Builds each draft once for all members in this process: `absorb` is pure, so that all get the same."""

    def __init__(self) -> None:
        self._latest: tuple[int, int] | None = None
        self._draft: Belief | None = None

    def __call__(self, epoch: int, phase: int, build: Callable[[], Belief]) -> Belief:
        """The draft of this epoch and phase, built at the first call."""
        if self._draft is None or self._latest != (epoch, phase):
            self._draft = build()
            self._latest = (epoch, phase)
        return self._draft
