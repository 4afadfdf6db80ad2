"""Raw points, as in Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from laconic.arrays import Ints
from laconic.beliefs import Belief, ExactBelief
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.base import Phase
from laconic.protocol.phases.mail import Mail
from laconic.protocol.phases.members import Member, Members
from laconic.protocol.phases.payloads import check_points, joined, points_of, whole_number


@dataclass(frozen=True, eq=False)
class _SharedData:
    """All new points in client order, and how many of them are each client's own."""

    payload: Payload
    clients: Ints  # ascending
    counts: Ints

    @cached_property
    def stops(self) -> Ints:
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
        check_points(part, draft.dim)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        return len(part.values["rewards"]) == upto - covered

    def add(self, state: Any, client: int, part: Payload) -> Any:
        return (*state, (client, part))

    def finish(self, draft: Belief, state: Any) -> _SharedData:
        counts = [len(part.values["rewards"]) for _, part in state]
        return _SharedData(
            payload=joined([part for _, part in state], draft.dim),
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
        at = whole_number(received, "offset")
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
        return draft.extended(*points_of(merged, draft.dim))

    def gather(self, members: Members) -> tuple[_SharedData, Mail]:
        new, counts = members.since(members.covered), members.lengths - members.covered
        payload = Payload(values={"points": members.points[new], "rewards": members.rewards[new]})
        merged = _SharedData(payload, clients=np.arange(len(members)), counts=counts)
        return merged, Mail.of_points(counts, dim=members.draft.dim, control={})

    def spread(self, merged: _SharedData, count: int) -> Mail:
        rows, dim = merged.payload.values["points"].shape
        return Mail.of_points(rows - merged.counts, dim=dim, control={"offset": 0.0})
