"""A dictionary that everyone agrees on, as in Algorithms 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Belief, NystromEmbedding, expect_bounded, variances
from laconic.checks import is_grid, require_one_of, require_positive
from laconic.errors import RemoteProtocolError
from laconic.leverage import full_rank, sample
from laconic.protocol.messages import NOTHING, Payload
from laconic.protocol.persistent import Map
from laconic.protocol.phases import references
from laconic.protocol.phases.member import Member
from laconic.protocol.phases.payloads import check_points, joined, points_of
from laconic.protocol.phases.phase import Phase
from laconic.protocol.phases.statistics import STATISTICS_WIRES, StatisticsWire
from laconic.protocol.shapes import Layout

LAYOUT = Layout(values={"points": ("n", "d"), "rewards": ("n",)})


@dataclass(frozen=True)
class AgreeOnDictionary(Phase):
    """Each client RLS-samples its whole own history; the union, thinned to full rank, is the dictionary (Alg. 2, 3).

    Args:
        qbar: Scale q̄ of the sampling, above 0: a point is proposed for the dictionary with probability min(1, q̄σ²).
            Raising it makes the dictionary larger: more is sent, and less is lost.
        wire: paper: whole matrices travel, as the paper counts them. compact: triangles in single precision, which take
            a seventh to two fifths of the bytes: less the more numbers there are.
    """

    qbar: float
    wire: StatisticsWire = "paper"

    name: ClassVar[str] = "agree on dictionary"
    replaces = True

    def __post_init__(self) -> None:
        if not is_grid(self.qbar) and self.qbar != float("inf"):
            require_positive("qbar", self.qbar)
        require_one_of("wire", self.wire, choices=STATISTICS_WIRES)

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return references.LAYOUT if self.wire == "compact" else LAYOUT

    def contribute(self, member: Member) -> Payload:
        kept = self.proposed(member, variances(member.installed, member.points))
        if self.wire == "compact":
            return references.packed(references.single(member.points[kept]), _numbers(member.draft))
        return Payload(values={"points": member.points[kept], "rewards": member.rewards[kept]})

    def proposed(self, member: Member, variance: Floats) -> Bools:
        """Which own points a client sends; the first dictionary must not be empty.

        Args:
            member: The client, its history and its beliefs.
            variance: σ² of its points under the installed belief, (n,); the result is (n,) too.
        """
        kept = self.pick(member, variance)
        if len(kept) and not kept.any() and member.fired and not member.installed.dictionary_size:
            kept[np.argmax(variance)] = True
        return kept

    def pick(self, member: Member, variance: Floats) -> Bools:
        """Which own points a client proposes; another dictionary is another `pick`.

        Args:
            member: The client, its history and its beliefs; draws come from ``member.random()``.
            variance: σ² of its points under the installed belief, (n,), where n may be 0; the result is (n,) too.
        """
        return sample(variance, qbar=self.qbar, uniforms=member.random().random(len(variance)))

    def check(self, draft: Belief, part: Payload) -> None:
        if part.values:  # somebody proposes a point
            check_points(self._shown(draft, part), draft)

    def check_result(self, draft: Belief, merged: Payload) -> None:
        if merged.values:
            points, rewards = points_of(self._shown(draft, merged), draft.dim)
            expect_bounded({"points": points, "rewards": rewards})

    def _shown(self, draft: Belief, payload: Payload) -> Payload:
        """The points in a payload, those that go by a number aside."""
        if self.wire == "paper":
            return payload
        X = references.rows_of(references.resolved(payload, dictionary_of(draft), references.DICTIONARY), draft.dim)
        return Payload(values={"points": X, "rewards": np.zeros(len(X))})

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        proposed = references.count(part) if self.wire == "compact" else len(part.values.get("rewards", ()))
        if references.has_kind(part, references.OWN):
            raise RemoteProtocolError("a proposed point goes by a number that means nothing to the server")
        if proposed > upto:
            raise RemoteProtocolError(f"{proposed} points are proposed by a client that has {upto} observations")
        return True

    def empty(self) -> Any:
        return Map.of({})

    def add(self, state: Any, client: int, part: Payload) -> Any:
        return state.put(client, part)

    def finish(self, draft: Belief, state: Any) -> Any:
        if self.wire == "compact":
            return self._agreed(draft, state)
        union = joined(state, draft.dim)
        points, rewards = union.values["points"], union.values["rewards"]
        if len(points) == 0:
            return NOTHING  # unchanged
        pivots = full_rank(draft.dictionary_kernel(), points, tolerance=draft.precision.rank)
        return Payload(values={"points": points[pivots], "rewards": rewards[pivots]})

    def _agreed(self, draft: Belief, state: dict[int, Payload]) -> Agreed:
        old = dictionary_of(draft)
        proposals = {client: references.points_of(part, old) for client, part in sorted(state.items()) if part.values}
        union = np.concatenate([np.empty((0, draft.dim)), *proposals.values()])
        pivots = full_rank(draft.dictionary_kernel(), union, tolerance=draft.precision.rank)
        new = union[pivots] if len(union) else old
        own = {client: references.rows_of(part, draft.dim) for client, part in state.items() if part.values}
        return Agreed(points=new, old=old, own=own)

    def whole(self, merged: Any) -> Payload:
        return merged.address(None) if isinstance(merged, Agreed) else merged

    def address(self, merged: Any, client: int) -> Payload:
        return merged.address(client) if isinstance(merged, Agreed) else self.whole(merged)

    def complete(self, received: Payload, own: Payload) -> Payload:
        if self.wire == "paper" or not received.values or "points" not in own.values:
            return received
        rows = references.rows_of(own, own.values["points"].shape[1])
        return references.resolved(received, rows, references.OWN)

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        if not merged.values:
            # after a cold start on local models, those who might have proposed a point have left
            return draft if draft.dictionary_size is not None else draft.on_dictionary(np.empty((0, draft.dim)))
        if self.wire == "compact":
            points = references.points_of(merged, dictionary_of(draft))
        else:
            points = points_of(merged, draft.dim)[0]
        agreed = draft.on_dictionary(points)
        agreed.coordinates.embed(points[:1])  # factors the kernel matrix, here, once for all who share this belief
        return agreed


@dataclass(frozen=True, eq=False)
class Agreed:
    """A dictionary, the one before it, and the rows that each client has just sent."""

    points: Floats
    old: Floats
    own: Mapping[int, Floats]

    @cached_property
    def known(self) -> dict[bytes, int]:
        """The numbers that everyone knows."""
        return references.numbers(self.old, references.DICTIONARY)

    @cached_property
    def to_all(self) -> Payload:
        """What those are sent who proposed nothing of it; nothing where nothing changes."""
        return NOTHING if np.array_equal(self.points, self.old) else references.packed(self.points, self.known)

    def address(self, client: int | None) -> Payload:
        """What one client is sent."""
        own = None if client is None else self.own.get(client)
        if own is None or len(own) == 0 or not self.to_all.values:
            return self.to_all
        return references.packed(self.points, references.numbers(own, references.OWN) | self.known)


def dictionary_of(belief: Belief) -> Floats:
    """The dictionary of a belief; empty where it has none."""
    embedding = getattr(belief, "embedding", None)
    return embedding.dictionary if isinstance(embedding, NystromEmbedding) else np.empty((0, belief.dim))


def _numbers(draft: Belief) -> dict[bytes, int]:
    return references.numbers(dictionary_of(draft), references.DICTIONARY)
