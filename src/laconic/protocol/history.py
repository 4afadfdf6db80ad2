"""A client's own observations, in the order in which their rewards came, each with a hash of all up to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.growing import GrowingRows, keys

Hashes = NDArray[np.uint64]
NO_HASHES: Hashes = np.empty(0, dtype=np.uint64)


def chained(tip: int, points: Floats, rewards: Floats) -> Hashes:
    """The hash of each observation, of the one before it and of its point and reward; ``tip`` is the one before all.

    Two histories whose hashes agree at a number agree in all observations up to it.
    """
    rows = np.empty((len(rewards), points.shape[1] + 1))
    rows[:, :-1], rows[:, -1] = points, rewards
    before, hashes = tip.to_bytes(8, "little"), bytearray()
    for identity in keys(rows):
        before = blake2b(before + identity, digest_size=8).digest()
        hashes += before
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64, copy=False)


def agreeing(a: Hashes, b: Hashes) -> int:
    """How many observations, from the first on, two chains have in common."""
    shorter = min(len(a), len(b))
    different = np.flatnonzero(a[:shorter] != b[:shorter])
    return int(different[0]) if len(different) else shorter


@dataclass(frozen=True, eq=False)
class Growing64:
    """Hashes that only ever get appended; every version sees its own length of one shared buffer."""

    rows: GrowingRows

    @classmethod
    def of(cls, hashes: Hashes) -> Growing64:
        """These hashes."""
        return cls(GrowingRows.empty(1)).appended(hashes)

    @property
    def values(self) -> Hashes:
        """The hashes of this version."""
        return np.ascontiguousarray(self.rows.values[:, 0]).view(np.uint64)

    def __len__(self) -> int:
        return self.rows.size

    def at(self, count: int) -> int:
        """The hash of the first ``count`` observations; 0 for none."""
        return int(self.rows.values[count - 1].view(np.uint64)[0]) if count else 0

    def appended(self, hashes: Hashes) -> Growing64:
        """The version with these at the end."""
        # Bits are kept as they are: a buffer of doubles holds 64-bit numbers as well.
        return Growing64(self.rows.appended(hashes.view(np.float64)[:, None]))


#: More observations are never left to be hashed: whoever greets would wait for it.
MOST_UNHASHED = 256
NO_CHAIN = Growing64.of(NO_HASHES)


@dataclass(frozen=True, eq=False)
class History:
    """Append-only points and rewards; an observation's place in it is its sequence number.

    Its chain is asked for when somebody greets, and by few others, so that the newest hashes are computed when it is.
    """

    _points: GrowingRows
    _rewards: GrowingRows
    _hashed: Growing64  # the beginning of the chain that was known when this version was made

    @classmethod
    def empty(cls, dim: int) -> History:
        """No observations of points of ``dim`` features."""
        return cls(GrowingRows.empty(dim), GrowingRows.empty(1), NO_CHAIN)

    def __len__(self) -> int:
        return self._points.size

    @property
    def points(self) -> Floats:
        """One row an observation."""
        return self._points.values

    @property
    def rewards(self) -> Floats:
        """One reward an observation."""
        return self._rewards.values[:, 0]

    @cached_property
    def chain(self) -> Growing64:
        """The hash of each observation, of all up to it."""
        done = len(self._hashed)
        if done == len(self):
            return self._hashed
        return self._hashed.appended(chained(self._hashed.at(done), self.points[done:], self.rewards[done:]))

    @property
    def _known_chain(self) -> Growing64:
        """As much of the chain as is known."""
        known: Growing64 = self.__dict__.get("chain", self._hashed)
        return known

    def upto(self, count: int) -> History:
        """Its first ``count`` observations, in the same memory."""
        hashed = Growing64(self._known_chain.rows.upto(count))
        return History(self._points.upto(count), self._rewards.upto(count), hashed)

    def appended(self, points: Floats, rewards: Floats) -> History:
        """The history with these observations at the end; a ValueError where points and rewards are not as many."""
        if len(points) != len(rewards):
            raise ValueError(f"{len(points)} points with {len(rewards)} rewards")
        longer = History(self._points.appended(points), self._rewards.appended(rewards[:, None]), self._known_chain)
        if len(longer) - len(longer._hashed) > MOST_UNHASHED:
            _ = longer.chain
        return longer
