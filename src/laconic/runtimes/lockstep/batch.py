"""What passes between the belief's scores of many clients' arms and their tails.

Most of these are made at every step, so that they are tuples, which take a third of the time to make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs import PRECISIONS

#: Rounding moves an index by less than this, relative to the largest, by the precision of features. An arm of which a
#: bound is known is left out only if that is so much below the best.
INDEX_ROUNDING = {name: 10.0 * precision.tie for name, precision in PRECISIONS.items()}


def one_each(values: Floats, column: Ints) -> Floats:
    """The entry of one column a row."""
    if len(column) == 1:  # without the cost of indexing by arrays
        return values[0, column[0] : column[0] + 1]
    return np.asarray(values[np.arange(len(column)), column])


class Scores(NamedTuple):
    """What belief says of the arms of clients a … b: a leading axis of length 1 where all share the same points."""

    points: Floats  # (w or 1, A, d)
    features: Floats  # (w or 1, p, A)
    mean: Floats  # (w or 1, A)
    signal: Floats
    residual: Floats

    def chosen(self, column: Ints) -> Chosen:
        """The scores of one column a client."""
        if len(column) == 1:  # without the cost of indexing by arrays
            at = int(column[0])
            return Chosen(
                points=self.points[0, at : at + 1],
                features=self.features[:1, :, at],
                mean=self.mean[0, at : at + 1],
                signal=self.signal[0, at : at + 1],
                residual=self.residual[0, at : at + 1],
            )
        rows = np.arange(len(column)) if len(self.mean) == len(column) else np.zeros(len(column), dtype=np.int64)
        return Chosen(
            points=self.points[rows, column],
            features=self.features[rows, :, column],
            mean=self.mean[rows, column],
            signal=self.signal[rows, column],
            residual=self.residual[rows, column],
        )


@dataclass(frozen=True, eq=False)
class Narrowed:
    """What belief says of the arms of clients a … b that may win, in f rows; ``at`` is −1 for all other arms."""

    points: Floats  # (w, A, d)
    residual: Floats  # (w, A)
    at: Ints  # (w, A) the row of an arm
    features: Floats  # (f, p)
    mean: Floats  # (f,)
    signal: Floats  # (f,)

    def chosen(self, column: Ints) -> Chosen:
        """The scores of one column a client, each of which has a row."""
        who = np.arange(len(column))
        rows = self.at[who, column]
        assert (rows >= 0).all(), "an arm was chosen of which the belief was not asked"
        return Chosen(
            points=self.points[who, column],
            features=self.features[rows],
            mean=self.mean[rows],
            signal=self.signal[rows],
            residual=self.residual[who, column],
        )


class Chosen(NamedTuple):
    """What belief says of one point a client."""

    points: Floats  # (w, d)
    features: Floats  # (w, p)
    mean: Floats  # (w,)
    signal: Floats
    residual: Floats

    def upto(self, count: int) -> Chosen:
        """Those of the first ``count`` clients."""
        return Chosen(
            points=self.points[:count],
            features=self.features[:count],
            mean=self.mean[:count],
            signal=self.signal[:count],
            residual=self.residual[:count],
        )


@dataclass(frozen=True, eq=False)
class Exploring:
    """What decides which arms can win: α, one number or one for each client, and which arms are there (None: all).

    ``all`` is True where each column counts, whether it can have the largest index or not: where the columns are points
    that all clients share, of which a client may have some only, and where an exploration looks at all of them.
    """

    alpha: float | Floats  # (w, 1)
    there: Bools | None = None  # (w, A)
    all: bool = False

    def of(self, first: int, last: int) -> Exploring:
        """The part of some clients, where α is one for all."""
        return Exploring(self.alpha, None if self.there is None else self.there[first:last], all=self.all)


class Prediction(NamedTuple):
    """μ and the signal part of σ² of the arms of some clients, with their tails.

    An arm that cannot win may have an upper bound of its signal, with which it still cannot.
    """

    mean: Floats  # (w, A)
    signal: Floats  # (w, A)
    explained: Callable[[Ints], Floats]  # of one column a client, what its tail keeps when the point is learnt
    known: Callable[[int], Floats]  # of one client, what its tail takes from the covariance of the columns


def not_known(row: int) -> Floats:
    """Stands for `Prediction.known` where only arms that may win were looked at, which no exploration then asks for."""
    raise AssertionError("an exploration that asks for covariances has all columns looked at")


class NewPoints(NamedTuple):
    """Points that clients have just learnt the rewards of, one for each client."""

    scores: Chosen
    explained: Floats  # (w, …)
    s: Floats  # (w,)
    pull: Floats  # (w,)
    error: Floats  # (w,) reward minus the belief's mean

    def upto(self, count: int) -> NewPoints:
        """Those of the first ``count`` clients."""
        if count == len(self.s):
            return self
        explained, s, pull, error = (each[:count] for each in (self.explained, self.s, self.pull, self.error))
        return NewPoints(self.scores.upto(count), explained, s, pull, error)


class Rows(Protocol):
    """How the tails of one kind of belief keep what they condition on."""

    @property
    def size(self) -> int:
        """How many rows each client has."""
        ...

    def open_slot(self) -> None:
        """Begin a new slot, with a zero row for everyone."""
        ...

    def predict(self, scores: Scores, clients: slice, *, total: Floats, exploring: Exploring) -> Prediction:
        """The prediction of some clients, of whose tails' points ``total`` is the sum of the belief's signal."""
        ...

    def append(self, clients: slice, new: NewPoints) -> None:
        """Put the new points of some clients into the slot that was opened last."""
        ...

    def compact(self) -> None:
        """Shorten the rows where that changes nothing."""
        ...
