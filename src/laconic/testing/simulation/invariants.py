"""What must hold after every event, whatever happened."""

from __future__ import annotations

import numpy as np

from laconic.protocol.client import Client
from laconic.protocol.messages import Down, Hello, Install, Label, Newer, Part, Released, SetAside, Up, Welcome
from laconic.protocol.outcome import Outcome
from laconic.protocol.records import Begun, Installed
from laconic.protocol.roster import Hub, Status
from laconic.protocol.server import Sends, Server
from laconic.testing.simulation.estimates import predicted
from laconic.testing.simulation.failure import require
from laconic.testing.simulation.journal import Journal
from laconic.testing.simulation.nodes import ClientNode, belief_mark

#: How close two routes to a prediction come, relative to its size or to 1.
CLOSE = 1e-6


# -- a client ----------------------------------------------------------------------------------------------------------


def check_client(node: ClientNode, journal: Journal) -> None:
    """Belief and tail cover every own observation exactly once, and the belief is that of its label."""
    client = node.running
    own, covered = client.learner.history.rewards.tolist(), client.learner.covered
    held = client.session.held
    contents = journal.held(held)
    inside = set(contents.rewards)
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
    mark = client.mark if journal.plan.digest is not None else belief_mark(client.learner.belief)
    expected = journal.mark(held)
    require(expected is None or mark == expected, f"{node.name}: its belief of {held} is not that of others")


def check_numbers(node: ClientNode, journal: Journal) -> None:
    """A client predicts what the formulas say of exactly the observations that it knows."""
    client = node.running
    contents = journal.held(client.session.held)
    if not contents.known:
        return
    own = client.learner.history.rewards.tolist()[client.learner.covered :]
    rewards = [*contents.rewards, *own]
    probes = np.linspace(-1.0, 1.0, 3 * journal.plan.belief.dim).reshape(3, -1)
    tail = client.learner.tail
    mean, variance = tail.predict(tail.belief.view(probes))
    expected = predicted(tail.belief, journal.matrix(rewards), np.array(rewards), probes)
    for name, a, b in zip(("means", "variances"), (mean, variance), expected, strict=True):
        gap, size = float(np.abs(a - b).max()), max(1.0, float(np.abs(b).max()))
        require(gap <= CLOSE * size, f"{node.name}: {name} differ by {gap:.2g} from those of its {len(rewards)} points")


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
        journal.logged(hub.term, hub.log)
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
