"""The journal: which observations are in which belief, from the traffic alone.

Rewards are all different, also as they travel, so that each names its observation. What hostile members put into a log
is known by its place there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from laconic.arrays import Floats
from laconic.atoms import Certificate, Reference, Version, weights_of
from laconic.errors import LaconicError
from laconic.protocol.client import Client
from laconic.protocol.digests import Atoms
from laconic.protocol.history import History
from laconic.protocol.messages import BLANK, Label, Part
from laconic.protocol.plan import Plan
from laconic.protocol.roster import Hub, Member
from laconic.testing.simulation.estimates import WeightedAtoms, extremes, left_over
from laconic.testing.simulation.failure import require
from laconic.testing.simulation.nodes import belief_mark

#: How exactly a certificate holds in the coordinates that it speaks of.
CERTAIN = 1e-6
#: Part of k(x, x) of an atom that rounding may leave beyond these coordinates; a certificate has an allowance for it.
ROUNDED = 1e-12
#: How exactly what a reference leaves of a point is known, as a part of its k(x, x).
LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class Contents:
    """What a belief was made of; ``known`` is False where a hostile member's sums went in."""

    rewards: tuple[float, ...] = ()
    known: bool = True
    points: Floats | None = None  # where a log or parts show them
    lies: frozenset[int] = frozenset()  # which of them a hostile member put into a log

    @cached_property
    def honest(self) -> frozenset[float]:
        """The observations of honest members."""
        return frozenset(each for place, each in enumerate(self.rewards) if place not in self.lies)


@dataclass(frozen=True, eq=False)
class Logged:
    """A server's log, and which of its places hostile members filled."""

    log: History
    lies: frozenset[int]


@dataclass(frozen=True, eq=False)
class BuiltVersion:
    """A version of a digest as the server built it, and the hash of the belief that all who hold it must have."""

    atoms: WeightedAtoms
    certificate: Certificate
    mark: int


@dataclass(frozen=True, eq=False)
class Seen:
    """An observation that was made: its point, by whom, and as the how manieth of all."""

    point: Floats
    name: str
    order: int


@dataclass(frozen=True, eq=False)
class PartNote:
    """The observations in a part, as its sender meant them."""

    contents: Contents


@dataclass(eq=False)
class Journal:
    """Everything that the simulation has seen."""

    plan: Plan
    liars: frozenset[str] = frozenset()  # the names of hostile members
    seen: dict[float, Seen] = field(default_factory=dict)  # observations as they travel, by their rewards
    contents: dict[Label, Contents] = field(default_factory=lambda: {BLANK: Contents()})
    marks: dict[Label, int] = field(default_factory=dict)
    logs: dict[int, Logged] = field(default_factory=dict)  # by term
    editions: dict[Label, Any] = field(default_factory=dict)  # of a digest
    atoms: dict[Label, BuiltVersion] = field(default_factory=dict)  # of those that have some
    versions: dict[Label, Contents] = field(default_factory=dict)  # what is in them, as far as anybody asked
    foreign: dict[tuple[Label, bool], int] = field(default_factory=dict)  # hashes of versions of digests not our own
    begun: set[Label] = field(default_factory=set)
    taken: dict[Label, dict[int, Contents]] = field(default_factory=dict)  # parts of last phases
    lies: set[float] = field(default_factory=set)

    def observed(self, points: Floats, rewards: Sequence[float], *, name: str) -> list[float]:
        """Observations were made; their rewards as they travel."""
        X, y = self.plan.rounded(points, np.array(rewards))
        for point, reward in zip(X, y.tolist(), strict=True):
            self.seen[reward] = Seen(point, name, order=len(self.seen))
        if name in self.liars:
            self.lies.update(y.tolist())
        return list(map(float, y))

    def noted(self, client: Client, part: Part) -> PartNote:
        """What a part has, by the history of its sender."""
        last, name = self.plan.phases[-1], client.session.name
        twisted = name in self.liars
        rewards = client.learner.history.rewards
        if last.shows_points:
            return PartNote(self._shown(part, name=name))
        first = 0 if last.replaces else client.learner.covered
        return PartNote(Contents(tuple(map(float, rewards[first : part.upto])), known=not twisted))

    def _shown(self, part: Part, *, name: str) -> Contents:
        """The observations that a part shows; a liar's are what the server reads, on the wire's grid or not."""
        try:
            points, rewards = self.plan.phases[-1].shown(part.payload, self.plan.belief.dim)
        except LaconicError:
            return Contents(known=False)  # no server takes it
        meant = tuple(map(float, rewards))
        if name in self.liars:  # one may send a reward again and again, each time of another point
            self.lies.update(meant)
            return Contents(meant, points=points)
        return Contents(meant, points=self._points(meant))

    def took(self, epoch: Label, number: int, note: PartNote) -> None:
        """The server took a part of a last phase."""
        self.taken.setdefault(epoch, {})[number] = note.contents

    def installed(self, epoch: Label, *, base: Label, mark: int, contributors: Sequence[int]) -> None:
        """The server installed an epoch."""
        parts = self.taken.get(epoch, {})
        require(
            sorted(parts) == sorted(contributors),
            f"epoch {epoch} has parts of {sorted(parts)}, and counts {sorted(contributors)}",
        )
        before = Contents() if self.plan.forgets_departed else self.contents[base]
        rewards = [*before.rewards, *(each for part in parts.values() for each in part.rewards)]
        honest = [each for each in rewards if each not in self.lies]
        require(len(set(honest)) == len(honest), f"an observation is counted twice in epoch {epoch}")
        require(epoch not in self.contents, f"epoch {epoch} was installed before")
        known = before.known and all(part.known for part in parts.values())
        shown = [each.points for each in (before, *parts.values()) if each.points is not None]
        points = np.concatenate(shown) if shown and sum(map(len, shown)) == len(rewards) else None
        self.contents[epoch], self.marks[epoch] = Contents(tuple(rewards), known, points), mark

    def logged(self, hub: Hub) -> None:
        """The server's log is this now."""
        before, log = self.logs.get(hub.term), hub.log
        known = 0 if before is None else len(before.log)
        if before is not None:
            if known == len(log):
                return
            require(known < len(log), "the log lost observations")
            require(np.array_equal(before.log.rewards, log.rewards[:known]), "the log changed what it had")
        owned = {member.name: _places(member) for member in hub.members.values()}
        lies = frozenset(place for name in self.liars for place in owned.get(name, ()))
        honest = [each for place, each in enumerate(log.rewards.tolist()) if place not in lies]
        require(len(set(honest)) == len(honest), "an observation is twice in the log")
        require(set(range(known, len(log))) <= set().union(*owned.values()), "an observation in the log is nobody's")
        for member in hub.members.values():
            if member.name not in self.liars:
                self._check_own(member, log, known)
        self.logs[hub.term] = Logged(log, lies)

    def _check_own(self, member: Member, log: History, known: int) -> None:
        """What is new of a member in the log it has observed, in this order."""
        orders = []
        for place in member.lineage.places.values.tolist():
            seen = self.seen.get(float(log.rewards[place]))
            require(seen is not None and seen.name == member.name, f"{member.name} never saw what is at {place}")
            assert seen is not None
            orders.append(seen.order)
            same = place < known or np.array_equal(seen.point, log.points[place])
            require(same, f"the point of {member.name} at {place} of the log is another")
        require(orders == sorted(set(orders)), f"observations of {member.name} are not in its order in the log")

    def edited(self, hub: Hub) -> None:
        """The server's newest edition of its digest is this now."""
        digest = self.plan.digest
        if digest is not None:
            self.editions[Label(hub.term, digest.number(hub.edition))] = hub.edition

    def held(self, label: Label) -> Contents:
        """The observations in the belief of a label."""
        digest = self.plan.digest
        if digest is None or label == BLANK:
            require(label in self.contents, f"nobody installed epoch {label}")
            return self.contents[label]
        if label not in self.versions:
            require(label in self.editions, f"no server built version {label}")
            logged, length = self.logs.get(label.term), digest.reach(self.editions[label])
            require(length == 0 or logged is not None, f"version {label} is of a log that nobody had")
            self.versions[label] = _beginning(logged, length)
        return self.versions[label]

    def reached(self, label: Label) -> set[float]:
        """The observations that a server had in a log, or that are in the belief of a label."""
        logged = (each for one in self.logs.values() for each in one.log.rewards.tolist())
        return {*logged, *self.held(label).honest}

    def mark(self, label: Label) -> int | None:
        """The hash that holders of a label agree on who know all observations as they are; None where there is none."""
        if self.plan.digest is None or label == BLANK:
            return self.marks.get(label)
        length = len(self.held(label).rewards)
        return self.logs[label.term].log.chain.at(length) if length else 0

    def agreed(self, label: Label, mark: int, *, raw: bool) -> int:
        """The hash that holders of a version of a foreign digest agree on: that of the first of them."""
        return self.foreign.setdefault((label, raw), mark)

    def version(self, label: Label) -> BuiltVersion | None:
        """The weighted atoms of a label, whose certificate is compared with the log when they are first asked for.

        A digest of another kind states no certificate that we could read: there is None then.
        """
        if not isinstance(self.plan.digest, Atoms):
            return None
        if label not in self.atoms:
            require(isinstance(self.editions[label].outcome, Version), f"version {label} has no atoms")
            self.atoms[label] = self._weighed(label, self.editions[label].outcome)
        return self.atoms[label]

    def _weighed(self, label: Label, version: Version) -> BuiltVersion:
        belief, contents = self.plan.belief, self.held(label)
        kernel, X = belief.dictionary_kernel(), contents.points
        assert X is not None
        known = {x.tobytes() for x in X}
        require(all(x.tobytes() in known for x in version.atoms), f"an atom of {label} is not in the log")
        weights = weights_of(version.weights)
        spanning = version.atoms[version.spanning]
        atoms = WeightedAtoms(kernel, belief.lam, version.atoms, spanning, weights, version.quantum)
        self._check_certificate(label, version, atoms)
        return BuiltVersion(atoms, version.certificate, belief_mark(version.belief(kernel=kernel, lam=belief.lam)))

    def _check_certificate(self, label: Label, version: Version, atoms: WeightedAtoms) -> None:
        """A certificate says what is so of the log, in the span of the server's reference and of the atoms.

        It speaks of nothing beyond that span, so that what the reference leaves of the log must be what it says too.
        """
        X, said = self.held(label).points, version.certificate
        assert X is not None
        pivots = self._pivots(label, X)
        missed = self._missed(label, pivots, X)
        known = abs(said.missed - missed) <= LEFT * float(atoms.kernel.diag(X).sum())
        require(known, f"{label} says that its reference misses {said.missed:.6g} of its log, and it is {missed:.6g}")
        found = extremes(atoms, X, reference=pivots)
        close = all(_is_certain(*each, atoms) for each in zip((said.e_lo, said.e_hi), found, strict=True))
        told = f"says {said.e_lo:.6g} … {said.e_hi:.6g}, and its log {found[0]:.6g} … {found[1]:.6g}"
        require(close, f"{label} {told}")

    def _missed(self, label: Label, pivots: Floats, X: Floats) -> float:
        """ρ, the sum of what the reference leaves of all points, of none of which it may leave much."""
        digest, kernel = self.plan.digest, self.plan.belief.dictionary_kernel()
        assert isinstance(digest, Atoms)
        left, prior = left_over(kernel, pivots, X), kernel.diag(X)
        most = float((left / np.where(prior > 0, prior, 1.0)).max(initial=0.0))
        require(most <= digest.recipe.tolerance + LEFT, f"the reference of {label} leaves {most:.4g} of a point")
        return float(left.sum())

    def _pivots(self, label: Label, X: Floats) -> Floats:
        """The points of the server's reference dictionary, which are of the log."""
        reference: Reference = self.editions[label].reference
        pivots, known = reference.points[reference.pivots], {x.tobytes() for x in X}
        require(all(x.tobytes() in known for x in pivots), f"the reference of {label} has a point that its log has not")
        return pivots

    def matrix(self, contents: Contents, rewards: Sequence[float]) -> Floats:
        """The points in a belief, and after them those of further observations."""
        inside = self._points(contents.rewards) if contents.points is None else contents.points
        return np.concatenate([inside, self._points(rewards)])

    def _points(self, rewards: Sequence[float]) -> Floats:
        """The points at which rewards were observed."""
        return np.array([self.seen[each].point for each in rewards]).reshape(-1, self.plan.belief.dim)


def _is_certain(said: float, found: float, atoms: WeightedAtoms) -> bool:
    """Whether an extreme eigenvalue is what was said, but for what rounding leaves of the atoms."""
    beyond = math.sqrt(ROUNDED * float(atoms.weights @ atoms.kernel.diag(atoms.points)) / atoms.lam)
    root = math.sqrt(max(1.0 + found, 0.0))
    return abs(said - found) <= CERTAIN * (1.0 + found) + (2.0 * root + beyond) * beyond


def _places(member: Member) -> set[int]:
    """Where all observations under a name are in the log."""
    lineages = (member.lineage, *member.past.values())
    return {int(place) for lineage in lineages for place in lineage.places.values}


def _beginning(logged: Logged | None, length: int) -> Contents:
    """The first observations of a log."""
    if logged is None:
        return Contents()
    rewards = tuple(logged.log.rewards[:length].tolist())
    return Contents(rewards, points=logged.log.points[:length], lies=logged.lies)
