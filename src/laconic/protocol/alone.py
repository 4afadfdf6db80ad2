"""Uploads into the log and digests down, as the server serves each client by itself. Nobody waits for anybody."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import expect_bounded, expect_moderate
from laconic.errors import LaconicError, RemoteProtocolError
from laconic.protocol import parcels
from laconic.protocol.digests import Digest, Reader
from laconic.protocol.history import chained
from laconic.protocol.messages import BLANK, Digested, Label, NothingNew, Upload
from laconic.protocol.outcome import Share, Work
from laconic.protocol.parcels import Libraries
from laconic.protocol.records import Uploaded
from laconic.protocol.roster import Hub, Lineage, Member, Turn
from laconic.protocol.together import set_aside

#: So many versions that clients may hold are remembered.
REMEMBERED = 1024


def upload(turn: Turn, member: Member, message: Upload) -> None:
    """Put a member's new observations into the log, and note what it asks for."""
    try:
        uploaded = _checked(turn.hub, member, message)
    except LaconicError as error:
        set_aside(turn, member.number, str(error))
        return
    if len(uploaded.rewards):
        turn.keep.append(uploaded)
        logged(turn, uploaded)
    if message.ask:
        flush = message.flush or turn.hub.asks.get(member.number, False)
        turn.ask(member.number, flush=flush)


def _checked(hub: Hub, member: Member, message: Upload) -> Uploaded:
    """The observations of an upload that are new."""
    rewards = message.payload.values.get("rewards")
    count = 0 if rewards is None else rewards.size
    if message.first < member.known and message.first + count <= member.known:
        # All of it came before; its numbers of points are those of that time.
        return Uploaded(number=member.number, points=np.empty((0, hub.plan.belief.dim)), rewards=np.empty(0))
    X, y = read_upload(hub, member, message)
    known = member.known - message.first
    return Uploaded(number=member.number, points=X[known:], rewards=y[known:], first=member.known)


def read_upload(hub: Hub, member: Member, message: Upload) -> tuple[Floats, Floats]:
    """The observations of an upload."""
    if message.first > member.known:
        raise RemoteProtocolError(
            f"client {member.number} sends observations from {message.first} on, and {member.known} are known"
        )
    if message.first < member.known and hub.plan.wire.by_reference:
        raise RemoteProtocolError(
            f"client {member.number} sends some of its {member.known} known observations again with others"
        )
    belief, values = hub.plan.belief, message.payload.values
    known = libraries(hub, member)
    X = parcels.unpacked(values, message.payload.records, hub.plan.wire, known, dim=belief.dim)
    y = hub.plan.wire.unpacked_rewards(values["rewards"]) if "rewards" in values else np.empty(0)
    if y.shape != (len(X),) or (set(values) - {*parcels.FORMS, "ids", "rewards"}):
        raise RemoteProtocolError(f"expected points with a reward each, got {len(X)} and {y.shape}")
    expect_bounded({"points": X, "rewards": y})
    belief.check_points(X)
    expect_moderate(belief, X, y)
    return X, y


def libraries(hub: Hub, member: Member) -> Libraries:
    """The points that a member and the server know by number; what went up is known from the log."""
    if member.libraries is not None:
        return member.libraries
    empty = Libraries.within(hub.points)
    return empty.sent_up(hub.log.points[own_places(member)]) if hub.plan.wire.by_reference else empty


def logged(turn: Turn, uploaded: Uploaded) -> None:
    """Append a member's observations to the log."""
    log, member = turn.hub.log, turn.hub.members[uploaded.number]
    lineage = member.lineage
    places = np.arange(len(log), len(log) + len(uploaded.rewards), dtype=np.uint64)
    hashes = chained(lineage.chain.at(member.known), uploaded.points, uploaded.rewards)
    longer = Lineage(chain=lineage.chain.appended(hashes), places=lineage.places.appended(places))
    known = libraries(turn.hub, member)
    if turn.hub.plan.wire.by_reference:
        known = known.sent_up(uploaded.points)
    turn.change(log=log.appended(uploaded.points, uploaded.rewards))
    turn.change_member(member.number, lineage=longer, libraries=known)


def own_places(member: Member) -> Ints:
    """Where a member's own observations are in the log."""
    return member.lineage.places.values.astype(np.int64)


def _digest(hub: Hub) -> Digest:
    assert hub.plan.digest is not None
    return hub.plan.digest


def serve(turn: Turn) -> None:
    """Answer whom one can; build a new version where somebody waits for one."""
    if turn.hub.plan.digest is None:
        return
    digest = _digest(turn.hub)
    for number in _to_serve(turn):
        member = turn.hub.members[number]
        stays = turn.hub.unbuilt is turn.hub.log  # it would not be built this time either
        upto = digest.reach(turn.hub.edition) if stays else len(turn.hub.log)
        if not _lacks(turn.hub, member, upto=upto):
            if turn.hub.asks[number]:
                _answered(turn, number)
        elif not stays and digest.due(turn.hub.log, turn.hub.edition, base=member.base):
            if turn.hub.owed is None:
                turn.change(owed=turn.hub.log)
        else:
            send(turn, number)


def _to_serve(turn: Turn) -> list[int]:
    """Who may be answered now: those who asked in this event, and everybody who waits when there is something new."""
    hub, before = turn.hub, turn.before
    is_new = hub.log is not before.log or hub.edition is not before.edition or before.owed is not None
    if is_new and hub.owed is None:  # while an edition is built, those who wait for it are not looked at again
        return list(hub.asks)
    return [number for number in turn.asked if number in hub.asks]


def _lacks(hub: Hub, member: Member, *, upto: int) -> bool:
    """True when a member lacks points of others among the first of the log, or holds what is not known here."""
    length, own = _digest(hub).length(member.base), own_places(member)
    unknown = length == 0 and member.held != BLANK
    return unknown or max(upto - length, 0) > int(((own >= length) & (own < upto)).sum())


def _answered(turn: Turn, number: int) -> None:
    """A member waits no longer. Who flushed is told so, as what was sent may have been on its way before."""
    if turn.hub.asks.get(number, False):
        turn.tell(number, NothingNew(known=turn.hub.members[number].known))
    turn.change(asks=turn.hub.asks.without(number))


def send(turn: Turn, number: int) -> None:
    """Send a member what it lacks of the newest edition."""
    hub, digest = turn.hub, _digest(turn.hub)
    member, own = hub.members[number], own_places(hub.members[number])
    known, whole = libraries(hub, member), digest.length(member.base) == 0
    reader = Reader(
        base=member.base,
        own=own,
        libraries=known,
        wire=hub.plan.wire,
    )
    sent = digest.address(hub.log, hub.edition, reader)
    version, length = digest.number(hub.edition), digest.length(sent.base)
    message = Digested(
        base=member.held.number,
        version=version,
        covered=int((own < length).sum()),
        clients=hub.clients,
        length=length,
        raw=sent.raw,
        payload=sent.payload,
        whole=whole,
    )
    turn.tell(number, message)
    turn.change_member(number, held=Label(hub.term, version), base=sent.base, libraries=sent.libraries)
    _remember(turn, (version, sent.mark), sent.base)
    _answered(turn, number)


def _remember(turn: Turn, version: tuple[int, int], base: Any) -> None:
    """Note what the holders of a version hold, so that they need not be sent it whole when they greet."""
    editions = {**turn.hub.editions, version: base}
    while len(editions) > REMEMBERED:
        del editions[next(iter(editions))]
    turn.change(editions=editions)


def greeted(turn: Turn, member: Member) -> None:
    """A member greets: if the version that it says it holds is not known here, it gets the whole."""
    hub, digest, hello = turn.hub, _digest(turn.hub), member.hello
    assert hello is not None
    base = digest.known(hub.log, hub.editions, number=hello.held.number, mark=hello.mark)
    turn.change_member(member.number, held=hello.held, base=digest.blank() if base is None else base)
    if base is None and digest.due(hub.log, hub.edition, base=digest.blank()):
        turn.ask(member.number, flush=True)
    elif base is None:
        send(turn, member.number)


def shelved(turn: Turn, number: int) -> Member:
    """A member greets: of the points that came down both keep those that it has."""
    member = turn.hub.members[number]
    count, mark = (0, 0) if member.hello is None else (member.hello.library, member.hello.shelf)
    return turn.change_member(number, libraries=libraries(turn.hub, member).received(count, mark=mark))


def work(hub: Hub) -> Work:
    """Build an edition of the digest from the log as it is."""
    digest, log, edition = _digest(hub), hub.log, hub.edition

    def run(share: Share) -> object:
        return digest.build(log, edition)

    return Work(hub.owed, run)


def built(turn: Turn, edition: object) -> None:
    """An edition is there."""
    if isinstance(edition, Exception):
        turn.change(owed=None, unbuilt=turn.hub.owed)
        turn.dropped = f"no edition could be built: {edition}"
        return
    turn.change(owed=None, edition=edition)
    reach = _digest(turn.hub).reach(edition)
    for number in list(turn.hub.asks):  # also if more has come meanwhile: else nobody were ever answered
        if _lacks(turn.hub, turn.hub.members[number], upto=reach):
            send(turn, number)
