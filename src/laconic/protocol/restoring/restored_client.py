"""A client from its records, and the snapshot that stands for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from laconic.atoms import Certificate
from laconic.beliefs import Belief
from laconic.checks import require_number
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.client import Client
from laconic.protocol.digests import Built, Held
from laconic.protocol.history import History
from laconic.protocol.known_points import Library
from laconic.protocol.learner import Waiting
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome, build_alone
from laconic.protocol.persistent import Group, Map
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import (
    Born,
    ClientSnapshot,
    Decided,
    Finished,
    Forgot,
    Learnt,
    Moved,
    Observed,
    Received,
    Record,
    SavedHeld,
    SavedSync,
    Started,
)
from laconic.protocol.restoring.order import naming, require_order, require_same_plan, saved_belief
from laconic.protocol.session import ClientState, Local, OwnSync, Wants
from laconic.tail import Tail


def restore_client(records: Iterable[Record], *, plan: Plan, start: int) -> tuple[Client, Outcome[Up]]:
    """The client that left these records, and what follows: a record to keep, and work that is still owed.

    The runtime gives up the link that the client had, if it had one.

    Args:
        records: What the client kept, in order: from its first record on, or from a snapshot on.
        plan: The plan that it had.
        start: A new random number, as for a new client, from 0 to 2⁵³ − 1.

    Raises:
        RemoteProtocolError: Records are damaged, missing, repeated or out of order; the first that does not fit is
            named.
        PlanMismatch: They were kept under another plan.
    """
    require_plan(plan)
    require_number("start", start)
    client: Client | None = None
    for place, record in enumerate(records):
        with naming(place, record):
            client = _after(client, record, plan)
    if client is None:
        raise RemoteProtocolError("there are no records to restore a client from")
    started = Started(start=start)
    client.learner.restarted(start)
    return client, Outcome(keep=(started,), compute=client.owed)


def _after(client: Client | None, record: Record, plan: Plan) -> Client:
    """The client that one more record makes."""
    if isinstance(record, Born):
        require_order(client is None, "a client is born once")
        return _born(record, plan)
    if isinstance(record, ClientSnapshot):
        saved = _restored(record, plan)
        if client is not None:
            require_order(saved.count == client.count, f"a snapshot of {saved.count} observations after {client.count}")
        return saved
    if client is None:
        raise RemoteProtocolError(f"records of a client begin with Born or a snapshot, not {type(record).__name__}")
    _replay(client, record)
    return client


def _born(born: Born, plan: Plan) -> Client:
    try:
        client = Client(
            plan,
            number=born.number,
            seed=born.seed,
            clients=born.clients,
            member=born.member,
            name=born.name,
            term=born.term,
        )
    except InputError as error:
        raise RemoteProtocolError(f"a damaged client: {error}") from None
    require_same_plan(plan, client.plan_table, born.plan)
    return client


def _replay(client: Client, record: Record) -> None:
    """Let a record's event happen again; what it sent then was sent, or is asked for at the next greeting."""
    learner = client.learner
    if isinstance(record, Started):
        learner.restarted(record.start)
    elif isinstance(record, Decided):
        learner.recall(record)
    elif isinstance(record, Observed):
        require_order(learner.may_wait(record.id), f"the reward of decision {record.id!r} came before")
        client.follow(learner.observed(record))
    elif isinstance(record, Learnt):
        require_order(record.first in (-1, client.count), f"observations from {record.first} on after {client.count}")
        client.follow(learner.learnt(record))
    elif isinstance(record, Forgot):
        require_order(learner.may_wait(record.id), f"nothing more was expected of decision {record.id!r}")
        learner.settle(record.id)
    elif isinstance(record, Moved):
        client.move(Local[record.how])
    elif isinstance(record, Received):
        outcome = client.receive(record.message)  # what is dropped leaves no record
        require_order(bool(outcome.keep), f"a message that would have been dropped ({outcome.dropped})")
    elif isinstance(record, Finished):
        _finish(client, record)
    else:
        raise RemoteProtocolError(f"{type(record).__name__} is no record of a client")


def _finish(client: Client, record: Finished) -> None:
    """Do the work again that was done then, or let it fail again."""
    if not client.owed:
        raise RemoteProtocolError("a damaged client: work was finished that was not owed")
    work = client.owed[0]
    try:
        result: Any = RemoteProtocolError(record.failed) if record.failed else work.result(build_alone)
    except InputError as error:
        raise RemoteProtocolError(f"a damaged client: work that was done cannot be done again: {error}") from None
    client.done(work, result)


def snapshot_client(client: Client) -> ClientSnapshot:
    """Everything that a client is, in whatever state.

    Args:
        client: Any client.
    """
    learner, session = client.learner, client.session
    return ClientSnapshot(
        born=client.born,
        start=learner.start,
        belief=learner.belief.arrays(),
        tail=learner.tail.arrays(),
        points=learner.history.points,
        rewards=learner.history.rewards,
        pending={name: waiting.point for name, waiting in learner.pending.items()},
        starts=dict(learner.starts),
        lost=sorted(learner.lost),
        state=session.state.name,
        number=session.number,
        clients=session.clients,
        incarnation=session.incarnation,
        held=session.held,
        term=session.term,
        version=None if client.held is None else _saved_held(client.held),
        covered=learner.covered,
        sent=session.sent,
        wants=session.wants.name,
        goal=session.goal,
        sync=None if session.sync is None else _saved_sync(session.sync),
        latest=session.latest,
        owed=session.owed,
        seen=session.seen,
        inbox=list(session.inbox),
        bytes_sent=learner.sent,
        bytes_received=learner.received,
        greetings=session.greetings,
        odds={name: waiting.odds for name, waiting in learner.pending.items() if waiting.odds is not None},
    )


def _saved_held(held: Held) -> SavedHeld:
    return SavedHeld(
        number=held.number,
        mark=held.built.mark,
        length=held.built.length,
        library=held.library.points,
        d_eff=held.d_eff,
        atoms=held.atoms,
        certificate={} if held.certificate is None else asdict(held.certificate),
        downloads=held.downloads,
    )


def _held(saved: SavedHeld, belief: Belief) -> Held:
    return Held(
        number=saved.number,
        built=Built(belief, mark=saved.mark, length=saved.length),
        library=Library.empty(belief.dim).with_points(saved.library),
        d_eff=saved.d_eff,
        atoms=saved.atoms,
        certificate=Certificate(**saved.certificate) if saved.certificate else None,
        downloads=saved.downloads,
    )


def _saved_sync(sync: OwnSync) -> SavedSync:
    return SavedSync(
        epoch=sync.epoch,
        fired=sync.fired,
        upto=sync.upto,
        phase=sync.phase,
        draft=None if sync.draft is None else sync.draft.arrays(),
        own=sync.own,
    )


def _restored(saved: ClientSnapshot, plan: Plan) -> Client:
    client = _born(saved.born, plan)
    try:
        _fill(client, saved)
    except (InputError, KeyError, ValueError, IndexError, TypeError) as error:
        raise RemoteProtocolError(f"a damaged client: {error}") from None
    return client


def _fill(client: Client, saved: ClientSnapshot) -> None:
    learner, plan = client.learner, client.plan
    belief = saved_belief(plan, saved.belief)
    learner.start, learner.starts, learner.lost = saved.start, Map.of(saved.starts), Group.of(saved.lost)
    learner.history = History.empty(belief.dim).appended(learner.checked("points", saved.points), saved.rewards)
    if not 0 <= saved.covered <= len(learner.history):
        raise RemoteProtocolError(f"a damaged client: {saved.covered} of {len(learner.history)} observations covered")
    learner.tail, learner.covered = Tail.from_arrays(belief, saved.tail), saved.covered
    if learner.tail.news.count != len(learner.history) - saved.covered:
        raise RemoteProtocolError("a damaged client: belief and tail do not have each of its observations once")
    waiting = {name: learner.checked("point", point) for name, point in saved.pending.items()}
    learner.pending = Map.of({name: Waiting.of(point, saved.odds.get(name)) for name, point in waiting.items()})
    learner.number, learner.clients = saved.number, saved.clients
    learner.sent, learner.received = saved.bytes_sent, saved.bytes_received
    if saved.version is not None:
        client.held = _held(saved.version, belief)
        learner.d_eff, learner.told = client.held.d_eff, client.held.told
    client.session = replace(
        client.session,
        state=ClientState[saved.state],
        number=saved.number,
        clients=saved.clients,
        incarnation=saved.incarnation,
        term=saved.term,
        held=saved.held,
        covered=saved.covered,
        sent=saved.sent,
        wants=Wants[saved.wants],
        goal=saved.goal,
        sync=None if saved.sync is None else _sync(plan, saved.sync),
        latest=saved.latest,
        owed=saved.owed,
        seen=saved.seen,
        inbox=tuple(saved.inbox),
        greetings=saved.greetings,
    )


def _sync(plan: Plan, saved: SavedSync) -> OwnSync:
    draft = None if saved.draft is None else saved_belief(plan, saved.draft)
    return OwnSync(saved.epoch, fired=saved.fired, upto=saved.upto, phase=saved.phase, draft=draft, own=saved.own)
