"""The tails of all clients at once: the recursion of `laconic.tail` with a leading axis for clients.

Slot j of every client is the j-th round since the last sync; a client that did not act in it has a zero row there,
which changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, ExactBelief
from laconic.errors import InputError
from laconic.runtimes.lockstep.batch import (
    Exploring,
    Narrowed,
    NewPoints,
    Prediction,
    Rows,
    Scores,
    one_each,
)
from laconic.runtimes.lockstep.exact_rows import ExactRows, Some
from laconic.runtimes.lockstep.finite_rows import FiniteRows
from laconic.runtimes.lockstep.shadow import Beyond, Bounds
from laconic.tail import News


class Tails:
    """The tails of N clients on one belief; ``expected`` is how many slots they may get."""

    def __init__(self, belief: Belief, clients: int, *, expected: int = 1) -> None:
        self.belief = belief
        self.rows: Rows
        if isinstance(belief, ExactBelief):
            self.rows = ExactRows(belief, clients, expected=expected)
        elif belief.rank is not None:
            self.rows = FiniteRows(clients, belief.rank)
        else:
            raise InputError(f"lockstep cannot batch tails on {type(belief).__name__}; use runtime='loopback'")
        self.count = np.zeros(clients, dtype=np.int64)
        self.log_det, self.variance, self.residual = np.zeros((3, clients))
        self._slot_is_open = False

    def begin_round(self) -> None:
        """Everyone may act once more."""
        self.rows.compact()
        self._slot_is_open = False

    def predict(self, scores: Scores, first: int, last: int, *, exploring: Exploring) -> Prediction:
        """The arms of clients first … last as belief and tails see them."""
        if self.rows.size == 0:
            return _untouched(scores, last - first)
        total = self.variance[first:last] - self.residual[first:last]
        return self.rows.predict(scores, slice(first, last), total=total, exploring=exploring)

    def predict_some(self, scores: Narrowed, first: int, last: int) -> Some:
        """The arms of clients first … last that an exact belief was asked for, as belief and tails see them."""
        if self._is_blank:
            return Some(scores.mean, scores.signal, explained=np.empty((len(scores.mean), 0)))
        assert isinstance(self.rows, ExactRows)
        return self.rows.predict_some(scores, slice(first, last))

    def beyond(self, bounds: Bounds, first: int, last: int) -> Beyond:
        """What tails change for the arms of clients first … last that an exact belief has bounds of."""
        if self._is_blank:
            return Beyond.none(bounds.shape)
        assert isinstance(self.rows, ExactRows)
        return self.rows.beyond(bounds, slice(first, last))

    @property
    def _is_blank(self) -> bool:
        """Whether no client that has yet to act in this round has any row."""
        return not isinstance(self.rows, ExactRows) or self.rows.whole == 0

    def information(self, first: int, last: int) -> Floats:
        """ln det(I + K/λ) of belief and tail together, or an upper bound of it, of each client."""
        return self.belief.information + self.log_det[first:last] + self.residual[first:last]

    def learnt(
        self, scores: Scores | Narrowed, prediction: Prediction, column: Ints, *, first: int, rewards: Floats, own: Ints
    ) -> tuple[NewPoints, News]:
        """What clients from ``first`` on would add with these rewards, and the news that their triggers would see.

        ``own`` says how many observations each has made by then.
        """
        chosen, last = scores.chosen(column), first + len(rewards)
        pivot = 1.0 + one_each(prediction.signal, column)
        s = np.sqrt(pivot)
        new = NewPoints(
            scores=chosen,
            explained=prediction.explained(column),
            s=s,
            pull=(rewards - one_each(prediction.mean, column)) / s,
            error=rewards - chosen.mean,
        )
        news: dict[str, Any] = {
            "count": self.count[first:last] + 1,
            "log_det": self.log_det[first:last] + np.log(pivot),
            "variance": self.variance[first:last] + chosen.signal + chosen.residual,
            "residual": self.residual[first:last] + chosen.residual,
            "own": own,
        }
        return new, News(**news)

    def commit(self, new: NewPoints, news: News, *, first: int, count: int) -> None:
        """Add the new points of ``count`` clients from ``first`` on."""
        if not self._slot_is_open:
            self.rows.open_slot()
            self._slot_is_open = True
        clients = slice(first, first + count)
        self.rows.append(clients, new.upto(count))
        arrays: Any = news
        self.count[clients], self.log_det[clients] = arrays.count[:count], arrays.log_det[:count]
        self.variance[clients], self.residual[clients] = arrays.variance[:count], arrays.residual[:count]


def _untouched(scores: Scores, clients: int) -> Prediction:
    """What the belief alone says, to so many clients."""
    mean, signal = scores.mean, scores.signal
    if len(mean) < clients:  # all see the same points
        shape = (clients, mean.shape[1])
        mean, signal = np.broadcast_to(mean, shape), np.broadcast_to(signal, shape)
    size = mean.shape[1]
    return Prediction(
        mean, signal, explained=lambda column: np.empty((len(column), 0)), known=lambda row: np.zeros((size, size))
    )
