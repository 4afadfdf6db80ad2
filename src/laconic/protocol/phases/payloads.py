"""Reading payloads: what has another shape than expected is refused."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, Statistics, expect_bounded, expect_moderate, whole
from laconic.errors import RemoteProtocolError
from laconic.protocol import parcels
from laconic.protocol.messages import Payload
from laconic.protocol.wire import Wire

_FLOAT = np.dtype(np.float64)


def points_of(payload: Payload, dim: int) -> tuple[Floats, Floats]:
    """Points of ``dim`` features and a reward of each."""
    points, rewards = arrays_of(payload, "points", "rewards")
    if rewards.ndim != 1 or points.shape != (len(rewards), dim):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected points of {dim} features with a reward each, got {shapes}")
    return points, rewards


def packed_points(points: Floats, rewards: Floats, wire: Wire) -> Payload:
    """Points with a reward each as they travel on a wire."""
    values, records = parcels.packed(points, wire)
    return Payload(values={**values, "rewards": wire.packed_rewards(rewards)}, records=records)


def unpacked_points(payload: Payload, dim: int, wire: Wire) -> Payload:
    """The same points and rewards in float64."""
    values = payload.values
    if "rewards" not in values or not values.keys() <= {*parcels.FORMS, "rewards"}:
        raise RemoteProtocolError(f"expected points and rewards, got {sorted(values)}")
    points = parcels.unpacked(values, payload.records, wire, None, dim=dim)
    read = Payload(values={"points": points, "rewards": wire.unpacked_rewards(values["rewards"])})
    points_of(read, dim)
    return read


def arrays_of(payload: Payload, *names: str) -> list[Floats]:
    """The arrays of these names, which must be all there are, of float64."""
    if set(payload.values) != set(names):
        raise RemoteProtocolError(f"expected {' and '.join(names)}, got {sorted(payload.values)}")
    arrays = [payload.values[name] for name in names]
    for name, array in zip(names, arrays, strict=True):
        if array.dtype != _FLOAT:
            raise RemoteProtocolError(f"{name} came as {array.dtype}, where float64 is expected")
    return arrays


def check_points(payload: Payload, draft: Belief) -> None:
    """Refuse points and rewards that would overflow, and points that the draft could not even learn alone."""
    points, rewards = points_of(payload, draft.dim)
    expect_bounded({"points": points, "rewards": rewards})
    draft.check_points(points)
    expect_moderate(draft, points, rewards)


def whole_number(payload: Payload, name: str) -> int:
    """A control field that counts something."""
    return whole(name, payload.control.get(name, 0.0))


def totals_of(sums: Statistics) -> dict[str, float]:
    """The sums that are numbers, as control fields."""
    return {"prior": sums.prior, "count": float(sums.count), "squares": sums.squares}


def with_totals(gram: Floats, moment: Floats, payload: Payload) -> Statistics:
    """The statistics with the control fields of a payload."""
    control, count = payload.control, whole_number(payload, "count")
    return Statistics(gram, moment, prior=control.get("prior", 0.0), count=count, squares=control.get("squares", 0.0))


def expect_count(seen: int, *, expected: int) -> None:
    """Refuse a part that is of another number of observations than its sender claims."""
    if seen != expected:
        raise RemoteProtocolError(f"a part of {seen} observations, whose sender claims {expected} that were not known")


def joined(parts: dict[int, Payload], dim: int) -> Payload:
    """The points of all parts in client order, whatever the order in which they came."""
    full = [part.values for _, part in sorted(parts.items()) if part.values]
    return Payload(
        values={
            "points": np.concatenate([np.empty((0, dim)), *(values["points"] for values in full)]),
            "rewards": np.concatenate([np.empty(0), *(values["rewards"] for values in full)]),
        }
    )
