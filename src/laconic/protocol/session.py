"""The session: a client's membership and its part in exchanges. It knows no kernels.

A session is a value. An event gives the next session and what is to be sent; `TRANSITIONS` says which events a state
takes, what handles them and where they may lead. Every change of state goes through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from laconic.beliefs import Belief
from laconic.errors import LocalProtocolError, PlanMismatch, RemoteProtocolError
from laconic.protocol.history import Growing64
from laconic.protocol.messages import (
    BLANK,
    Ask,
    Chain,
    Digested,
    Down,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Newer,
    NothingNew,
    Part,
    Payload,
    Refused,
    Released,
    Request,
    SetAside,
    Up,
    Upload,
    Welcome,
)
from laconic.protocol.persistent import changed


class ClientState(Enum):
    """Where a client stands."""

    OUTSIDE = "outside"
    AWAY = "away"
    GREETING = "greeting"
    IDLE = "idle"
    WAITING = "waiting"
    SYNCING = "syncing"


class Local(Enum):
    """Events that come from the client itself."""

    GREET = "greet"
    LOST = "lose the link"
    LEAVE = "leave"
    TRIGGER = "trigger"
    FLUSH = "flush"
    UPLOAD = "upload"
    CONTRIBUTED = "contributed"
    ADOPTED = "adopted"
    FAILED = "failed"


class Wants(Enum):
    """What a client has asked for, or would ask for if it had a link."""

    NOTHING = "nothing"
    ASK = "ask"  # its trigger fired
    FLUSH = "flush"  # somebody called flush
    ANSWER = "answer"  # the flush went up on this link, by itself; it is over when the server says what it has


@dataclass(frozen=True, eq=False)
class OwnSync:
    """A sync under way, as this client sees it; ``own`` is its part of the phase once that is computed."""

    epoch: Label
    fired: bool
    upto: int
    phase: int = 0
    draft: Belief | None = None  # None until the first phase is absorbed
    own: Payload | None = None


class Own(Protocol):
    """What a session may ask of the client that it belongs to."""

    plan_table: bytes
    phases: int

    @property
    def count(self) -> int:
        """How many observations it has."""
        ...

    @property
    def chain(self) -> Growing64:
        """Their hashes."""
        ...

    @property
    def mark(self) -> int:
        """A hash of the belief held."""
        ...

    @property
    def fires(self) -> bool:
        """Whether its trigger fires."""
        ...

    @property
    def library(self) -> int:
        """How many points that came down it knows by number."""
        ...

    @property
    def shelf(self) -> int:
        """A hash of these points, its shelf."""
        ...

    def observations(self, first: int) -> Payload:
        """Its observations from a number on."""
        ...

    def signed(self, sync: OwnSync) -> Payload:
        """Its part of a phase, with the hashes of its observations where they do not follow from it."""
        ...

    def difference(self, plan: bytes) -> str:
        """How another plan differs from its own."""
        ...


@dataclass(frozen=True, eq=False)
class Session:
    """Everything that a client knows of its server."""

    name: str
    state: ClientState
    alone: bool  # whether its plan has a digest
    number: int = 0
    clients: int = 1
    incarnation: int = 0
    term: int = 0  # of the server on the other end of the link
    held: Label = BLANK
    covered: int = 0  # how many own observations, from the first on, the belief held has
    sent: int = 0  # how many went up by themselves
    wants: Wants = Wants.NOTHING
    goal: int = 0  # a flush is over when the belief, or alone the server, has this many own observations
    sync: OwnSync | None = None
    latest: Label = BLANK  # the newest sync that it was asked to on this link
    owed: Down | None = None  # the message whose work is under way
    seen: int = 0  # how many own observations there were when that work began
    inbox: tuple[Down, ...] = ()  # what came meanwhile
    greetings: int = 0  # how many since it was started, so that a greeting that comes twice is known

    @property
    def flushing(self) -> bool:
        """Whether a flush is not over."""
        return self.wants in (Wants.FLUSH, Wants.ANSWER)


@dataclass(frozen=True, eq=False)
class Step:
    """A session's next state, and what is to be sent."""

    session: Session
    send: tuple[Up, ...] = ()
    dropped: str | None = None


@dataclass(frozen=True, eq=False)
class Adopted:
    """A new belief was installed."""

    held: Label
    covered: int
    clients: int


# -- what the client itself does ---------------------------------------------------------------------------------------


def greet(s: Session, own: Own, _: None = None) -> Step:
    """A link is up: say who this is and what it holds, once no work is under way that would change that."""
    wants = Wants.FLUSH if s.flushing else s.wants  # what went up before may be lost
    s = changed(s, state=ClientState.GREETING, inbox=(), greetings=s.greetings + 1, wants=wants)
    return Step(s, send=(_hello(s, own),) if s.owed is None else ())


def _hello(s: Session, own: Own) -> Hello:
    return Hello(
        name=s.name,
        plan=own.plan_table,
        incarnation=s.incarnation,
        count=own.count,
        held=s.held,
        mark=own.mark,
        syncing=None if s.sync is None else (s.sync.epoch, s.sync.phase),
        library=own.library,
        shelf=own.shelf,
        greeting=s.greetings,
    )


def lose(s: Session, own: Own, _: None = None) -> Step:
    """The link is down; what was on its way is lost, and the next greeting finds out what."""
    return Step(changed(s, state=ClientState.AWAY, inbox=()))


def leave(s: Session, own: Own, reason: str | None = None) -> Step:
    """Leave; what was observed stays here."""
    linked = s.state in _LINKED
    left = changed(s, state=ClientState.OUTSIDE, sync=None, owed=None, inbox=(), wants=Wants.NOTHING)
    return Step(left, send=(Leave(reason=reason or ""),) if linked else ())


def trigger(s: Session, own: Own, _: None = None) -> Step:
    """The trigger fired: ask, unless that was done."""
    return _asking(changed(s, wants=Wants.FLUSH if s.wants is Wants.FLUSH else Wants.ASK), own)


def upload(s: Session, own: Own, _: None = None) -> Step:
    """Enough observations have come together to go up, with nothing asked for."""
    message = Upload(first=s.sent, payload=own.observations(s.sent), ask=False)
    return Step(changed(s, sent=own.count), send=(message,))


def flush(s: Session, own: Own, _: None = None) -> Step:
    """Share everything now, whatever the trigger says."""
    if not s.alone and own.phases == 0:  # nothing is ever exchanged
        return Step(s)
    wanting = changed(s, wants=Wants.FLUSH, goal=own.count)
    if s.state in (ClientState.IDLE, ClientState.WAITING) and s.owed is None:
        return _asking(wanting, own)
    return Step(wanting)  # once it can


def _asking(s: Session, own: Own) -> Step:
    """Send what is wanted."""
    waiting = changed(s, state=ClientState.WAITING)
    if not s.alone:
        return Step(waiting, send=(Request(epoch=s.held, flush=s.flushing),))
    upload = Upload(first=s.sent, payload=own.observations(s.sent), ask=True, flush=s.flushing)
    return Step(changed(waiting, sent=own.count, wants=Wants.ANSWER if s.flushing else s.wants), send=(upload,))


def _settled(s: Session, own: Own) -> Step:
    """Idle, unless something is wanted."""
    if s.owed is not None or s.wants is Wants.ANSWER:
        return Step(s)
    if s.wants is Wants.NOTHING and own.fires:
        s = changed(s, wants=Wants.ASK)
    return Step(changed(s, state=ClientState.IDLE)) if s.wants is Wants.NOTHING else _asking(s, own)


# -- what the server says ----------------------------------------------------------------------------------------------


def welcome(s: Session, own: Own, m: Welcome) -> Step:
    """The server knows this client; it may lack observations that we have, and we a belief that it has."""
    if m.prove or m.known > own.count or own.chain.at(m.known) != m.tip:
        return Step(s, send=(Chain(payload=Payload(records={"hashes": own.chain.values})),))
    _require_clients(m.clients)
    s = changed(s, number=m.number, clients=m.clients, incarnation=m.incarnation, sent=m.known, term=m.term)
    stays = s.sync is not None and m.syncing == s.sync.epoch
    s = changed(s, sync=s.sync if stays else None, latest=s.latest if stays else BLANK)
    return Step(changed(s, state=ClientState.SYNCING)) if stays else _settled(s, own)


def asked(s: Session, own: Own, m: Ask) -> Step:
    """A sync begins, or the server lacks our part of a phase."""
    if s.sync is None or s.sync.epoch != m.epoch:
        return _begun(s, own, m)
    if m.phase != s.sync.phase or s.sync.own is None:
        raise RemoteProtocolError(f"asked for phase {m.phase} of a sync that is in phase {s.sync.phase}")
    return Step(s, send=(_part(s.sync, own),))


def _begun(s: Session, own: Own, m: Ask) -> Step:
    if own.phases == 0:
        raise RemoteProtocolError("asked for a sync, but this plan has no phases")
    if m.phase != 0:
        raise RemoteProtocolError(f"asked for phase {m.phase} of a sync that this client does not know")
    sync = OwnSync(epoch=m.epoch, fired=m.fired, upto=own.count)
    return Step(changed(s, state=ClientState.SYNCING, sync=sync, latest=m.epoch, owed=m))


def merged(s: Session, own: Own, m: Merged) -> Step:
    """The result of a phase is there; absorb it and contribute to the next."""
    sync = _current(s, m.epoch)
    if m.phase != sync.phase or sync.phase + 1 >= own.phases:
        raise RemoteProtocolError(f"the result of phase {m.phase} came in phase {sync.phase}")
    return Step(changed(s, owed=m))


def install(s: Session, own: Own, m: Install) -> Step:
    """The sync is over; absorb its last result and install the belief."""
    sync = _current(s, m.epoch)
    if sync.phase + 1 != own.phases:
        raise RemoteProtocolError(f"told to install in phase {sync.phase} of {own.phases}")
    if m.covered != sync.upto:
        raise RemoteProtocolError(f"the belief claims {m.covered} observations, {sync.upto} were sent")
    _require_clients(m.clients)
    return Step(changed(s, owed=m))


def newer(s: Session, own: Own, m: Newer) -> Step:
    """Others have moved on; catch up."""
    _require_exchange(s, m, alone=False)
    if m.base != s.held:
        return greet(s, own)
    _require_clients(m.clients)
    return Step(changed(s, sync=None, state=ClientState.IDLE, owed=m))


def released(s: Session, own: Own, m: Released) -> Step:
    """The sync goes on without us, or not at all."""
    if m.pending and s.wants is not Wants.NOTHING:  # the server remembers who asked
        return Step(changed(s, state=ClientState.WAITING, sync=None))
    # A flush is still wanted, and asked for with the next belief; nobody at the other end waits to serve it.
    wants = s.wants if s.wants is Wants.FLUSH else Wants.NOTHING
    return Step(changed(s, state=ClientState.IDLE, sync=None, wants=wants))


def digested(s: Session, own: Own, m: Digested) -> Step:
    """A digest came down; absorb it."""
    _require_exchange(s, m, alone=True)
    if m.base != s.held.number:
        return greet(s, own)
    _require_clients(m.clients)
    return Step(changed(s, owed=m))


def nothing_new(s: Session, own: Own, m: NothingNew) -> Step:
    """A flush arrived; an earlier one than what is waited for if the server has not all that it was about."""
    _require_exchange(s, m, alone=True)
    flushed = s.flushing and m.known < s.goal
    return _settled(s if flushed else changed(s, wants=Wants.NOTHING), own)


def set_aside(s: Session, own: Own, m: SetAside) -> Step:
    """The server does not hear us until we greet anew."""
    return Step(changed(s, state=ClientState.AWAY, sync=None, owed=None, inbox=()), dropped=m.reason)


def refused(s: Session, own: Own, m: Refused) -> Step:
    """The server does not let us in; the link is of no use."""
    if m.plan:
        raise PlanMismatch(f"{m.reason}: {own.difference(m.plan)}; give both sides the same algorithm and parameters")
    raise RemoteProtocolError(m.reason)


def _current(s: Session, epoch: Label) -> OwnSync:
    if s.sync is None or s.sync.epoch != epoch:
        raise RemoteProtocolError(f"no sync of epoch {epoch.number} is under way here")
    return s.sync


def _require_exchange(s: Session, m: Down, *, alone: bool) -> None:
    if s.alone is not alone:
        raise RemoteProtocolError(f"{type(m).__name__} is for clients that exchange {'alone' if alone else 'together'}")


def _require_clients(clients: int) -> None:
    if clients < 1:
        raise RemoteProtocolError(f"a belief of {clients} clients")


# -- what came of work -------------------------------------------------------------------------------------------------


def contributed(s: Session, own: Own, sync: OwnSync) -> Step:
    """Our part of a phase is ready."""
    s = changed(s, sync=sync, owed=None)
    return Step(s, send=(_part(sync, own),)) if s.state is ClientState.SYNCING else _greeting(s, own)


def adopted(s: Session, own: Own, m: Adopted) -> Step:
    """A new belief is installed."""
    # Alone, a digest does not end a flush: it may answer what was asked for before.
    flushed = s.flushing and (s.alone or m.covered < s.goal)
    s = changed(
        s,
        held=m.held,
        covered=m.covered,
        clients=m.clients,
        sent=max(s.sent, m.covered),
        sync=None,
        owed=None,
        wants=s.wants if flushed else Wants.NOTHING,
    )
    return _settled(s, own) if s.state in _SETTLED else _greeting(s, own)


def _greeting(s: Session, own: Own) -> Step:
    """Say what could not be said while work was under way."""
    return Step(s, send=(_hello(s, own),) if s.state is ClientState.GREETING else ())


def failed(s: Session, own: Own, error: Exception) -> Step:
    """Work could not be done: what the server sent makes no sense here, so begin anew with a greeting."""
    away = changed(s, state=ClientState.AWAY, sync=None, owed=None, inbox=())
    return Step(away if s.state in _LINKED else changed(s, sync=None, owed=None), dropped=str(error))


def _part(sync: OwnSync, own: Own) -> Part:
    return Part(epoch=sync.epoch, phase=sync.phase, upto=sync.upto, payload=own.signed(sync))


# -- the table ---------------------------------------------------------------------------------------------------------

Event = type | Local


@dataclass(frozen=True)
class ClientTransition:
    """What handles an event, and where it may lead."""

    handler: Callable[[Session, Own, Any], Step]
    to: frozenset[ClientState]


_S = ClientState
_LINKED = (_S.GREETING, _S.IDLE, _S.WAITING, _S.SYNCING)
_SETTLED = (_S.IDLE, _S.WAITING, _S.SYNCING)
_MEMBER = (_S.AWAY, *_LINKED)
_AFTER = (_S.IDLE, _S.WAITING)

_ROWS: tuple[tuple[tuple[ClientState, ...], Event, Callable[..., Step], tuple[ClientState, ...]], ...] = (
    (tuple(_S), Local.GREET, greet, (_S.GREETING,)),
    (_MEMBER, Local.LOST, lose, (_S.AWAY,)),
    (_MEMBER, Local.LEAVE, leave, (_S.OUTSIDE,)),
    ((_S.IDLE,), Local.TRIGGER, trigger, (_S.WAITING,)),
    ((_S.IDLE,), Local.UPLOAD, upload, (_S.IDLE,)),
    ((_S.WAITING,), Local.UPLOAD, upload, (_S.WAITING,)),
    ((_S.IDLE,), Local.FLUSH, flush, _AFTER),
    ((_S.WAITING,), Local.FLUSH, flush, (_S.WAITING,)),
    ((_S.AWAY,), Local.FLUSH, flush, (_S.AWAY,)),
    ((_S.GREETING,), Local.FLUSH, flush, (_S.GREETING,)),
    ((_S.SYNCING,), Local.FLUSH, flush, (_S.SYNCING,)),
    ((_S.GREETING,), Welcome, welcome, (_S.GREETING, _S.IDLE, _S.WAITING, _S.SYNCING)),
    ((_S.GREETING,), Refused, refused, ()),
    (_SETTLED, Ask, asked, (_S.SYNCING,)),
    ((_S.SYNCING,), Merged, merged, (_S.SYNCING,)),
    ((_S.SYNCING,), Install, install, (_S.SYNCING,)),
    (_SETTLED, Newer, newer, (_S.IDLE, _S.GREETING)),
    ((_S.SYNCING,), Released, released, _AFTER),
    ((_S.IDLE,), Digested, digested, (_S.IDLE, _S.GREETING)),
    ((_S.WAITING,), Digested, digested, (_S.WAITING, _S.GREETING)),
    (_AFTER, NothingNew, nothing_new, _AFTER),
    (_LINKED, SetAside, set_aside, (_S.AWAY,)),
    ((_S.SYNCING,), Local.CONTRIBUTED, contributed, (_S.SYNCING,)),
    ((_S.AWAY,), Local.CONTRIBUTED, contributed, (_S.AWAY,)),
    ((_S.GREETING,), Local.CONTRIBUTED, contributed, (_S.GREETING,)),
    (_SETTLED, Local.ADOPTED, adopted, _AFTER),
    ((_S.AWAY,), Local.ADOPTED, adopted, (_S.AWAY,)),
    ((_S.GREETING,), Local.ADOPTED, adopted, (_S.GREETING,)),
    (_MEMBER, Local.FAILED, failed, (_S.AWAY,)),
)

#: Which events each state takes; what is not listed is refused, and nothing happens.
TRANSITIONS: dict[tuple[ClientState, Event], ClientTransition] = {
    (state, event): ClientTransition(handler, frozenset(to)) for states, event, handler, to in _ROWS for state in states
}


#: What to try where a state does not take what a client was told to do.
_ADVICE = {
    ClientState.OUTSIDE: "it is no member: try greet() once there is a link",
    ClientState.AWAY: "it has no link: try greet() once there is one",
    ClientState.GREETING: "its greeting waits for an answer: deliver what it sent, and give the answer to receive()",
    ClientState.IDLE: "nothing is under way: try flush() to share what it has",
    ClientState.WAITING: "it has asked and waits: deliver what it sent, and give the answer to receive()",
    ClientState.SYNCING: "a sync is under way: deliver what it sent, and give what comes to receive()",
}


def stepped(s: Session, own: Own, event: Event, what: Any = None) -> Step:
    """The session after an event, by the table; an event that the state does not take raises."""
    way = TRANSITIONS.get((s.state, event))
    if way is None:
        if isinstance(event, Local):
            raise LocalProtocolError(f"a client that is {s.state.value} cannot {event.value}; {_ADVICE[s.state]}")
        raise RemoteProtocolError(f"a client that is {s.state.value} cannot take {event.__name__}")
    step = way.handler(s, own, what)
    if step.session.state not in way.to:
        raise LocalProtocolError(
            f"{event} leads from {s.state.value} to {step.session.state.value}, which is not listed"
        )
    return step


def stale(s: Session, message: Down) -> str | None:
    """Why a message that is late, repeated or of another epoch is dropped; None when it is not."""
    if s.state in (_S.OUTSIDE, _S.AWAY):
        return f"this client is {s.state.value}"
    if s.state is _S.GREETING and s.owed is not None:
        return f"{type(message).__name__} from before this client greeted"
    if s.state is _S.GREETING:
        greeted = isinstance(message, Welcome | SetAside | Refused)
        return None if greeted else f"{type(message).__name__} from before the greeting was answered"
    if isinstance(message, Welcome | Refused):
        return "the greeting was answered before"
    if isinstance(message, Newer | Digested):
        return _stale_belief(s, message)
    if isinstance(message, Ask | Merged | Install):
        return _stale_epoch(s, message)
    if isinstance(message, Released) and (s.sync is None or message.epoch != s.sync.epoch):
        return f"no part in the sync of epoch {message.epoch.number}"
    return None


def _stale_belief(s: Session, message: Newer | Digested) -> str | None:
    # What takes the place of the belief held is taken whatever its number: the server may have lost later ones.
    if isinstance(message, Newer):
        label, replaces = message.epoch, message.base == s.held
    else:
        # The number of its base may be that of another term's belief, but no server goes back within a term.
        label = Label(s.term, message.version)
        replaces = message.base == s.held.number <= message.version
    if not replaces and label.term == s.held.term and label.number <= s.held.number:
        return f"a belief of {label.number}, and that of {s.held.number} is held"
    return None


def _stale_epoch(s: Session, message: Ask | Merged | Install) -> str | None:
    epoch = message.epoch
    if epoch == s.held or (epoch.term == s.held.term and epoch.number < s.held.number):
        return f"epoch {epoch.number} is over, this client is in epoch {s.held.number}"
    if isinstance(message, Merged | Install) and (s.sync is None or epoch != s.sync.epoch):
        return f"no sync of epoch {epoch.number} is under way here"
    if isinstance(message, Merged) and s.sync is not None and message.phase < s.sync.phase:
        return f"a repeated result of phase {message.phase}"
    mine = s.sync is not None and epoch == s.sync.epoch
    if isinstance(message, Ask) and not mine and epoch.term == s.latest.term and epoch.number <= s.latest.number:
        return f"epoch {epoch.number} is over, or was abandoned"
    if isinstance(message, Ask) and s.sync is not None and mine and message.phase < s.sync.phase:
        return f"a repeated question of phase {message.phase}"
    return None
