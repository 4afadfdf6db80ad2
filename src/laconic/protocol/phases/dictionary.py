"""A dictionary that everyone agrees on, as in Algorithms 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Belief, FiniteBelief, NystromEmbedding, with_dictionary
from laconic.checks import is_grid, require_positive
from laconic.leverage import full_rank, sample
from laconic.protocol.messages import NOTHING, Payload
from laconic.protocol.phases.base import Phase
from laconic.protocol.phases.mail import Mail
from laconic.protocol.phases.members import Member, Members
from laconic.protocol.phases.payloads import check_points, chunks, joined, points_of


@dataclass(frozen=True)
class AgreeOnDictionary(Phase):
    """Each client RLS-samples its whole own history; the union, thinned to full rank, is the dictionary (Alg. 2, 3)."""

    qbar: float

    name: ClassVar[str] = "agree on dictionary"
    replaces = True

    def __post_init__(self) -> None:
        if not is_grid(self.qbar) and self.qbar != float("inf"):
            require_positive("qbar", self.qbar)

    def contribute(self, member: Member) -> Payload:
        kept = self._proposed(member, member.installed.view(member.points).variance)
        return Payload(values={"points": member.points[kept], "rewards": member.rewards[kept]})

    def _proposed(self, member: Member, variance: Floats) -> Bools:
        kept = self.pick(member, variance)
        if len(kept) and not kept.any() and member.fired and not member.installed.dictionary_size:
            kept[np.argmax(variance)] = True  # the first dictionary must not be empty
        return kept

    def pick(self, member: Member, variance: Floats) -> Bools:
        """Which own points a client proposes; another dictionary is another `pick`."""
        return sample(variance, qbar=self.qbar, uniforms=member.random().random(len(variance)))

    def check(self, draft: Belief, part: Payload) -> None:
        if part.values:  # else nobody proposes a point
            check_points(part, draft.dim)

    def finish(self, draft: Belief, state: Any) -> Payload:
        union = joined(list(state), draft.dim)
        points, rewards = union.values["points"], union.values["rewards"]
        if len(points) == 0:
            return NOTHING  # unchanged
        kernel = with_dictionary(draft, np.empty((0, draft.dim))).embedding
        assert isinstance(kernel, NystromEmbedding)
        pivots = full_rank(kernel.kernel, points)
        return Payload(values={"points": points[pivots], "rewards": rewards[pivots]})

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        if not merged.values:
            # after a cold start on local models, those who might have proposed a point have left
            return draft if isinstance(draft, FiniteBelief) else with_dictionary(draft, np.empty((0, draft.dim)))
        return with_dictionary(draft, points_of(merged, draft.dim)[0])

    def gather(self, members: Members) -> tuple[Payload, Mail]:
        known = members.since(np.zeros_like(members.lengths))
        variance = np.zeros(members.rewards.shape)
        variance[known] = _variances(members.installed, members.points[known])
        kept = np.zeros(variance.shape, dtype=bool)
        for client in members.lengths.nonzero()[0].tolist():  # who has nothing proposes nothing
            length = members.lengths[client]
            kept[client, :length] = self._proposed(members.member(client), variance[client, :length])
        union = Payload(values={"points": members.points[kept], "rewards": members.rewards[kept]})
        mail = Mail.of_points(kept.sum(axis=1), dim=members.draft.dim, control={})
        return self.finish(members.draft, (union,)), mail


def _variances(belief: Belief, X: Floats) -> Floats:
    """σ² of the rows of X under a belief, without holding all their features at once."""
    width = 64 if belief.rank is None else belief.rank
    parts = [belief.view(X[part]).variance for part in chunks(len(X), width)]
    return np.concatenate([np.empty(0), *parts])
