"""Tails on exact beliefs of clients that exchange alone, in a form that costs few operations a point."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import ExactBelief, View
from laconic.growing import GrowingRows
from laconic.linalg import SINGLE, solve_identity
from laconic.runtimes.lockstep.batch import Narrowed
from laconic.runtimes.lockstep.exact_rows import Some, beyond_by
from laconic.runtimes.lockstep.lone_tails import Noted, Seen
from laconic.runtimes.lockstep.shadow import Beyond, Bounds, Shadow
from laconic.tail import News, Tail, and_one


class ExactTail(Noted):
    """What `laconic.tail.Tail` says on an exact belief, by J = H⁻¹: c = J cov(u, x), σ² −= ‖c‖² and μ += c·ρ."""

    def __init__(
        self,
        belief: ExactBelief,
        *,
        points: Floats,
        features: Floats,
        J: Floats,
        pulls: Floats,
        news: News,
        fresh: News,
    ) -> None:
        super().__init__(belief, news=news, fresh=fresh)
        self.exact, self.J, self.pulls = belief, J, pulls
        self._points = GrowingRows.empty(belief.dim).appended(points)
        self._features = GrowingRows.empty(belief.width).appended(features)
        self.turned: Floats = np.empty((0, belief.width), dtype=SINGLE)  # L⁻ᵀ of the first of the features
        self.largest_count = 1.0

    @classmethod
    def of(cls, tail: Tail) -> ExactTail:
        """The same tail on the same belief, an exact one."""
        belief, rows, k = tail.belief, tail.rows, len(tail.rows)
        assert isinstance(belief, ExactBelief)
        quick = cls(
            belief,
            points=rows.points.values.reshape(k, belief.dim),
            features=rows.features.values.reshape(k, belief.width),
            J=solve_identity(rows.factor.matrix()),
            pulls=rows.pulls,
            news=tail.news,
            fresh=tail.fresh,
        )
        quick.largest_count = float(rows.counts.max(initial=1.0))
        return quick

    @property
    def points(self) -> Floats:
        """(k, d) the points."""
        return self._points.values

    @property
    def features(self) -> Floats:
        """(k, t) the belief's features of them."""
        return self._features.values

    def __len__(self) -> int:
        return len(self.pulls)

    def against(self, cross: Floats, features: Floats) -> Floats:
        """c of some points, by the kernel of the tail's points with them and by their features, a column each."""
        return np.asarray(self.J @ (cross - self.features @ features) / self.exact.lam)

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        c = self.against(self.exact.kernel(self.points, view.points), view.features)
        return view.mean + self.pulls @ c, np.maximum(view.signal - np.einsum("ij,ij->j", c, c), 0.0)

    def append(self, view: View, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of the one point of a view."""
        (point,) = Seen.each(view)
        self.learn(point, reward, replayed=replayed)

    def learn(self, point: Seen, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of a point."""
        k = len(self)
        c = self.against(self.exact.kernel(self.points, point.x[None])[:, 0], point.v)
        pivot = 1.0 + max(point.signal - float(c @ c), 0.0)
        s = math.sqrt(pivot)
        J = np.zeros((k + 1, k + 1))  # another one, as a copy of the tail may have this
        J[:k, :k], J[k, :k], J[k, k] = self.J, -(c @ self.J) / s, 1.0 / s
        pull = (reward - (point.mean + float(self.pulls @ c))) / s
        self.J, self.pulls = J, and_one(self.pulls, pull)
        self._points = self._points.appended(point.x[None])
        self._features = self._features.appended(point.v[None])
        self._note(math.log(pivot), variance=point.signal + point.residual, residual=point.residual, replayed=replayed)


def turn(tails: Sequence[ExactTail], shadow: Shadow) -> None:
    """Turn the features of all points of tails on beginnings of a belief, so that `ExactTails` may bound by them."""
    fresh = [tail.features[len(tail.turned) :] for tail in tails]
    rows = np.zeros((sum(map(len, fresh)), shadow.factor.size))
    last = 0
    for each in fresh:
        rows[last : last + len(each), : each.shape[1]] = each
        last += len(each)
    turned, last = shadow.turned(rows), 0
    for tail, each in zip(tails, fresh, strict=True):
        if len(each):
            part = turned[: each.shape[1], last : last + len(each)]
            tail.turned = np.concatenate([tail.turned, part.T])
            last += len(each)


class ExactTails:
    """The tails of some clients whose beliefs are beginnings of one, beside the arms of each."""

    def __init__(self, tails: Sequence[ExactTail], arms: Floats) -> None:
        self._tails, self._most = tails, max(map(len, tails))
        clients, size, dim = arms.shape
        self._points = np.empty((clients, self._most, dim))
        self._points[:] = arms[:, :1]  # in rows that a tail has not, a point that a kernel can take
        for row, tail in enumerate(tails):
            self._points[row, : len(tail)] = tail.points
        kernel = tails[0].exact.kernel
        self._cross = kernel(self._points, arms) if self._most else np.empty((clients, 0, size))

    def beyond(self, bounds: Bounds, first: int, last: int) -> Beyond:
        """See `laconic.runtimes.lockstep.lazy`."""
        if self._most == 0:
            return Beyond.none(bounds.shape)
        some, size = self._tails[first:last], bounds.shape[1]
        c, rho = np.zeros((len(some), self._most, size)), np.zeros((len(some), self._most))
        for row, tail in enumerate(some):
            k, t = tail.turned.shape
            known = tail.turned @ bounds.K[:t, row * size : (row + 1) * size]
            c[row, :k] = tail.J @ (self._cross[first + row, :k] - known) / tail.exact.lam
            rho[row, :k] = tail.pulls
        counts = np.array([tail.largest_count for tail in some])
        return beyond_by(bounds, self._points[first:last], c, rho, counts=counts)

    def predict_some(self, scores: Narrowed, first: int, last: int) -> Some:
        """See `laconic.runtimes.lockstep.lazy`."""
        mean, signal = scores.mean.copy(), scores.signal.copy()
        for row, tail in enumerate(self._tails[first:last]):
            columns = np.flatnonzero(scores.at[row] >= 0)
            if len(columns) and len(tail):
                rows = scores.at[row, columns]
                cross = self._cross[first + row, : len(tail), columns].T
                c = tail.against(cross, scores.features[rows, : tail.exact.width].T)
                mean[rows] += tail.pulls @ c
                signal[rows] = np.maximum(signal[rows] - np.einsum("ij,ij->j", c, c), 0.0)
        return Some(mean, signal, explained=np.empty((len(mean), 0)))
