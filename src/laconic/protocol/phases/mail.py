"""What a sync would send, where all clients are in one process and only sizes count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Ints
from laconic.protocol.messages import Payload


@dataclass(frozen=True, eq=False)
class Mail:
    """One payload a client: client i has ``payload(kind_of[i])``.

    It says what would cross a wire, not what it holds: only shapes and control fields count. ``shape`` names what all
    payloads of a kind have in common from one sync to the next; None where nothing is known of them.
    """

    kind_of: Ints
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
    def of_points(cls, counts: Ints, *, dim: int, control: dict[str, float]) -> Mail:
        """Payloads of so many points with their rewards."""
        return cls(
            kind_of=counts,
            payload=lambda n: Payload(values=hollow({"points": (n, dim), "rewards": (n,)}), control=control),
            shape=("points", dim, *control),
        )


def hollow(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Arrays of these shapes that take no memory."""
    return {name: np.broadcast_to(0.0, shape) for name, shape in shapes.items()}
