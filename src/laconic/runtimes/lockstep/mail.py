"""What a sync would send, where all clients are in one process and only sizes count."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from laconic.arrays import Ints
from laconic.protocol.messages import Payload

#: More observations than a client has between two syncs.
MOST_HASHES = 2**24


class Mail(NamedTuple):
    """One payload a client: client i has ``payload(kind_of[i])``.

    It says what would cross a wire, not what it holds: only shapes and control fields count. ``shape`` names what all
    payloads of a kind have in common from one sync to the next; None where nothing is known of them. ``extra`` are the
    bytes that a client's own number in its payload takes beyond those of 0.
    """

    kind_of: Ints
    payload: Callable[[int], Payload]
    shape: tuple[str | int, ...] | None = None
    extra: Ints | None = None

    @classmethod
    def same(cls, payload: Payload, count: int, *, extra: Ints | None = None) -> Mail:
        """The same payload for everyone."""
        return cls(kind_of=np.zeros(count, dtype=np.int64), payload=lambda _: payload, extra=extra)

    @classmethod
    def each(cls, payloads: list[Payload]) -> Mail:
        """A payload for everyone, which may be the same object for several."""
        first: dict[int, int] = {}
        kinds = [first.setdefault(id(payload), client) for client, payload in enumerate(payloads)]
        return cls(kind_of=np.array(kinds, dtype=np.int64), payload=payloads.__getitem__)

    @classmethod
    def of_points(
        cls,
        counts: Ints,
        *,
        dim: int,
        dtype: str = "float64",
        control: dict[str, float] | None = None,
        extra: Ints | None = None,
    ) -> Mail:
        """Payloads of so many points with their rewards."""
        fields = control or {}
        return cls(
            kind_of=counts,
            payload=lambda n: Payload(
                values=hollow({"points": (n, dim), "rewards": (n,)}, dtype=dtype), control=fields
            ),
            shape=("points", dim, dtype, *fields),
            extra=extra,
        )

    @classmethod
    def alike(cls, patterns: Ints, payload: Callable[[Ints], Payload], *, extra: Ints | None = None) -> Mail:
        """A payload for each row of numbers, all that its size depends on."""
        distinct, kind_of = np.unique(patterns, axis=0, return_inverse=True)
        return cls(kind_of=kind_of.reshape(-1), payload=lambda kind: payload(distinct[kind]), extra=extra)

    def hashed(self, counts: Ints) -> Mail:
        """The same payloads with the hashes of so many observations."""

        def payload(kind: int) -> Payload:
            inner, count = divmod(kind, MOST_HASHES)
            hashes = np.broadcast_to(np.uint64(0), (count,))
            plain = self.payload(inner)
            return replace(plain, records={**plain.records, "hashes": hashes})

        shape = None if self.shape is None else ("hashed", *self.shape)
        return Mail(kind_of=self.kind_of * MOST_HASHES + counts, payload=payload, shape=shape, extra=self.extra)


def hollow(shapes: dict[str, tuple[int, ...]], *, dtype: str = "float64") -> dict[str, np.ndarray]:
    """Arrays of these shapes that take no memory."""
    return {name: np.broadcast_to(np.zeros((), dtype), shape) for name, shape in shapes.items()}
