"""The client: chooses, observes, and takes part in syncs. It never waits.

IDLE     --trigger-->  WAITING   a request goes up
IDLE     --Ask------>  SYNCING   its part of phase 0 goes up
WAITING  --Ask------>  SYNCING   likewise, whoever fired first
SYNCING  --Merged--->  SYNCING   the draft absorbs it, the part of the next phase goes up
SYNCING  --Install-->  IDLE      the draft is installed, later observations are replayed onto a new tail
OUTSIDE  --join----->  JOINING
JOINING  --Welcome-->  IDLE      the belief it brings is installed, and observations replayed
inside   --leave---->  OUTSIDE   from any other state

Messages are taken in the order in which the server sent them; any may come again, however late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from laconic.arrays import Floats
from laconic.beliefs import Belief, View
from laconic.checks import MOST, finite_array, require_finite_number, require_whole
from laconic.errors import InputError, LocalProtocolError, RemoteProtocolError, UnknownDecision
from laconic.exploration import tied_with_best
from laconic.growing import first_appearances
from laconic.protocol.history import History
from laconic.protocol.messages import (
    NOTHING,
    Ask,
    Down,
    Install,
    Join,
    Leave,
    Merged,
    Part,
    Payload,
    Request,
    Up,
    Welcome,
)
from laconic.protocol.outcome import Absorb, Outcome, absorb_alone
from laconic.protocol.phases import Member
from laconic.protocol.plan import Plan
from laconic.protocol.received import belief_of, sound
from laconic.randomness import Role, generator
from laconic.tail import Tail


class ClientState(Enum):
    """Where a client stands between joining and leaving."""

    OUTSIDE = "outside"
    JOINING = "joining"
    IDLE = "idle"
    WAITING = "waiting for a sync"
    SYNCING = "syncing"


class Local(Enum):
    """Events that come from the client itself."""

    TRIGGER = "trigger"
    JOIN = "join"
    LEAVE = "leave"


_S = ClientState
#: Where each event leads; a pair that is not listed is refused and nothing happens.
CLIENT_TRANSITIONS: dict[tuple[ClientState, type | Local], ClientState] = {
    (_S.OUTSIDE, Local.JOIN): _S.JOINING,
    (_S.JOINING, Welcome): _S.IDLE,
    (_S.IDLE, Local.TRIGGER): _S.WAITING,
    (_S.IDLE, Ask): _S.SYNCING,
    (_S.WAITING, Ask): _S.SYNCING,
    (_S.SYNCING, Merged): _S.SYNCING,
    (_S.SYNCING, Install): _S.IDLE,
    (_S.JOINING, Local.LEAVE): _S.OUTSIDE,
    (_S.IDLE, Local.LEAVE): _S.OUTSIDE,
    (_S.WAITING, Local.LEAVE): _S.OUTSIDE,
    (_S.SYNCING, Local.LEAVE): _S.OUTSIDE,
}


@dataclass(frozen=True)
class Decision:
    """A chosen arm; its id is what the reward is reported under."""

    id: int
    arm: int
    mean: float  # μ of the arm
    width: float  # ασ of the arm


@dataclass(frozen=True, eq=False)
class Pending:
    """A decision that waits for its reward, and the belief's view of its arm while that belief lasts."""

    point: Floats  # (1, d)
    view: View | None = None


@dataclass(eq=False)
class _Sync:
    """A sync under way, as this client sees it."""

    epoch: int
    fired: bool
    upto: int
    draft: Belief
    phase: int = 0
    own: Payload = NOTHING


class Client:
    """A belief, a tail and a history, and the protocol that moves points from the second into the first."""

    def __init__(
        self, plan: Plan, *, number: int, seed: int, clients: int, member: bool = True, absorb: Absorb = absorb_alone
    ) -> None:
        require_whole("number", number, least=0)
        require_whole("seed", seed, least=0)
        require_whole("clients", clients, least=1)
        self.plan, self.number, self.seed, self.clients = plan, number, seed, clients
        self.epoch = 0
        self.stay = 0
        self.state = _S.IDLE if member else _S.OUTSIDE
        self.history = History(plan.belief.dim)
        self.covered = 0
        self.tail = Tail(plan.belief)
        self.pending: dict[int, Pending] = {}
        self.decisions = 0
        self._absorb = absorb
        self._sync: _Sync | None = None

    @property
    def belief(self) -> Belief:
        """The belief installed at the last sync."""
        return self.tail.belief

    def choose(self, arms: ArrayLike) -> Decision:
        """The arm with the largest μ + ασ under belief and tail, ties broken by a draw of this client's own."""
        arms = self._checked(arms)
        number = first_appearances(arms)
        distinct = np.unique(number, return_index=True)[1]  # equal arms are scored once
        view = self.tail.belief.view(arms[distinct])
        mean, variance = self.tail.predict(view)
        alpha = self.plan.exploration.coefficient(
            lam=self.belief.lam, clients=self.clients, information=self.tail.information
        )
        width = alpha * np.sqrt(variance)
        arm = self._pick(mean[number], width[number])
        decision = Decision(self.decisions, arm, float(mean[number[arm]]), float(width[number[arm]]))
        self.pending[decision.id] = Pending(point=arms[arm : arm + 1].copy(), view=view.at(int(number[arm])))
        self.decisions += 1
        return decision

    def observe(self, decision: int, reward: float) -> Outcome[Up]:
        """Learn the reward of a decision, however late or out of order; asks for a sync when the trigger fires."""
        require_finite_number("reward", reward)
        if abs(float(reward)) >= MOST:
            raise InputError(f"reward must be below {MOST:g} in size, got {reward!r}; rescale rewards")
        if decision not in self.pending:
            raise UnknownDecision(f"decision {decision!r} was not made here, or its reward was reported before")
        pending = self.pending[decision]
        view = pending.view or self.belief.view(pending.point)
        self.tail.append(view, float(reward))  # first, as it may refuse
        self.history.append(pending.point, np.array([reward], dtype=np.float64))
        del self.pending[decision]
        return self._maybe_request()

    def forget(self, decision: int) -> None:
        """Give up waiting for the reward of a decision."""
        if self.pending.pop(decision, None) is None:
            raise UnknownDecision(f"decision {decision!r} is not waiting for a reward")

    def join(self) -> Outcome[Up]:
        """Ask to become a member."""
        self._move(Local.JOIN)
        self.stay += 1
        return self._sending(Join(stay=self.stay))

    def leave(self) -> Outcome[Up]:
        """Leave; what was observed stays here, and choosing goes on from belief and tail."""
        self._move(Local.LEAVE)
        self._sync = None
        return self._sending(Leave(stay=self.stay))

    def receive(self, message: Down) -> Outcome[Up]:
        """What a message from the server leads to; an error leaves everything as it was."""
        if not isinstance(message, Down):
            raise RemoteProtocolError(f"{type(message).__name__} goes to a server, not to a client")
        stale = self._stale(message)
        if stale:
            return Outcome(dropped=stale)
        if (self.state, type(message)) not in CLIENT_TRANSITIONS:
            raise RemoteProtocolError(f"a client that is {self.state.value} cannot take {type(message).__name__}")
        if isinstance(message, Ask):
            return self._begin(message)
        if isinstance(message, Merged):
            return self._continue(message)
        return self._install(message) if isinstance(message, Install) else self._welcome(message)

    # -- choosing ------------------------------------------------------------------------------------------------

    def _checked(self, arms: ArrayLike) -> Floats:
        array = finite_array("arms", arms, ndim=2)
        if len(array) == 0:
            raise InputError("arms is empty: there is nothing to choose from")
        if array.shape[1] != self.belief.dim:
            raise InputError(f"arms must have {self.belief.dim} features, got {array.shape[1]}")
        return array

    def _pick(self, mean: Floats, width: Floats) -> int:
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            raise InputError("the model's predictions overflow; rescale features and rewards to moderate sizes")
        tied = np.flatnonzero(tied_with_best(mean, width))
        if len(tied) == 1:
            return int(tied[0])
        draw = generator(self.seed, Role.TIES, self.number, self.decisions)
        return int(tied[draw.integers(len(tied))])

    # -- syncing -------------------------------------------------------------------------------------------------

    def _move(self, event: type | Local) -> None:
        if (self.state, event) not in CLIENT_TRANSITIONS:
            what = event.value if isinstance(event, Local) else event.__name__
            raise LocalProtocolError(f"a client that is {self.state.value} cannot {what}")
        self.state = CLIENT_TRANSITIONS[self.state, event]

    def _sending(self, message: Up) -> Outcome[Up]:
        return Outcome(send=((self.number, message),))

    def _maybe_request(self, *, installed: int | None = None) -> Outcome[Up]:
        if self.state is not _S.IDLE or not self.plan.trigger.fires(self.tail.news):
            return Outcome(installed=installed)
        self._move(Local.TRIGGER)
        return Outcome(send=((self.number, Request(epoch=self.epoch)),), installed=installed)

    def _stale(self, message: Down) -> str | None:
        """Why a message that is late or repeated is dropped; None when it is not."""
        if self.state is _S.OUTSIDE:
            return "this client has left"
        if isinstance(message, Welcome):
            return self._stale_welcome(message)
        if self.state is _S.JOINING:
            return f"a message of epoch {message.epoch} from before this client joined"
        if message.epoch <= self.epoch:
            return f"epoch {message.epoch} is over, this client is in epoch {self.epoch}"
        if self._sync is None:
            return None
        if isinstance(message, Ask) and message.epoch == self._sync.epoch:
            return f"the sync of epoch {message.epoch} is under way already"
        if isinstance(message, Merged) and message.epoch == self._sync.epoch and message.phase < self._sync.phase:
            return f"a repeated result of phase {message.phase}"
        return None

    def _stale_welcome(self, welcome: Welcome) -> str | None:
        if self.state is not _S.JOINING:
            return "this client is a member already"
        return None if welcome.stay == self.stay else f"a welcome to stay {welcome.stay}, and this is {self.stay}"

    def _begin(self, ask: Ask) -> Outcome[Up]:
        if ask.epoch != self.epoch + 1:
            raise RemoteProtocolError(f"asked for epoch {ask.epoch} in epoch {self.epoch}")
        if not self.plan.phases:
            raise RemoteProtocolError("asked for a sync, but this plan has no phases")
        sync = _Sync(epoch=ask.epoch, fired=ask.fired, upto=len(self.history), draft=self.belief)
        return self._contribute(sync, ask)

    def _continue(self, merged: Merged) -> Outcome[Up]:
        sync = self._current(merged.epoch)
        if merged.phase != sync.phase or sync.phase + 1 >= len(self.plan.phases):
            raise RemoteProtocolError(f"the result of phase {merged.phase} came in phase {sync.phase}")
        draft = self._absorbed(sync, merged.payload)
        ahead = _Sync(epoch=sync.epoch, fired=sync.fired, upto=sync.upto, draft=draft, phase=sync.phase + 1)
        return self._contribute(ahead, merged)

    def _contribute(self, sync: _Sync, message: Down) -> Outcome[Up]:
        sync.own = self.plan.phases[sync.phase].contribute(self._member(sync))
        self._move(type(message))
        self._sync = sync
        return self._sending(Part(epoch=sync.epoch, phase=sync.phase, upto=sync.upto, payload=sync.own))

    def _member(self, sync: _Sync) -> Member:
        return Member(
            installed=self.belief,
            draft=sync.draft,
            points=self.history.points[: sync.upto],
            rewards=self.history.rewards[: sync.upto],
            covered=self.covered,
            fired=sync.fired,
            random=lambda: generator(self.seed, Role.LEVERAGE, self.number, sync.epoch),
        )

    def _current(self, epoch: int) -> _Sync:
        if self._sync is None or self._sync.epoch != epoch:
            raise RemoteProtocolError(f"no sync of epoch {epoch} is under way here")
        return self._sync

    def _absorbed(self, sync: _Sync, received: Payload) -> Belief:
        phase = self.plan.phases[sync.phase]
        phase.check(sync.draft, received)
        return self._absorb(
            sync.epoch, sync.phase, lambda: phase.absorb(sync.draft, phase.complete(received, sync.own))
        )

    def _install(self, install: Install) -> Outcome[Up]:
        sync = self._current(install.epoch)
        if sync.phase + 1 != len(self.plan.phases):
            raise RemoteProtocolError(f"told to install in phase {sync.phase} of {len(self.plan.phases)}")
        if install.covered != sync.upto:
            raise RemoteProtocolError(f"the belief claims {install.covered} observations, {sync.upto} were sent")
        self._adopt(self._absorbed(sync, install.payload), install)
        return self._maybe_request(installed=self.epoch)

    def _welcome(self, welcome: Welcome) -> Outcome[Up]:
        if not 0 <= welcome.covered <= len(self.history):
            raise RemoteProtocolError(
                f"the belief claims {welcome.covered} observations of this client, which has {len(self.history)}: "
                "was its history lost?"
            )
        self._adopt(belief_of(self.plan.belief, welcome.belief.values | welcome.belief.records), welcome)
        return self._maybe_request(installed=self.epoch)

    def _adopt(self, belief: Belief, message: Install | Welcome) -> None:
        """Make a belief the installed one; own points that it lacks go onto a new tail, each exactly once."""
        if message.clients < 1:
            raise RemoteProtocolError(f"a belief of {message.clients} clients")
        tail = Tail(sound(belief))
        rest = slice(message.covered, len(self.history))
        if message.covered < len(self.history):
            view = belief.view(self.history.points[rest])
            for index, reward in enumerate(self.history.rewards[rest]):
                tail.append(view.at(index), float(reward))
        self._move(type(message))
        self.tail, self.covered = tail, message.covered
        self.epoch, self.clients, self._sync = message.epoch, message.clients, None
        self.pending = {key: Pending(point=waiting.point) for key, waiting in self.pending.items()}
