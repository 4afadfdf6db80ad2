"""The agent: a client of the protocol inside an application, with durable state and a link in the background."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike

from laconic.algorithms import Algorithm
from laconic.checks import require_positive
from laconic.errors import LaconicError, LinkError, LocalProtocolError, StateError
from laconic.protocol.client import Client
from laconic.protocol.codec import Codec
from laconic.protocol.learner import Decision
from laconic.protocol.messages import Down, Label, Up
from laconic.protocol.outcome import Outcome
from laconic.protocol.plan import Plan
from laconic.protocol.restoring import restore_client
from laconic.protocol.session import ClientState, Wants
from laconic.protocol.vetting import Vetted
from laconic.runtimes.service.ages import WEEK
from laconic.runtimes.service.background import background
from laconic.runtimes.service.diary import CLOSED, Diary, Entry
from laconic.runtimes.service.housekeeping import PAUSE, Housekeeping
from laconic.runtimes.service.joining import TABLE, Joining, Start
from laconic.runtimes.service.linking import RECONNECT, Linking
from laconic.runtimes.service.security import TLS
from laconic.runtimes.service.stamps import new_start, require_own
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.traffic import Traffic
from laconic.runtimes.service.uninterrupted import Bell
from laconic.runtimes.service.worker import Worker

log = logging.getLogger("laconic.agent")
#: After so many seconds a flush is asked for again, if nobody knows that it is wanted.
ASK_AGAIN = 2.0
UNANSWERED = "the flush was not answered"


@dataclass(frozen=True)
class Status:
    """How an agent stands.

    Attributes:
        name: Name of the agent.
        state: State of its session: outside, away, greeting, idle, waiting or syncing.
        linked: Whether a link is up.
        link_error: Why there is no link; None where there is one.
        trouble: Why nothing can be stored before a restart, as after a failure of the disk; None where it can.
        observations: Observations that it has made.
        shared: How many of them went to the coordinator.
        covered: How many of them the belief has; the others are this agent's own knowledge.
        pending: Decisions that wait for their reward.
        forgotten: Decisions that were given up since the start.
        epoch: Epoch, or version, of the belief that it holds.
        clients: Members of the federation, as far as it knows.
        working: Whether work is under way.
        unsent: Messages that are on their way out.
        messages_sent: Messages sent since the start.
        messages_received: Messages received since the start.
        bytes_sent: Bytes sent since the start.
        bytes_received: Bytes received since the start.
    """

    name: str
    state: str
    linked: bool
    link_error: str | None
    trouble: str | None
    observations: int
    shared: int
    covered: int
    pending: int
    forgotten: int
    epoch: int
    clients: int
    working: bool
    unsent: int
    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int


class Agent:
    """Chooses and learns here, and shares through a coordinator; made by `Agent.join`, used from any thread.

    It is a context manager, also of an event loop (``async with await Agent.join_async(…)``), and is closed at the end.

    Args:
        plan: The parts that its client runs on.
        joining: Which coordinator to link to, and how.
        store: State file, open.
        seed: Seed of the draws of a new agent, a whole number from 0 to 2⁶⁴ − 1. A state file that has records keeps
            the seed that it was made with.
        group_commit: Seconds by which `observe` may return before its record is on disk, from 0; 0 returns when it is.
            Raising it is quicker, and a kill loses what was observed since. Above 0.25 it is as 0.25.
        forget_after: Seconds after which a decision without a reward is given up, above 0. Raising it keeps decisions
            waiting longer, each of which takes memory.
        log_decisions: Newest decisions to keep with all arms shown, for laconic log, from 0; 0 keeps none. Raising it
            makes the state file larger.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        joining: Joining,
        store: Store,
        seed: int,
        group_commit: float = 0.0,
        forget_after: float = WEEK,
        log_decisions: int = 0,
    ) -> None:
        self._share = background().sharing.of(joining.address, plan)
        plan = self._share.plan  # of all agents of this federation, so that what one has checked need not be again
        self.plan, self.name = plan, joining.name
        self.traffic = Traffic(plan)
        self._group = group_commit
        self._bell, self._noticing = Bell(), threading.Lock()
        self._closed = threading.Event()
        self._seen: tuple[ClientState, Wants, Label] | None = None  # what those who wait were told of last
        client, first = _restored(plan, store, name=joining.name, seed=seed)
        self._diary = Diary(client, store, perform=self._perform, log_decisions=log_decisions)
        self._worker = Worker(self._diary, name=self.name, share=self._share, told=self._worked, closed=self._closed)
        self._link = Linking(self, joining, codec=Codec(plan))
        if client.state not in (ClientState.OUTSIDE, ClientState.AWAY):
            self._diary.happen(lambda each: each.lose())
        if first.compute:
            self._worker.begin(first.compute)
        pause = group_commit if group_commit > 0 else PAUSE
        self._house = Housekeeping(
            self._diary, name=self.name, closed=self._closed, pause=pause, forget_after=forget_after
        )

    @classmethod
    def join(
        cls,
        address: str,
        *,
        name: str,
        state: str | os.PathLike[str],
        tls: TLS | None = None,
        insecure: bool = False,
        algorithm: Algorithm | None = None,
        dim: int | None = None,
        seed: int | None = None,
        group_commit: float = 0.0,
        forget_after: float = WEEK,
        log_decisions: int = 0,
        wait: float = 30.0,
    ) -> Agent:
        """Open or begin a state file, and link to a coordinator in the background.

        A new agent without an algorithm asks the coordinator for one. Later starts need nobody.

        Args:
            address: The coordinator's HOST:PORT, such as bandit.internal:7443; an IPv6 address stands in brackets.
                Without tls the host is localhost, 127.0.0.1 or another loopback address.
            name: Name of this agent, a text of 1 to 1000 letters of any kind. With tls it is the common name of its
                certificate, which laconic certs makes of up to 64 letters, digits, '-', '_' and '.'.
            state: File of its state; it is made where there is none. It belongs to one process at a time.
            tls: Certificates; None: plaintext, to a coordinator on this machine alone.
            insecure: True: plaintext is wanted. It must be said where there is no tls, and not where there is one.
            algorithm: Algorithm of this agent, given together with dim; None: the one noted in its state file, or else
                the coordinator's. It must be the coordinator's, with the same parameters.
            dim: Features d of an arm, from 1, given together with algorithm; None: as for algorithm.
            seed: Seed of the draws of a new agent, a whole number from 0 to 2⁶⁴ − 1; None: one is drawn. A state file
                that is there keeps the seed that it was made with.
            group_commit: Seconds by which `observe` may return before its record is on disk, from 0; 0 returns when it
                is. Raising it is quicker, and a kill loses what was observed since. Above 0.25 it is as 0.25.
            forget_after: Seconds after which a decision without a reward is given up, above 0. Raising it keeps
                decisions waiting longer, each of which takes memory.
            log_decisions: Newest decisions to keep with all arms shown, for laconic log, from 0; 0 keeps none. Raising
                it makes the state file larger.
            wait: Seconds that a new agent without an algorithm waits for the coordinator to name its own; it asks once
                in any case. Raising it bears with a coordinator that starts later.

        Raises:
            InputError: An argument is refused, or a certificate cannot be read or has another name.
            LinkError: A new agent without an algorithm was not told the coordinator's within wait seconds, or that
                coordinator has none to tell.
            RemoteProtocolError: The coordinator speaks another version of the protocol.
            StateError: The state file is damaged, of another name, role or plan, or cannot be written.
            StateInUse: Another process has the state file.
        """
        start = Start(
            address=address,
            name=name,
            state=state,
            tls=tls,
            insecure=insecure,
            algorithm=algorithm,
            dim=dim,
            seed=seed,
            group_commit=group_commit,
            forget_after=forget_after,
            log_decisions=log_decisions,
            wait=wait,
        )
        table = start.known()
        return cls._begun(start, start.asked().result() if table is None else table)

    @classmethod
    async def join_async(cls, address: str, **options: Any) -> Agent:
        """Join as `join` does, without holding up the event loop: ``async with await Agent.join_async(…) as agent``.

        Who is cancelled while it waits leaves nothing behind: the coordinator is asked no more, and the state file is
        free.

        Args:
            address: The coordinator's HOST:PORT, as for `join`.
            options: All else that `join` takes, by name.

        Raises:
            InputError: An argument is refused, or a certificate cannot be read or has another name.
            LinkError: A new agent without an algorithm was not told the coordinator's within wait seconds.
            RemoteProtocolError: The coordinator speaks another version of the protocol.
            StateError: The state file is damaged, of another name, role or plan, or cannot be written.
            StateInUse: Another process has the state file.
        """
        start = await asyncio.to_thread(Start, address=address, **options)
        table = await asyncio.to_thread(start.known)
        if table is None:
            table = await asyncio.wrap_future(start.asked())
        beginning = background().pool.submit(cls._begun, start, table)
        try:
            return await asyncio.shield(asyncio.wrap_future(beginning))
        except asyncio.CancelledError:  # a thread cannot be stopped, and what it opens is to be closed
            closing = background().pool.submit(_close_begun, beginning)
            while not closing.done():  # however often it is cancelled meanwhile, and where the loop ends
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(asyncio.wrap_future(closing))
            raise

    @classmethod
    def _begun(cls, start: Start, table: bytes) -> Agent:
        """An agent at work; what it was told of its plan is noted in its state file."""
        plan = start.plan(table)
        store = Store(start.state, role="agent", name=start.name, plan=plan)
        try:
            if table and store.about(TABLE) is None:
                store.note(TABLE, table)
            agent = cls(
                plan,
                joining=start.joining,
                store=store,
                seed=secrets.randbits(31) if start.seed is None else int(start.seed),
                group_commit=start.group_commit,
                forget_after=start.forget_after,
                log_decisions=start.log_decisions,
            )
        except BaseException:
            store.close()
            raise
        agent._start()
        return agent

    def _start(self) -> None:
        self._diary.start()
        self._house.start()
        self._link.start()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    # -- what an application does --------------------------------------------------------------------------------

    def choose(self, arms: ArrayLike, ids: Sequence[str | int] | None = None) -> Decision:
        """The arm to take, from what is known here and now; it waits for no network, no disk and no sync.

        Args:
            arms: Arms to choose from, a row of d features each; at least one, and all numbers finite.
            ids: Names of the arms, one for each: texts or whole numbers, no two alike. None: the decision has no name
                of an arm.

        Raises:
            InputError: Arms or names have a wrong shape, or numbers too large to compute with; nothing changed.
            StateError: The agent was closed.
            StateInUse: This process was forked from the one that joined.
        """
        self._require_open()
        options = {} if ids is None else {"ids": ids}
        decision = self._diary.choose(arms, **options)
        self._house.ages.begin(decision.id)
        return decision

    def observe(self, decision: Decision | str, reward: float) -> None:
        """Learn the reward of a decision, however late; unless ``group_commit`` was asked for it is then on disk.

        Args:
            decision: What `choose` gave, or its id, also after a restart.
            reward: What the arm paid, a finite number.

        Raises:
            UnknownDecision: The decision was not made by this agent, was rewarded before, or was given up.
            InputError: The reward is no finite number, or too large to compute with.
            NotYetWritten: The reward was learnt, and waits to be written, as may be with ``group_commit``: do not
                report it again.
            StateError: The state file could not be written, as when the disk is full, or the agent was closed. Nothing
                was learnt: report the reward again.
            StateInUse: This process was forked from the one that joined.
        """

        def event(client: Client) -> Outcome[Up]:
            require_own(decision, client.learner, name=self.name)
            return client.observe(decision, reward)

        self._learn(event)
        self._house.ages.end(decision if isinstance(decision, str) else decision.id)

    def learn(self, points: ArrayLike, rewards: ArrayLike) -> None:
        """Learn rewards of points that were observed elsewhere, all of them or none, durably as `observe` does.

        Args:
            points: Points, a row of d finite features each.
            rewards: Reward of each point, as many finite numbers.

        Raises:
            InputError: Points and rewards are not as many, have a wrong shape, or are too large to compute with.
            NotYetWritten: They were learnt, and wait to be written, as may be with ``group_commit``: do not report them
                again.
            StateError: The state file could not be written, or the agent was closed. Nothing was learnt.
            StateInUse: This process was forked from the one that joined.
        """
        self._learn(lambda client: client.learn(points, rewards))

    def _learn(self, event: Callable[[Client], Outcome[Up]]) -> None:
        self._require_open()
        # A store that refuses is tried at once, so that nothing more is acknowledged that it may never take.
        self._diary.happen(event, early=self._group > 0 and self._diary.failing is None)

    @property
    def pending(self) -> dict[str, float]:
        """Decisions that wait for their reward, by id, and how many seconds they have.

        Raises:
            StateInUse: This process was forked from the one that joined.
        """
        self._require_here()
        return self._house.pending

    def flush(self, timeout: float = 30.0) -> None:
        """Share all observations now, and wait until the coordinator has answered with what others have.

        An algorithm that never exchanges, such as NKernelUCB, returns at once.

        Args:
            timeout: Seconds to wait for the link and for the answer together, above 0. Raising it waits longer for a
                coordinator that is away or slow.

        Raises:
            InputError: The timeout is not above 0.
            LinkError: There was no answer within timeout seconds. What was observed is kept, and is shared later.
            StateError: What waits could not be written, or the agent was closed.
            StateInUse: This process was forked from the one that joined.
        """
        self.flush_while(lambda: True, timeout=timeout)

    def flush_while(self, wanted: Callable[[], bool], *, timeout: float = 30.0) -> None:
        """Flush as `flush` does, and give up waiting half a second after that is no longer ``wanted`` at the latest.

        Args:
            wanted: Function that is asked again and again whether somebody still waits.
            timeout: Seconds to wait for the link and for the answer together, above 0. Raising it waits longer for a
                coordinator that is away or slow.

        Raises:
            InputError: The timeout is not above 0.
            LinkError: There was no answer within timeout seconds, or while it was wanted. What was observed is kept,
                and is shared later.
            StateError: What waits could not be written, or the agent was closed.
            StateInUse: This process was forked from the one that joined.
        """
        require_positive("timeout", timeout)
        self._require_open()
        until = time.monotonic() + timeout
        self._diary.write()
        if not self.plan.exchanges:
            return
        background().require_links()
        if self._link.is_resting:
            raise self._unlinked("there is no link, and none is tried")
        with self._link.hurried():
            self._flush(until, wanted)

    def _flush(self, until: float, wanted: Callable[[], bool]) -> None:
        def comes(holds: Callable[[Client], bool], *, by: float = until) -> bool:
            did = self.comes(lambda client: not wanted() or holds(client), by=by)
            if not wanted():
                raise self._unlinked("nobody waits for the answer any more")
            return did

        if not comes(lambda client: not _is_outside(client)):
            raise self._unlinked("the coordinator was not reached")
        is_answered = False
        while not is_answered:
            self._ask_to_flush()
            # A sync that went on without this agent leaves the flush wanted, and nobody who knows of it.
            is_over = comes(_is_flushed, by=min(until, time.monotonic() + ASK_AGAIN)) or comes(_is_over)
            if not is_over:
                raise self._unlinked(UNANSWERED)
            is_answered, is_outside = self._diary.look(lambda client: (_is_flushed(client), _is_outside(client)))
            if is_outside:
                raise self._unlinked(UNANSWERED)  # who leaves wants nothing any more, which is no answer

    def _ask_to_flush(self) -> None:
        try:
            self._diary.happen(lambda client: client.flush())
        except LocalProtocolError:
            if not self._diary.look(_is_outside):
                raise
            raise self._unlinked(UNANSWERED) from None  # somebody has left just now

    def status(self) -> Status:
        """How this agent stands.

        Raises:
            StateInUse: This process was forked from the one that joined.
        """
        self._require_here()
        sent, received = self.traffic.of("up"), self.traffic.of("down")

        def seen(client: Client) -> Status:
            learner, session = client.learner, client.session
            return Status(
                name=self.name,
                state=session.state.value,
                linked=self._link.is_up,
                link_error=None if self._link.is_up else self._link.error,
                trouble=self.trouble,
                observations=client.count,
                shared=session.sent,
                covered=learner.covered,
                pending=len(learner.pending),
                forgotten=self._house.forgotten,
                epoch=session.held.number,
                clients=session.clients,
                working=self._worker.is_busy or session.owed is not None,
                unsent=self._link.unsent,
                messages_sent=sent.messages,
                messages_received=received.messages,
                bytes_sent=sent.bytes,
                bytes_received=received.bytes,
            )

        status: Status = self._diary.look(seen)
        return status

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored before a restart, or another `join`; None where it can, or may be tried again."""
        return self._diary.store.trouble or self._house.trouble

    def reconnect(self) -> None:
        """Link again now, also after `leave` and where another process took this agent's place.

        Raises:
            StateError: The agent was closed.
            StateInUse: This process was forked from the one that joined.
        """
        self._require_open()
        self._link.again()

    def leave(self) -> None:
        """Leave the federation, until the next start or `reconnect`; choosing and learning here go on.

        The coordinator is told, where there is a link.

        Raises:
            NotYetWritten: It left, and that waits to be written.
            StateError: That it left could not be written, or the agent was closed.
            StateInUse: This process was forked from the one that joined.
        """
        self._require_open()

        def event(client: Client) -> Outcome[Up]:
            self._link.is_resting = True  # a link that is being made would greet after this
            return Outcome() if _is_outside(client) else client.leave()

        try:
            self._diary.happen(event)
        finally:  # it may have left though that is not written yet
            if self._diary.look(_is_outside):
                self._link.rest(f"this agent left; {RECONNECT} to come back")
            else:
                self._link.again()

    def close(self) -> None:
        """End the link, write what waits and let go of the state file; a second call does nothing.

        Raises:
            StateError: What waited could not be written; the state file is let go of all the same.
        """
        if self._closed.is_set():
            return
        self._closed.set()
        if not self._diary.store.is_held:  # a forked process has neither the link nor the threads to wait for
            self._diary.store.close()
            return
        try:
            self._link.stop()
            self._house.finish()
        finally:
            self._diary.close()

    # -- what happens in the background --------------------------------------------------------------------------

    def happen(self, event: Callable[[Client], Outcome[Up]], **options: Any) -> Outcome[Up]:
        """Let something happen to the client, for the link."""
        return self._diary.happen(event, **options)

    def enter(self, event: Callable[[Client], Outcome[Up]]) -> Entry:
        """Let a message happen to the client, for the link, which goes on with what that leads to."""
        return self._diary.enter(event)

    def go_on(self, entry: Entry) -> None:
        """Go on, for the link, with what a message leads to."""
        self.changed()
        self._worker.go_on(entry)

    def look(self, at: Callable[[Client], Any]) -> Any:
        """Something about the client at one moment."""
        return self._diary.look(at)

    def comes(self, holds: Callable[[Client], bool], *, by: float) -> bool:
        """Whether something about the client's state, what it wants or what it holds comes to hold in time."""
        self._bell.wait(lambda: self._closed.is_set() or self._diary.look(holds), until=by, look=0.5)
        return bool(self._diary.look(holds))

    def read(self, data: bytes) -> tuple[Down, Vetted | None]:
        """The message in these bytes, and what a check says of it; beside events, as `choose` waits for those."""
        client = self._diary.frozen()
        return self._share.read(data, lambda message, known: client.vet(message, known=known))

    def changed(self) -> None:
        """Tell those who wait for something that they may look again, where there is something else to see."""
        with self._noticing:
            session = self._diary.client.session
            seen = (session.state, session.wants, session.held)
            is_news, self._seen = seen != self._seen, seen
        if is_news:
            self._bell.ring()

    def _perform(self, entry: Entry) -> None:
        """An event is durable: send what it sends, begin what work it owes."""
        if entry.link is not None:
            for message in entry.outcome.send:
                entry.link.put(message)
        if entry.outcome.compute:
            self._worker.begin(entry.outcome.compute)
        self.changed()

    def _worked(self, outcome: Outcome[Up]) -> None:
        """Work was handed back: a client that gave up its link gets another, and those who wait may look again."""
        self._link.after(outcome)
        self.changed()

    def _unlinked(self, what: str) -> LinkError:
        said = f": {self._link.error}" if self._link.error else ""
        return LinkError(f"{what}{said}; what was observed is kept here, and is shared later")

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise StateError(CLOSED)
        self._require_here()

    def _require_here(self) -> None:
        """Refuse a forked process, where locks may be held by threads that it has not."""
        self._diary.store.require_held()


def _close_begun(beginning: Future[Agent]) -> None:
    """Close an agent that nobody waits for any more, once it has begun."""
    try:
        beginning.result().close()
    except LaconicError as error:
        log.info("an agent that nobody waits for did not begin, or was not closed well", extra={"reason": str(error)})


def _is_flushed(client: Client) -> bool:
    return not client.session.flushing


def _is_over(client: Client) -> bool:
    return client.state is ClientState.IDLE or _is_flushed(client)


def _is_outside(client: Client) -> bool:
    return client.state is ClientState.OUTSIDE


def _restored(plan: Plan, store: Store, *, name: str, seed: int) -> tuple[Client, Outcome[Up]]:
    """The client of a store; the first time, one without observations."""
    if store.last == 0:
        store.append([Client(plan, seed=seed, member=False, name=name).born])
    with store.reading():
        client, outcome = restore_client(store.records(), plan=plan, start=new_start(name))
    store.append(outcome.keep)
    return client, outcome
