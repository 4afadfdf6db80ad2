"""What must hold after every event, whatever happened."""

from __future__ import annotations

import numpy as np

from laconic.protocol.client import Client
from laconic.protocol.messages import Down, Hello, Install, Label, Newer, Part, Released, SetAside, Up, Welcome
from laconic.protocol.outcome import Outcome
from laconic.protocol.records import Begun, Installed
from laconic.protocol.roster import Hub, Status
from laconic.protocol.server import Sends, Server
from laconic.protocol.session import ClientState, Session
from laconic.testing.simulation.estimates import Points, predicted, weighted
from laconic.testing.simulation.failure import require
from laconic.testing.simulation.journal import Journal
from laconic.testing.simulation.nodes import ClientNode, belief_mark

#: How close two routes to a prediction come, relative to its size or to 1.
CLOSE = 1e-6
#: The same where one route has left out what its reference does not express.
ROUGH = 5e-3


# -- a client ----------------------------------------------------------------------------------------------------------


def check_client(node: ClientNode, journal: Journal) -> None:
    """Belief and tail cover every own observation exactly once, and the belief is that of its label."""
    client = node.running
    own, covered = client.learner.history.rewards.tolist(), client.learner.covered
    held = client.session.held
    contents = journal.held(held)
    inside = contents.honest
    require(client.session.covered == covered, f"{node.name}: learner and session differ in what the belief covers")
    require(
        all(each in inside for each in own[:covered]),
        f"{node.name}: an own point that counts as covered is not in {held}",
    )
    require(
        not any(each in inside for each in own[covered:]), f"{node.name}: an own point is in {held} and in the tail"
    )
    count = client.learner.tail.news.count
    require(count == len(own) - covered, f"{node.name}: the tail has {count} of {len(own) - covered} points")
    missing = set(node.acknowledged) - set(own)
    require(not missing, f"{node.name}: lost {len(missing)} acknowledged observations")


def check_mark(node: ClientNode, journal: Journal) -> None:
    """All who hold a label hold the same belief."""
    client = node.running
    held = client.session.held
    version = client.held
    if version is None:
        mark, expected = belief_mark(client.learner.belief), journal.mark(held)
    elif version.atoms is None:
        mark, expected = version.built.mark, journal.mark(held)
    else:
        mark, expected = belief_mark(client.learner.belief), journal.version(held).mark
    require(expected is None or mark == expected, f"{node.name}: its belief of {held} is not that of others")
    if version is not None:
        length = len(journal.held(held).rewards)
        require(version.built.length == length, f"{node.name}: {held} has {length} points, not {version.built.length}")
        require(version.number == held.number, f"{node.name}: holds {version.number}, and says {held.number}")


def check_numbers(node: ClientNode, journal: Journal) -> None:
    """A client predicts what the formulas say of exactly the observations that it knows."""
    client = node.running
    contents = journal.held(client.session.held)
    if not contents.known:
        return
    own = client.learner.history.rewards.tolist()[client.learner.covered :]
    count = len(contents.rewards)
    X, y = journal.matrix(contents, own), np.array([*contents.rewards, *own])
    probes = np.linspace(-1.0, 1.0, 3 * journal.plan.belief.dim).reshape(3, -1)
    tail = client.learner.tail
    mean, variance = tail.predict(tail.belief.view(probes))
    close = np.full((2, len(probes)), CLOSE)
    if client.held is None or client.held.atoms is None:
        expected = predicted(tail.belief, X, y, probes)
    else:
        version = journal.version(client.session.held)
        expected = weighted(version.atoms, Points(X[:count], y[:count]), Points(X[count:], y[count:]), probes)
        close[:] = ROUGH
        close[0] += version.atoms.mean_step * np.sqrt(np.maximum(expected[1], 0.0))
    for name, a, b, c in zip(("means", "variances"), (mean, variance), expected, close, strict=True):
        gap, size = np.abs(a - b), max(1.0, float(np.abs(b).max()))
        told = f"{node.name}: {name} differ by {float(gap.max()):.2g} from those of its {len(y)} points"
        require((gap <= c * size).all(), told)


def check_flush(node: ClientNode, before: Session, journal: Journal) -> None:
    """When a flush is over, the server has every observation that was made before it; who leaves gives it up."""
    client = node.running
    if not before.flushing or client.session.flushing or client.state is ClientState.OUTSIDE:
        return
    own = client.learner.history.rewards[: before.goal].tolist()
    lacked = set(own) - journal.reached(client.session.held)
    require(not lacked, f"{node.name}: a flush is over, and the server lacks {len(lacked)} of {len(own)} observations")


def check_step(node: ClientNode, before: Label, client: Client, *, known: bool) -> None:
    """Within a term no client goes back to an earlier belief, unless a server is ``known`` to have lost later ones."""
    held = client.session.held
    forward = held.term != before.term or held.number >= before.number
    require(forward or known, f"{node.name}: went back from epoch {before.number} to {held.number}")


# -- the server --------------------------------------------------------------------------------------------------------


def check_server(server: Server, before: Hub, outcome: Outcome[Sends], journal: Journal) -> None:
    """What holds after an event of the server."""
    hub = server.hub
    for record in outcome.keep:
        if isinstance(record, Begun):
            require(record.epoch not in journal.begun, f"epoch {record.epoch} was begun before")
            journal.begun.add(record.epoch)
        if isinstance(record, Installed):
            require(record.epoch in journal.begun, f"epoch {record.epoch} was never begun")
            journal.installed(
                record.epoch,
                base=before.installed.label,
                mark=hub.installed.mark,
                contributors=list(record.contributions),
            )
    if hub.sync is not None:
        require(hub.sync.epoch in journal.begun, f"epoch {hub.sync.epoch} is under way, and was never begun")
    if hub.log is not before.log:
        journal.logged(hub)
    if hub.edition is not before.edition:
        journal.edited(hub)
    _check_links(hub)
    _check_told(before, hub, outcome)


def check_taken(before: Hub, hub: Hub, number: int, part: Part, note: object, journal: Journal) -> None:
    """A part that was taken is of the epoch and the phase under way."""
    old = None if before.sync is None else before.sync.contributions.get(number)
    new = None if hub.sync is None else hub.sync.contributions.get(number)
    if hub.sync is None or new is None or new is old:
        return
    sync = hub.sync
    require((part.epoch, part.phase) == (sync.epoch, sync.phase), f"a part of {part.epoch} was taken in {sync.epoch}")
    if sync.phase + 1 == len(hub.plan.phases):
        journal.took(sync.epoch, number, note)  # type: ignore[arg-type]  # parts carry notes of parts


def check_welcome(hello: Up, outcome: Outcome[Sends], plan: bytes) -> None:
    """Nobody is let in under another plan."""
    if isinstance(hello, Hello) and hello.plan != plan:
        welcomed = any(isinstance(message, Welcome) for _, message in outcome.send)
        require(not welcomed, "somebody who follows another plan was let in")


def _check_links(hub: Hub) -> None:
    for link, number in hub.links.items():
        require(hub.members[number].link == link, f"link {link} leads to client {number}, who has another")
    for member in hub.members.values():
        linked = member.status not in (Status.AWAY, Status.LEFT)
        require(
            linked == (member.link is not None),
            f"client {member.number} is {member.status.value} on link {member.link}",
        )


def _check_told(before: Hub, hub: Hub, outcome: Outcome[Sends]) -> None:
    """Who is left out of a sync or set aside, and has a link, is told so."""
    told: dict[int | None, list[Down]] = {None: [SetAside(reason="it has no link")]}
    for link, message in outcome.send:
        told.setdefault(link, []).append(message)
    for _, number in sorted(_members(before) - _members(hub)):
        member = hub.members[number]
        kinds = [type(each) for each in told.get(member.link, [])]
        is_told = not {Released, SetAside, Welcome, Install, Newer}.isdisjoint(kinds)
        # who is held is told when its greeting is answered
        require(is_told or member.status is Status.HELD, f"client {number} was left out, and not told")
    for number, member in hub.members.items():
        if member.status is Status.ASIDE and before.members[number].status is not Status.ASIDE:
            is_told = SetAside in [type(each) for each in told.get(member.link, [])]
            require(is_told, f"client {number} was set aside, and not told")


def _members(hub: Hub) -> set[tuple[Label, int]]:
    """Who takes part in which sync."""
    return set() if hub.sync is None else {(hub.sync.epoch, number) for number in hub.sync.members}
