"""States from records: a client or a server is the fold of what it kept, and a snapshot stands for many records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from laconic.atoms import Certificate
from laconic.beliefs import Belief, belief_hash
from laconic.canonical import table_from
from laconic.checks import require_number
from laconic.errors import InputError, KernelError, LaconicError, PlanMismatch, RemoteProtocolError
from laconic.protocol import alone, together
from laconic.protocol import server as servers
from laconic.protocol.client import Client
from laconic.protocol.difference import difference
from laconic.protocol.digests import Built, Held
from laconic.protocol.history import Growing64, History
from laconic.protocol.learner import Waiting
from laconic.protocol.library import Library
from laconic.protocol.messages import Up
from laconic.protocol.outcome import Outcome, build_alone
from laconic.protocol.persistent import Group, Map
from laconic.protocol.plan import Plan, require_plan
from laconic.protocol.records import (
    Begun,
    Born,
    ClientSnapshot,
    Contribution,
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
from laconic.protocol.roster import Hub, InstalledBelief, Lineage, Member, Patience, Roster, Status, Turn
from laconic.protocol.server import Sends, Server
from laconic.protocol.session import ClientState, Local, OwnSync, Wants
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
    require_plan(plan)
    require_number("start", start)
    client: Client | None = None
    for place, record in enumerate(records):
        with _naming(place, record):
            client = _after(client, record, plan)
    if client is None:
        raise RemoteProtocolError("there are no records to restore a client from")
    started = Started(start=start)
    client.learner.restarted(start)
    return client, Outcome(keep=(started,), compute=client.owed)


@contextmanager
def _naming(place: int, record: Record) -> Iterator[None]:
    """Say which record does not follow from those before it."""
    try:
        yield
    except PlanMismatch:
        raise
    except (LaconicError, KeyError, IndexError, ValueError, TypeError) as error:
        said = f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)
        raise RemoteProtocolError(
            f"record {place}, {type(record).__name__}: {said}; give records as they were kept, each once and in order"
        ) from error


def _require(follows: bool, why: str) -> None:
    """Refuse a record that does not follow from those before it."""
    if not follows:
        raise RemoteProtocolError(f"{why}, so records are repeated, missing or out of order")


def _after(client: Client | None, record: Record, plan: Plan) -> Client:
    """The client that one more record makes."""
    if isinstance(record, Born):
        _require(client is None, "a client is born once")
        return _born(record, plan)
    if isinstance(record, ClientSnapshot):
        saved = _restored(record, plan)
        if client is not None:
            _require(saved.count == client.count, f"a snapshot of {saved.count} observations after {client.count}")
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
    _require_plan(plan, client.plan_table, born.plan)
    return client


def _replay(client: Client, record: Record) -> None:
    """Let a record's event happen again; what it sent then was sent, or is asked for at the next greeting."""
    learner = client.learner
    if isinstance(record, Started):
        learner.restarted(record.start)
    elif isinstance(record, Decided):
        learner.recall(record)
    elif isinstance(record, Observed):
        _require(learner.may_wait(record.id), f"the reward of decision {record.id!r} came before")
        client.follow(learner.observed(record))
    elif isinstance(record, Learnt):
        _require(record.first in (-1, client.count), f"observations from {record.first} on after {client.count}")
        client.follow(learner.learnt(record))
    elif isinstance(record, Forgot):
        _require(learner.may_wait(record.id), f"nothing more was expected of decision {record.id!r}")
        learner.settle(record.id)
    elif isinstance(record, Moved):
        client.move(Local[record.how])
    elif isinstance(record, Received):
        outcome = client.receive(record.message)  # what is dropped leaves no record
        _require(bool(outcome.keep), f"a message that would have been dropped ({outcome.dropped})")
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
    belief = _belief(plan, saved.belief)
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
    draft = None if saved.draft is None else _belief(plan, saved.draft)
    return OwnSync(saved.epoch, fired=saved.fired, upto=saved.upto, phase=saved.phase, draft=draft, own=saved.own)


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
    for place, record in enumerate(records):
        with _naming(place, record):
            if isinstance(record, Opened | ServerSnapshot):
                _require_plan(plan, server.plan_table, record.plan)
                hub = _opened(hub, record, plan) if isinstance(record, Opened) else _compacted(hub, record, server.hub)
            else:
                hub = _folded(hub, record)
    if hub is None:
        raise RemoteProtocolError("there are no records to restore a server from")
    away = Roster.of(_gone(member) for member in hub.members.values())
    digest = plan.digest
    server.hub = replace(hub, term=term, patience=server.hub.patience, roster=away)
    if digest is not None and len(hub.log):
        try:
            server.hub = replace(server.hub, edition=digest.build(hub.log, hub.edition))
        except (InputError, KernelError):  # a server that could not build of this log before goes on without
            server.hub = replace(server.hub, unbuilt=hub.log)
    return server, Outcome(keep=(server.opened,))


def _gone(member: Member) -> Member:
    status = Status.LEFT if member.status is Status.LEFT else Status.AWAY
    return replace(member, status=status, link=None, hello=None)


def _opened(hub: Hub | None, opened: Opened, plan: Plan) -> Hub:
    """The state at the beginning of a term."""
    if hub is None:
        return Server(plan, members=map(int, opened.members), term=opened.term).hub
    _require(not opened.members, "a server has members from the start once")
    return replace(hub, term=opened.term)


def _compacted(hub: Hub | None, saved: ServerSnapshot, blank: Hub) -> Hub:
    """The state of a snapshot, which is that of the records before it."""
    if hub is not None:
        same = (saved.begun, saved.installed, len(saved.points)) == (hub.begun, hub.installed.label, len(hub.log))
        _require(same, "a snapshot of another state than the one before it")
    return _filled(blank, saved)


def _folded(hub: Hub | None, record: Record) -> Hub:
    """The state with what a record says."""
    if hub is None:
        raise RemoteProtocolError(f"records of a server begin with Opened, not with {type(record).__name__}")
    turn = Turn(hub)
    if isinstance(record, Joined):
        number = servers.enrolled(turn, record.name)
        _require(bool(turn.keep) and number == record.number, f"{record.name!r} joins as client {record.number}")
    elif isinstance(record, Departed):
        _require(hub.members[record.number].status is not Status.LEFT, f"client {record.number} leaves twice")
        turn.change_member(record.number, status=Status.LEFT, link=None)
    elif isinstance(record, Reborn):
        _rebear(turn, record)
    elif isinstance(record, Begun):
        begun = record.epoch.number
        _require(begun == together.next_epoch(hub), f"epoch {begun} begins after {hub.begun}")
        turn.change(begun=begun)
    elif isinstance(record, Installed):
        _reinstall(turn, record)
    elif isinstance(record, Uploaded):
        known = hub.members[record.number].known
        _require(
            record.first in (-1, known), f"observations of client {record.number} from {record.first} on after {known}"
        )
        alone.logged(turn, record)
    else:
        raise RemoteProtocolError(f"{type(record).__name__} is no record of a server")
    return turn.hub


def _rebear(turn: Turn, record: Reborn) -> None:
    """Begin an incarnation again."""
    member = turn.hub.members[record.number]
    lineages = {**member.past, member.incarnation: member.lineage}
    follows = record.incarnation == max(lineages) + 1 and record.known <= len(lineages[record.of].chain)
    _require(follows, f"incarnation {record.incarnation} of client {record.number} after {max(lineages)}")
    servers.reborn(turn, record.number, incarnation=record.incarnation, known=record.known, of=record.of)


def _require_new(hub: Hub, number: int, new: Contribution) -> None:
    """Refuse what a sync has of a member if it does not follow what was known."""
    member = hub.members[number]
    known = len({**member.past, member.incarnation: member.lineage}[new.incarnation].chain)
    follows = known + len(new.hashes) == new.upto
    _require(follows, f"{len(new.hashes)} of client {number}'s {new.upto} observations are new, and {known} known")


def _reinstall(turn: Turn, record: Installed) -> None:
    """Absorb the results of a sync again."""
    epoch = record.epoch
    _require(epoch.number == turn.hub.begun, f"epoch {epoch.number} ends, and {turn.hub.begun} was begun")
    _require(epoch != turn.hub.installed.label, f"epoch {epoch.number} ends twice")
    for number, contribution in record.contributions.items():
        _require_new(turn.hub, number, contribution)
    belief = turn.hub.installed.belief
    for phase, result in zip(turn.hub.plan.phases, record.results, strict=True):
        belief = phase.absorb(belief, result)
    results = tuple(record.results)
    turn.change(installed=together.installing(turn.hub, record.epoch, belief, belief_hash(belief), results))
    turn.change(roster=together.covering(turn.hub, record.contributions))


def snapshot_server(server: Server) -> ServerSnapshot:
    """Everything that a server must remember; a sync under way is not part of it."""
    hub = server.hub
    return ServerSnapshot(
        plan=server.plan_table,
        term=hub.term,
        begun=hub.begun,
        installed=hub.installed.label,
        belief=hub.installed.belief.arrays(),
        members=[_saved_member(member) for _, member in sorted(hub.members.items())],
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
    return replace(
        blank,
        term=saved.term,
        begun=saved.begun,
        installed=InstalledBelief(saved.installed, belief, belief_hash(belief), increments=tuple(saved.increments)),
        roster=Roster.of(_member(each, plan) for each in saved.members),
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
