"""A tail on a finite belief in a form that costs few operations a point: rows to multiply by, and no solves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Belief, View
from laconic.growing import GrowingRows
from laconic.linalg import lower_cholesky, ridged, solve_lower
from laconic.runtimes.lockstep.batch import INDEX_ROUNDING
from laconic.runtimes.lockstep.sights import Look, Sight, Sighting, Sights
from laconic.tail import NOTHING_NEW, News, Tail, and_one

#: Rows become as many as there are coordinates when there are twice as many and some more.
SPARE_ROWS = 32


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


class Sighted(NamedTuple):
    """What a sight says of one point."""

    x: Floats  # (d,)
    numbers: Floats  # (r,)
    turned: Floats  # (r,)
    mean: float
    signal: float
    residual: float

    @classmethod
    def each(cls, found: Sighting) -> list[Sighted]:
        """What it says of each of some points."""
        numbers = found.mean.tolist(), found.signal.tolist(), found.residual.tolist()
        return list(map(cls, found.points, found.numbers, found.turned, *numbers))


class LateTail:
    """A tail on a finite belief whose points were observed under an earlier one, and were not looked at yet.

    Clients adopt one by one, and those that have one belief are next looked at together: `replayed` then makes tails of
    all of them. Before that only what triggers see is asked for.
    """

    def __init__(self, belief: Belief, points: Floats, rewards: Floats) -> None:
        self.belief, self.points, self.rewards = belief, points, rewards
        self.fresh = NOTHING_NEW


class QuickTail(Noted):
    """What `laconic.tail.Tail` says, by rows p: with c = Pk for a point of numbers k, σ² −= ‖c‖² and μ += c·ρ.

    A sight of the belief gives each point its numbers, and one that is learnt a row t for which t·k is its covariance
    with a point of numbers k. Learning it adds p = (t − Pᵀc)/s and (y − μ)/s to P and ρ, with s² = 1 + σ².
    """

    def __init__(self, belief: Belief, sight: Sight, *, rows: Floats, pulls: Floats, news: News, fresh: News) -> None:
        super().__init__(belief, news=news, fresh=fresh)
        self._sight = sight
        self._begin(rows, pulls)
        self.lean = pulls @ rows  # what all rows add to μ, by the numbers of a look

    def _begin(self, rows: Floats, pulls: Floats) -> None:
        self._rows = GrowingRows.empty(rows.shape[1]).appended(rows)
        self._pulls = pulls  # ρ

    @classmethod
    def of(cls, tail: Tail, sights: Sights) -> QuickTail | None:
        """The same tail; None where there is no such form, as features change or are no coordinates."""
        if not tail.belief.rank or tail.basis is not None:
            return None
        sight, rows = sights.of(tail.belief), np.empty((0, tail.belief.rank))
        if len(tail.rows):
            rows = sight.turned(tail.rows.factor.solve(tail.rows.features.values.copy()))
        return cls(tail.belief, sight, rows=rows, pulls=tail.rows.pulls, news=tail.news, fresh=tail.fresh)

    @classmethod
    def replaying(cls, late: LateTail, sight: Sight, found: Sighting) -> QuickTail:
        """A late tail, of whose points this is what its belief says: with H the root of I + cov, P = H⁻¹t."""
        H = lower_cholesky(ridged(found.features @ found.features.T, 1.0), ridge=1.0)
        news = NOTHING_NEW.and_some(
            len(late.rewards),
            log_det=float(2.0 * np.log(np.maximum(np.diagonal(H), 1.0)).sum()),
            variance=float((found.signal + found.residual).sum()),
            residual=float(found.residual.sum()),
        )
        rows, pulls = solve_lower(H, found.turned), solve_lower(H, late.rewards - found.mean)
        return cls(late.belief, sight, rows=rows, pulls=pulls, news=news, fresh=late.fresh)

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        c = self._sight.numbers(view) @ self._rows.values.T
        signal = np.maximum(view.signal - np.einsum("ij,ij->i", c, c), 0.0)
        return view.mean + c @ self._pulls, signal + view.residual

    def left(self, numbers: Floats, variance: Floats) -> Floats:
        """σ² of points of a look, from that under the belief alone."""
        c = numbers @ self._rows.values.T
        return np.asarray(np.maximum(variance - np.einsum("ij,ij->i", c, c), 0.0))

    def append(self, view: View, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of the one point of a view."""
        (point,) = Sighted.each(self._sight.sighting(view.points))
        self.learn(point, reward, replayed=replayed)

    def learn(self, point: Sighted, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of a point."""
        P = self._rows.values
        c = P @ point.numbers
        pivot = 1.0 + max(point.signal - float(c @ c), 0.0)
        s = math.sqrt(pivot)
        pull = (reward - (point.mean + float(self._pulls @ c))) / s
        row = (point.turned - c @ P) / s
        self._rows = self._rows.appended(row[None])
        self._pulls = and_one(self._pulls, pull)
        self.lean = self.lean + pull * row
        if self._rows.size >= 2 * len(row) + SPARE_ROWS:  # P = UR, so that ‖Pk‖ = ‖Rk‖ and (Pk)·ρ = (Rk)·Uᵀρ
            U, R = np.linalg.qr(self._rows.values)
            self._begin(R, self._pulls @ U)
        self._note(math.log(pivot), variance=point.signal + point.residual, residual=point.residual, replayed=replayed)


def replayed(tails: list[LateTail], sight: Sight) -> list[QuickTail]:
    """Late tails on one belief as tails: all that they wait with is looked at in one go."""
    found = sight.sighting(np.concatenate([tail.points for tail in tails]))
    stops = np.cumsum([len(tail.rewards) for tail in tails]).tolist()
    return [
        QuickTail.replaying(tail, sight, found.between(stop - len(tail.rewards), stop))
        for tail, stop in zip(tails, stops, strict=True)
    ]


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
        margin = (self.tie + INDEX_ROUNDING["float64"]) * (size + width).max(axis=1, keepdims=True)
        wins = (mean + width >= some.max(axis=1, keepdims=True) - margin) & there
        largest = (size + width >= sizes.max(axis=1, keepdims=True) - margin) & there
        return np.asarray((wins | largest) & (np.count_nonzero(wins, axis=1, keepdims=True) > 1))
