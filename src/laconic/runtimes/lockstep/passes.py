"""How a phase runs for all clients in one process: a pass of its own where one is known, else client by client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.arrays import Ints
from laconic.beliefs import Belief, ExactBelief, Statistics, variances
from laconic.protocol.messages import Payload
from laconic.protocol.packing import NARROW, widths
from laconic.protocol.parcels import FORMS, marks_size
from laconic.protocol.phases import AgreeOnDictionary, Phase, ShareData, ShareStatistics
from laconic.protocol.phases.data import SharedData
from laconic.protocol.phases.statistics import packed
from laconic.protocol.wire import FORM_TYPES, FloatWire, Int8Wire, fits_half
from laconic.runtimes.lockstep.mail import Mail, hollow
from laconic.runtimes.lockstep.members import Members

OFFSET = {"offset": 0.0}


def gather_plainly(phase: Phase, members: Members) -> tuple[Any, Mail]:
    """Each client contributes, the server adds and finishes."""
    parts = [phase.contribute(members.member(client)) for client in range(len(members))]
    state = phase.empty()
    for client, part in enumerate(parts):
        state = phase.add(state, client, part)
    return phase.finish(members.draft, state), Mail.each(parts)


def spread_plainly(phase: Phase, merged: Any, count: int) -> Mail:
    """Each client is addressed."""
    return Mail.each([phase.address(merged, client) for client in range(count)])


def absorb_plainly(phase: Phase, members: Members, merged: Any) -> Belief:
    """As everywhere."""
    return phase.absorb(members.draft, phase.whole(merged))


@dataclass(frozen=True)
class Pass:
    """A phase for all clients: the merged result with what they would send up, what would go down, and the draft."""

    gather: Callable[[Any, Members], tuple[Any, Mail]] = gather_plainly
    spread: Callable[[Any, Any, int], Mail] = spread_plainly
    absorb: Callable[[Any, Members, Any], Belief] = absorb_plainly


def spread_alike(phase: Phase, merged: Any, count: int) -> Mail:
    """Everyone is sent the same."""
    return Mail.same(phase.whole(merged), count)


def gather_data(phase: ShareData, members: Members) -> tuple[SharedData, Mail]:
    """All new points by one look at the histories."""
    counts = members.lengths - members.covered
    points, rewards = members.since(members.covered, counts)
    payload = Payload(values={"points": points, "rewards": rewards})
    merged = SharedData(payload, clients=np.arange(len(members)), counts=counts, wire=phase.wire)
    if isinstance(phase.wire, FloatWire):
        return merged, Mail.of_points(counts, dim=members.draft.dim, dtype=phase.wire.dtype)
    return merged, _in_forms(merged, _form_counts(merged), control={})


def spread_data(phase: ShareData, merged: SharedData, count: int) -> Mail:
    """Everyone is sent what others have, and where its own points go."""
    rows, dim = merged.payload.values["points"].shape
    extra = None
    if rows >= NARROW:  # else where a client's points go is a narrow number for all
        extra = widths(np.where(merged.counts > 0, merged.stops - merged.counts, 0)) - 1
    if isinstance(phase.wire, FloatWire):
        return Mail.of_points(rows - merged.counts, dim=dim, dtype=phase.wire.dtype, control=OFFSET, extra=extra)
    own = _form_counts(merged)
    return _in_forms(merged, own.sum(axis=0) - own, control=OFFSET, extra=extra)


def _form_counts(merged: SharedData) -> Ints:
    """How many points of each client go in each of the three forms, and how many rewards need float32."""
    points, rewards = (merged.payload.values[name] for name in ("points", "rewards"))
    each = np.zeros((len(rewards) + 1, 4), dtype=np.int64)
    each[np.arange(len(rewards)) + 1, merged.wire.form_of(points)] = 1
    each[1:, 3] = ~fits_half(rewards)
    sums = np.cumsum(each, axis=0)
    return np.asarray(sums[merged.stops] - sums[merged.stops - merged.counts])


def _in_forms(merged: SharedData, counts: Ints, *, control: dict[str, float], extra: Ints | None = None) -> Mail:
    """The mail of clients whose points are so often in each form."""
    dim = merged.payload.values["points"].shape[1]
    counts[:, 3] = counts[:, 3] > 0
    return Mail.alike(counts, lambda row: _outline(*row.tolist(), dim=dim, control=control), extra=extra)


def _outline(*sizes: int, dim: int, control: dict[str, float]) -> Payload:
    """A payload of so many points in each form, of which only the size is right."""
    *sizes_of_forms, single = sizes
    values: dict[str, np.ndarray] = {}
    for name, dtype, size in zip(FORMS, FORM_TYPES, sizes_of_forms, strict=True):
        if size or name == "points":
            values |= hollow({name: (size, dim)}, dtype=dtype)
    count = sum(sizes_of_forms)
    values |= hollow({"rewards": (count,)}, dtype="float32" if single else "float16")
    kinds = sum(size > 0 for size in sizes_of_forms)
    records = hollow({"forms": (marks_size(count, kinds=kinds),)}, dtype="uint8") if kinds > 1 else {}
    return Payload(values=values, records=records, control=control)


def absorb_data(phase: ShareData, members: Members, merged: SharedData) -> Belief:
    """The draft learns the points, by the features of them that tails have at hand."""
    if members.known is None or not isinstance(members.draft, ExactBelief):
        return phase.absorb(members.draft, merged.payload)
    values = merged.payload.values
    return members.draft.extended(values["points"], values["rewards"], known=members.known.columns)


def gather_dictionary(phase: AgreeOnDictionary, members: Members) -> tuple[Payload, Mail]:
    """The variances of all histories at once; each client draws for itself."""
    known = members.places(np.zeros_like(members.lengths), members.lengths)
    variance = np.zeros(members.rewards.shape)
    variance[known] = variances(members.installed, members.points[known])
    kept = np.zeros(variance.shape, dtype=bool)
    for client in members.lengths.nonzero()[0].tolist():  # who has nothing proposes nothing
        length = members.lengths[client]
        kept[client, :length] = phase.proposed(members.member(client), variance[client, :length])
    union = Payload(values={"points": members.points[kept], "rewards": members.rewards[kept]})
    return phase.finish(members.draft, {0: union}), Mail.of_points(kept.sum(axis=1), dim=members.draft.dim)


def gather_statistics(phase: ShareStatistics, members: Members) -> tuple[Payload, Mail]:
    """One sum over the points of all, instead of a sum of sums."""
    first = members.covered if phase.source == "tail" else np.zeros_like(members.covered)
    counts = members.lengths - first
    merged = packed(Statistics.of(members.draft.coordinates, *members.since(first, counts)))
    shapes = {name: array.shape for name, array in merged.values.items()}
    each = Payload(values=hollow(shapes), control=dict.fromkeys(merged.control, 0.0))
    return merged, Mail.same(each, len(members), extra=members.beyond_narrow(counts))


PLAIN = Pass()
#: What is known of exactly these phases, for speed alone; a subclass may have changed anything.
PASSES: dict[type[Phase], Pass] = {
    ShareData: Pass(gather=gather_data, spread=spread_data, absorb=absorb_data),
    AgreeOnDictionary: Pass(gather=gather_dictionary, spread=spread_alike),
    ShareStatistics: Pass(gather=gather_statistics, spread=spread_alike),
}


def pass_of(phase: Phase) -> Pass:
    """How a phase runs here."""
    wire = getattr(phase, "wire", None)
    if wire == "compact" or (isinstance(phase, ShareData) and not isinstance(wire, FloatWire | Int8Wire)):
        return PLAIN
    return PASSES.get(type(phase), PLAIN)
