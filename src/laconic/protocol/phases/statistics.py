"""Sums over points, as in Algorithm 2 and in linear bandits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from laconic.beliefs import Belief, FiniteBelief, Statistics
from laconic.checks import MOST, require_one_of
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.base import Phase
from laconic.protocol.phases.mail import Mail, hollow
from laconic.protocol.phases.members import Member, Members
from laconic.protocol.phases.payloads import arrays_of, chunks, whole_number


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

    @property
    def replaces(self) -> bool:  # type: ignore[override]
        return self.source == "history"

    def contribute(self, member: Member) -> Payload:
        first = member.covered if self.source == "tail" else 0
        draft = _finite(member.draft)
        return _packed(Statistics.of(draft.embedding, member.points[first:], member.rewards[first:]))

    def check(self, draft: Belief, part: Payload) -> None:
        check_statistics(part, _finite(draft).embedding.size)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        return whole_number(part, "count") == upto - (covered if self.source == "tail" else 0)

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
        for part in chunks(len(X), embedding.size):
            total = total + Statistics.of(embedding, X[part], y[part])
        shapes = {"gram": total.gram.shape, "moment": total.moment.shape}
        each = Payload(values=hollow(shapes), control={"prior": 0.0, "count": 0.0})
        return _packed(total), Mail.same(each, len(members))


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
    gram, moment = arrays_of(payload, "gram", "moment")
    if gram.shape != (size, size) or moment.shape != (size,):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected statistics of {size} coordinates, got {shapes}")
    prior, count = payload.control.get("prior", 0.0), whole_number(payload, "count")
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
