"""Links: in order while up; they may break at any moment and lose any suffix, either way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

#: How many messages of a link may come once more.
REMEMBERED = 6


@dataclass(frozen=True, eq=False)
class Envelope:
    """A message on its way, as bytes; ``note`` is what the simulation knows of it, which its receiver does not see."""

    data: bytes
    note: object = None
    kind: str = ""


@dataclass(eq=False)
class Way:
    """One direction of a link."""

    queue: deque[Envelope] = field(default_factory=deque)
    seen: deque[Envelope] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def next(self) -> Envelope:
        """The oldest message."""
        envelope = self.queue.popleft()
        self.seen.append(envelope)
        return envelope

    def cut(self, draw: int) -> None:
        """Lose all bytes from some place on; of the message in which that is, nothing is delivered."""
        left = draw % (sum(len(each.data) for each in self.queue) + 1)
        kept: deque[Envelope] = deque()
        for envelope in self.queue:
            left -= len(envelope.data)
            if left < 0:
                break
            kept.append(envelope)
        self.queue = kept


@dataclass(eq=False)
class Link:
    """A link between a client and the server; each side hears of its end by itself, early or late."""

    number: int
    client: int
    up: Way = field(default_factory=Way)
    down: Way = field(default_factory=Way)
    broken: bool = False
    client_has: bool = True
    server_has: bool = True
    pure: bool = True  # nothing came twice on it

    def send_up(self, envelope: Envelope) -> None:
        """A client sends."""
        if not self.broken and self.client_has:
            self.up.queue.append(envelope)

    def send_down(self, envelope: Envelope) -> None:
        """The server sends."""
        if not self.broken and self.client_has:
            self.down.queue.append(envelope)

    def end(self, up: int, down: int) -> None:
        """Break: some of what is on its way still arrives."""
        self.broken = True
        self.up.cut(up)
        self.down.cut(down)

    def close_for_client(self) -> None:
        """The client has given it up."""
        self.client_has = False
        self.down.queue.clear()

    def close_for_server(self) -> None:
        """The server has given it up."""
        self.server_has = False
        self.up.queue.clear()
