"""Raw points, as in Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, expect_bounded
from laconic.errors import LaconicError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.persistent import Map
from laconic.protocol.phases.member import Member
from laconic.protocol.phases.payloads import (
    check_points,
    expect_count,
    joined,
    packed_points,
    points_of,
    unpacked_points,
    whole_number,
)
from laconic.protocol.phases.phase import Phase
from laconic.protocol.shapes import Layout
from laconic.protocol.wire import EXACT, FloatWire, Wire, as_wire

#: Points of one type, and points each in the form that it needs.
ONE_FORM = Layout(values={"points": ("n", "d"), "rewards": ("n",)}, control={"offset": int})
ANY_FORM = Layout(
    values={"points": ("n", "d"), "rewards": ("y",), "wide": ("w", "d"), "exact": ("e", "d")},
    records={"forms": ("f",)},
    control={"offset": int},
)


@dataclass(frozen=True, eq=False)
class SharedData:
    """All new points in client order, and how many of them are each client's own."""

    payload: Payload
    clients: Ints  # ascending
    counts: Ints
    wire: Wire = EXACT

    @cached_property
    def stops(self) -> Ints:
        """Where each client's own points end."""
        return np.cumsum(self.counts)

    @cached_property
    def to_others(self) -> Payload:
        """What goes down to clients that have nothing of it: one object, so that it is encoded once."""
        return self.without(0, 0)

    def without(self, start: int, stop: int) -> Payload:
        """All points but those from ``start`` to ``stop``, as they travel, and where these go."""
        X, y = (np.delete(self.payload.values[name], slice(start, stop), axis=0) for name in ("points", "rewards"))
        return replace(packed_points(X, y, self.wire), control={"offset": float(start)})

    def span(self, client: int) -> tuple[int, int]:
        """Where a client's own points begin and end; nowhere for a client without a part."""
        place = int(np.searchsorted(self.clients, client))
        if place == len(self.clients) or self.clients[place] != client:
            return 0, 0
        return int(self.stops[place] - self.counts[place]), int(self.stops[place])


@dataclass(frozen=True)
class ShareData(Phase):
    """Raw points not yet shared go up; each client is sent those that it lacks (Alg. 1).

    A client learns from its points as others will have them: rounded to the numbers of ``wire``.

    Args:
        wire: How points and rewards travel; the plan's must be the same.
    """

    wire: Wire = EXACT

    name: ClassVar[str] = "share data"
    shows_points: ClassVar[bool] = True
    increments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "wire", as_wire(self.wire))

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return ONE_FORM if isinstance(self.wire, FloatWire) else ANY_FORM

    @property
    def rounding(self) -> Wire:
        return self.wire

    def contribute(self, member: Member) -> Payload:
        return packed_points(member.points[member.covered :], member.rewards[member.covered :], self.wire)

    def check(self, draft: Belief, part: Payload) -> None:
        check_points(unpacked_points(part, draft.dim, self.wire), draft)

    def check_result(self, draft: Belief, merged: Payload) -> None:
        points, rewards = self.shown(merged, draft.dim)
        expect_bounded({"points": points, "rewards": rewards})

    def shown(self, part: Payload, dim: int) -> tuple[Floats, Floats]:
        return points_of(unpacked_points(part, dim, self.wire), dim)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        expect_count(len(part.values["rewards"]), expected=upto - covered)
        return True

    def empty(self) -> Any:
        return Map.of({})

    def add(self, state: Any, client: int, part: Payload) -> Any:
        return state.put(client, part)

    def finish(self, draft: Belief, state: Any) -> SharedData:
        clients = sorted(state)
        parts = {client: unpacked_points(part, draft.dim, self.wire) for client, part in state.items()}
        return SharedData(
            payload=joined(parts, draft.dim),
            clients=np.array(clients, dtype=np.int64),
            counts=np.array([len(state[client].values["rewards"]) for client in clients], dtype=np.int64),
            wire=self.wire,
        )

    def whole(self, merged: SharedData) -> Payload:
        return merged.payload

    def address(self, merged: SharedData, client: int) -> Payload:
        start, stop = merged.span(client)
        if start == stop:
            return merged.to_others
        return merged.without(start, stop)

    def complete(self, received: Payload, own: Payload) -> Payload:
        at = whole_number(received, "offset")
        dim = own.values["points"].shape[1]  # of what this client packed itself
        received, own = (unpacked_points(each, dim, self.wire) for each in (received, own))
        if at > len(received.values["rewards"]):
            raise RemoteProtocolError(f"own points cannot go at offset {at}")
        return Payload(
            values={
                name: np.concatenate([array[:at], own.values[name], array[at:]])
                for name, array in received.values.items()
            }
        )

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        return draft.extended(*points_of(merged, draft.dim))

    def joined(self, results: list[Payload]) -> Payload:
        points, rewards = ([each.values[name] for each in results] for name in ("points", "rewards"))
        steps = np.array([len(each) for each in rewards], dtype=np.uint32)
        packed = packed_points(np.concatenate(points), np.concatenate(rewards), self.wire)
        return replace(packed, records={**packed.records, "steps": steps})

    def caught_up(self, belief: Belief, joined: Payload) -> Belief:
        X, y = points_of(unpacked_points(joined, belief.dim, self.wire), belief.dim)
        steps = joined.records.get("steps", np.empty(0, dtype=np.uint32))
        stops = np.cumsum(steps, dtype=np.int64)
        if steps.ndim != 1 or steps.dtype.kind != "u" or (int(stops[-1]) if len(stops) else 0) != len(y):
            raise RemoteProtocolError(f"{len(y)} points cannot have come in steps of {steps[:5]} …")
        for start, stop in zip([0, *stops[:-1]], stops, strict=True):  # step by step, as those who were there
            belief = belief.extended(X[start:stop], y[start:stop])
        return belief

    def culprits(self, draft: Belief, state: Any) -> list[int]:
        return [client for client, part in sorted(state.items()) if not _is_absorbed(self, draft, part)]


def _is_absorbed(phase: ShareData, draft: Belief, part: Payload) -> bool:
    try:
        return phase.absorb(draft, unpacked_points(part, draft.dim, phase.wire)).is_sound()
    except LaconicError:
        return False
