"""Syncs of all members, as the server runs them: gather parts, merge, send down, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from laconic.beliefs import Belief, belief_hash
from laconic.errors import LaconicError, MergeFailed, RemoteProtocolError
from laconic.protocol.history import NO_HASHES, Hashes, chained
from laconic.protocol.messages import Ask, Install, Label, Merged, Newer, Part, Payload, Released, SetAside
from laconic.protocol.outcome import Share, Work
from laconic.protocol.persistent import Group, Map
from laconic.protocol.phases import Phase
from laconic.protocol.plan import Plan
from laconic.protocol.records import Begun, Contribution, Installed
from laconic.protocol.roster import NO_LINEAGE, Hub, InstalledBelief, Lineage, Member, Roster, Status, Sync, Turn
from laconic.protocol.vetting import Vetted, expect_good, tried
from laconic.protocol.work import sound

#: A reason is cut to so many letters, as messages are bounded.
MOST_REASON = 1000


def maybe_begin(turn: Turn) -> None:
    """Begin a sync if somebody asked for one and enough members are here."""
    hub = turn.hub
    if hub.sync is not None or not hub.requests or hub.roster.present < hub.patience.quorum:
        return
    here = [member.number for member in hub.present()]
    everyone = Group.of(here)
    epoch = Label(hub.term, next_epoch(hub))
    fired = next((number for number in hub.requests if number in everyone), here[0])
    sync = Sync(
        epoch=epoch,
        fired=fired,
        draft=hub.installed.belief,
        members=everyone,
        fold=hub.plan.phases[0].empty(),
        opened=hub.now if hub.knows_time else None,
    )
    turn.change(sync=sync, requests=Group.of(), begun=epoch.number)
    turn.keep.append(Begun(epoch=epoch))
    for number in here:
        turn.tell(number, Ask(epoch=epoch, phase=0, fired=number == fired))


def next_epoch(hub: Hub) -> int:
    """The number of the next epoch to begin; one that was once begun is never begun again."""
    return max(hub.begun, hub.installed.label.number) + 1


# -- parts -------------------------------------------------------------------------------------------------------------


def stale_part(hub: Hub, member: Member, part: Part) -> str | None:
    """Why a part that is late or repeated is dropped; None when it is not."""
    sync = hub.sync
    if sync is None or part.epoch != sync.epoch:
        return f"a part for epoch {part.epoch.number}, which is not under way"
    if member.number not in sync.members:
        return f"client {member.number} was left out of epoch {part.epoch.number}"
    if part.phase < sync.phase or (part.phase == sync.phase and member.number in sync.contributions):
        return f"a repeated part of phase {part.phase}"
    return None


def take(turn: Turn, member: Member, part: Part) -> None:
    """Check a part by itself and fold it in; who sends a bad one is set aside, and the others go on."""
    sync = turn.hub.sync
    assert sync is not None
    phase = turn.hub.plan.phases[sync.phase]
    try:
        contribution = _checked(turn, sync, phase, member, part)
        fold = phase.add(sync.fold, member.number, part.payload)
    except LaconicError as error:
        set_aside(turn, member.number, str(error))
        return
    turn.change_sync(fold=fold, contributions=sync.contributions.put(member.number, contribution))


def vet(hub: Hub, part: Part) -> Vetted | None:
    """Check a part for the sync under way, if it is of that; nothing changes."""
    sync = hub.sync
    if sync is None or (part.epoch, part.phase) != (sync.epoch, sync.phase):
        return None
    return tried(hub.plan.phases[sync.phase].check, sync.draft, part.payload)


def _checked(turn: Turn, sync: Sync, phase: Phase, member: Member, part: Part) -> Contribution:
    if part.phase != sync.phase:
        raise RemoteProtocolError(f"client {member.number} is in phase {part.phase}, and the sync in {sync.phase}")
    if part.upto < member.known:
        raise RemoteProtocolError(
            f"client {member.number} has {part.upto} observations of {member.known}: was its history lost?"
        )
    before = sync.counts.get(member.number, part.upto)
    if part.upto != before:
        raise RemoteProtocolError(f"client {member.number} has {part.upto} observations, and had {before} in phase 0")
    expect_good(phase.check, sync.draft, part.payload, turn.vetted)
    if not phase.speaks_for(part.payload, covered=member.known, upto=part.upto):
        raise RemoteProtocolError(f"a part of client {member.number} does not have the observations that it claims")
    plan = turn.hub.plan
    is_last = sync.phase + 1 == len(plan.phases)
    hashes = _hashes(plan, phase, member, part) if is_last else NO_HASHES
    return Contribution(incarnation=member.incarnation, upto=part.upto, hashes=hashes)


def _hashes(plan: Plan, phase: Phase, member: Member, part: Part) -> Hashes:
    """The hashes of the observations that are new in a part: computed where it shows them, else as they were sent."""
    if phase.shows_points:
        return chained(member.lineage.chain.at(member.known), *phase.shown(part.payload, plan.belief.dim))
    sent = part.payload.records.get("hashes", NO_HASHES)
    if sent.dtype != np.uint64 or sent.shape != (part.upto - member.known,):
        raise RemoteProtocolError(f"hashes of {sent.shape} observations where {part.upto - member.known} are new")
    return sent


def set_aside(turn: Turn, number: int, reason: str) -> None:
    """Go on without a member that sends what no correct client sends, until it greets anew."""
    reason = reason[:MOST_REASON]
    turn.tell(number, SetAside(reason=reason))
    turn.change_member(number, status=Status.ASIDE)
    turn.dropped = reason
    withdraw(turn, number)


def withdraw(turn: Turn, number: int) -> None:
    """Wait no longer for a member; what it has contributed to the phase stays in."""
    turn.change(requests=turn.hub.requests.without(number), asks=turn.hub.asks.without(number))
    sync = turn.hub.sync
    if sync is not None and number in sync.members:
        gone = sync.gone + (number in sync.contributions)
        turn.change_sync(members=sync.members.without(number), gone=gone)


# -- the end of a phase ------------------------------------------------------------------------------------------------


def advance(turn: Turn) -> None:
    """Merge when everyone's part is in; abandon a sync that nobody takes part in any more."""
    sync = turn.hub.sync
    if sync is None or turn.hub.owed is not None:
        return
    if not sync.members and not sync.contributions:
        abandon(turn, "nobody is left")
    elif sync.backing < turn.hub.patience.quorum:
        abandon(turn, f"fewer than {turn.hub.patience.quorum} members are left", pending=True)
    elif sync.missing == 0:
        turn.change(owed=sync)


def work(hub: Hub, sync: Sync) -> Work:
    """Merge a phase and absorb the result; where that fails, find whose parts are to blame."""
    phase, is_last = hub.plan.phases[sync.phase], sync.phase + 1 == len(hub.plan.phases)

    def merge(share: Share) -> tuple[Any, Belief, int]:
        merged = phase.finish(sync.draft, sync.fold)

        def build(_: object) -> Belief:
            draft = phase.absorb(sync.draft, phase.whole(merged))
            return sound(draft) if is_last else draft

        draft = share(f"phase {sync.phase}", sync.epoch, build)
        return merged, draft, belief_hash(draft) if is_last else 0

    def run(share: Share) -> tuple[Any, Belief, int]:
        try:
            return merge(share)
        except LaconicError as error:
            culprits = tuple(phase.culprits(sync.draft, sync.fold))
            raise MergeFailed(str(error), culprits=culprits) from error

    return Work(sync, run)


def merged(turn: Turn, result: tuple[Any, Belief, int] | Exception) -> None:
    """A phase is merged: go on to the next, or install."""
    turn.change(owed=None)
    sync = turn.hub.sync
    assert sync is not None
    if isinstance(result, Exception):
        return _failed(turn, result)
    outcome, draft, mark = result
    phase = turn.hub.plan.phases[sync.phase]
    sync = turn.change_sync(draft=draft, merged=outcome, results=(*sync.results, phase.whole(outcome)))
    if sync.phase + 1 == len(turn.hub.plan.phases):
        return _install(turn, sync, mark)
    turn.change_sync(
        phase=sync.phase + 1,
        fold=turn.hub.plan.phases[sync.phase + 1].empty(),
        contributions=Map.of({}),
        counts=Map.of({number: part.upto for number, part in sync.contributions.items()}),
        gone=0,
        opened=turn.hub.now if turn.hub.knows_time else None,
    )
    for number in sorted(sync.members):
        turn.tell(number, repeated(turn.hub, number))
    return None


def repeated(hub: Hub, number: int) -> Merged:
    """The result of the phase before, as one member is sent it."""
    sync = hub.sync
    assert sync is not None
    done = sync.phase - 1
    payload = hub.plan.phases[done].address(sync.merged, number)
    return Merged(epoch=sync.epoch, phase=done, payload=payload)


def _failed(turn: Turn, error: Exception) -> None:
    """Parts that pass their checks alone cannot be merged: say so, and try no more until somebody asks again."""
    abandon(turn, f"the parts could not be merged: {error}")
    culprits = error.culprits if isinstance(error, MergeFailed) else ()
    for number in (each for each in culprits if turn.hub.members[each].link is not None):
        set_aside(turn, number, f"its part could not be merged: {error}")


def abandon(turn: Turn, reason: str, *, pending: bool = False) -> None:
    """End the sync under way without a result; if ``pending`` it is tried again when enough members are here."""
    sync = turn.hub.sync
    assert sync is not None
    for number in sorted(sync.members):
        turn.tell(number, Released(epoch=sync.epoch, reason=reason[:MOST_REASON], pending=pending))
    # Everyone was told that the request waits, so it waits whoever of them goes.
    asking = (sync.fired, *sorted(sync.members.without(sync.fired))) if pending else ()
    others = turn.hub.requests  # of those who did not take part
    turn.change(sync=None, owed=None, requests=Group.of((*asking, *others)))


def _install(turn: Turn, sync: Sync, mark: int) -> None:
    hub = turn.hub
    turn.keep.append(Installed(epoch=sync.epoch, results=list(sync.results), contributions=dict(sync.contributions)))
    turn.change(installed=installing(hub, sync.epoch, sync.draft, mark, sync.results), sync=None, requests=Group.of())
    turn.change(roster=covering(turn.hub, sync.contributions))
    turn.installed = sync.draft
    clients, phase = turn.hub.clients, hub.plan.phases[-1]
    for member in turn.hub.present():
        number = member.number
        if number in sync.members:
            payload, upto = phase.address(sync.merged, number), sync.contributions[number].upto
            turn.tell(number, Install(epoch=sync.epoch, covered=upto, clients=clients, payload=payload))
        else:
            turn.tell(number, newer(turn.hub, member))
        turn.change_member(number, held=sync.epoch)


def installing(hub: Hub, epoch: Label, belief: Belief, mark: int, results: tuple[Payload, ...]) -> InstalledBelief:
    """The new belief, with what was added to the old one as long as that is less than the whole."""
    old, phase = hub.installed, hub.plan.phases[-1]
    if not phase.increments:
        return InstalledBelief(epoch, belief, mark)
    steps = (*old.increments, (old.label, old.mark, results[-1]))
    most = sum(array.size for array in belief.arrays().values())
    size = sum(step[2].scalars for step in steps)
    while size > most:
        size -= steps[0][2].scalars
        steps = steps[1:]
    return InstalledBelief(epoch, belief, mark, increments=steps)


def covering(hub: Hub, contributions: Mapping[int, Contribution]) -> Roster:
    """The roster after an install: whose observations the belief has now."""
    forgets = hub.plan.forgets_departed
    members = []
    for number, member in hub.members.items():
        lineage, past = member.lineage, member.past
        if forgets and number not in contributions:
            lineage = NO_LINEAGE
        new = contributions.get(number)
        if new is not None and new.incarnation == member.incarnation:
            lineage = Lineage(chain=lineage.chain.appended(new.hashes))
        elif new is not None and new.incarnation in past:
            older = past[new.incarnation]
            past = {**past, new.incarnation: Lineage(chain=older.chain.appended(new.hashes))}
        members.append(replace(member, lineage=lineage, past={} if forgets else past))
    return hub.roster.covering(members)


def newer(hub: Hub, member: Member) -> Newer:
    """What a member that is behind lacks: what came after the belief that it holds, or the whole."""
    installed, clients = hub.installed, hub.clients
    steps = _since(installed, member)
    if steps is not None:
        payload = hub.plan.phases[-1].joined(steps)
    else:
        payload = installed.whole
    return Newer(
        epoch=installed.label,
        base=member.held,
        covered=member.known,
        clients=clients,
        payload=payload,
        whole=steps is None,
    )


def _since(installed: InstalledBelief, member: Member) -> list[Payload] | None:
    """What was added since the belief that a member holds; None when that is not known."""
    mark = None if member.hello is None or member.hello.held != member.held else member.hello.mark
    for place, (label, known, _) in enumerate(installed.increments):
        if label == member.held and mark in (None, known):
            return [payload for _, _, payload in installed.increments[place:]]
    return None


# -- time --------------------------------------------------------------------------------------------------------------


def lose_patience(turn: Turn) -> None:
    """Leave out who has not answered in time; below the quorum the sync is abandoned, and the request waits."""
    hub, sync = turn.hub, turn.hub.sync
    if sync is None or hub.owed is not None:
        return
    if sync.opened is None:  # nobody had told the time when it began
        turn.change_sync(opened=hub.now)
        return
    if hub.now - sync.opened < hub.patience.seconds:
        return
    for number in sorted(sync.awaited):
        if hub.members[number].link is not None:
            turn.tell(number, Released(epoch=sync.epoch, reason="this client did not answer in time"))
            turn.change_member(number, status=Status.SLOW)
        withdraw(turn, number)
    sync = turn.hub.sync
    assert sync is not None
    if len(sync.members) < hub.patience.quorum:
        abandon(turn, f"fewer than {hub.patience.quorum} members answered", pending=True)
