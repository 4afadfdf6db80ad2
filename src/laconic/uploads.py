"""Upload rules: when points go up by themselves, in an exchange in which nobody waits for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from laconic.checks import require_positive


@runtime_checkable
class UploadRule(Protocol):
    """A rule that sends points up by themselves, without asking for anything."""

    def due(self, *, unsent: int, own: int) -> bool:
        """True when so many unsent points, of so many of one's own, are to go up.

        Args:
            unsent: Own points that have not gone up yet, from 0.
            own: All own points so far, at least as many.
        """
        ...


@dataclass(frozen=True)
class WithAsk:
    """Points go up when the client asks for something, and never otherwise."""

    def due(self, *, unsent: int, own: int) -> bool:
        return False


@dataclass(frozen=True)
class Growth:
    """Points go up when they are this part of one's own, and at least one.

    Args:
        part: Unsent points as a part of all own points, above 0. Raising it means fewer and larger uploads: less is
            sent, and others know of a client's points later, which may raise regret. Above 1 no point goes up by
            itself, as with WithAsk().
    """

    part: float = 0.1

    def __post_init__(self) -> None:
        require_positive("part", self.part)

    def due(self, *, unsent: int, own: int) -> bool:
        return unsent >= max(1.0, self.part * own)
