"""Traffic: messages, scalars and bytes by direction and phase, counted where they pass, in as little room as that."""

from __future__ import annotations

import threading

from laconic.protocol.ledger import LABELS, Count, Direction
from laconic.protocol.messages import Message, payload_of
from laconic.protocol.plan import Plan


class Traffic:
    """Sums, where a ledger keeps every entry: it does not grow with what passes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._counts: dict[tuple[Direction, str], Count] = {}
        self._lock = threading.Lock()

    def record(self, message: Message, *, direction: Direction, size: int) -> None:
        """Count a message of so many bytes."""
        _, phase = LABELS[type(message)](self._plan, message)
        one = Count(1, payload_of(message).scalars, size)
        with self._lock:
            self._counts[direction, phase] = self._counts.get((direction, phase), Count()) + one

    def by_phase(self) -> dict[tuple[Direction, str], Count]:
        """Sums by direction and phase."""
        with self._lock:
            return dict(self._counts)

    def of(self, direction: Direction) -> Count:
        """The sum of one direction."""
        return sum((count for (way, _), count in self.by_phase().items() if way == direction), start=Count())

    def bytes(self) -> int:
        """The bytes of both directions."""
        return self.of("up").bytes + self.of("down").bytes

    def table(self) -> list[dict[str, object]]:
        """As a status shows it."""
        return [
            {"direction": way, "phase": phase, "messages": n.messages, "scalars": n.scalars, "bytes": n.bytes}
            for (way, phase), n in sorted(self.by_phase().items())
        ]
