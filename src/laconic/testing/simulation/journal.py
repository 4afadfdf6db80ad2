"""The journal: which observations are in which belief, from the traffic alone.

Rewards are all different, so that each names its observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from laconic.arrays import Floats
from laconic.protocol.client import Client
from laconic.protocol.history import History
from laconic.protocol.messages import BLANK, Label, Part
from laconic.protocol.plan import Plan
from laconic.testing.simulation.failure import require


@dataclass(frozen=True, eq=False)
class Contents:
    """What a belief was made of; ``known`` is False where a hostile member's sums went in."""

    rewards: tuple[float, ...] = ()
    known: bool = True


@dataclass(frozen=True, eq=False)
class PartNote:
    """The observations in a part, as its sender meant them."""

    contents: Contents


@dataclass(eq=False)
class Journal:
    """Everything that the simulation has seen."""

    plan: Plan
    points: dict[float, Floats] = field(default_factory=dict)
    hashes: dict[int, float] = field(default_factory=dict)  # of honest observations
    contents: dict[Label, Contents] = field(default_factory=lambda: {BLANK: Contents()})
    marks: dict[Label, int] = field(default_factory=dict)
    logs: dict[int, History] = field(default_factory=dict)  # by term
    begun: set[Label] = field(default_factory=set)
    taken: dict[Label, dict[int, Contents]] = field(default_factory=dict)  # parts of last phases
    lies: set[float] = field(default_factory=set)

    def observed(self, point: Floats, reward: float, *, honest: bool) -> None:
        """An observation was made."""
        self.points[reward] = point
        if not honest:
            self.lies.add(reward)

    def noted(self, client: Client, part: Part, *, twisted: bool) -> PartNote:
        """What a part has, by the history of its sender."""
        last = self.plan.phases[-1]
        rewards = client.learner.history.rewards
        if last.shows_points:
            points, meant = part.payload.values["points"], part.payload.values["rewards"]
            if twisted:
                for x, y in zip(points, meant, strict=True):
                    self.observed(x, float(y), honest=False)
            return PartNote(Contents(tuple(map(float, meant))))
        first = 0 if last.replaces else client.learner.covered
        return PartNote(Contents(tuple(map(float, rewards[first : part.upto])), known=not twisted))

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
        self.contents[epoch], self.marks[epoch] = Contents(tuple(rewards), known), mark

    def logged(self, term: int, log: History) -> None:
        """The server's log is this now."""
        before = self.logs.get(term)
        if before is not None:
            if len(before) == len(log):
                return
            require(len(before) < len(log), "the log lost observations")
            require(np.array_equal(before.rewards, log.rewards[: len(before)]), "the log changed what it had")
        honest = [each for each in log.rewards.tolist() if each not in self.lies]
        require(len(set(honest)) == len(honest), "an observation is twice in the log")
        self.logs[term] = log

    def held(self, label: Label) -> Contents:
        """The observations in the belief of a label."""
        if self.plan.digest is None or label == BLANK:
            require(label in self.contents, f"nobody installed epoch {label}")
            return self.contents[label]
        require(label.term in self.logs, f"no server had the term of version {label}")
        log = self.logs[label.term]
        require(label.number <= len(log), f"version {label} is longer than the log")
        return Contents(tuple(log.rewards[: label.number].tolist()))

    def mark(self, label: Label) -> int | None:
        """The hash that holders of a label agree on; None where there is none."""
        if self.plan.digest is None or label == BLANK:
            return self.marks.get(label)
        return self.logs[label.term].chain.at(label.number)

    def matrix(self, rewards: Sequence[float]) -> Floats:
        """The points of observations."""
        return np.array([self.points[each] for each in rewards]).reshape(-1, self.plan.belief.dim)
