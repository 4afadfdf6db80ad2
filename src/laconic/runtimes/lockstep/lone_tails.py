"""A tail on a finite belief in a form that costs few operations a point: rows to multiply by, and no solves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Belief, View
from laconic.growing import GrowingRows
from laconic.runtimes.lockstep.sights import Look, Sight
from laconic.tail import News, Tail, and_one

#: Rows are turned into as many as there are coordinates when there are twice as many and some more.
SPARE_ROWS = 32
#: An arm is left at a bound only if that is this much below the best, relative to the largest: rounding moves less.
ROUNDING = 1e-9


class Seen(NamedTuple):
    """What a belief says of one point."""

    x: Floats  # (d,)
    v: Floats  # (p,) its features
    mean: float
    signal: float
    residual: float

    @classmethod
    def each(cls, view: View) -> list[Seen]:
        """What it says of each point of a view."""
        features = np.ascontiguousarray(view.features.T)
        return list(map(cls, view.points, features, view.mean.tolist(), view.signal.tolist(), view.residual.tolist()))


class Noted:
    """A belief and the sums over a tail on it, as `laconic.tail.Tail` has them."""

    def __init__(self, belief: Belief, *, news: News, fresh: News) -> None:
        self.belief, self.news, self.fresh = belief, news, fresh

    @property
    def information(self) -> float:
        """See `laconic.tail.Tail`."""
        return self.belief.information + self.news.log_det + self.news.residual

    def _note(self, log_det: float, *, variance: float, residual: float, replayed: bool) -> None:
        old, fresh = self.news, self.fresh
        self.news = old.and_one(log_det=log_det, variance=variance, residual=residual)
        if not replayed:  # mostly nothing ever was, and both are one
            both = fresh is old
            self.fresh = self.news if both else fresh.and_one(log_det=log_det, variance=variance, residual=residual)


class QuickTail(Noted):
    """What `laconic.tail.Tail` says, by rows q: with c = Qv for a point of features v, σ² −= ‖c‖² and μ += c·ρ.

    QᵀQ = I − (I + UᵀU)⁻¹ for the features U of the tail's points. Learning v adds q = (v − Qᵀc)/s and (y − μ)/s to
    Q and ρ, with s² = 1 + σ².
    """

    def __init__(self, belief: Belief, *, rows: Floats, pulls: Floats, news: News, fresh: News) -> None:
        super().__init__(belief, news=news, fresh=fresh)
        self._begin(rows, pulls)

    def _begin(self, rows: Floats, pulls: Floats) -> None:
        self._rows = GrowingRows.empty(rows.shape[1]).appended(rows)
        self._pulls = pulls  # ρ
        self._turned = GrowingRows.empty(rows.shape[1])  # the first of the rows, for a sight of the belief
        self._lean = np.zeros(rows.shape[1])  # what these add to μ: their sum, each by its ρ

    @classmethod
    def of(cls, tail: Tail) -> QuickTail | None:
        """The same tail; None where there is no such form, as features change or are no coordinates."""
        if tail.belief.rank is None or tail.belief.rank == 0 or tail.basis is not None:
            return None
        rows = np.empty((0, tail.belief.rank))
        if len(tail.rows):
            rows = tail.rows.factor.solve(tail.rows.features.values.copy())
        return cls(tail.belief, rows=rows, pulls=tail.rows.pulls, news=tail.news, fresh=tail.fresh)

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        c = self._rows.values @ view.features
        signal = np.maximum(view.signal - np.einsum("ij,ij->j", c, c), 0.0)
        return view.mean + self._pulls @ c, signal + view.residual

    def left(self, numbers: Floats, variance: Floats) -> Floats:
        """σ² of points of a look, from that under the belief alone; all rows are `turn`ed for its sight."""
        c = numbers @ self._turned.values.T
        return np.asarray(np.maximum(variance - np.einsum("ij,ij->i", c, c), 0.0))

    def append(self, view: View, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of the one point of a view."""
        (point,) = Seen.each(view)
        self.learn(point, reward, replayed=replayed)

    def learn(self, point: Seen, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of a point."""
        Q, v = self._rows.values, point.v
        c = Q @ v
        pivot = 1.0 + max(point.signal - float(c @ c), 0.0)
        s = math.sqrt(pivot)
        pull = (reward - (point.mean + float(self._pulls @ c))) / s
        self._rows = self._rows.appended(((v - c @ Q) / s)[None])
        self._pulls = and_one(self._pulls, pull)
        if self._rows.size >= 2 * len(v) + SPARE_ROWS:  # Q = UR, so that ‖Qv‖ = ‖Rv‖ and (Qv)·ρ = (Rv)·Uᵀρ
            U, R = np.linalg.qr(self._rows.values)
            self._begin(R, self._pulls @ U)
        self._note(math.log(pivot), variance=point.signal + point.residual, residual=point.residual, replayed=replayed)

    @property
    def unturned(self) -> Floats:
        """The rows that were not turned yet."""
        return self._rows.values[self._turned.size :]

    @property
    def lean(self) -> Floats:
        """What the rows that were turned add to μ, by the numbers of a look."""
        return self._lean

    def take(self, turned: Floats) -> None:
        """Note what the rows that were not turned yet are turned into."""
        first = self._turned.size
        self._lean = self._lean + self._pulls[first : first + len(turned)] @ turned
        self._turned = self._turned.appended(turned)


def turn(tails: list[QuickTail], sight: Sight) -> None:
    """Turn all rows of tails on one belief, so that the numbers of its sight's looks may be multiplied with them."""
    fresh = [tail.unturned for tail in tails]
    turned, last = sight.turned(np.concatenate(fresh)), 0
    for tail, rows in zip(tails, fresh, strict=True):
        tail.take(turned[last : last + len(rows)])
        last += len(rows)


def scored(tails: list[QuickTail], look: Look, bound: Bound) -> tuple[Floats, Floats]:
    """μ and σ² of all arms of clients on one belief, which a look has one client after the other.

    Of an arm that cannot win σ² is an upper bound. A mean takes one product with the belief and one with the sum of a
    tail's rows; a variance takes a product with each row of both, so those of the belief come first for arms that may
    win by the look's bounds, and those of the tail for arms that may win by what the belief says.
    """
    numbers = look.numbers.reshape(len(tails), -1, look.numbers.shape[1])
    mean = look.mean.reshape(numbers.shape[:2])
    mean = mean + np.matmul(numbers, np.array([tail.lean for tail in tails])[:, :, None])[:, :, 0]
    variance = look.upper.reshape(mean.shape).copy()
    first = np.flatnonzero(bound.open(mean, variance))
    variance.ravel()[first] = look.variance(first)
    open_ = bound.open(mean, variance)
    for row in np.flatnonzero(open_.any(axis=1)):
        at = np.flatnonzero(open_[row])
        variance[row, at] = tails[row].left(numbers[row, at], variance[row, at])
    return mean, variance


class Bound(NamedTuple):
    """How arms whose σ² is known up to an upper bound are told from those that cannot win."""

    alpha: float
    tie: float  # how close indices tie, relative to the largest |μ| + ασ
    there: Bools | None  # (w, A)

    def open(self, mean: Floats, variance: Floats) -> Bools:
        """Which arms may have the best index, or the largest |μ| + ασ, by which ties are measured.

        Where one arm alone may have the best index it has, and nothing is open.
        """
        width, size = self.alpha * np.sqrt(variance), np.abs(mean)
        some, sizes, there = mean, size, True if self.there is None else self.there
        if self.there is not None:
            some, sizes = np.where(there, mean, -np.inf), np.where(there, size, 0.0)
        margin = (self.tie + ROUNDING) * (size + width).max(axis=1, keepdims=True)
        wins = (mean + width >= some.max(axis=1, keepdims=True) - margin) & there
        largest = (size + width >= sizes.max(axis=1, keepdims=True) - margin) & there
        return np.asarray((wins | largest) & (np.count_nonzero(wins, axis=1, keepdims=True) > 1))
