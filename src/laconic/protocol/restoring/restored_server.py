"""A server from its records, and the snapshot that stands for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from laconic.beliefs import belief_hash
from laconic.errors import InputError, KernelError, RemoteProtocolError
from laconic.protocol import alone, together
from laconic.protocol import server as servers
from laconic.protocol.history import Growing64, History
from laconic.protocol.outcome import Outcome
from laconic.protocol.plan import Plan
from laconic.protocol.records import (
    Begun,
    Contribution,
    Departed,
    Installed,
    Joined,
    Opened,
    Reborn,
    Record,
    SavedMember,
    ServerSnapshot,
    Uploaded,
)
from laconic.protocol.restoring.order import naming, require_order, require_same_plan, saved_belief
from laconic.protocol.roster import Hub, InstalledBelief, Lineage, Member, Patience, Roster, Status, Turn
from laconic.protocol.server import Sends, Server


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

    Args:
        records: What the server kept, in order: from its first record on, or from a snapshot on.
        plan: The plan that it had.
        term: A new random number, as for a new server, from 0 to 2⁵³ − 1.
        patience: How long a sync waits for its members, and how many must be present; None: 30 seconds and one member,
            as `Patience()` says.
        most_members: Largest roster, from 1; None: any. Who greets beyond it is refused.

    Raises:
        RemoteProtocolError: Records are damaged, missing, repeated or out of order; the first that does not fit is
            named.
        PlanMismatch: They were kept under another plan.
    """
    server = Server(plan, term=term, patience=patience, most_members=most_members)
    hub: Hub | None = None
    for place, record in enumerate(records):
        with naming(place, record):
            if isinstance(record, Opened | ServerSnapshot):
                require_same_plan(plan, server.plan_table, record.plan)
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
    require_order(not opened.members, "a server has members from the start once")
    return replace(hub, term=opened.term)


def _compacted(hub: Hub | None, saved: ServerSnapshot, blank: Hub) -> Hub:
    """The state of a snapshot, which is that of the records before it."""
    if hub is not None:
        same = (saved.begun, saved.installed, len(saved.points)) == (hub.begun, hub.installed.label, len(hub.log))
        require_order(same, "a snapshot of another state than the one before it")
    return _filled(blank, saved)


def _folded(hub: Hub | None, record: Record) -> Hub:
    """The state with what a record says."""
    if hub is None:
        raise RemoteProtocolError(f"records of a server begin with Opened, not with {type(record).__name__}")
    turn = Turn(hub)
    if isinstance(record, Joined):
        number = servers.enrolled(turn, record.name)
        require_order(bool(turn.keep) and number == record.number, f"{record.name!r} joins as client {record.number}")
    elif isinstance(record, Departed):
        require_order(hub.members[record.number].status is not Status.LEFT, f"client {record.number} leaves twice")
        turn.change_member(record.number, status=Status.LEFT, link=None)
    elif isinstance(record, Reborn):
        _rebear(turn, record)
    elif isinstance(record, Begun):
        begun = record.epoch.number
        require_order(begun == together.next_epoch(hub), f"epoch {begun} begins after {hub.begun}")
        turn.change(begun=begun)
    elif isinstance(record, Installed):
        _reinstall(turn, record)
    elif isinstance(record, Uploaded):
        known = hub.members[record.number].known
        require_order(
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
    require_order(follows, f"incarnation {record.incarnation} of client {record.number} after {max(lineages)}")
    servers.reborn(turn, record.number, incarnation=record.incarnation, known=record.known, of=record.of)


def _require_new(hub: Hub, number: int, new: Contribution) -> None:
    """Refuse what a sync has of a member if it does not follow what was known."""
    member = hub.members[number]
    known = len({**member.past, member.incarnation: member.lineage}[new.incarnation].chain)
    follows = known + len(new.hashes) == new.upto
    require_order(follows, f"{len(new.hashes)} of client {number}'s {new.upto} observations are new, and {known} known")


def _reinstall(turn: Turn, record: Installed) -> None:
    """Absorb the results of a sync again."""
    epoch = record.epoch
    require_order(epoch.number == turn.hub.begun, f"epoch {epoch.number} ends, and {turn.hub.begun} was begun")
    require_order(epoch != turn.hub.installed.label, f"epoch {epoch.number} ends twice")
    for number, contribution in record.contributions.items():
        _require_new(turn.hub, number, contribution)
    belief = turn.hub.installed.belief
    for phase, result in zip(turn.hub.plan.phases, record.results, strict=True):
        belief = phase.absorb(belief, result)
    results = tuple(record.results)
    turn.change(installed=together.installing(turn.hub, record.epoch, belief, belief_hash(belief), results))
    turn.change(roster=together.covering(turn.hub, record.contributions))


def snapshot_server(server: Server) -> ServerSnapshot:
    """Everything that a server must remember; a sync under way is not part of it.

    Args:
        server: Any server.
    """
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
    belief = saved_belief(plan, saved.belief)
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
