"""Reading payloads: what has another shape than expected is refused."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats
from laconic.checks import MOST
from laconic.errors import RemoteProtocolError
from laconic.protocol.messages import Payload

#: How many entries a matrix of features may have while histories are summed up.
CHUNK_ENTRIES = 4_000_000


def points_of(payload: Payload, dim: int) -> tuple[Floats, Floats]:
    """Points of ``dim`` features and a reward of each."""
    points, rewards = arrays_of(payload, "points", "rewards")
    if rewards.ndim != 1 or points.shape != (len(rewards), dim):
        shapes = {name: array.shape for name, array in payload.values.items()}
        raise RemoteProtocolError(f"expected points of {dim} features with a reward each, got {shapes}")
    return points, rewards


def arrays_of(payload: Payload, *names: str) -> list[Floats]:
    """The arrays of these names, which must be all there are."""
    if set(payload.values) != set(names):
        raise RemoteProtocolError(f"expected {' and '.join(names)}, got {sorted(payload.values)}")
    return [payload.values[name] for name in names]


def check_points(payload: Payload, dim: int) -> None:
    """Refuse points and rewards that would overflow."""
    points, rewards = points_of(payload, dim)
    # a kernel takes squares of points, and an estimate those of rewards
    if not (np.abs(points) < MOST).all() or not (np.abs(rewards) < MOST).all():
        raise RemoteProtocolError(f"a point or a reward is beyond ±{MOST:g}; rescale features and rewards")


def whole_number(payload: Payload, name: str) -> int:
    """A control field that counts something."""
    number = payload.control.get(name, 0.0)
    if not (number >= 0 and number == number // 1):
        raise RemoteProtocolError(f"{name} is {number}, which is not a whole number")
    return int(number)


def joined(parts: list[Payload], dim: int) -> Payload:
    """The points of all parts, one after the other."""
    return Payload(
        values={
            "points": np.concatenate([np.empty((0, dim)), *(part.values["points"] for part in parts if part.values)]),
            "rewards": np.concatenate([np.empty(0), *(part.values["rewards"] for part in parts if part.values)]),
        }
    )


def chunks(rows: int, width: int) -> list[slice]:
    """Slices of so many rows that a matrix of ``width`` columns for each stays small."""
    size = max(CHUNK_ENTRIES // max(width, 1), 256)
    return [slice(first, first + size) for first in range(0, rows, size)]
