"""The server: gathers, merges, sends back. It knows nothing of bandits.

IDLE       --Request-->  GATHERING  ask everyone for phase 0
GATHERING  --Part----->  GATHERING  until all parts of a phase are in: merge, send down, next phase
GATHERING  --Part----->  IDLE       the last part of the last phase: everyone installs
IDLE       --Join----->  IDLE       welcome at once
GATHERING  --Join----->  GATHERING  welcome once the sync is over
GATHERING  --Join----->  IDLE       a member that is back, and was the last one awaited
IDLE       --Leave---->  IDLE
GATHERING  --Leave---->  GATHERING  go on without
GATHERING  --Leave---->  IDLE       the last one awaited, or nobody is left

Messages of one client are taken in the order in which it sent them; any may come again, however late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from enum import Enum
from typing import Any

from laconic.beliefs import Belief
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.messages import Ask, Down, Install, Join, Leave, Merged, Part, Payload, Request, Up, Welcome
from laconic.protocol.outcome import Absorb, Outcome, absorb_alone
from laconic.protocol.phases import Phase
from laconic.protocol.plan import Plan
from laconic.protocol.received import sound

#: Arrays of a belief that are no scalars of what was learnt.
BOOKKEEPING: tuple[str, ...] = ("totals", "growth")


class ServerState(Enum):
    """Whether a sync is under way."""

    IDLE = "idle"
    GATHERING = "gathering"


#: Where each message may lead; a pair that is not listed is refused.
SERVER_TRANSITIONS: dict[tuple[ServerState, type], frozenset[ServerState]] = {
    (ServerState.IDLE, Request): frozenset({ServerState.GATHERING}),
    (ServerState.IDLE, Join): frozenset({ServerState.IDLE}),
    (ServerState.IDLE, Leave): frozenset({ServerState.IDLE}),
    (ServerState.GATHERING, Part): frozenset({ServerState.GATHERING, ServerState.IDLE}),
    (ServerState.GATHERING, Join): frozenset({ServerState.GATHERING, ServerState.IDLE}),
    (ServerState.GATHERING, Leave): frozenset({ServerState.GATHERING, ServerState.IDLE}),
}


class Server:
    """One side of the star: members, the epoch, the installed belief, and the sync under way."""

    def __init__(self, plan: Plan, *, members: range | list[int], absorb: Absorb = absorb_alone) -> None:
        self.plan = plan
        self.members = sorted(members)
        self.epoch = 0
        self.belief: Belief = plan.belief
        self.covered: dict[int, int] = {}
        self.state = ServerState.IDLE
        self._absorb = absorb
        self._newcomers: list[int] = []
        self._stays: dict[int, int] = {}
        if len(set(self.members)) != len(self.members):
            raise InputError("two members have the same number")

    def receive(self, client: int, message: Up) -> Outcome[Down]:
        """What a message from a client leads to; an error leaves everything as it was."""
        stale = self._stale(client, message)
        if stale:
            return Outcome(dropped=stale)
        if (self.state, type(message)) not in SERVER_TRANSITIONS:
            raise RemoteProtocolError(f"a server that is {self.state.value} cannot take {type(message).__name__}")
        if isinstance(message, Request):
            return self._begin(client)
        if isinstance(message, Part):
            return self._take(client, message)
        return self._join(client, message) if isinstance(message, Join) else self._leave(client)

    def _stale(self, client: int, message: Up) -> str | None:
        """Why a message that is late, repeated or from a stranger is dropped; None when it is not."""
        if isinstance(message, Join):
            return f"client {client} joined before" if message.stay <= self._stays.get(client, 0) else None
        if isinstance(message, Leave) and message.stay < self._stays.get(client, 0):
            return f"client {client} left stay {message.stay}, and came back since"
        if isinstance(message, Leave) and client in self._newcomers:
            return None
        if client not in self.members:
            return f"client {client} is not a member"
        if isinstance(message, Request) and (self.state is ServerState.GATHERING or message.epoch < self.epoch):
            return f"a sync since epoch {message.epoch} is under way or done"
        if isinstance(message, Request | Part) and message.epoch > self.epoch:
            raise RemoteProtocolError(f"client {client} speaks of epoch {message.epoch}, which has not begun")
        return self._stale_part(client, message) if isinstance(message, Part) else None

    def _stale_part(self, client: int, part: Part) -> str | None:
        if part.epoch < self.epoch or self.state is ServerState.IDLE:
            return f"a part for epoch {part.epoch}, which is over"
        if part.phase < self._phase or (part.phase == self._phase and client not in self._awaited):
            return f"a repeated part of phase {part.phase}"
        if part.phase > self._phase:
            raise RemoteProtocolError(f"client {client} is ahead, in phase {part.phase} instead of {self._phase}")
        return None

    def _begin(self, fired: int) -> Outcome[Down]:
        if not self.plan.phases:
            raise RemoteProtocolError(f"client {fired} asks for a sync, but this plan has no phases")
        self.epoch += 1
        self.state = ServerState.GATHERING
        self._draft: Belief = self.belief
        self._upto: dict[int, int] = {}
        self._open(0)
        return Outcome(send=tuple((c, Ask(epoch=self.epoch, fired=c == fired)) for c in self.members))

    def _open(self, phase: int) -> None:
        """Wait for everyone's part of a phase."""
        self._phase = phase
        self._awaited = set(self.members)
        self._order = list(self.members)  # the fold goes in this order, whatever the order of arrival
        self._waiting: dict[int, Payload] = {}
        self._fold: Any = self.plan.phases[phase].empty()

    def _take(self, client: int, part: Part) -> Outcome[Down]:
        self._check(client, part)
        with self._all_or_nothing():
            self._awaited.remove(client)
            self._waiting[client] = part.payload
            self._upto[client] = part.upto
            return self._advance()

    def _check(self, client: int, part: Part) -> None:
        known = self.covered.get(client, 0)
        if part.upto < known:
            raise RemoteProtocolError(f"client {client} has {part.upto} observations of {known}: was its history lost?")
        phase = self.plan.phases[self._phase]
        phase.check(self._draft, part.payload)
        if not phase.speaks_for(part.payload, covered=known, upto=part.upto):
            raise RemoteProtocolError(f"a part of client {client} does not have the observations that it claims")

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo what the end of a phase changed if merging fails, as it may on points that no kernel can take."""
        if len(self._awaited) > 1:
            yield
            return
        before = {name: copy(it) if isinstance(it, list | dict | set) else it for name, it in vars(self).items()}
        try:
            yield
        except Exception:
            vars(self).update(before)
            raise

    def _advance(self) -> Outcome[Down]:
        """Fold what has come in client order; when all is in, merge and send down."""
        phase = self.plan.phases[self._phase]
        while self._order and self._order[0] in self._waiting:
            client = self._order.pop(0)
            self._fold = phase.add(self._fold, client, self._waiting.pop(client))
        if self._order:
            return Outcome()
        merged = phase.finish(self._draft, self._fold)
        self._draft = self._absorb(self.epoch, self._phase, lambda: self._absorbed(phase, merged))
        if self._phase + 1 == len(self.plan.phases):
            return self._install(merged)
        done = self._phase
        self._open(done + 1)
        return Outcome(
            send=tuple(
                (c, Merged(epoch=self.epoch, phase=done, payload=phase.address(merged, c))) for c in self.members
            )
        )

    def _absorbed(self, phase: Phase, merged: Any) -> Belief:
        draft = phase.absorb(self._draft, phase.whole(merged))
        return sound(draft) if self._phase + 1 == len(self.plan.phases) else draft

    def _install(self, merged: Any) -> Outcome[Down]:
        self.belief, self.state = self._draft, ServerState.IDLE
        self.covered = self._upto if self.plan.forgets_departed else self.covered | self._upto
        address, clients = self.plan.phases[-1].address, len(self.members)
        installs: list[tuple[int, Down]] = [
            (c, Install(epoch=self.epoch, covered=self.covered[c], clients=clients, payload=address(merged, c)))
            for c in self.members
        ]
        return Outcome(send=(*installs, *self._welcomes()), installed=self.epoch)

    def _join(self, client: int, join: Join) -> Outcome[Down]:
        # a member that asks again is back before its leaving was noticed
        left = self._leave(client) if client in self.members else Outcome[Down]()
        self._stays[client] = join.stay
        if client not in self._newcomers:
            self._newcomers.append(client)
        welcomes = self._welcomes() if self.state is ServerState.IDLE else ()
        return Outcome(send=(*left.send, *welcomes), installed=left.installed)

    def _welcome(self, client: int) -> Welcome:
        self.members = sorted([*self.members, client])
        return Welcome(
            stay=self._stays[client],
            epoch=self.epoch,
            covered=self.covered.get(client, 0),
            clients=len(self.members),
            belief=_as_payload(self.belief),
        )

    def _leave(self, client: int) -> Outcome[Down]:
        if client in self._newcomers:
            self._newcomers.remove(client)
            return Outcome()
        if self.state is ServerState.IDLE:
            self.members.remove(client)
            return Outcome()
        with self._all_or_nothing():
            self.members.remove(client)
            contributed = client not in self._awaited
            if not (contributed and self._phase + 1 == len(self.plan.phases)):
                self._upto.pop(client, None)  # the new belief will not have its points
            if not contributed:
                self._awaited.remove(client)
                self._order.remove(client)
            return self._advance() if self.members else self._abandon()

    def _abandon(self) -> Outcome[Down]:
        """Nobody is left to install anything: the belief stays as it was."""
        self.state = ServerState.IDLE
        return Outcome(send=self._welcomes())

    def _welcomes(self) -> tuple[tuple[int, Down], ...]:
        newcomers, self._newcomers = self._newcomers, []
        return tuple((client, self._welcome(client)) for client in newcomers)


def _as_payload(belief: Belief) -> Payload:
    """A belief for a newcomer; what only keeps books is not counted among its scalars."""
    arrays = belief.arrays()
    records = {name: arrays.pop(name) for name in BOOKKEEPING if name in arrays}
    return Payload(values=arrays, records=records)
