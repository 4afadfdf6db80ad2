"""Tails on finite beliefs, of all clients at once."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from laconic.arrays import Bools, Floats, Ints
from laconic.runtimes.lockstep.batch import INDEX_ROUNDING, Exploring, NewPoints, Prediction, Scores, not_known

#: Rows are folded into E when there are so many of them, and the first time not before this share of the rank.
FOLD_FROM, FOLD_SHARE = 32, 0.25
#: Arms that cannot win are dropped where those that remain take this many multiplications each.
DROP_FROM = 20_000
#: Rows of so many entries are folded in one product.
FOLD_ENTRIES = 8_000_000


class FiniteRows:
    """Rows q and a matrix E that others were folded into: σ² −= v·p with p = Ev + Σ q(q·v), and μ += v·w.

    E + QᵀQ = I − (I + UᵀU)⁻¹ for the tail's points U. Learning a point of features v adds q = (v − p)/s and
    w += q·(y − μ)/s with s² = 1 + σ². With no coordinates there are no rows.
    """

    def __init__(self, clients: int, rank: int) -> None:
        self.clients, self.rank = clients, rank
        self.rows = np.zeros((clients, 0, rank))
        self.folded: Floats | None = None  # E, (N, r, r)
        self.w = np.zeros((clients, rank))
        self._recent = 0  # how many rows are not folded

    @property
    def size(self) -> int:
        """How many rows there are, with those of E."""
        return self._recent + (0 if self.folded is None else self.rank)

    def open_slot(self) -> None:
        if self.rank == 0:
            return
        if self._recent == self.rows.shape[1]:
            room = np.zeros((self.clients, max(2 * self._recent, 1), self.rank))
            room[:, : self._recent] = self.rows
            self.rows = room
        self._recent += 1

    def predict(self, scores: Scores, clients: slice, *, total: Floats, exploring: Exploring) -> Prediction:
        mean = scores.mean + (self.w[clients, None] @ scores.features)[:, 0]
        if self.size * self.rank >= DROP_FROM and not exploring.all:
            return self._of_candidates(scores, clients, mean, _candidates(scores, mean, total, exploring))
        return self._of_all(scores, clients, mean)

    def _of_all(self, scores: Scores, clients: slice, mean: Floats) -> Prediction:
        """The prediction by one stacked product for all arms."""
        V, rows, who = scores.features, self.rows[clients, : self._recent], np.arange(len(mean))
        c = rows @ V
        known = np.einsum("wka,wka->wa", c, c)
        product = None if self.folded is None else self.folded[clients] @ V
        if product is not None:
            known = known + np.einsum("wra,wra->wa", product, np.broadcast_to(V, product.shape))

        def explained(column: Ints) -> Floats:
            p = (c[who, None, :, column] @ rows)[:, 0]
            return np.asarray(p if product is None else p + product[who, :, column])

        def taken(row: int) -> Floats:
            part = c[row].T @ c[row]
            return np.asarray(part if product is None else part + V[row if len(V) > 1 else 0].T @ product[row])

        return Prediction(mean, np.maximum(scores.signal - known, 0.0), explained, taken)

    def _of_candidates(self, scores: Scores, clients: slice, mean: Floats, candidates: Bools) -> Prediction:
        """The prediction, client by client, for the arms that can win; others keep the belief's signal."""
        signal = scores.signal.copy()
        at = np.full(mean.shape, -1)
        who, columns = candidates.nonzero()
        at[who, columns] = np.arange(len(who))
        V = np.ascontiguousarray(scores.features[who, :, columns], dtype=np.float64)  # a row for each candidate
        P = np.empty_like(V)
        stops = np.cumsum(candidates.sum(axis=1)).tolist()
        start = 0
        for client, stop in enumerate(stops, start=clients.start):
            self._explain(client, V[start:stop], P[start:stop])
            start = stop
        signal[who, columns] = np.maximum(signal[who, columns] - np.einsum("mr,mr->m", V, P), 0.0)
        numbers = np.arange(len(mean))
        return Prediction(mean, signal, explained=lambda column: P[at[numbers, column]], known=not_known)

    def _explain(self, client: int, V: Floats, P: Floats) -> None:
        """p of each row of V, for one client, into the rows of P."""
        rows = self.rows[client, : self._recent]
        np.matmul(V @ rows.T, rows, out=P)
        if self.folded is not None:
            E = self.folded[client].T  # column-major, and symmetric: half of it need be read
            for v, p in zip(V, P, strict=True):
                blas.dsymv(1.0, E, v, beta=1.0, y=p, overwrite_y=1)

    def append(self, clients: slice, new: NewPoints) -> None:
        if self.rank == 0:
            return
        fresh = new.scores.features.astype(np.float64)
        if new.explained.shape[1]:
            fresh -= new.explained
        fresh /= new.s[:, None]
        self.rows[clients, self._recent - 1] = fresh
        self.w[clients] += fresh * new.pull[:, None]

    def compact(self) -> None:
        if self._recent < FOLD_FROM or (self.folded is None and self._recent < FOLD_SHARE * self.rank):
            return
        if self.folded is None:
            self.folded = np.zeros((self.clients, self.rank, self.rank))
        rows = self.rows[:, : self._recent]
        step = max(FOLD_ENTRIES // self.rank**2, 1)
        for first in range(0, self.clients, step):
            part = rows[first : first + step]
            self.folded[first : first + step] += part.transpose(0, 2, 1) @ part
        self.rows = np.zeros((self.clients, FOLD_FROM, self.rank))
        self._recent = 0


def _candidates(scores: Scores, mean: Floats, total: Floats, exploring: Exploring) -> Bools:
    """Which arms can have the best index, as signal/(1 + Σ‖u‖²) ≤ v·(I + UᵀU)⁻¹v ≤ signal for the tail's points U."""
    width = exploring.alpha * np.sqrt(scores.signal + scores.residual)
    lower = mean + exploring.alpha * np.sqrt(scores.signal / (1.0 + total[:, None]) + scores.residual)
    if exploring.there is not None:
        lower = np.where(exploring.there, lower, -np.inf)
    best = lower.max(axis=1, keepdims=True)
    rounding = INDEX_ROUNDING[scores.features.dtype.name]
    candidates = mean + width >= best - rounding * (np.abs(mean) + width).max(axis=1, keepdims=True)
    return np.asarray(candidates if exploring.there is None else candidates & exploring.there)
