"""Sums over points, as in Algorithm 2 and in linear bandits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from laconic.beliefs import Belief, Statistics
from laconic.checks import require_one_of
from laconic.protocol.messages import Payload
from laconic.protocol.phases import triangles
from laconic.protocol.phases.member import Member
from laconic.protocol.phases.payloads import arrays_of, expect_count, totals_of, whole_number, with_totals
from laconic.protocol.phases.phase import Phase
from laconic.protocol.shapes import Layout

StatisticsWire = Literal["paper", "compact"]
STATISTICS_WIRES: tuple[StatisticsWire, ...] = get_args(StatisticsWire)
LAYOUT = Layout(
    values={"gram": ("r", "r"), "moment": ("r",)},
    records={"hashes": ("h",)},
    control={"prior": float, "count": int, "squares": float},
)


@dataclass(frozen=True)
class ShareStatistics(Phase):
    """(G_i, b_i) go up, their sums come down.

    On the compact wire factors go up and triangles come down; see `laconic.protocol.phases.triangles`.

    Args:
        source: tail: of the points that the belief lacks, added to it. history: of all own points, replacing what the
            belief had.
        wire: paper: whole matrices travel, as the paper counts them. compact: triangles in single precision, which take
            a seventh to two fifths of the bytes: less the more numbers there are.
    """

    source: Literal["tail", "history"] = "history"
    wire: StatisticsWire = "paper"

    name: ClassVar[str] = "share statistics"

    def __post_init__(self) -> None:
        require_one_of("source", self.source, choices=("tail", "history"))
        require_one_of("wire", self.wire, choices=STATISTICS_WIRES)

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return triangles.LAYOUT if self.wire == "compact" else LAYOUT

    @property
    def replaces(self) -> bool:  # type: ignore[override]
        return self.source == "history"

    def contribute(self, member: Member) -> Payload:
        first = member.covered if self.source == "tail" else 0
        observations = member.points[first:], member.rewards[first:]
        if self.wire == "compact":
            return triangles.contribution(member.draft.coordinates, *observations)
        return packed(Statistics.of(member.draft.coordinates, *observations))

    def check(self, draft: Belief, part: Payload) -> None:
        draft.check_statistics(self._unpacked(part))

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        expect_count(whole_number(part, "count"), expected=upto - (covered if self.source == "tail" else 0))
        return self.wire == "paper" or "factor" in part.values

    def empty(self) -> Any:
        return None

    def add(self, state: Any, client: int, part: Payload) -> Any:
        new = triangles.Running.of(part) if self.wire == "compact" else unpacked(part)
        return new if state is None else state + new

    def finish(self, draft: Belief, state: Any) -> Payload:
        size = draft.coordinates.size
        if self.wire == "compact":
            return triangles.result(Statistics.zeros(size) if state is None else state.rounded(size))
        return packed(Statistics.zeros(size) if state is None else state)

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        return draft.with_statistics(self._unpacked(merged), added=self.source == "tail")

    def _unpacked(self, payload: Payload) -> Statistics:
        return triangles.unpacked(payload) if self.wire == "compact" else unpacked(payload)


def packed(sums: Statistics) -> Payload:
    """The sums as they travel."""
    return Payload(
        values={"gram": sums.gram, "moment": sums.moment},
        control=totals_of(sums),
    )


def unpacked(payload: Payload) -> Statistics:
    """The sums that came."""
    gram, moment = arrays_of(payload, "gram", "moment")
    return with_totals(gram, moment, payload)
