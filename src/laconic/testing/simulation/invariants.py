"""What must hold after every event, whatever happened."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats
from laconic.atoms import Certificate
from laconic.beliefs import Belief, FiniteBelief, NystromEmbedding
from laconic.protocol.client import Client
from laconic.protocol.digests import AllPoints, Atoms
from laconic.protocol.messages import Down, Hello, Install, Label, Newer, Part, Released, SetAside, Up, Welcome
from laconic.protocol.outcome import Outcome
from laconic.protocol.phases import ShareStatistics
from laconic.protocol.plan import Plan
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
#: The same in units of the distance at which a belief's indices tie, which says how exactly its precision computes.
TIES = 10.0
#: And in units of the rounding of kernel values beside λ.
ROUNDINGS = 100.0


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
    mark, expected = _marks(client, journal)
    require(expected is None or mark == expected, f"{node.name}: its belief of {held} is not that of others")
    if version is not None:
        length = len(journal.held(held).rewards)
        require(version.built.length == length, f"{node.name}: {held} has {length} points, not {version.built.length}")
        require(version.number == held.number, f"{node.name}: holds {version.number}, and says {held.number}")


def _marks(client: Client, journal: Journal) -> tuple[int, int | None]:
    """The hash of what a client holds, and the one that all who hold the same have; None where nobody knows it."""
    held, version = client.session.held, client.held
    if version is None:
        return belief_mark(client.learner.belief), journal.mark(held)
    if version.atoms is None and isinstance(journal.plan.digest, (AllPoints, Atoms)):
        return version.built.mark, journal.mark(held)
    weighed = None if version.atoms is None else journal.version(held)
    if weighed is None:
        return version.built.mark, journal.agreed(held, version.built.mark, raw=version.atoms is None)
    _check_shipped(client, weighed.certificate)
    return belief_mark(client.learner.belief), weighed.mark


def _check_shipped(client: Client, built: Certificate) -> None:
    """What a client was told of its version may be rounded, but must not say more than is certain."""
    assert client.held is not None
    told: Certificate = client.held.certificate
    certain = told.e_lo <= built.e_lo and told.e_hi >= built.e_hi
    certain = certain and told.beta >= built.beta and told.missed >= built.missed and told.log_det >= built.log_det
    require(certain, f"{client.session.held} came with {told}, and was built with {built}")


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
    expected = _expected(client, journal, (Points(X[:count], y[:count]), Points(X[count:], y[count:])), probes)
    if expected is None:
        return
    tail = client.learner.tail
    rounding = _rounding(journal.plan, tail.belief, X)
    largest = max(1.0, float(np.abs(y).max(initial=0.0)))  # means are rounded relative to rewards
    said = tail.predict(tail.belief.view(probes))
    for name, a, b, step, scale in zip(("means", "variances"), said, *expected, (largest, 1.0), strict=True):
        gap, size = np.abs(a - b), max(1.0, float(np.abs(b).max()))
        close = (CLOSE * size if rounding <= CLOSE else rounding * max(size, scale)) + step
        told = f"{node.name}: {name} differ by {float(gap.max()):.2g} from those of its {len(y)} points"
        require((gap <= close).all(), told)


def _expected(
    client: Client, journal: Journal, known: tuple[Points, Points], probes: Floats
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]] | None:
    """μ and σ² of the probes, and how far either may be off by the steps in which a digest rounds it.

    ``known`` are the points in the belief and those in the tail. None where there is nothing to compare with: a digest
    that is not made of all points and states no certificate, or a kind of belief that cannot learn points anew.
    """
    log, own = known
    exactly = np.zeros(len(probes))
    if client.held is None or client.held.atoms is None:
        X, y = np.concatenate([log.X, own.X]), np.concatenate([log.y, own.y])
        expected = predicted(client.learner.tail.belief, X, y, probes, blank=journal.plan.belief)
        return None if expected is None else (expected, (exactly, exactly))
    version = journal.version(client.session.held)
    if version is None:
        return None
    mean, variance = weighted(version.atoms, log, own, probes)
    return (mean, variance), (version.atoms.mean_step * np.sqrt(np.maximum(variance, 0.0)), exactly)


def _rounding(plan: Plan, held: Belief, X: Floats) -> float:
    """How far two routes to a prediction may be apart by rounding: in the precision of the belief, and beside its λ.

    Points of a dictionary may be so alike that rounding of their kernel values shows in coordinates. Sums that travel
    in 32 bits are rounded on the way too, each relative to its size, which is that of k(x, x).
    """
    belief, eps = plan.belief, float(np.finfo(np.float64).eps)
    prior = belief.prior(X) / belief.lam
    rounded = ROUNDINGS * eps * float(prior.max(initial=0.0))
    computed = max(TIES * belief.precision.tie, rounded, eps * _condition(held))
    if not any(isinstance(phase, ShareStatistics) and phase.wire == "compact" for phase in plan.phases):
        return computed
    return max(computed, float(np.finfo(np.float32).eps) / 2 * float(prior.mean())) if len(X) else computed


def _condition(belief: Belief) -> float:
    """By how much the rounding of kernel values grows in the coordinates of a belief's dictionary, if it has one."""
    embedding = belief.embedding if isinstance(belief, FiniteBelief) else None
    if not isinstance(embedding, NystromEmbedding) or not len(embedding.dictionary):
        return 1.0
    values = np.linalg.eigvalsh(embedding.kernel(embedding.dictionary, embedding.dictionary))
    largest = float(values.max())
    return largest / max(float(values.min()), len(values) * float(np.finfo(np.float64).eps) * largest)


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
        # who greeted anew is told with the answer to its greeting, or to its chain where it has to send that first
        is_answered_later = member.status in (Status.HELD, Status.PROVING)
        require(is_told or is_answered_later, f"client {number} was left out, and not told")
    for number, member in hub.members.items():
        if member.status is Status.ASIDE and before.members[number].status is not Status.ASIDE:
            is_told = SetAside in [type(each) for each in told.get(member.link, [])]
            require(is_told, f"client {number} was set aside, and not told")


def _members(hub: Hub) -> set[tuple[Label, int]]:
    """Who takes part in which sync."""
    return set() if hub.sync is None else {(hub.sync.epoch, number) for number in hub.sync.members}
