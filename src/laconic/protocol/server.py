"""The server: a roster, what is installed, and at most one exchange under way. It knows nothing of bandits.

The runtime gives it messages with the link on which they came, says when a link is lost, and tells the time. A member
is known by the name in its greeting, which the runtime has checked; a greeting takes the place of that name's earlier
link, and what still comes on the old one is dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from laconic.beliefs import Belief, belief_hash
from laconic.canonical import table_bytes, table_from
from laconic.checks import require_number, seen
from laconic.errors import InputError, LocalProtocolError, ProtocolError, RemoteProtocolError
from laconic.protocol import alone, together
from laconic.protocol.difference import difference
from laconic.protocol.history import History, agreeing
from laconic.protocol.known_points import PointTable
from laconic.protocol.messages import (
    BLANK,
    Ask,
    Chain,
    Down,
    Hello,
    Label,
    Leave,
    Part,
    Refused,
    Request,
    SetAside,
    Up,
    Upload,
    Welcome,
)
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import Departed, Joined, Opened, Reborn
from laconic.protocol.roster import NO_LINEAGE, Hub, InstalledBelief, Member, Patience, Roster, Status, Turn
from laconic.protocol.vetting import Vetted


class ServerState(Enum):
    """What is under way."""

    IDLE = "idle"
    GATHERING = "gathering"
    MERGING = "merging"
    BUILDING = "building"


class Tick:
    """An event: time has passed."""


class Lost:
    """An event: a link is down."""


class Done:
    """An event: work is done."""


class Heard:
    """An event: a member that counted as away sent something that is no longer of use."""


Sends = tuple[int, Down]


def _numbers(members: Iterable[int]) -> list[int]:
    """The numbers of members, in order, or an error that says what was given."""
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise InputError(f"members must be the numbers of members, not {seen(members)}; try members=range(3)")
    numbers = list(members)
    for number in numbers:
        require_number("a number in members", number)
    twice = [number for number, count in Counter(numbers).items() if count > 1]
    if twice:
        raise InputError(f"two members have the number {twice[0]}; give each its own, as in members=range(3)")
    return sorted(map(int, numbers))


class Server:
    """The middle of the star. Every call gives an `Outcome`; an error leaves everything as it was.

    ``server.opened`` is the record to keep before all others. A server has no lock: threads that share one take turns.

    Args:
        plan: The parts that it runs on; its clients' must be the same.
        members: Numbers of those who are on its roster from the start, from 0 and no two alike, each with a link of
            its own number.
        term: Random number that the runtime draws whenever it starts a server, a whole number from 0 to 2⁵³ − 1. It
            tells beliefs of one start from those of another.
        patience: How long a sync waits for its members, and how many must be present; None: 30 seconds and one member,
            as `Patience()` says. Time passes by `tick` alone: a runtime that never calls it waits for ever.
        most_members: Largest roster, from 1; None: any. Who greets beyond it is refused.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        members: Iterable[int] = (),
        term: int = 0,
        patience: Patience | None = None,
        most_members: int | None = None,
    ) -> None:
        require_plan(plan)
        numbers = _numbers(members)
        require_number("term", term)
        if patience is not None and not isinstance(patience, Patience):
            raise InputError(f"patience must be a Patience, not {seen(patience)}; try Patience(seconds=30.0, quorum=1)")
        if most_members is not None:
            require_number("most_members", most_members, least=1)
        term = int(term)  # NumPy's would not travel
        self.plan = plan
        self.plan_table = table_bytes(plan.table)
        self.most_members = most_members
        first, base = (None, None) if plan.digest is None else (plan.digest.first(plan.belief), plan.digest.blank())
        everyone = (Member(name=str(n), number=n, status=Status.PRESENT, link=n, base=base) for n in numbers)
        self.hub = Hub(
            plan=plan,
            term=term,
            patience=patience or Patience(),
            installed=InstalledBelief(BLANK, plan.belief, belief_hash(plan.belief)),
            log=History.empty(plan.belief.dim),
            points=PointTable(plan.belief.dim),
            edition=first,
            roster=Roster.of(everyone),
        )
        self.opened = Opened(plan=self.plan_table, term=term, members=[str(n) for n in numbers])

    # -- what can be asked ---------------------------------------------------------------------------------------

    @property
    def state(self) -> ServerState:
        """What is under way."""
        return state_of(self.hub)

    @property
    def belief(self) -> Belief:
        """The belief installed at the last sync."""
        return self.hub.installed.belief

    @property
    def epoch(self) -> Label:
        """The epoch of that belief."""
        return self.hub.installed.label

    @property
    def log(self) -> History:
        """All points that clients sent up by themselves, in order of arrival."""
        return self.hub.log

    @property
    def term(self) -> int:
        """The term of this start."""
        return self.hub.term

    @property
    def phase(self) -> int | None:
        """The phase of the sync under way; None between syncs."""
        return None if self.hub.sync is None else self.hub.sync.phase

    @property
    def members(self) -> dict[int, Member]:
        """Everybody on the roster, those who left included, by number."""
        return dict(sorted(self.hub.members.items()))

    @property
    def owed(self) -> tuple[Work, ...]:
        """The work that is under way."""
        hub = self.hub
        if hub.owed is None:
            return ()
        return (alone.work(hub) if hub.sync is None else together.work(hub, hub.sync),)

    # -- events --------------------------------------------------------------------------------------------------

    def vet(self, message: Up) -> Vetted | None:
        """Check what a message carries, for `receive`; it changes nothing, so that it may run beside events.

        Args:
            message: A message from a client.
        """
        return together.vet(self.hub, message) if isinstance(message, Part) else None

    def receive(self, link: int, message: Up, *, vetted: Vetted | None = None) -> Outcome[Sends]:
        """What a message that came on a link leads to.

        One that is late or repeated is dropped, and the outcome says why. The name in a greeting is taken as it is:
        whoever serves strangers checks it first.

        Args:
            link: Number that the runtime gave the link, no two alike; those of members from the start are their own
                numbers.
            message: A message from a client, as `Codec.decode` gives it.
            vetted: What `vet` has said of it; None: it is checked here.

        Raises:
            RemoteProtocolError: No correct client sends this here. End the link, and call `lose`.
        """
        if not isinstance(message, Up):
            raise RemoteProtocolError(f"{type(message).__name__} goes to a client, not to a server")
        if isinstance(message, Hello):
            if self._is_repeated(link, message):
                return Outcome(dropped=f"a repeated greeting of {message.name!r}")
            refused = self._refusal(message)
            if refused is not None:
                refusal, why = refused
                return Outcome(send=((link, refusal),), dropped=why)
            return self._event(Hello, link, message)
        number = self.hub.links.get(link)
        if number is None:
            return Outcome(dropped=f"nobody has greeted on link {link}, or another link took its place")
        member = self.hub.members[number]
        reason = self._stale(member, message)
        if reason is None:
            return self._event(type(message), number, message, vetted=vetted)
        return self._event(Heard, number, reason) if member.status is Status.SLOW else Outcome(dropped=reason)

    def lose(self, link: int) -> Outcome[Sends]:
        """A link is down: its member is away until it greets anew.

        Args:
            link: Number of the link; one that is nobody's changes nothing.
        """
        if link not in self.hub.links:
            return Outcome(dropped=f"link {link} is nobody's")
        return self._event(Lost, link, None)

    def retire(self, name: str) -> Outcome[Sends]:
        """A member that is away counts as one that left, and as one that joins if it greets all the same.

        Its observations stay where those of members that leave do.

        Args:
            name: Name of the member; one that is nobody's, is linked or has left changes nothing.
        """
        number = self.hub.numbers.get(name)
        member = None if number is None else self.hub.members[number]
        if member is None or member.status is Status.LEFT or member.link is not None:
            return Outcome(
                dropped=f"{name!r} is linked" if member and member.link is not None else f"no {name!r} is away"
            )
        return self._event(Leave, member.number, Leave(reason=""))

    def tick(self, now: float) -> Outcome[Sends]:
        """Time has passed; it never goes back.

        Call it now and then, about twice a second: who keeps a sync waiting is left out at such a call.

        Args:
            now: Seconds by any clock, a finite number; an earlier one than the last counts as the last.

        Raises:
            InputError: The time is no finite number.
        """
        return self._event(Tick, 0, now)

    def done(self, work: Work, result: Any) -> Outcome[Sends]:
        """What follows from work that is done; work that is no longer owed changes nothing.

        Args:
            work: What ``outcome.compute`` asked for.
            result: What ``work.result()`` gave, or the error that it raised: the sync is then abandoned.
        """
        if self.hub.owed is None or work.of is not self.hub.owed:
            return Outcome(dropped="this work is no longer owed")
        return self._event(Done, 0, result)

    def _event(self, event: type, who: int, what: Any, *, vetted: Vetted | None = None) -> Outcome[Sends]:
        """Let an event change the state, by the table, or raise and change nothing."""
        before, owed = state_of(self.hub), self.hub.owed
        way = SERVER_TRANSITIONS.get((before, event))
        if way is None:
            raise RemoteProtocolError(f"a server that is {before.value} cannot take {event.__name__}")
        turn = Turn(self.hub, vetted=vetted)
        way.handler(turn, who, what)
        answer_held(turn)
        together.advance(turn)
        answer_held(turn)  # whom the end of a sync sets free
        together.maybe_begin(turn)
        alone.serve(turn)
        after = state_of(turn.hub)
        if after not in way.to:
            raise LocalProtocolError(
                f"{event.__name__} leads from {before.value} to {after.value}, which is not listed"
            )
        self.hub = turn.hub  # one assignment: an interrupt comes before all of an event or after it
        return Outcome(
            keep=tuple(turn.keep),
            send=tuple(turn.send),
            compute=self.owed if turn.hub.owed is not owed else (),
            dropped=turn.dropped,
            installed=turn.installed,
        )

    # -- messages ------------------------------------------------------------------------------------------------

    def _stale(self, member: Member, message: Up) -> str | None:
        """Why a message that is late or repeated is dropped; None when it is not."""
        hub = self.hub
        if member.status is Status.ASIDE:
            return f"client {member.number} is set aside until it greets anew"
        if member.status is Status.HELD and not isinstance(message, Leave):
            return f"the greeting of client {member.number} is not answered yet"
        if member.status is Status.PROVING and not isinstance(message, Chain | Leave):
            return f"client {member.number} has not sent its chain"
        if isinstance(message, Chain) and member.proved:
            return f"a repeated chain of client {member.number}"
        if isinstance(message, Chain) and _has_part(hub, member.number):
            return f"a chain of client {member.number}, whose part is in the sync under way"
        if isinstance(message, Request):
            if message.epoch != hub.installed.label or (hub.sync is not None and member.number in hub.sync.members):
                return f"a sync since epoch {message.epoch.number} is under way or done"
            if not self.plan.phases:
                raise RemoteProtocolError(f"client {member.number} asks for a sync, but this plan has no phases")
        if isinstance(message, Upload) and self.plan.digest is None:
            raise RemoteProtocolError(f"client {member.number} uploads points, but this plan has no digest")
        return together.stale_part(hub, member, message) if isinstance(message, Part) else None

    def _is_repeated(self, link: int, hello: Hello) -> bool:
        """Whether a greeting came on this link before: its sender has gone on, and expects no second answer."""
        number = self.hub.links.get(link)
        last = None if number is None else self.hub.members[number].hello
        return last is not None and last.name == hello.name and 0 < hello.greeting <= last.greeting

    def _refusal(self, hello: Hello) -> tuple[Refused, str] | None:
        """The answer to a greeting that is refused, and why; the client is sent the plan and finds what differs itself.

        None when it is not refused.
        """
        if hello.plan != self.plan_table:
            try:
                said = difference(self.plan.table, table_from(hello.plan))
            except ProtocolError as error:
                said = str(error)
            if said is not None:
                return Refused(reason="another plan", plan=self.plan_table), f"another plan: {said}"
        here = self.hub.clients
        number = self.hub.numbers.get(hello.name)
        is_new = number is None or self.hub.members[number].status is Status.LEFT
        if self.most_members is not None and is_new and here >= self.most_members:
            full = f"there are {here} members, and no more are allowed"
            return Refused(reason=full), full
        return None


# -- greetings ---------------------------------------------------------------------------------------------------------


def greeted(turn: Turn, link: int, hello: Hello) -> None:
    """Somebody greets on a link: a newcomer, a member that was away, or one whose old link is not yet down."""
    number = enrolled(turn, hello.name)
    old = turn.hub.members[number].link
    if old is not None and old != link:
        turn.send.append((old, SetAside(reason="another link greeted under this name", final=True)))
    other = turn.hub.links.get(link)
    if other is not None and other != number:
        lost(turn, link, None)  # a link that greets under another name is no longer its earlier member's
    turn.change_member(number, link=link, hello=hello, status=Status.HELD, proved=False)
    turn.greeted.append(number)
    if _has_part(turn.hub, number) and not _in_step(turn.hub, hello):
        # What the sync will have of it, the server can compare with what it has now only when that is known.
        together.withdraw(turn, number)


def answer_held(turn: Turn) -> None:
    """Answer greetings, but those of members whose part is in a sync that they cannot go on with."""
    # Who was held before this event still is, unless the phase that has its part is over.
    moved = _under_way(turn.hub) != _under_way(turn.before)
    for number in sorted(turn.hub.roster.held if moved else turn.greeted):
        member = turn.hub.members[number]
        hello = member.hello
        if hello is None or member.status is not Status.HELD:
            continue
        if _has_part(turn.hub, number) and not _in_step(turn.hub, hello):
            continue
        turn.change_member(number, status=Status.PRESENT)
        ever = any(len(each.chain) for each in (member.lineage, *member.past.values()))
        if hello.count < member.known or (ever and hello.incarnation != member.incarnation):
            turn.change_member(number, status=Status.PROVING)
            turn.tell(number, _welcome(turn.hub, member, prove=True))
        else:
            _answer(turn, number)


def _has_part(hub: Hub, number: int) -> bool:
    """Whether a part of a member is in the phase under way."""
    return hub.sync is not None and number in hub.sync.contributions


def _under_way(hub: Hub) -> tuple[Label, int] | None:
    """The phase under way."""
    return None if hub.sync is None else (hub.sync.epoch, hub.sync.phase)


def _in_step(hub: Hub, hello: Hello) -> bool:
    """Whether a member that greets takes part in the phase under way."""
    return hub.sync is not None and hello.syncing == _under_way(hub)


def enrolled(turn: Turn, name: str) -> int:
    """The number of a name; a new one is put on the roster, and one that left is on it again."""
    number = turn.hub.numbers.get(name)
    if number is not None and turn.hub.members[number].status is not Status.LEFT:
        return number
    if number is None:
        number = turn.hub.roster.fresh
        base = None if turn.hub.plan.digest is None else turn.hub.plan.digest.blank()
        member = Member(name=name, number=number, status=Status.AWAY, base=base)
        turn.change(roster=turn.hub.roster.put(member))
    else:
        turn.change_member(number, status=Status.AWAY)
    turn.keep.append(Joined(name=name, number=number))
    return number


def _welcome(hub: Hub, member: Member, *, prove: bool = False, **more: Any) -> Welcome:
    return Welcome(
        number=member.number,
        clients=hub.clients,
        incarnation=member.incarnation,
        known=member.known,
        tip=member.lineage.chain.at(member.known),
        prove=prove,
        term=hub.term,
        **more,
    )


def _answer(turn: Turn, number: int) -> None:
    """Send a member that greeted what it lacks: a newer belief, an unanswered question, or nothing."""
    hello = turn.hub.members[number].hello
    assert hello is not None
    if turn.hub.plan.digest is not None:
        member = alone.shelved(turn, number)
        assert member.libraries is not None
        library = member.libraries.down.size
        turn.tell(number, _welcome(turn.hub, member, library=library))
        alone.greeted(turn, member)
        return
    installed = turn.hub.installed
    member = turn.change_member(number, held=hello.held)
    behind = (hello.held, hello.mark) != (installed.label, installed.mark)
    newer = together.newer(turn.hub, member) if behind else None
    member = turn.change_member(number, held=installed.label)
    question = _unanswered(turn, number, hello)
    sync = turn.hub.sync
    syncing = sync.epoch if sync is not None and number in sync.members else None
    for message in (_welcome(turn.hub, member, syncing=syncing), newer, question):
        if message is not None:
            turn.tell(number, message)


def _unanswered(turn: Turn, number: int, hello: Hello) -> Down | None:
    """What a member of the sync under way has yet to answer; one that cannot go on with it is left out."""
    sync = turn.hub.sync
    if sync is None or number not in sync.members:
        return None
    epoch, phase = hello.syncing or (None, 0)
    asked = sync.awaits(number)
    if epoch == sync.epoch and phase == sync.phase:
        return Ask(epoch=sync.epoch, phase=phase, fired=number == sync.fired) if asked else None
    if epoch == sync.epoch and phase == sync.phase - 1 and asked:
        return together.repeated(turn.hub, number)
    if epoch != sync.epoch and sync.phase == 0 and asked:
        return Ask(epoch=sync.epoch, phase=0, fired=number == sync.fired)
    together.withdraw(turn, number)
    return None


def proved(turn: Turn, number: int, chain: Chain) -> None:
    """Find how many of a member's observations are known under any of its incarnations, and begin a new one there."""
    member = turn.hub.members[number]
    hello = member.hello
    hashes = chain.payload.records.get("hashes")
    if hello is None or hashes is None or hashes.ndim != 1 or len(hashes) < hello.count or hashes.dtype != np.uint64:
        together.set_aside(turn, number, "a chain that does not have a hash for each observation")
        return
    lineages = {**member.past, member.incarnation: member.lineage}
    agreed = {each: agreeing(lineage.chain.values, hashes) for each, lineage in lineages.items()}
    best = max(agreed, key=lambda each: (agreed[each], each))
    if best != member.incarnation or agreed[best] < member.known:
        incarnation = max(lineages) + 1
        turn.keep.append(Reborn(number=number, incarnation=incarnation, known=agreed[best], of=best))
        reborn(turn, number, incarnation=incarnation, known=agreed[best], of=best)
    turn.change_member(number, status=Status.PRESENT, proved=True)
    together.withdraw(turn, number)
    _answer(turn, member.number)


def reborn(turn: Turn, number: int, *, incarnation: int, known: int, of: int) -> None:
    """A member goes on from a beginning of what is known of it; the rest stays, as of a client that left."""
    member = turn.hub.members[number]
    past = {**member.past, member.incarnation: member.lineage}
    lineage = past[of].upto(known) if known else NO_LINEAGE
    turn.change_member(number, incarnation=incarnation, lineage=lineage, past=past, libraries=None)


# -- members, links, time, work ----------------------------------------------------------------------------------------


def heard(turn: Turn, number: int, dropped: str | None) -> None:
    """A member that was slow is here again; it is sent what it missed."""
    member = turn.hub.members[number]
    if member.status is Status.SLOW:
        turn.change_member(number, status=Status.PRESENT, held=turn.hub.installed.label)
        if member.held != turn.hub.installed.label:
            turn.tell(number, together.newer(turn.hub, member))
    turn.dropped = dropped


def requested(turn: Turn, number: int, request: Request) -> None:
    """A member's trigger fired; if a sync is under way without it, that is remembered in case the sync fails."""
    heard(turn, number, None)
    turn.change(requests=turn.hub.requests.put(number))


def contributed(turn: Turn, number: int, part: Part) -> None:
    """A part of the phase under way."""
    together.take(turn, turn.hub.members[number], part)


def uploaded(turn: Turn, number: int, upload: Upload) -> None:
    """Observations for the log."""
    alone.upload(turn, turn.hub.members[number], upload)


def left(turn: Turn, number: int, leave: Leave) -> None:
    """A member goes, and the others go on."""
    turn.change_member(number, status=Status.LEFT, link=None)
    turn.keep.append(Departed(number=number))
    together.withdraw(turn, number)


def lost(turn: Turn, link: int, _: None) -> None:
    """A link is down; a sync under way waits for its member as long as patience lasts."""
    number = turn.hub.links[link]
    turn.change_member(number, status=Status.AWAY, link=None)
    turn.change(requests=turn.hub.requests.without(number), asks=turn.hub.asks.without(number))


def ticked(turn: Turn, _: int, now: float) -> None:
    """Time has passed."""
    if not math.isfinite(now):
        raise InputError(f"now must be a finite number of seconds, not {now!r}")
    turn.change(now=max(turn.hub.now, now) if turn.hub.knows_time else now, knows_time=True)
    together.lose_patience(turn)


def merged(turn: Turn, _: int, result: Any) -> None:
    """A phase is merged."""
    together.merged(turn, result)


def built(turn: Turn, _: int, edition: Any) -> None:
    """An edition of the digest is there."""
    alone.built(turn, edition)


def state_of(hub: Hub) -> ServerState:
    """What is under way, by what the server is."""
    if hub.sync is None:
        return ServerState.IDLE if hub.owed is None else ServerState.BUILDING
    return ServerState.GATHERING if hub.owed is None else ServerState.MERGING


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerTransition:
    """What handles an event, and where it may lead."""

    handler: Callable[[Turn, int, Any], None]
    to: frozenset[ServerState]


_S = ServerState
_TOGETHER = (_S.IDLE, _S.GATHERING, _S.MERGING)
_ALONE = (_S.IDLE, _S.BUILDING)

#: Events that every state takes, and where they lead from idle and from gathering. Who comes may be the one that a sync
#: needs to begin, or lack what must be built first; who goes, and time, begin nothing. Lost links are waited for.
_ALWAYS: tuple[tuple[type, Callable[..., None], tuple[ServerState, ...], tuple[ServerState, ...]], ...] = (
    (Hello, greeted, (_S.IDLE, _S.GATHERING, _S.BUILDING), _TOGETHER),
    (Chain, proved, (_S.IDLE, _S.GATHERING, _S.BUILDING), _TOGETHER),
    (Leave, left, (_S.IDLE,), _TOGETHER),
    (Lost, lost, (_S.IDLE,), (_S.GATHERING,)),
    (Tick, ticked, (_S.IDLE,), _TOGETHER),
    (Heard, heard, (_S.IDLE, _S.GATHERING), (_S.GATHERING,)),
)


def _always() -> Iterator[tuple[tuple[ServerState, type], ServerTransition]]:
    for event, handler, idle, gathering in _ALWAYS:
        stays = {_S.MERGING: (_S.MERGING,), _S.BUILDING: (_S.BUILDING,)}
        for state, to in {_S.IDLE: idle, _S.GATHERING: gathering, **stays}.items():
            yield (state, event), ServerTransition(handler, frozenset(to))


#: Which events each state takes; what is not listed is refused, and nothing happens.
SERVER_TRANSITIONS: dict[tuple[ServerState, type], ServerTransition] = {
    **dict(_always()),
    (_S.IDLE, Request): ServerTransition(requested, frozenset({_S.IDLE, _S.GATHERING})),
    (_S.GATHERING, Request): ServerTransition(requested, frozenset({_S.GATHERING})),
    (_S.MERGING, Request): ServerTransition(requested, frozenset({_S.MERGING})),
    (_S.GATHERING, Part): ServerTransition(contributed, frozenset(_TOGETHER)),
    (_S.MERGING, Done): ServerTransition(merged, frozenset(_TOGETHER)),
    (_S.IDLE, Upload): ServerTransition(uploaded, frozenset(_ALONE)),
    (_S.BUILDING, Upload): ServerTransition(uploaded, frozenset({_S.BUILDING})),
    (_S.BUILDING, Done): ServerTransition(built, frozenset(_ALONE)),
}
