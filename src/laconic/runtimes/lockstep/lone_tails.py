"""A tail on a finite belief in a form that costs few operations a point: rows to multiply by, and no solves."""

from __future__ import annotations

import math

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, View
from laconic.growing import GrowingRows
from laconic.tail import News, Tail

#: Rows are turned into as many as there are coordinates when there are twice as many and some more.
SPARE_ROWS = 32


class QuickTail:
    """What `laconic.tail.Tail` says, by rows q: σ² −= ‖Qv‖² and μ += w·v for a point of features v.

    QᵀQ = I − (I + UᵀU)⁻¹ for the features U of the tail's points. Learning v adds q = (v − Qᵀ(Qv))/s with
    s² = 1 + σ², and w += q·(y − μ)/s.
    """

    def __init__(self, belief: Belief, *, rows: Floats, w: Floats, news: News, fresh: News) -> None:
        self.belief, self.news, self.fresh = belief, news, fresh
        self._rows = GrowingRows.empty(len(w)).appended(rows)
        self._w = w

    @classmethod
    def of(cls, tail: Tail) -> QuickTail | None:
        """The same tail; None where there is no such form, as features change or are no coordinates."""
        if tail.belief.rank is None or tail.belief.rank == 0 or tail.basis is not None:
            return None
        rows = np.empty((0, tail.belief.rank))
        if len(tail.rows):
            rows = tail.rows.factor.solve(tail.rows.features.values.copy())
        return cls(tail.belief, rows=rows, w=rows.T @ tail.rows.pulls, news=tail.news, fresh=tail.fresh)

    @property
    def information(self) -> float:
        """See `laconic.tail.Tail`."""
        return self.belief.information + self.news.log_det + self.news.residual

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        mean, signal = self.adjusted(view.features, view.mean, view.signal)
        return mean, signal + view.residual

    def adjusted(self, features: Floats, mean: Floats, signal: Floats) -> tuple[Floats, Floats]:
        """The belief's mean and signal of some points, with the tail."""
        if not self.news.count:
            return mean, signal
        c = self._rows.values @ features
        return mean + self._w @ features, np.maximum(signal - np.einsum("ij,ij->j", c, c), 0.0)

    def append(self, view: View, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of the one point of a view."""
        v = np.ascontiguousarray(view.features[:, 0])
        self.learn(v, float(view.mean[0]), float(view.signal[0]), float(view.residual[0]), reward, replayed=replayed)

    def learn(
        self, v: Floats, mean: float, signal: float, residual: float, reward: float, *, replayed: bool = False
    ) -> None:
        """Learn the reward of a point of features v, of which the belief says this."""
        Q = self._rows.values
        c = Q @ v
        pivot = 1.0 + max(signal - float(c @ c), 0.0)
        s = math.sqrt(pivot)
        q = (v - c @ Q) / s
        error = reward - (mean + float(self._w @ v))
        self._rows, self._w = self._rows.appended(q[None]), self._w + q * (error / s)
        if self._rows.size >= 2 * len(v) + SPARE_ROWS:  # RᵀR = QᵀQ
            triangle = np.asarray(np.linalg.qr(self._rows.values, mode="r"))
            self._rows = GrowingRows.empty(len(v)).appended(triangle)
        gain = {"log_det": math.log(pivot), "variance": signal + residual, "residual": residual}
        self.news = self.news.and_one(**gain)
        if not replayed:
            self.fresh = self.fresh.and_one(**gain)
