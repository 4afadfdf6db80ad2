"""A sync of all clients in one go: the same phases as everywhere, and the messages that would have passed, counted.

Order, epochs and messages are those of `laconic.protocol.client` and `laconic.protocol.server`; as all clients are here
and none is late, what a message holds need not be made, only its size.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from laconic.beliefs import Belief
from laconic.protocol.codec import size
from laconic.protocol.ledger import Direction, Ledger
from laconic.protocol.messages import Ask, Install, Merged, Message, Part, Payload, Request
from laconic.protocol.phases import Mail, Members, Phase
from laconic.protocol.plan import Plan
from laconic.protocol.received import sound

Ints = NDArray[np.int64]

#: Whole numbers from each of these on take more bytes in msgpack.
_WIDER_FROM = [2**7, 2**8, 2**16, 2**32]
WIDER_FROM = np.array(_WIDER_FROM)


class Postmaster:
    """Runs syncs and counts their messages; it remembers how long messages of a kind are."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self.plan, self.ledger = plan, ledger
        self._lengths: dict[tuple[object, ...], tuple[int, int]] = {}

    def synchronise(self, members: Members, *, epoch: int) -> Belief:
        """The belief after a sync of all members towards ``epoch``."""
        clients, phases = len(members), self.plan.phases
        self._control(Request(epoch=epoch - 1), epoch, direction="up", first=members.fired, last=members.fired)
        self._control(Ask(epoch=epoch, fired=False), epoch, direction="down", first=0, last=clients - 1)
        widths, plain = WIDER_FROM.searchsorted(members.lengths, side="right"), np.zeros(clients, dtype=np.int64)
        for number, phase in enumerate(phases):
            kind: Any = type(phase)
            merged, parts = _one_pass(kind, "gather", of=("contribute", "empty", "add", "finish"))(phase, members)
            self._count(parts, Batch("up", epoch, number, members.lengths, widths))
            members = replace(members, draft=phase.absorb(members.draft, phase.whole(merged)))
            results = _one_pass(kind, "spread", of=("address", "whole"))(phase, merged, clients)
            is_last = number + 1 == len(phases)
            if is_last:
                self._count(results, Batch("install", epoch, number, members.lengths, widths))
            else:
                self._count(results, Batch("merged", epoch, number, plain, plain))
        return sound(members.draft)

    def _control(self, message: Message, epoch: int, *, direction: Direction, first: int, last: int) -> None:
        length = size(message)
        self.ledger.record_alike(
            scalars=0, bytes=length, epoch=epoch, phase="control", direction=direction, first=first, last=last
        )

    def _count(self, mail: Mail, batch: Batch) -> None:
        """Count one message a client; those of one kind whose number is equally wide are equally long."""
        name, direction = self.plan.phases[batch.phase].name, "up" if batch.kind == "up" else "down"
        alike = mail.kind_of * (len(WIDER_FROM) + 1) + batch.widths
        epoch_width = bisect(_WIDER_FROM, batch.epoch)
        changes = [0, *((alike[1:] != alike[:-1]).nonzero()[0] + 1).tolist(), len(alike)]
        for first, stop in pairwise(changes):
            scalars, length = self._length(mail, batch, first, epoch_width)
            self.ledger.record_alike(
                scalars=scalars,
                bytes=length,
                epoch=batch.epoch,
                phase=name,
                direction=direction,  # type: ignore[arg-type]
                first=first,
                last=stop - 1,
            )

    def _length(self, mail: Mail, batch: Batch, client: int, epoch_width: int) -> tuple[int, int]:
        """Scalars and bytes of one client's message."""
        kind = int(mail.kind_of[client])
        key = (mail.shape, kind, batch.kind, batch.phase, epoch_width, int(batch.widths[client]))
        if mail.shape is not None and key in self._lengths:
            return self._lengths[key]
        payload = mail.payload(kind)
        found = payload.scalars, size(batch.message(payload, int(batch.numbers[client]), len(mail.kind_of)))
        if mail.shape is not None:
            self._lengths[key] = found
        return found


@cache
def _one_pass(kind: Any, name: str, *, of: tuple[str, ...]) -> Callable[..., Any]:
    """A phase's one-pass method, or the plain one where a subclass has changed what the one pass stands for."""
    home = {each: next(i for i, base in enumerate(kind.__mro__) if each in vars(base)) for each in (name, *of)}
    is_current = all(home[name] <= home[each] for each in of)
    return getattr(kind if is_current else Phase, name)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one kind to or from everyone; each carries one number of its client's."""

    kind: Literal["up", "merged", "install"]
    epoch: int
    phase: int
    numbers: Ints
    widths: Ints  # how wide each number is when encoded

    def message(self, payload: Payload, number: int, clients: int) -> Message:
        """The message of one client."""
        if self.kind == "up":
            return Part(self.epoch, self.phase, number, payload)
        if self.kind == "merged":
            return Merged(self.epoch, self.phase, payload)
        return Install(self.epoch, number, clients, payload)
