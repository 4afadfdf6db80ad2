"""A tail on a finite belief in a form that costs few operations a point: rows to multiply by, and no solves."""

from __future__ import annotations

import math

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, View
from laconic.growing import GrowingRows
from laconic.runtimes.lockstep.sights import Look, Sight
from laconic.tail import News, Tail

#: Rows are turned into as many as there are coordinates when there are twice as many and some more.
SPARE_ROWS = 32


class QuickTail:
    """What `laconic.tail.Tail` says, by rows q: with c = Qv for a point of features v, σ² −= ‖c‖² and μ += c·ρ.

    QᵀQ = I − (I + UᵀU)⁻¹ for the features U of the tail's points. Learning v adds q = (v − Qᵀc)/s and (y − μ)/s to
    Q and ρ, with s² = 1 + σ².
    """

    def __init__(self, belief: Belief, *, rows: Floats, pulls: Floats, news: News, fresh: News) -> None:
        self.belief, self.news, self.fresh = belief, news, fresh
        self._begin(rows, pulls)

    def _begin(self, rows: Floats, pulls: Floats) -> None:
        self._rows = GrowingRows.empty(rows.shape[1]).appended(rows)
        self._pulls = GrowingRows.empty(1).appended(pulls[:, None])
        self._turned = GrowingRows.empty(rows.shape[1])  # the first of the rows, for a sight of the belief

    @classmethod
    def of(cls, tail: Tail) -> QuickTail | None:
        """The same tail; None where there is no such form, as features change or are no coordinates."""
        if tail.belief.rank is None or tail.belief.rank == 0 or tail.basis is not None:
            return None
        rows = np.empty((0, tail.belief.rank))
        if len(tail.rows):
            rows = tail.rows.factor.solve(tail.rows.features.values.copy())
        return cls(tail.belief, rows=rows, pulls=tail.rows.pulls, news=tail.news, fresh=tail.fresh)

    @property
    def information(self) -> float:
        """See `laconic.tail.Tail`."""
        return self.belief.information + self.news.log_det + self.news.residual

    @property
    def _rho(self) -> Floats:
        return self._pulls.values[:, 0]

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        c = self._rows.values @ view.features
        signal = np.maximum(view.signal - np.einsum("ij,ij->j", c, c), 0.0)
        return view.mean + self._rho @ c, signal + view.residual

    def seen(self, look: Look) -> tuple[Floats, Floats]:
        """The same of the points of a look; all rows were `turn`ed for the sight that gave it."""
        c = look.numbers @ self._turned.values.T
        return look.mean + c @ self._rho, np.maximum(look.variance - np.einsum("ij,ij->i", c, c), 0.0)

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
        error = reward - (mean + float(self._rho @ c))
        self._rows = self._rows.appended(((v - c @ Q) / s)[None])
        self._pulls = self._pulls.appended(np.array([[error / s]]))
        if self._rows.size >= 2 * len(v) + SPARE_ROWS:  # Q = UR, so that ‖Qv‖ = ‖Rv‖ and (Qv)·ρ = (Rv)·Uᵀρ
            U, R = np.linalg.qr(self._rows.values)
            self._begin(R, self._rho @ U)
        gain = {"log_det": math.log(pivot), "variance": signal + residual, "residual": residual}
        self.news = self.news.and_one(**gain)
        if not replayed:
            self.fresh = self.fresh.and_one(**gain)

    @property
    def unturned(self) -> Floats:
        """The rows that were not turned yet."""
        return self._rows.values[self._turned.size :]

    def take(self, turned: Floats) -> None:
        """Note what the rows that were not turned yet are turned into."""
        self._turned = self._turned.appended(turned)


def turn(tails: list[QuickTail], sight: Sight) -> None:
    """Turn all rows of tails on one belief, so that they may be `seen` by its sight."""
    fresh = [tail.unturned for tail in tails]
    turned, last = sight.turned(np.concatenate(fresh)), 0
    for tail, rows in zip(tails, fresh, strict=True):
        tail.take(turned[last : last + len(rows)])
        last += len(rows)
