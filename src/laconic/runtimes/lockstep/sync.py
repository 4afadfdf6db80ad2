"""A sync of all clients in one go: the same phases as everywhere, and the messages that would have passed, counted.

Order, epochs and messages are those of `laconic.protocol.client` and `laconic.protocol.server`; as all clients are here
and none is late, what a message holds need not be made, only its size.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from laconic.arrays import Ints
from laconic.beliefs import Belief
from laconic.protocol.codec import size
from laconic.protocol.ledger import Direction, Ledger, Sizes
from laconic.protocol.messages import Ask, Install, Merged, Message, Part, Payload, Request
from laconic.protocol.phases import Mail, Members, Phase
from laconic.protocol.plan import Plan
from laconic.protocol.received import sound

#: Whole numbers from each of these on take more bytes in msgpack.
WIDER_FROM = (2**7, 2**8, 2**16, 2**32)
#: Sizes are remembered for so many patterns of messages among at most so many clients.
REMEMBERED_SIZES, REMEMBERED_CLIENTS = 4096, 512


class Postmaster:
    """Runs syncs and counts their messages; it remembers how long messages of a kind are."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self.plan, self.ledger = plan, ledger
        self._lengths: dict[tuple[object, ...], tuple[int, int]] = {}
        self._sizes: dict[tuple[object, ...], Sizes] = {}
        self._passes = [(phase, *_passes(type(phase))) for phase in plan.phases]

    def synchronise(self, members: Members, *, epoch: int) -> Belief:
        """The belief after a sync of all members towards ``epoch``."""
        clients = len(members)
        request = _request(members.fired, bisect(WIDER_FROM, epoch - 1))
        self.ledger.record_mailing(request, epoch=epoch, phase="control", direction="up")
        asks = _asks(clients, bisect(WIDER_FROM, epoch))
        self.ledger.record_mailing(asks, epoch=epoch, phase="control", direction="down")
        all_narrow = members.points.shape[1] < WIDER_FROM[0]
        widths = None if all_narrow else np.searchsorted(WIDER_FROM, members.lengths, side="right")
        for number, (phase, gather, spread) in enumerate(self._passes):
            merged, parts = gather(phase, members)
            self._count(parts, Batch("up", epoch, number, members.lengths, widths))
            members = members.drafting(phase.absorb(members.draft, phase.whole(merged)))
            results = spread(phase, merged, clients)
            if number + 1 == len(self._passes):
                self._count(results, Batch("install", epoch, number, members.lengths, widths))
            else:
                self._count(results, Batch("merged", epoch, number, None, None))
        return sound(members.draft)

    def _count(self, mail: Mail, batch: Batch) -> None:
        """Count one message a client."""
        direction: Direction = "up" if batch.kind == "up" else "down"
        name = self._passes[batch.phase][0].name
        self.ledger.record_mailing(self._sizes_of(mail, batch), epoch=batch.epoch, phase=name, direction=direction)

    def _sizes_of(self, mail: Mail, batch: Batch) -> Sizes:
        """Messages of one kind whose numbers are equally wide are equally long."""
        alike = mail.kind_of if batch.widths is None else mail.kind_of * (len(WIDER_FROM) + 1) + batch.widths
        epoch_width = bisect(WIDER_FROM, batch.epoch)
        if mail.shape is None or len(alike) > REMEMBERED_CLIENTS:
            return self._new_sizes(mail, batch, alike, epoch_width)
        key = (mail.shape, batch.kind, batch.phase, epoch_width, batch.widths is None, alike.tobytes())
        if key not in self._sizes:
            if len(self._sizes) >= REMEMBERED_SIZES:
                self._sizes.clear()
            self._sizes[key] = self._new_sizes(mail, batch, alike, epoch_width)
        return self._sizes[key]

    def _new_sizes(self, mail: Mail, batch: Batch, alike: Ints, epoch_width: int) -> Sizes:
        changes = [0, *((alike[1:] != alike[:-1]).nonzero()[0] + 1).tolist(), len(alike)]
        return Sizes.of(
            (first, stop - 1, *self._length(mail, batch, first, epoch_width)) for first, stop in pairwise(changes)
        )

    def _length(self, mail: Mail, batch: Batch, client: int, epoch_width: int) -> tuple[int, int]:
        """Scalars and bytes of one client's message."""
        kind, width = int(mail.kind_of[client]), 0 if batch.widths is None else int(batch.widths[client])
        key = (mail.shape, kind, batch.kind, batch.phase, epoch_width, width)
        if mail.shape is not None and key in self._lengths:
            return self._lengths[key]
        payload = mail.payload(kind)
        number = 0 if batch.numbers is None else int(batch.numbers[client])
        found = payload.scalars, size(batch.message(payload, number, len(mail.kind_of)))
        if mail.shape is not None:
            self._lengths[key] = found
        return found


def _of_width(width: int) -> int:
    """The least whole number that is this wide."""
    return 0 if width == 0 else WIDER_FROM[width - 1]


@lru_cache(maxsize=REMEMBERED_SIZES)
def _request(client: int, epoch_width: int) -> Sizes:
    """A request of one client."""
    return Sizes.of([(client, client, 0, size(Request(epoch=_of_width(epoch_width))))])


@lru_cache(maxsize=REMEMBERED_SIZES)
def _asks(clients: int, epoch_width: int) -> Sizes:
    """What the server asks of everyone."""
    return Sizes.of([(0, clients - 1, 0, size(Ask(epoch=_of_width(epoch_width), fired=False)))])


def _passes(kind: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods of a phase that gather everyone's part and spread the result."""
    gather = _one_pass(kind, "gather", of=("contribute", "empty", "add", "finish"))
    return gather, _one_pass(kind, "spread", of=("address", "whole"))


def _one_pass(kind: Any, name: str, *, of: tuple[str, ...]) -> Callable[..., Any]:
    """A phase's one-pass method, or the plain one where a subclass has changed what the one pass stands for."""
    home = {each: next(i for i, base in enumerate(kind.__mro__) if each in vars(base)) for each in (name, *of)}
    is_current = all(home[name] <= home[each] for each in of)
    return getattr(kind if is_current else Phase, name)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one kind to or from everyone; each may carry one number of its client's."""

    kind: Literal["up", "merged", "install"]
    epoch: int
    phase: int
    numbers: Ints | None
    widths: Ints | None  # how wide each number is when encoded; None where all are narrow

    def message(self, payload: Payload, number: int, clients: int) -> Message:
        """The message of one client."""
        if self.kind == "up":
            return Part(self.epoch, self.phase, number, payload)
        if self.kind == "merged":
            return Merged(self.epoch, self.phase, payload)
        return Install(self.epoch, number, clients, payload)
