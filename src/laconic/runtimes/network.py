"""One process that holds the server and all clients, and moves their messages; the ledger counts what passes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from laconic.protocol.client import Client
from laconic.protocol.codec import decode, encode
from laconic.protocol.ledger import Direction, Ledger
from laconic.protocol.messages import (
    Ask,
    Down,
    Install,
    Join,
    Leave,
    Merged,
    Message,
    Part,
    Request,
    Up,
    Welcome,
)
from laconic.protocol.outcome import AbsorbTogether, Outcome
from laconic.protocol.plan import Plan
from laconic.protocol.server import Server


@dataclass(frozen=True)
class Delivery:
    """How messages travel: in order or shuffled by a generator, as objects or through bytes."""

    shuffle: np.random.Generator | None = None
    through_bytes: bool = False


class Network:
    """Clients and a server in one process."""

    def __init__(
        self, plan: Plan, *, clients: int, seed: int, ledger: Ledger, delivery: Delivery | None = None
    ) -> None:
        absorb = AbsorbTogether()
        self.server = Server(plan, members=range(clients), absorb=absorb)
        self.clients = {i: Client(plan, number=i, seed=seed, clients=clients, absorb=absorb) for i in range(clients)}
        self.ledger = ledger
        self._delivery = delivery or Delivery()
        self._waiting: deque[tuple[Direction, int, Message]] = deque()

    def settle(self, outcome: Outcome[Up]) -> bool:
        """Deliver these messages and all that follow from them; True when a belief was installed."""
        epoch = self.server.epoch
        self._post("up", outcome)
        while self._waiting:
            direction, client, message = self._next()
            if direction == "up":
                self._post("down", self.server.receive(client, message))  # type: ignore[arg-type]
            elif client in self.clients:
                self._post("up", self.clients[client].receive(message))  # type: ignore[arg-type]
        return self.server.epoch > epoch

    def _post(self, direction: Direction, outcome: Outcome[Up] | Outcome[Down]) -> None:
        for client, message in outcome.send:
            self.ledger.record(
                message, epoch=self._epoch(message), phase=self._phase(message), direction=direction, client=client
            )
            travelling = decode(encode(message)) if self._delivery.through_bytes else message
            self._waiting.append((direction, client, travelling))

    def _next(self) -> tuple[Direction, int, Message]:
        if self._delivery.shuffle is not None:
            self._waiting.rotate(-int(self._delivery.shuffle.integers(len(self._waiting))))
        return self._waiting.popleft()

    def _epoch(self, message: Message) -> int:
        """The epoch that a message counts towards: a request belongs to the sync that it starts."""
        if isinstance(message, Request):
            return message.epoch + 1
        return message.epoch if isinstance(message, Part | Ask | Merged | Install | Welcome) else self.server.epoch

    def _phase(self, message: Message) -> str:
        if isinstance(message, Part | Merged):
            return self.server.plan.phases[message.phase].name
        if isinstance(message, Install):
            return self.server.plan.phases[-1].name
        return "membership" if isinstance(message, Join | Leave | Welcome) else "control"
