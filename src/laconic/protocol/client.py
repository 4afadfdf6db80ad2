"""The client: a learner and a session, and the work that moves points from the tail of the one into the next belief.

It never waits: `choose` and `observe` answer from belief and tail, whatever is under way. It is used by one thread at a
time; a runtime that has more puts a lock around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from numpy.typing import ArrayLike

from laconic.arrays import Floats
from laconic.beliefs import Belief, View, belief_hash
from laconic.canonical import table_bytes, table_from
from laconic.checks import require_flag, require_name, require_no_grid, require_number, seen
from laconic.errors import InputError, LaconicError, RemoteProtocolError
from laconic.protocol import session as sessions
from laconic.protocol.codec import Codec
from laconic.protocol.difference import difference
from laconic.protocol.digests import Held
from laconic.protocol.history import Growing64
from laconic.protocol.known_points import Library, PointTable
from laconic.protocol.learner import ArmIds, Decision, Learner
from laconic.protocol.messages import MOST_TEXT, Down, Install, Merged, Payload, Up, Welcome
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.parcels import Libraries, packed
from laconic.protocol.persistent import changed
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import Born, Finished, Moved, Received, Record
from laconic.protocol.session import ClientState, Local, OwnSync, Session, Step
from laconic.protocol.vetting import Vetted, expect_good, tried
from laconic.protocol.work import Adopting, Bench, finished
from laconic.triggers import counts_bytes


@dataclass(eq=False)
class Standing:
    """Everything of a client that changes."""

    learner: Learner
    session: Session
    held: Held | None  # the version of the digest that it holds, where there is one
    sent: Library  # points that went up, each once
    sent_upto: int = 0  # of so many observations


class Client:
    """One end of the star; see `laconic.protocol.learner` for what it learns and `…session` for what it says.

    Every call gives an `Outcome`: records to keep, messages to send, work to run and hand back. ``client.born`` is the
    record to keep before all others. An error leaves everything as it was. A client has no lock: threads that share one
    take turns, or have an `Agent`, which has one.

    Args:
        plan: The parts that it runs on; its server's must be the same.
        number: Its number on the roster, from 0.
        seed: Seed of its draws, a whole number from 0 to 2⁶⁴ − 1.
        clients: Clients N of the federation, from 1, as far as it knows yet; the server says it with every belief. The
            paper's α and some triggers look at it.
        member: True: it is on the roster from the start and has a link. False: it must greet first.
        name: Name that its server knows it by, a text of 1 to 1000 letters; None: its number.
        start: Random number that the runtime draws whenever it starts a client, a whole number from 0 to 2⁵³ − 1. Ids
            of decisions begin with it, so that those of two starts are told apart.
        term: Term of its server, where it is a member from the start, a whole number from 0 to 2⁵³ − 1. Greetings are
            answered with it.
        points: Table in which the clients of one thread keep the points that they know by number, each once; None: a
            table of its own.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        number: int = 0,
        seed: int = 0,
        clients: int = 1,
        member: bool = True,
        name: str | None = None,
        start: int = 0,
        term: int = 0,
        points: PointTable | None = None,
    ) -> None:
        require_plan(plan)
        _require_identity(number=number, seed=seed, clients=clients, member=member, name=name, start=start, term=term)
        number, seed, clients, start, term = (int(each) for each in (number, seed, clients, start, term))
        self.plan, self.seed = plan, seed
        self.plan_table = table_bytes(plan.table)
        self.phases = len(plan.phases)
        self.born = Born(
            name=str(number) if name is None else name,
            plan=self.plan_table,
            seed=seed,
            number=number,
            clients=clients,
            member=member,
            term=term,
        )
        self._codec = Codec(plan)
        self._counts_bytes = counts_bytes(plan.trigger)
        self._standing = Standing(
            learner=Learner(plan, seed=seed, number=number, clients=clients, start=start),
            session=_first_session(self.born, alone=plan.digest is not None),
            held=None if plan.digest is None else changed(Held.blank(plan.belief), library=_no_points(plan, points)),
            sent=_no_points(plan, points),
        )

    # -- one state after another ---------------------------------------------------------------------------------

    def _draft(self) -> Client:
        """A copy, to which an event happens: if that raises or is interrupted, the client is what it was."""
        return changed(self, _standing=changed(self._standing, learner=changed(self.learner)))

    def _become(self, draft: Client, outcome: Outcome[Up]) -> Outcome[Up]:
        # One assignment, so that an interrupt comes before all of an event or after it, and never in between. One that
        # comes after it, before the outcome is kept, is like a crash there: records tell where to go on from.
        self._standing = draft._standing
        return outcome

    @property
    def learner(self) -> Learner:
        """What it has learnt."""
        return self._standing.learner

    @property
    def session(self) -> Session:
        """What it knows of its server."""
        return self._standing.session

    @session.setter
    def session(self, session: Session) -> None:
        self._standing.session = session

    @property
    def held(self) -> Held | None:
        """The version of the digest that it holds, where there is one."""
        return self._standing.held

    @held.setter
    def held(self, held: Held | None) -> None:
        self._standing.held = held

    # -- what an application does --------------------------------------------------------------------------------

    def choose(self, arms: ArrayLike, *, ids: ArmIds | None = None, view: View | None = None) -> Decision:
        """The arm that the plan's exploration chooses, with the probability with which it did.

        ``decision.record`` is to be kept, though nobody need wait for that.

        Args:
            arms: Arms to choose from, a row of d features each; at least one, and all numbers finite.
            ids: Names of the arms, one for each: texts or whole numbers, no two alike. None: the decision has no
                ``arm_id``.
            view: What the belief says of the arms, where somebody has it at hand; None: it is asked.

        Raises:
            InputError: Arms or names have a wrong shape, or numbers too large to compute with.
        """
        draft = self._draft()
        decision = draft.learner.choose(arms, ids=ids, view=view)
        self._become(draft, Outcome())
        return decision

    def observe(self, decision: Decision | str, reward: float) -> Outcome[Up]:
        """Learn the reward of a decision, however late or out of order; asks for an exchange when the trigger fires.

        Args:
            decision: What `choose` gave, or its id.
            reward: What the arm paid, a finite number.

        Raises:
            UnknownDecision: The decision was not made here, was rewarded before, or was given up.
            InputError: The reward is no finite number, or too large to compute with.
        """
        draft = self._draft()
        return self._become(draft, draft.follow(draft.learner.observe(decision, reward)))

    def learn(self, points: ArrayLike, rewards: ArrayLike) -> Outcome[Up]:
        """Learn rewards of points that were observed elsewhere, all of them or none.

        Args:
            points: Points, a row of d finite features each.
            rewards: Reward of each point, as many finite numbers.

        Raises:
            InputError: Points and rewards are not as many, have a wrong shape, or are too large to compute with.
        """
        draft = self._draft()
        return self._become(draft, draft.follow(draft.learner.learn(points, rewards)))

    def reported(self, points: Floats, rewards: Floats) -> Outcome[Up]:
        """Take in observations that its tail has already, and keep no record of them.

        This is for runtimes that play many clients at once and restore none of them.

        Args:
            points: Points observed, a row each.
            rewards: Reward of each.
        """
        draft = self._draft()
        draft.learner.reported(points, rewards)
        return self._become(draft, draft.follow())

    def forget(self, decision: str) -> Outcome[Up]:
        """Give up waiting for the reward of a decision.

        Args:
            decision: Id of a decision that waits.

        Raises:
            UnknownDecision: It does not wait.
        """
        draft = self._draft()
        return self._become(draft, Outcome(keep=(draft.learner.forget(decision),)))

    def follow(self, *kept: Record) -> Outcome[Up]:
        """What follows from observations that the learner took, and what is to be kept of them.

        Args:
            kept: Records of these observations.
        """
        session = self.session
        if session.owed is not None or session.state not in (ClientState.IDLE, ClientState.WAITING):
            return Outcome(keep=kept)
        if session.state is ClientState.IDLE and self.learner.fires:
            return Outcome(keep=kept, send=self._stepped(Local.TRIGGER).send)
        if session.alone and self.plan.upload.due(unsent=self.count - session.sent, own=self.count):
            return Outcome(keep=kept, send=self._stepped(Local.UPLOAD).send)
        return Outcome(keep=kept)

    # -- what a runtime does -------------------------------------------------------------------------------------

    def greet(self) -> Outcome[Up]:
        """A link is up; from outside this asks to become a member. It is taken in every state."""
        return self.move(Local.GREET)

    def lose(self) -> Outcome[Up]:
        """The link is down.

        Raises:
            LocalProtocolError: It is no member, and so has no link.
        """
        return self.move(Local.LOST)

    def leave(self, reason: str = "") -> Outcome[Up]:
        """Leave for good, or until the next greeting; choosing goes on from belief and tail.

        Args:
            reason: Why, for the server's log, where nobody wished it; a text of up to 4096 letters.

        Raises:
            LocalProtocolError: It is no member.
            InputError: The reason is no text, or too long for a message.
        """
        if not isinstance(reason, str) or len(reason) > MOST_TEXT:
            raise InputError(f"reason must be a text of up to {MOST_TEXT} letters, not {seen(reason)}; try fewer")
        return self.move(Local.LEAVE, reason)

    def flush(self) -> Outcome[Up]:
        """Share all observations now, and ask for what others have; without a link, once there is one.

        Raises:
            LocalProtocolError: It is no member; greet first.
        """
        return self.move(Local.FLUSH)

    def move(self, event: Local, what: Any = None) -> Outcome[Up]:
        """Let one of the client's own events happen.

        Args:
            event: The event; one that the state does not take raises `LocalProtocolError`.
            what: What is to be said with it, where anything is.
        """
        draft = self._draft()
        return self._become(draft, Outcome(keep=(Moved(how=event.name),), send=draft._stepped(event, what).send))

    def vet(self, message: Down, *, known: Vetted | None = None) -> Vetted | None:
        """Check what a message carries, for `receive`; it changes nothing, so that it may run beside events.

        Args:
            message: A message from the server.
            known: What came of an earlier check, which stands if it is of the same payload; None: there was none.
        """
        sync = self.session.sync
        if sync is None or not isinstance(message, Merged | Install):
            return None
        check, draft = self.plan.phases[sync.phase].check_result, self._draft_of(sync)
        is_known = known is not None and known.is_of(check, draft, message.payload)
        return known if is_known else tried(check, draft, message.payload)

    def receive(self, message: Down, *, vetted: Vetted | None = None) -> Outcome[Up]:
        """What a message from the server leads to.

        One that is late or repeated is dropped, and the outcome says why.

        Args:
            message: A message from the server, as `Codec.decode` gives it.
            vetted: What `vet` has said of it; None: it is checked here.

        Raises:
            RemoteProtocolError: No correct server sends this here. End the link, call `lose`, and greet anew.
            PlanMismatch: The server has another plan, and does not let this client in.
        """
        if not isinstance(message, Down):
            raise RemoteProtocolError(f"{type(message).__name__} goes to a server, not to a client")
        draft = self._draft()
        return self._become(draft, draft._received(message, vetted))

    def _received(self, message: Down, vetted: Vetted | None) -> Outcome[Up]:
        # Behind others that wait it waits too: only what they lead to says whether it is late.
        waits = self.session.owed is not None and len(self.session.inbox) > 0
        stale = None if waits else sessions.stale(self.session, message)
        if stale:
            return Outcome(dropped=stale)
        size = self._weight(message)
        if self.session.owed is not None:  # it waits until the work under way is done
            self.learner.received += size
            self.session = changed(self.session, inbox=(*self.session.inbox, message))
            return Outcome(keep=(Received(message=message),))
        self._check(message, vetted)
        step = self._stepped(type(message), message)
        self.learner.received += size
        return Outcome(keep=(Received(message=message),), send=step.send, compute=self.owed, dropped=step.dropped)

    def done(self, work: Work, result: Any) -> Outcome[Up]:
        """What follows from work that is done; work that is no longer owed changes nothing.

        Args:
            work: What ``outcome.compute`` asked for.
            result: What ``work.result()`` gave, or the error that it raised: the client then greets anew.
        """
        if work.of is not self.session.owed:
            return Outcome(dropped="this work is no longer owed")
        draft = self._draft()
        return self._become(draft, draft._worked(result))

    def _worked(self, result: Any) -> Outcome[Up]:
        if isinstance(result, Exception):
            step = self._stepped(Local.FAILED, result)
            failure = str(result) or type(result).__name__
            return Outcome(keep=(Finished(failed=failure),), dropped=step.dropped)
        installed = None
        if isinstance(result, OwnSync):
            step = self._stepped(Local.CONTRIBUTED, result)
        else:
            step = self._adopt(result)
            installed = self.learner.belief
        sent, dropped = self._drained()
        send = (*step.send, *sent)
        return Outcome(keep=(Finished(),), send=send, compute=self.owed, dropped=dropped, installed=installed)

    def _adopt(self, result: Adopting) -> Step:
        self.learner.adopt(result.adoption)
        self.held = result.held
        return self._stepped(Local.ADOPTED, result.adopted)

    def _weight(self, message: Up | Down) -> int:
        """The bytes of a message, where the trigger looks at them; they are counted for nobody else."""
        return self._codec.size(message) if self._counts_bytes else 0

    def _drained(self) -> tuple[tuple[Up, ...], str | None]:
        """Take the messages that came while work was under way, as far as no new work is owed."""
        send: list[Up] = []
        dropped = None
        while self.session.owed is None and self.session.inbox:
            message, *rest = self.session.inbox
            self.session = changed(self.session, inbox=tuple(rest))
            if sessions.stale(self.session, message) is None:
                step = self._taken(message)
                send, dropped = [*send, *step.send], step.dropped or dropped
        return tuple(send), dropped

    def _taken(self, message: Down) -> Step:
        """Take a message that waited; what makes no sense here is answered with a new greeting, as failed work is."""
        held = self.held
        try:
            self._check(message)
            return self._stepped(type(message), message)
        except LaconicError as error:
            self.held = held
            return self._stepped(Local.FAILED, error)

    def _stepped(self, event: type | Local, what: Any = None) -> Step:
        """Move the session by its table; the learner is told what concerns it."""
        held = self.held
        if isinstance(what, Welcome) and held is not None:  # before anything goes up by numbers that the server lost
            self.held = changed(held, library=held.library.first(what.library))
        step = sessions.stepped(self.session, self, event, what)
        begins = step.session.owed is not None and step.session.owed is not self.session.owed
        # Work sees the observations that there were when it began: done again after a restart it gives the same bits.
        self.session = changed(step.session, seen=self.count) if begins else step.session
        self.learner.number, self.learner.clients = step.session.number, step.session.clients
        self.learner.sent += sum(map(self._weight, step.send))
        return step

    # -- what the session asks -----------------------------------------------------------------------------------

    @property
    def state(self) -> ClientState:
        """Where this client stands."""
        return self.session.state

    @property
    def count(self) -> int:
        """How many observations it has made or learnt."""
        return len(self.learner.history)

    @property
    def chain(self) -> Growing64:
        """Their hashes."""
        return self.learner.history.chain

    @property
    def mark(self) -> int:
        """A hash of the belief held, on which all who hold it agree."""
        return belief_hash(self.learner.belief) if self.held is None else self.held.built.mark

    @property
    def fires(self) -> bool:
        """Whether the trigger fires."""
        return self.learner.fires

    @property
    def library(self) -> int:
        """How many points that came down it knows by number."""
        return 0 if self.held is None else self.held.library.size

    @property
    def shelf(self) -> int:
        """A hash of these points."""
        return 0 if self.held is None else self.held.library.mark

    @property
    def libraries(self) -> Libraries:
        """The points that went up so far, and those that came down."""
        return self._libraries(self.session.sent)

    def _libraries(self, sent: int) -> Libraries:
        """The same when so many of its observations went up."""
        history, known, upto = self.learner.history, self._standing.sent, self._standing.sent_upto
        if upto > sent:  # the link was lost, and with it what was on its way
            known, upto = known.first(0), 0
        if self.plan.wire.by_reference:
            known, upto = known.with_points(history.points[upto:sent]), sent
        self._standing = changed(self._standing, sent=known, sent_upto=upto)
        return Libraries(up=known, down=known.first(0) if self.held is None else self.held.library)

    def observations(self, first: int) -> Payload:
        """Its observations from a number on, as they go up.

        Args:
            first: Number of the first of them, from 0.
        """
        points, rewards = self.learner.history.points[first:], self.learner.history.rewards[first:]
        # What a link lost is not known to the server: when this is asked, the session may still count it as sent.
        values, records = packed(points, self.plan.wire, self._libraries(first))
        return Payload(values={**values, "rewards": self.plan.wire.packed_rewards(rewards)}, records=records)

    def signed(self, sync: OwnSync) -> Payload:
        """Its part of a phase, with the hashes of its observations where they do not follow from it.

        Args:
            sync: The sync under way, with this client's part.
        """
        assert sync.own is not None
        if sync.phase + 1 < self.phases or self.plan.phases[sync.phase].shows_points:
            return sync.own
        new = self.chain.values[self.learner.covered : sync.upto]
        return msgspec.structs.replace(sync.own, records={**sync.own.records, "hashes": new})

    def difference(self, plan: bytes) -> str:
        """How another plan differs from this one.

        Args:
            plan: Table of the other plan, as a refusal carries it.
        """
        return difference(self.plan.table, table_from(plan)) or "no difference was found"

    # -- work ----------------------------------------------------------------------------------------------------

    @property
    def owed(self) -> tuple[Work, ...]:
        """The work that is under way, or, after a restart, was."""
        message = self.session.owed
        if message is None:
            return ()
        bench = self._bench()
        return (Work(message, lambda share: finished(bench, message, share)),)

    def _bench(self) -> Bench:
        return Bench(
            plan=self.plan,
            seed=self.seed,
            number=self.session.number,
            belief=self.learner.belief,
            held=self.held,
            libraries=self.libraries,
            term=self.session.term,
            covered=self.learner.covered,
            history=self.learner.history.upto(self.session.seen),
            sync=self.session.sync,
        )

    def _check(self, message: Down, known: Vetted | None = None) -> None:
        """Refuse a payload that does not fit, before anything changes."""
        sync = self.session.sync
        if isinstance(message, Merged | Install) and sync is not None:
            expect_good(self.plan.phases[sync.phase].check_result, self._draft_of(sync), message.payload, known)

    def _draft_of(self, sync: OwnSync) -> Belief:
        """The belief that a sync has come to."""
        return self.learner.belief if sync.draft is None else sync.draft


def _require_identity(
    *, number: int, seed: int, clients: int, member: bool, name: str | None, start: int, term: int
) -> None:
    """Refuse what no client is told about itself."""
    require_number("number", number)
    require_number("seed", seed, bits=64)
    require_number("clients", clients, least=1)
    require_number("start", start)
    require_number("term", term)
    require_no_grid(member=member)
    require_flag("member", member)
    if name is not None:
        require_name("name", name)


def _first_session(born: Born, *, alone: bool) -> Session:
    """What a client knows of its server when it is made."""
    return Session(
        name=born.name,
        state=ClientState.IDLE if born.member else ClientState.OUTSIDE,
        alone=alone,
        number=born.number,
        clients=born.clients,
        incarnation=1 if born.member else 0,
        term=born.term,
    )


def _no_points(plan: Plan, points: PointTable | None) -> Library:
    """An empty library; without a table to share it has its own, as work may add to one while others are read."""
    return Library.empty(plan.belief.dim) if points is None else Library(points)
