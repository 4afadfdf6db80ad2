"""Phases: a sync is a sequence of all-reduces, each a few pure functions.

contribute (client) → add, … (server, in client order) → finish → address (by client) → complete → absorb (everyone)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from laconic.beliefs import Belief, ExactBelief, FiniteBelief, NystromEmbedding, Statistics, with_dictionary
from laconic.checks import is_grid, require_one_of, require_positive
from laconic.errors import InputError, LocalProtocolError, RemoteProtocolError
from laconic.leverage import full_rank, sample
from laconic.protocol.messages import NOTHING, Payload

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Member:
    """What a phase sees of the client that contributes."""

    installed: Belief
    draft: Belief
    points: Floats  # its own history, up to the sync
    rewards: Floats
    covered: int  # how many of them, from the first on, the installed belief contains
    fired: bool
    random: Callable[[], np.random.Generator]  # addressed by (seed, client, epoch)


class Phase:
    """Base of phases: what most of them share is that everyone is sent the same."""

    name: ClassVar[str] = "phase"
    #: True when a belief is made anew from whole histories, so that points of clients that left are lost.
    replaces: ClassVar[bool] = False

    def contribute(self, member: Member) -> Payload:
        """A client's part."""
        raise LocalProtocolError(f"{type(self).__name__} does not say what a client contributes")

    def check(self, draft: Belief, part: Payload) -> None:
        """Refuse a part, or a merged result, that does not fit the draft."""

    def empty(self) -> Any:
        """The state of the fold before the first part."""
        return ()

    def add(self, state: Any, client: int, part: Payload) -> Any:
        """The state with one more part; parts come in client order."""
        return (*state, part)

    def finish(self, draft: Belief, state: Any) -> Any:
        """The merged result."""
        return state

    def whole(self, merged: Any) -> Payload:
        """The merged result as `absorb` takes it."""
        return merged  # type: ignore[no-any-return]  # a payload unless the phase says otherwise

    def address(self, merged: Any, client: int) -> Payload:
        """What goes down to one client."""
        return self.whole(merged)

    def complete(self, received: Payload, own: Payload) -> Payload:
        """The inverse of `address`, on the client that contributed ``own``."""
        return received

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        """The draft that has taken the merged result in."""
        raise LocalProtocolError(f"{type(self).__name__} does not say how a belief absorbs its result")


def _points(payload: Payload, dim: int) -> tuple[Floats, Floats]:
    points, rewards = payload.values.get("points"), payload.values.get("rewards")
    if points is None or rewards is None or rewards.ndim != 1 or points.shape != (len(rewards), dim):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected points of {dim} features with a reward each, got {shapes}")
    return points, rewards


def _joined(parts: list[Payload], dim: int) -> Payload:
    return Payload(
        values={
            "points": np.concatenate([np.empty((0, dim)), *(part.values["points"] for part in parts)]),
            "rewards": np.concatenate([np.empty(0), *(part.values["rewards"] for part in parts)]),
        }
    )


@dataclass(frozen=True, eq=False)
class _SharedData:
    """All new points in client order, and where each client's own begin and end."""

    payload: Payload
    spans: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class ShareData(Phase):
    """Raw points not yet shared go up; each client is sent those that it lacks (Alg. 1)."""

    name: ClassVar[str] = "share data"

    def contribute(self, member: Member) -> Payload:
        return Payload(values={"points": member.points[member.covered :], "rewards": member.rewards[member.covered :]})

    def check(self, draft: Belief, part: Payload) -> None:
        _points(part, draft.dim)

    def add(self, state: Any, client: int, part: Payload) -> Any:
        return (*state, (client, part))

    def finish(self, draft: Belief, state: Any) -> _SharedData:
        spans, start = {}, 0
        for client, part in state:
            spans[client] = (start, start + len(part.values["rewards"]))
            start = spans[client][1]
        return _SharedData(payload=_joined([part for _, part in state], draft.dim), spans=spans)

    def whole(self, merged: _SharedData) -> Payload:
        return merged.payload

    def address(self, merged: _SharedData, client: int) -> Payload:
        start, stop = merged.spans.get(client, (0, 0))
        if start == stop:
            return Payload(values=merged.payload.values, control={"offset": 0})
        others = {name: np.concatenate([a[:start], a[stop:]]) for name, a in merged.payload.values.items()}
        return Payload(values=others, control={"offset": start})

    def complete(self, received: Payload, own: Payload) -> Payload:
        at = int(received.control.get("offset", 0))
        if not 0 <= at <= len(received.values.get("rewards", ())):
            raise RemoteProtocolError(f"own points cannot go at offset {at}")
        return Payload(
            values={
                name: np.concatenate([array[:at], own.values[name], array[at:]])
                for name, array in received.values.items()
            }
        )

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        if not isinstance(draft, ExactBelief):
            raise InputError(f"ShareData needs an exact belief, got {type(draft).__name__}")
        return draft.extended(*_points(merged, draft.dim))


@dataclass(frozen=True)
class AgreeOnDictionary(Phase):
    """Each client RLS-samples its whole own history; the union, thinned to full rank, is the dictionary (Alg. 2, 3)."""

    qbar: float

    name: ClassVar[str] = "agree on dictionary"
    replaces: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_grid(self.qbar) and self.qbar != float("inf"):
            require_positive("qbar", self.qbar)

    def contribute(self, member: Member) -> Payload:
        variance = member.installed.view(member.points).variance
        kept = self.pick(member, variance)
        if not kept.any() and member.fired and not member.installed.dictionary_size:
            kept[np.argmax(variance)] = True  # the first dictionary must not be empty
        return Payload(values={"points": member.points[kept], "rewards": member.rewards[kept]})

    def pick(self, member: Member, variance: Floats) -> NDArray[np.bool_]:
        """Which own points a client proposes; another dictionary is another `pick`."""
        return sample(variance, qbar=self.qbar, uniforms=member.random().random(len(variance)))

    def check(self, draft: Belief, part: Payload) -> None:
        if part is not NOTHING and part.values:
            _points(part, draft.dim)

    def finish(self, draft: Belief, state: Any) -> Payload:
        union = _joined(list(state), draft.dim)
        points, rewards = union.values["points"], union.values["rewards"]
        if len(points) == 0:
            return NOTHING  # unchanged
        kernel = with_dictionary(draft, np.empty((0, draft.dim))).embedding
        assert isinstance(kernel, NystromEmbedding)
        pivots = full_rank(kernel.kernel, points)
        return Payload(values={"points": points[pivots], "rewards": rewards[pivots]})

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        if not merged.values:
            return draft
        return with_dictionary(draft, _points(merged, draft.dim)[0])


@dataclass(frozen=True)
class ShareStatistics(Phase):
    """(G_i, b_i) go up, their sums come down.

    ``source="tail"``: of the points that the belief lacks, added to it. ``source="history"``: of the whole own history
    in the draft's coordinates, replacing what the belief had.
    """

    source: Literal["tail", "history"] = "history"

    name: ClassVar[str] = "share statistics"

    def __post_init__(self) -> None:
        require_one_of("source", self.source, choices=("tail", "history"))

    def contribute(self, member: Member) -> Payload:
        first = member.covered if self.source == "tail" else 0
        draft = _finite(member.draft)
        return _packed(Statistics.of(draft.embedding, member.points[first:], member.rewards[first:]))

    def check(self, draft: Belief, part: Payload) -> None:
        _unpacked(part, _finite(draft).embedding.size)

    def empty(self) -> Any:
        return None

    def add(self, state: Any, client: int, part: Payload) -> Any:
        new = _unpacked(part, len(part.values["moment"]))
        return new if state is None else state + new

    def finish(self, draft: Belief, state: Any) -> Payload:
        return _packed(Statistics.zeros(_finite(draft).embedding.size) if state is None else state)

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        belief = _finite(draft)
        sums = _unpacked(merged, belief.embedding.size)
        return replace(belief, statistics=belief.statistics + sums if self.source == "tail" else sums)


def _finite(belief: Belief) -> FiniteBelief:
    if not isinstance(belief, FiniteBelief):
        raise InputError(f"ShareStatistics needs a belief with coordinates, got {type(belief).__name__}")
    return belief


def _packed(statistics: Statistics) -> Payload:
    return Payload(
        values={"gram": statistics.gram, "moment": statistics.moment},
        control={"prior": statistics.prior, "count": statistics.count},
    )


def _unpacked(payload: Payload, size: int) -> Statistics:
    gram, moment = payload.values.get("gram"), payload.values.get("moment")
    if gram is None or moment is None or gram.shape != (size, size) or moment.shape != (size,):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected statistics of {size} coordinates, got {shapes}")
    control = payload.control
    return Statistics(gram=gram, moment=moment, prior=control.get("prior", 0.0), count=int(control.get("count", 0)))
