"""Phases: a sync is a sequence of all-reduces, each a few pure functions.

contribute (client) → add, … (server, in client order) → finish → address (by client) → complete → absorb (everyone)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from laconic.beliefs import Belief, ExactBelief, FiniteBelief, NystromEmbedding, Statistics, with_dictionary
from laconic.checks import MOST, is_grid, require_one_of, require_positive
from laconic.errors import InputError, LocalProtocolError, RemoteProtocolError
from laconic.leverage import full_rank, sample
from laconic.protocol.messages import NOTHING, Payload

Floats = NDArray[np.float64]

#: How many entries a matrix of features may have while histories are summed up.
CHUNK_ENTRIES = 4_000_000


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


@dataclass(frozen=True, eq=False)
class Members:
    """What a phase sees of clients 0 … N−1 at once, when one process holds them all."""

    installed: Belief
    draft: Belief
    points: Floats  # (N, L, d) their own histories, row i those of client i
    rewards: Floats  # (N, L)
    lengths: NDArray[np.int64]  # (N,) how many of the L each has
    covered: NDArray[np.int64]  # (N,)
    fired: int
    random: Callable[[int], np.random.Generator]

    def __len__(self) -> int:
        return len(self.lengths)

    def drafting(self, draft: Belief) -> Members:
        """The same clients with another draft."""
        return Members(
            installed=self.installed,
            draft=draft,
            points=self.points,
            rewards=self.rewards,
            lengths=self.lengths,
            covered=self.covered,
            fired=self.fired,
            random=self.random,
        )

    def member(self, client: int) -> Member:
        """What a phase sees of one of them."""
        length = self.lengths[client]
        return Member(
            installed=self.installed,
            draft=self.draft,
            points=self.points[client, :length],
            rewards=self.rewards[client, :length],
            covered=int(self.covered[client]),
            fired=client == self.fired,
            random=lambda: self.random(client),
        )

    def since(self, first: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The observations that each client has from its number ``first`` on: clients, ascending, and their numbers."""
        counts = self.lengths - first
        if counts.max(initial=0) <= 1:  # as after every interaction
            clients = counts.nonzero()[0]
            return clients, first[clients]
        clients = np.repeat(np.arange(len(self)), counts)
        within = np.arange(len(clients)) - np.repeat(np.cumsum(counts) - counts, counts)
        return clients, within + first[clients]


@dataclass(frozen=True, eq=False)
class Mail:
    """One payload a client: client i has ``payload(kind_of[i])``.

    It says what would cross a wire, not what it holds: only shapes and control fields count. ``shape`` names what all
    payloads of a kind have in common from one sync to the next; None where nothing is known of them.
    """

    kind_of: NDArray[np.int64]
    payload: Callable[[int], Payload]
    shape: tuple[str | int, ...] | None = None

    @classmethod
    def same(cls, payload: Payload, count: int) -> Mail:
        """The same payload for everyone."""
        return cls(kind_of=np.zeros(count, dtype=np.int64), payload=lambda _: payload)

    @classmethod
    def each(cls, payloads: list[Payload]) -> Mail:
        """A payload of its own for everyone."""
        return cls(kind_of=np.arange(len(payloads)), payload=payloads.__getitem__)

    @classmethod
    def of_points(cls, counts: NDArray[np.int64], *, dim: int, control: dict[str, float]) -> Mail:
        """Payloads of so many points with their rewards."""
        return cls(
            kind_of=counts,
            payload=lambda n: Payload(values=_hollow({"points": (n, dim), "rewards": (n,)}), control=control),
            shape=("points", dim, *control),
        )


def _hollow(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Arrays of these shapes that take no memory."""
    return {name: np.broadcast_to(0.0, shape) for name, shape in shapes.items()}


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

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        """Whether a part has what its sender says: its first ``upto`` observations, of which ``covered`` were known."""
        return True

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

    def gather(self, members: Members) -> tuple[Any, Mail]:
        """The merged result of everyone's part, and what they would send; override where one pass does for all."""
        parts = [self.contribute(members.member(client)) for client in range(len(members))]
        state = self.empty()
        for client, part in enumerate(parts):
            state = self.add(state, client, part)
        return self.finish(members.draft, state), Mail.each(parts)

    def spread(self, merged: Any, count: int) -> Mail:
        """What would go down to each of ``count`` clients."""
        if type(self).address is Phase.address:
            return Mail.same(self.whole(merged), count)
        return Mail.each([self.address(merged, client) for client in range(count)])


def _points(payload: Payload, dim: int) -> tuple[Floats, Floats]:
    points, rewards = _arrays(payload, "points", "rewards")
    if rewards.ndim != 1 or points.shape != (len(rewards), dim):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected points of {dim} features with a reward each, got {shapes}")
    return points, rewards


def _arrays(payload: Payload, *names: str) -> list[Floats]:
    if set(payload.values) != set(names):
        raise RemoteProtocolError(f"expected {' and '.join(names)}, got {sorted(payload.values)}")
    return [payload.values[name] for name in names]


def _check_points(payload: Payload, dim: int) -> None:
    points, rewards = _points(payload, dim)
    # a kernel takes squares of points, and an estimate those of rewards
    if not (np.abs(points) < MOST).all() or not (np.abs(rewards) < MOST).all():
        raise RemoteProtocolError(f"a point or a reward is beyond ±{MOST:g}; rescale features and rewards")


def _whole(payload: Payload, name: str) -> int:
    number = payload.control.get(name, 0.0)
    if not (number >= 0 and number == number // 1):
        raise RemoteProtocolError(f"{name} is {number}, which is not a whole number")
    return int(number)


def _joined(parts: list[Payload], dim: int) -> Payload:
    return Payload(
        values={
            "points": np.concatenate([np.empty((0, dim)), *(part.values["points"] for part in parts if part.values)]),
            "rewards": np.concatenate([np.empty(0), *(part.values["rewards"] for part in parts if part.values)]),
        }
    )


@dataclass(frozen=True, eq=False)
class _SharedData:
    """All new points in client order, and how many of them are each client's own."""

    payload: Payload
    clients: NDArray[np.int64]  # ascending
    counts: NDArray[np.int64]

    @cached_property
    def stops(self) -> NDArray[np.int64]:
        """Where each client's own points end."""
        return np.cumsum(self.counts)

    def span(self, client: int) -> tuple[int, int]:
        """Where a client's own points begin and end; nowhere for a client without a part."""
        place = int(np.searchsorted(self.clients, client))
        if place == len(self.clients) or self.clients[place] != client:
            return 0, 0
        return int(self.stops[place] - self.counts[place]), int(self.stops[place])


@dataclass(frozen=True)
class ShareData(Phase):
    """Raw points not yet shared go up; each client is sent those that it lacks (Alg. 1)."""

    name: ClassVar[str] = "share data"

    def contribute(self, member: Member) -> Payload:
        return Payload(values={"points": member.points[member.covered :], "rewards": member.rewards[member.covered :]})

    def check(self, draft: Belief, part: Payload) -> None:
        _check_points(part, draft.dim)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        return len(part.values["rewards"]) == upto - covered

    def add(self, state: Any, client: int, part: Payload) -> Any:
        return (*state, (client, part))

    def finish(self, draft: Belief, state: Any) -> _SharedData:
        counts = [len(part.values["rewards"]) for _, part in state]
        return _SharedData(
            payload=_joined([part for _, part in state], draft.dim),
            clients=np.array([client for client, _ in state], dtype=np.int64),
            counts=np.array(counts, dtype=np.int64),
        )

    def whole(self, merged: _SharedData) -> Payload:
        return merged.payload

    def address(self, merged: _SharedData, client: int) -> Payload:
        start, stop = merged.span(client)
        if start == stop:
            return Payload(values=merged.payload.values, control={"offset": 0.0})
        others = {name: np.concatenate([a[:start], a[stop:]]) for name, a in merged.payload.values.items()}
        return Payload(values=others, control={"offset": float(start)})

    def complete(self, received: Payload, own: Payload) -> Payload:
        at = _whole(received, "offset")
        if at > len(received.values["rewards"]):
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

    def gather(self, members: Members) -> tuple[_SharedData, Mail]:
        new, counts = members.since(members.covered), members.lengths - members.covered
        payload = Payload(values={"points": members.points[new], "rewards": members.rewards[new]})
        merged = _SharedData(payload, clients=np.arange(len(members)), counts=counts)
        return merged, Mail.of_points(counts, dim=members.draft.dim, control={})

    def spread(self, merged: _SharedData, count: int) -> Mail:
        rows, dim = merged.payload.values["points"].shape
        return Mail.of_points(rows - merged.counts, dim=dim, control={"offset": 0.0})


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
        kept = self._proposed(member, member.installed.view(member.points).variance)
        return Payload(values={"points": member.points[kept], "rewards": member.rewards[kept]})

    def _proposed(self, member: Member, variance: Floats) -> NDArray[np.bool_]:
        kept = self.pick(member, variance)
        if len(kept) and not kept.any() and member.fired and not member.installed.dictionary_size:
            kept[np.argmax(variance)] = True  # the first dictionary must not be empty
        return kept

    def pick(self, member: Member, variance: Floats) -> NDArray[np.bool_]:
        """Which own points a client proposes; another dictionary is another `pick`."""
        return sample(variance, qbar=self.qbar, uniforms=member.random().random(len(variance)))

    def check(self, draft: Belief, part: Payload) -> None:
        if part.values:  # else nobody proposes a point
            _check_points(part, draft.dim)

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
            # after a cold start on local models, those who might have proposed a point have left
            return draft if isinstance(draft, FiniteBelief) else with_dictionary(draft, np.empty((0, draft.dim)))
        return with_dictionary(draft, _points(merged, draft.dim)[0])

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
        if self.source == "history":
            object.__setattr__(self, "replaces", True)

    def contribute(self, member: Member) -> Payload:
        first = member.covered if self.source == "tail" else 0
        draft = _finite(member.draft)
        return _packed(Statistics.of(draft.embedding, member.points[first:], member.rewards[first:]))

    def check(self, draft: Belief, part: Payload) -> None:
        check_statistics(part, _finite(draft).embedding.size)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        return _whole(part, "count") == upto - (covered if self.source == "tail" else 0)

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

    def gather(self, members: Members) -> tuple[Payload, Mail]:
        embedding = _finite(members.draft).embedding
        used = members.since(members.covered if self.source == "tail" else np.zeros_like(members.covered))
        X, y = members.points[used], members.rewards[used]
        total = Statistics.zeros(embedding.size)
        for part in _chunks(len(X), embedding.size):
            total = total + Statistics.of(embedding, X[part], y[part])
        hollow = _hollow({"gram": total.gram.shape, "moment": total.moment.shape})
        each = Payload(values=hollow, control={"prior": 0.0, "count": 0.0})
        return _packed(total), Mail.same(each, len(members))


def _chunks(rows: int, width: int) -> list[slice]:
    """Slices of so many rows that a matrix of ``width`` columns for each stays small."""
    size = max(CHUNK_ENTRIES // max(width, 1), 256)
    return [slice(first, first + size) for first in range(0, rows, size)]


def _variances(belief: Belief, X: Floats) -> Floats:
    """σ² of the rows of X under a belief, without holding all their features at once."""
    width = 64 if belief.rank is None else belief.rank
    parts = [belief.view(X[part]).variance for part in _chunks(len(X), width)]
    return np.concatenate([np.empty(0), *parts])


def _finite(belief: Belief) -> FiniteBelief:
    if not isinstance(belief, FiniteBelief):
        raise InputError(f"ShareStatistics needs a belief with coordinates, got {type(belief).__name__}")
    return belief


def _packed(statistics: Statistics) -> Payload:
    return Payload(
        values={"gram": statistics.gram, "moment": statistics.moment},
        control={"prior": statistics.prior, "count": float(statistics.count)},
    )


def _unpacked(payload: Payload, size: int) -> Statistics:
    gram, moment = _arrays(payload, "gram", "moment")
    if gram.shape != (size, size) or moment.shape != (size,):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected statistics of {size} coordinates, got {shapes}")
    prior, count = payload.control.get("prior", 0.0), _whole(payload, "count")
    return Statistics(gram=gram, moment=moment, prior=prior, count=count)


def check_statistics(payload: Payload, size: int) -> None:
    """Refuse what cannot be sums over points, as far as one look at each entry tells."""
    statistics = _unpacked(payload, size)
    gram, largest = statistics.gram, float(np.max(np.diagonal(statistics.gram), initial=0.0))
    sizes = [largest, statistics.prior, float(np.max(np.abs(statistics.moment), initial=0.0))]
    if not all(0 <= each < MOST for each in sizes):
        raise RemoteProtocolError(f"statistics of sizes {sizes}, where 0 … {MOST:g} is expected; rescale features")
    rounding = 1e-9 * largest
    if not (np.abs(gram) <= largest + rounding).all() or not (np.abs(gram - gram.T) <= rounding).all():
        raise RemoteProtocolError("the Gram matrix of a part is not symmetric and positive semi-definite")
