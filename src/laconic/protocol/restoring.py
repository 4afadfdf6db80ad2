"""States from records: a client or a server is the fold of what it kept, and a snapshot stands for many records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from laconic.atoms import Certificate
from laconic.beliefs import Belief, belief_hash
from laconic.canonical import table_from
from laconic.checks import require_number
from laconic.errors import InputError, PlanMismatch, RemoteProtocolError
from laconic.growing import GrowingPoints
from laconic.protocol import alone, together
from laconic.protocol import server as servers
from laconic.protocol.client import Client
from laconic.protocol.difference import difference
from laconic.protocol.digests import Built, Held
from laconic.protocol.history import Growing64, History
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome, build_alone
from laconic.protocol.plan import Plan
from laconic.protocol.records import (
    Begun,
    Born,
    ClientSnapshot,
    Decided,
    Departed,
    Finished,
    Forgot,
    Installed,
    Joined,
    Learnt,
    Moved,
    Observed,
    Opened,
    Reborn,
    Received,
    Record,
    SavedHeld,
    SavedMember,
    SavedSync,
    ServerSnapshot,
    Started,
    Uploaded,
)
from laconic.protocol.roster import Hub, Lineage, Member, Patience, Status, Turn
from laconic.protocol.roster import Installed as InstalledBelief
from laconic.protocol.server import Sends, Server
from laconic.protocol.session import ClientState, Local, Sync, Wants
from laconic.tail import Tail


def _require_plan(plan: Plan, ours: bytes, saved: bytes) -> None:
    said = None if saved == ours else difference(plan.table, table_from(saved))
    if said is not None:
        raise PlanMismatch(f"this state was saved under another plan: {said}")


# -- a client ----------------------------------------------------------------------------------------------------------


def restore_client(records: Iterable[Record], *, plan: Plan, start: int) -> tuple[Client, Outcome[Up]]:
    """The client that left these records, and what follows: a record to keep, and work that is still owed.

    ``start`` is a new random number, as for a new client. Its link, if it had one, is for the runtime to give up.
    """
    require_number("start", start)
    client: Client | None = None
    for record in records:
        if isinstance(record, Born):
            client = _born(record, plan)
        elif isinstance(record, ClientSnapshot):
            client = _restored(record, plan)
        elif client is None:
            raise RemoteProtocolError(f"records of a client begin with Born or a snapshot, not {type(record).__name__}")
        else:
            _replay(client, record)
    if client is None:
        raise RemoteProtocolError("there are no records to restore a client from")
    started = Started(start=start)
    client.learner.restarted(start)
    return client, Outcome(keep=(started,), compute=client.owed)


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
    _require_plan(plan, client.plan_table, born.plan)
    return client


def _replay(client: Client, record: Record) -> None:
    """Let a record's event happen again; what it sent then was sent, or is asked for at the next greeting."""
    if isinstance(record, Started):
        client.learner.restarted(record.start)
    elif isinstance(record, Decided):
        client.learner.recall(record)
    elif isinstance(record, Observed):
        client.take(client.learner.observed(record))
    elif isinstance(record, Learnt):
        client.take(client.learner.learnt(record))
    elif isinstance(record, Forgot):
        client.learner.forget(record.id)
    elif isinstance(record, Moved):
        client.move(Local[record.how])
    elif isinstance(record, Received):
        client.receive(record.message)
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
    """Everything that a client is, in whatever state."""
    learner, session = client.learner, client.session
    return ClientSnapshot(
        born=client.born,
        start=learner.start,
        belief=learner.belief.arrays(),
        tail=learner.tail.arrays(),
        points=learner.history.points,
        rewards=learner.history.rewards,
        pending=dict(learner.pending),
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
    )


def _saved_held(held: Held) -> SavedHeld:
    return SavedHeld(
        number=held.number,
        mark=held.built.mark,
        length=held.built.length,
        library=held.library.rows.values,
        d_eff=held.d_eff,
        atoms=held.atoms,
        certificate={} if held.certificate is None else asdict(held.certificate),
        downloads=held.downloads,
    )


def _held(saved: SavedHeld, belief: Belief) -> Held:
    library = GrowingPoints.empty(belief.dim)
    return Held(
        number=saved.number,
        built=Built(belief, mark=saved.mark, length=saved.length),
        library=library.appended(saved.library) if len(saved.library) else library,
        d_eff=saved.d_eff,
        atoms=saved.atoms,
        certificate=Certificate(**saved.certificate) if saved.certificate else None,
        downloads=saved.downloads,
    )


def _saved_sync(sync: Sync) -> SavedSync:
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
    belief = _belief(plan, saved.belief)
    learner.start, learner.starts, learner.lost = saved.start, dict(saved.starts), set(saved.lost)
    learner.history = History.empty(belief.dim).appended(learner.checked("points", saved.points), saved.rewards)
    if not 0 <= saved.covered <= len(learner.history):
        raise RemoteProtocolError(f"a damaged client: {saved.covered} of {len(learner.history)} observations covered")
    learner.tail, learner.covered = Tail.from_arrays(belief, saved.tail), saved.covered
    if learner.tail.news.count != len(learner.history) - saved.covered:
        raise RemoteProtocolError("a damaged client: belief and tail do not have each of its observations once")
    learner.pending = {name: learner.checked("point", point) for name, point in saved.pending.items()}
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
    )


def _sync(plan: Plan, saved: SavedSync) -> Sync:
    draft = None if saved.draft is None else _belief(plan, saved.draft)
    return Sync(saved.epoch, fired=saved.fired, upto=saved.upto, phase=saved.phase, draft=draft, own=saved.own)


def _belief(plan: Plan, arrays: dict[str, Any]) -> Belief:
    return plan.belief.from_arrays(arrays)


# -- a server ----------------------------------------------------------------------------------------------------------


def restore_server(
    records: Iterable[Record],
    *,
    plan: Plan,
    term: int,
    patience: Patience | None = None,
    most_members: int | None = None,
) -> tuple[Server, Outcome[Sends]]:
    """The server that left these records, at the beginning of a new term: everyone is away and no sync is under way.

    Its outcome has a record to keep before anything else.
    """
    server = Server(plan, term=term, patience=patience, most_members=most_members)
    hub: Hub | None = None
    for record in records:
        if isinstance(record, Opened):
            _require_plan(plan, server.plan_table, record.plan)
            hub = Server(plan, members=map(int, record.members)).hub if hub is None else hub
        elif isinstance(record, ServerSnapshot):
            _require_plan(plan, server.plan_table, record.plan)
            hub = _filled(server.hub, record)
        elif hub is None:
            raise RemoteProtocolError(f"records of a server begin with Opened, not with {type(record).__name__}")
        else:
            hub = _folded(hub, record)
    if hub is None:
        raise RemoteProtocolError("there are no records to restore a server from")
    away = {number: _gone(member) for number, member in hub.members.items()}
    digest = plan.digest
    edition = hub.edition if digest is None or not len(hub.log) else digest.build(hub.log, hub.edition)
    server.hub = replace(hub, term=term, patience=server.hub.patience, members=away, links={}, edition=edition)
    return server, Outcome(keep=(server.opened,))


def _gone(member: Member) -> Member:
    status = Status.LEFT if member.status is Status.LEFT else Status.AWAY
    return replace(member, status=status, link=None, hello=None)


def _folded(hub: Hub, record: Record) -> Hub:
    """The state with what a record says."""
    turn = Turn(hub)
    if isinstance(record, Joined):
        servers.enrolled(turn, record.name)
    elif isinstance(record, Departed):
        turn.change_member(record.number, status=Status.LEFT)
    elif isinstance(record, Reborn):
        servers.reborn(turn, record.number, incarnation=record.incarnation, known=record.known, of=record.of)
    elif isinstance(record, Begun):
        turn.change(begun=max(hub.begun, record.epoch.number))
    elif isinstance(record, Installed):
        _reinstall(turn, record)
    elif isinstance(record, Uploaded):
        alone.logged(turn, record)
    else:
        raise RemoteProtocolError(f"{type(record).__name__} is no record of a server")
    return turn.hub


def _reinstall(turn: Turn, record: Installed) -> None:
    """Absorb the results of a sync again."""
    belief = turn.hub.installed.belief
    for phase, result in zip(turn.hub.plan.phases, record.results, strict=True):
        belief = phase.absorb(belief, result)
    results = tuple(record.results)
    turn.change(installed=together.installing(turn.hub, record.epoch, belief, belief_hash(belief), results))
    turn.change(members=together.covering(turn.hub, record.contributions))


def snapshot_server(server: Server) -> ServerSnapshot:
    """Everything that a server must remember; a sync under way is not part of it."""
    hub = server.hub
    return ServerSnapshot(
        plan=server.plan_table,
        term=hub.term,
        begun=hub.begun,
        installed=hub.installed.label,
        belief=hub.installed.belief.arrays(),
        members=[_saved_member(member) for member in hub.members.values()],
        increments=list(hub.installed.increments),
        points=hub.log.points,
        rewards=hub.log.rewards,
    )


def _saved_member(member: Member) -> SavedMember:
    lineages = {**member.past, member.incarnation: member.lineage}
    return SavedMember(
        name=member.name,
        number=member.number,
        left=member.status is Status.LEFT,
        incarnation=member.incarnation,
        chains={each: lineage.chain.values for each, lineage in lineages.items()},
        places={each: lineage.places.values for each, lineage in lineages.items()},
    )


def _filled(blank: Hub, saved: ServerSnapshot) -> Hub:
    plan = blank.plan
    belief = _belief(plan, saved.belief)
    members = {each.number: _member(each, plan) for each in saved.members}
    return replace(
        blank,
        begun=saved.begun,
        installed=InstalledBelief(saved.installed, belief, belief_hash(belief), increments=tuple(saved.increments)),
        members=members,
        numbers={member.name: number for number, member in members.items()},
        log=History.empty(plan.belief.dim).appended(saved.points, saved.rewards),
    )


def _member(saved: SavedMember, plan: Plan) -> Member:
    lineages = {
        each: Lineage(Growing64.of(chain), Growing64.of(saved.places[each])) for each, chain in saved.chains.items()
    }
    return Member(
        name=saved.name,
        number=saved.number,
        status=Status.LEFT if saved.left else Status.AWAY,
        incarnation=saved.incarnation,
        lineage=lineages.pop(saved.incarnation),
        past=lineages,
        base=None if plan.digest is None else plan.digest.blank(),
    )
