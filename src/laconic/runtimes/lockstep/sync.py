"""A sync of all clients in one go: the same phases as everywhere, and the messages that would have passed, counted.

Order, epochs and messages are those of `laconic.protocol.client` and `laconic.protocol.server`; as all clients are here
and none is late, what a message holds need not be made, only its size.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from laconic.arrays import Ints
from laconic.beliefs import Belief
from laconic.protocol.ledger import Direction, Ledger, Sizes
from laconic.protocol.messages import NOTHING, Ask, Install, Label, Merged, Part, Request
from laconic.protocol.packing import MOST_WIDTH, width
from laconic.protocol.plan import Plan
from laconic.protocol.work import sound
from laconic.runtimes.lockstep.mail import Mail
from laconic.runtimes.lockstep.members import Members
from laconic.runtimes.lockstep.passes import pass_of

#: Sizes are remembered for so many patterns of messages among at most so many clients.
REMEMBERED_SIZES, REMEMBERED_CLIENTS = 4096, 512
#: A message has at most two numbers that differ from client to client, one of its own and one in its payload.
NUMBERS_WIDTH = 2 * MOST_WIDTH
_Carrier = Part | Merged | Install


class Postmaster:
    """Runs syncs and counts their messages; it remembers how long messages of a kind are."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self.plan, self.ledger, self.codec = plan, ledger, ledger.codec
        self._lengths: dict[tuple[object, ...], tuple[int, int]] = {}
        self._sizes: dict[tuple[object, ...], Sizes] = {}
        self._passes = [(phase, pass_of(phase)) for phase in plan.phases]

    def synchronise(self, members: Members, *, epoch: int) -> Belief:
        """The belief after a sync of all members towards the epoch of this number."""
        clients, label = len(members), Label(0, epoch)
        request, ask = Request(Label(0, epoch - 1)), Ask(label, phase=0, fired=False)
        self.ledger.record_mailing(self._bare(request, members.fired, members.fired), like=request, direction="up")
        self.ledger.record_mailing(self._bare(ask, 0, clients - 1), like=ask, direction="down")
        upto = members.beyond_narrow(members.lengths)
        for number, (phase, run) in enumerate(self._passes):
            merged, parts = run.gather(phase, members)
            is_last = number + 1 == len(self._passes)
            if is_last and not phase.shows_points:
                parts = parts.hashed(members.lengths - members.covered)
            self._count(parts, Part(label, number, 0, NOTHING), "up", extra=upto)
            draft = run.absorb(phase, members, merged)
            results = run.spread(phase, merged, clients)
            if is_last:
                self._count(results, Install(label, 0, clients, NOTHING), "down", extra=upto)
            else:
                self._count(results, Merged(label, number, NOTHING), "down", extra=None)
                members = members.drafting(draft)
        return sound(draft)

    def _bare(self, message: Request | Ask, first: int, last: int) -> Sizes:
        """The same message, which carries nothing, of clients ``first`` … ``last``."""
        key = (type(message), width(message.epoch.number), first, last)
        if key not in self._sizes:
            self._sizes[key] = Sizes.of([(first, last, 0, self.codec.size(message))])
        return self._sizes[key]

    def _count(self, mail: Mail, like: _Carrier, direction: Direction, *, extra: Ints | None) -> None:
        """Count one message a client; its own numbers, 0 in ``like``, take some bytes more."""
        more = mail.extra if extra is None else extra if mail.extra is None else extra + mail.extra
        self.ledger.record_mailing(self._sizes_of(mail, like, more), like=like, direction=direction)

    def _sizes_of(self, mail: Mail, like: _Carrier, more: Ints | None) -> Sizes:
        """Messages of one kind whose numbers are equally wide are equally long."""
        alike = mail.kind_of if more is None else mail.kind_of * NUMBERS_WIDTH + more
        kind = (mail.shape, type(like), -1 if isinstance(like, Install) else like.phase, width(like.epoch.number))
        if mail.shape is None or len(alike) > REMEMBERED_CLIENTS:
            return self._new_sizes(mail, like, more, alike, kind)
        key = (*kind, more is None, alike.tobytes())
        if key not in self._sizes:
            if len(self._sizes) >= REMEMBERED_SIZES:
                self._sizes.clear()
            self._sizes[key] = self._new_sizes(mail, like, more, alike, kind)
        return self._sizes[key]

    def _new_sizes(self, mail: Mail, like: _Carrier, more: Ints | None, alike: Ints, kind: tuple[object, ...]) -> Sizes:
        changes = [0, *((alike[1:] != alike[:-1]).nonzero()[0] + 1).tolist(), len(alike)]
        runs = []
        for first, stop in pairwise(changes):
            scalars, octets = self._length(mail, like, int(mail.kind_of[first]), kind)
            runs.append((first, stop - 1, scalars, octets if more is None else octets + int(more[first])))
        return Sizes.of(runs)

    def _length(self, mail: Mail, like: _Carrier, at: int, kind: tuple[object, ...]) -> tuple[int, int]:
        """Scalars and bytes of a message whose numbers are 0."""
        found = self._lengths.get((at, *kind)) if mail.shape is not None else None
        if found is None:
            payload = mail.payload(at)
            found = payload.scalars, self.codec.size(replace(like, payload=payload))
            if mail.shape is not None:
                self._lengths[at, *kind] = found
        return found
