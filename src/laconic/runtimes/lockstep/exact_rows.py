"""Tails on exact beliefs, of all clients at once."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import ExactBelief
from laconic.growing import first_appearances
from laconic.linalg import lower_cholesky, solve_lower
from laconic.runtimes.lockstep.batch import Exploring, NewPoints, Prediction, Scores

#: Exact tails look for repeated points when they are this long, and at each doubling.
COLLAPSE_FROM = 48


class ExactRows:
    """Tail points with their features, and J = H⁻¹ row by row: c = J cov(u, x).

    A row of count 0 is one of a client that did not act, or room.
    """

    def __init__(self, belief: ExactBelief, clients: int) -> None:
        self.belief, self.clients = belief, clients
        self.size = 0
        self._look_at = COLLAPSE_FROM
        self._slots = 0
        self.points: Floats
        self.features: Floats
        self.J: Floats
        self.rho: Floats
        self.errors: Floats
        self.counts: Floats

    def _room(self, slots: int) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        n, belief = self.clients, self.belief
        self._slots = slots
        shapes = [(n, slots, belief.dim), (n, slots, belief.factor.size), (n, slots, slots), *[(n, slots)] * 3]
        points, features, J, rho, errors, counts = (np.zeros(shape) for shape in shapes)
        return points, features, J, rho, errors, counts

    def open_slot(self) -> None:
        if self.size == self._slots:
            self._enlarge()
        self.size += 1

    def _enlarge(self) -> None:
        """Room for twice as many slots."""
        room = self._room(max(2 * self.size, 1))
        if self.size:
            old = (self.points, self.features, self.J, self.rho, self.errors, self.counts)
            for before, after in zip(old, room, strict=True):
                after[tuple(slice(0, length) for length in before.shape)] = before
        self.points, self.features, self.J, self.rho, self.errors, self.counts = room

    def predict(self, scores: Scores, clients: slice, *, total: Floats, exploring: Exploring) -> Prediction:
        k = self.size
        covariance = self.belief.kernel(self.points[clients, :k], scores.points)
        if self.belief.factor.size:
            covariance -= self.features[clients, :k] @ scores.features
        covariance /= self.belief.lam
        c = self.J[clients, :k, :k] @ covariance
        who = np.arange(len(c))
        return Prediction(
            mean=scores.mean + (self.rho[clients, None, :k] @ c)[:, 0],
            signal=np.maximum(scores.signal - np.einsum("wka,wka->wa", c, c), 0.0),
            explained=lambda column: np.asarray(c[who, :, column]),
        )

    def append(self, clients: slice, new: NewPoints) -> None:
        at = self.size - 1
        c = new.explained
        self.points[clients, at] = new.scores.points
        self.features[clients, at] = new.scores.features
        self.J[clients, at, :at] = -(c[:, None, :at] @ self.J[clients, :at, :at])[:, 0] / new.s[:, None]
        self.J[clients, at, at] = 1.0 / new.s
        self.rho[clients, at] = new.pull
        self.errors[clients, at] = new.error
        self.counts[clients, at] = 1.0

    def known(self) -> tuple[Floats, Floats]:
        """The points of all rows with the belief's features of them."""
        if self.size == 0:
            return np.empty((0, self.belief.dim)), np.empty((0, self.belief.factor.size))
        there = self.counts[:, : self.size] > 0
        return self.points[:, : self.size][there], self.features[:, : self.size][there]

    def compact(self) -> None:
        """Merge rows of equal points into one with their mean, where that halves the rows of every client."""
        if self.size < self._look_at:
            return
        groups = [self._groups(client) for client in range(self.clients)]
        longest = max(len(first) for first, _ in groups)
        if 2 * longest <= self.size:
            old = (self.points, self.features, self.errors, self.counts)
            self.points, self.features, self.J, self.rho, self.errors, self.counts = self._room(longest)
            self.size = longest
            for client, (first, number) in enumerate(groups):
                self._merge(client, first, number, *(each[client] for each in old))
        self._look_at = max(COLLAPSE_FROM, 2 * self.size)

    def _groups(self, client: int) -> tuple[Ints, Ints]:
        """The first row of each distinct point of a client, and the number of every row's point; −1 for no point."""
        rows = np.flatnonzero(self.counts[client, : self.size])
        number = np.full(self.points.shape[1], -1)
        number[rows] = first_appearances(self.points[client, rows])
        return rows[np.unique(number[rows], return_index=True)[1]], number

    def _merge(
        self,
        client: int,
        first: Ints,
        number: Ints,
        points: Floats,
        features: Floats,
        errors: Floats,
        counts: Floats,
    ) -> None:
        k, there = len(first), number >= 0
        self.points[client, :k], self.features[client, :k] = points[first], features[first]
        self.counts[client, :k] = np.bincount(number[there], counts[there], k)
        self.errors[client, :k] = np.bincount(number[there], (counts * errors)[there], k) / self.counts[client, :k]
        U = self.features[client, :k]
        C = (self.belief.kernel(points[first], points[first]) - U @ U.T) / self.belief.lam
        H = lower_cholesky(C + np.diag(1.0 / self.counts[client, :k]))
        self.J[client, :k, :k] = solve_lower(H, np.eye(k))
        self.rho[client, :k] = self.J[client, :k, :k] @ self.errors[client, :k]
