"""The arms of a round: which of them are the same point, so that each point is scored once, and which are picked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Bools, Floats, Ints
from laconic.errors import InputError
from laconic.exploration import tied_with_best
from laconic.problems.base import Round

#: An odd number whose multiples are spread over all 64 bits.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
SHIFTS = (np.uint64(32), np.uint64(29))
#: Clients share one set of columns when all their arms together are at most this many times one client's.
SHARE_UP_TO = 4


@dataclass(frozen=True, eq=False)
class Arms:
    """Arm sets of a round; where all choose among few points, ``shared`` lists these and ``index`` points to them.

    Without an index, shared points are everyone's arms as they come.
    """

    arms: Floats  # (N, A, d)
    mask: Bools | None
    shared: Floats | None  # (U, d)
    index: Ints | None  # (N, A)
    first_equal: Ints | None = None  # (N, A) the first arm of its set that each equals; None: all differ

    @classmethod
    def of(cls, round_: Round) -> Arms:
        """The arms of a round, looked through for repeated points."""
        clients, size, dim = round_.arms.shape
        rows, hashes = round_.arms.reshape(clients * size, dim), hashes_of(round_.arms)
        found = distinct_rows(rows, hashes.reshape(-1), at_most=SHARE_UP_TO * size) if clients > 1 else None
        if found is None:
            return cls(
                round_.arms, round_.mask, None, None, first_equal=first_equal_of(round_.arms, round_.mask, hashes)
            )
        first, index = found
        if (index.reshape(clients, size) == index[:size]).all() and len(first) == size:
            return cls(round_.arms, round_.mask, round_.arms[0], None)  # everyone has the same arms in the same order
        return cls(round_.arms, round_.mask, rows[first], index.reshape(clients, size))

    def points(self, first: int, last: int) -> Floats:
        """The points to score for clients ``first`` … ``last``: shared ones, or the arms of each in turn."""
        return self.arms[first:last].reshape(-1, self.arms.shape[2]) if self.shared is None else self.shared

    @cached_property
    def scored(self) -> Ints | None:
        """(N, A) the column in which each arm is scored, one for all that are the same point; None: each in its own."""
        return self.index if self.index is not None else self.first_equal

    def first_there(self, clients: slice | list[int]) -> Bools | None:
        """Which arms of some clients are there, of equal ones the first only; None where all are and all differ."""
        there = None if self.mask is None else self.mask[clients]
        if self.first_equal is None:
            return there
        once = self.first_equal[clients] == np.arange(self.arms.shape[1])
        return np.asarray(once if there is None else once & there)

    def columns(self, client: int) -> tuple[Ints, Ints]:
        """The arms that a client has, and where each of them is scored."""
        there = np.arange(self.arms.shape[1]) if self.mask is None else np.flatnonzero(self.mask[client])
        return there, there if self.scored is None else self.scored[client, there]


def picked_by_index(
    mean: Floats,
    width: Floats,
    *,
    columns: Ints | None,
    there: Bools | None,
    tie: float,
    draw: Callable[[int], np.random.Generator],
    note: Callable[[Ints], None] | None,
) -> Ints:
    """The arm of each client, a row each: the largest index, ties broken by a draw of the client's own.

    ``columns`` says in which column each arm is scored; None: each in its own. ``draw`` gives the draws of the client
    in a row, and ``note`` is told of every client how many arms tie.
    """
    if columns is not None:  # equal arms have one score
        rows = np.arange(len(mean))[:, None]
        mean, width = mean[rows, columns], width[rows, columns]
    tied = tied_with_best(mean, width, tie=tie, there=there)
    picked: Ints = tied.argmax(axis=1)
    best = np.count_nonzero(tied)
    certain = best == len(tied) == 1  # one client and one best arm, so its index is a number
    if not certain and not np.isfinite(mean + width).all():
        raise InputError("the model's predictions overflow; rescale features and rewards to moderate sizes")
    if note is not None:
        note(tied.sum(axis=1))
    for row in (tied.sum(axis=1) > 1).nonzero()[0] if best > len(tied) else ():
        candidates = np.flatnonzero(tied[row])
        picked[row] = candidates[draw(int(row)).integers(len(candidates))]
    return picked


def distinct_rows(rows: Floats, hashes: NDArray[np.uint64], *, at_most: int) -> tuple[Ints, Ints] | None:
    """The first appearance of each distinct row, and each row's number among them; None when there are too many."""
    if len(set(hashes[: at_most + 1].tolist())) > at_most:  # as where all arms are new: the first few tell
        return None
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) > at_most or not np.array_equal(rows[first][number], rows):
        return None
    return first, number


def first_equal_of(arms: Floats, mask: Bools | None, hashes: NDArray[np.uint64]) -> Ints | None:
    """For each arm the first of its set that is the same point; None when no set has a point twice.

    An arm that is not there is nobody's first but its own.
    """
    ordered = np.sort(hashes, axis=1)
    if not (ordered[:, 1:] == ordered[:, :-1]).any():
        return None
    equal = hashes[:, :, None] == hashes[:, None, :]
    if mask is not None:
        equal &= mask[:, None, :] | np.eye(arms.shape[1], dtype=np.bool_)
    first: Ints = equal.argmax(axis=2)
    same = (np.take_along_axis(arms, first[:, :, None], axis=1) == arms).all(axis=2)  # hashes may agree by chance
    return np.where(same, first, np.arange(arms.shape[1]))


def hashes_of(rows: Floats) -> NDArray[np.uint64]:
    """A number for each row, along the last axis, that depends on every bit of it; −0.0 counts as 0.0."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        bits += np.arange(1, bits.shape[-1] + 1, dtype=np.uint64) * GOLDEN
        for shift in SHIFTS:  # round numbers differ in high bits only, and a product carries upwards
            bits ^= bits >> shift
            bits *= GOLDEN
        bits ^= bits >> SHIFTS[0]
        return np.asarray(bits.sum(axis=-1, dtype=np.uint64))
