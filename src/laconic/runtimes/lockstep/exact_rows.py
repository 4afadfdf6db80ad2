"""Tails on exact beliefs, of all clients at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import ExactBelief
from laconic.growing import first_appearances
from laconic.linalg import lower_cholesky, solve_lower
from laconic.runtimes.lockstep.batch import Exploring, Narrowed, NewPoints, Prediction, Scores
from laconic.runtimes.lockstep.shadow import Beyond, Bounds, Shadow
from laconic.tail import COLLAPSE_FROM


@dataclass(eq=False)
class _Kept:
    """Some slots for every client; a row of count 0 is one of a client that did not act, or room."""

    points: Floats  # (N, k, d)
    features: Floats  # (N, k, t)
    J: Floats  # (N, k, k) H⁻¹
    rho: Floats  # (N, k)
    errors: Floats  # (N, k) mean reward minus the belief's mean
    counts: Floats  # (N, k) how many rewards a row stands for

    @classmethod
    def empty(cls, belief: ExactBelief, *, clients: int, slots: int) -> _Kept:
        """Room, and nothing in it."""
        shapes = [(belief.dim,), (belief.factor.size,), (slots,), (), (), ()]
        return cls(*(np.zeros((clients, slots, *shape)) for shape in shapes))

    @property
    def slots(self) -> int:
        """How many rows there is room for."""
        return int(self.counts.shape[1])

    def take(self, older: _Kept) -> None:
        """Take over the rows of a smaller one."""
        for each in fields(self):
            before, after = getattr(older, each.name), getattr(self, each.name)
            after[tuple(slice(0, length) for length in before.shape)] = before


@dataclass(frozen=True, eq=False)
class Some:
    """μ and the signal part of σ² of f arms, and c of each, a row."""

    mean: Floats  # (f,)
    signal: Floats  # (f,)
    explained: Floats  # (f, k)


def beyond_by(bounds: Bounds, points: Floats, c: Floats, rho: Floats, *, counts: Floats) -> Beyond:
    """What tails of k points change for the arms that they have c of; ``counts`` are the largest of each client."""
    kernel, lam, rounding = bounds.shadow.belief.kernel, bounds.shadow.belief.lam, bounds.shadow.rounding
    most = np.sqrt(bounds.prior.max(axis=1))
    own = np.sqrt(kernel.diag(points.reshape(-1, points.shape[2])).max())
    # of c, as ‖J‖² ≤ counts
    error = (np.sqrt(points.shape[1] * np.maximum(counts, 1.0)) * rounding * most * own / lam)[:, None]
    return Beyond(
        shift=(rho[:, None] @ c)[:, 0],
        drop=np.einsum("wka,wka->wa", c, c),
        shift_error=error * np.linalg.norm(rho, axis=1, keepdims=True),
        drop_error=error * (2.0 * most[:, None] / np.sqrt(lam) + error),
    )


class ExactRows:
    """Tail points with their features, and J = H⁻¹ row by row: c = J cov(u, x), μ += c·ρ and σ² −= ‖c‖²."""

    def __init__(self, belief: ExactBelief, clients: int, *, expected: int = 1) -> None:
        self.belief, self.clients = belief, clients
        self._expected = max(expected, 1)  # slots, for which there is room from the beginning
        self.size = 0
        self.whole = 0  # rows of rounds that are over
        self._look_at = COLLAPSE_FROM
        self._turned: list[Floats] = []  # of each whole row, L⁻ᵀ of its features, (N, t)
        self._kept: _Kept  # made with the first slot, as many tails never have one

    def _room(self, slots: int) -> _Kept:
        return _Kept.empty(self.belief, clients=self.clients, slots=slots)

    def open_slot(self) -> None:
        if self.size == 0:
            self._kept = self._room(self._expected)
        elif self.size == self._kept.slots:
            room = self._room(2 * self.size)
            room.take(self._kept)
            self._kept = room
        self.size += 1

    def predict(self, scores: Scores, clients: slice, *, total: Floats, exploring: Exploring) -> Prediction:
        k, kept = self.size, self._kept
        covariance = self.belief.kernel(kept.points[clients, :k], scores.points)
        if self.belief.factor.size:
            covariance -= kept.features[clients, :k] @ scores.features
        covariance /= self.belief.lam
        c = kept.J[clients, :k, :k] @ covariance
        who = np.arange(len(c))
        return Prediction(
            mean=scores.mean + (kept.rho[clients, None, :k] @ c)[:, 0],
            signal=np.maximum(scores.signal - np.einsum("wka,wka->wa", c, c), 0.0),
            explained=lambda column: np.asarray(c[who, :, column]),
            known=lambda row: np.asarray(c[row].T @ c[row]),
        )

    def predict_some(self, scores: Narrowed, clients: slice) -> Some:
        """The prediction, client by client, for the arms that are asked for."""
        k, kept, belief = self.whole, self._kept, self.belief
        c = np.empty((len(scores.mean), k))
        for row, client in enumerate(range(clients.start, clients.stop)):
            columns = np.flatnonzero(scores.at[row] >= 0)
            rows = scores.at[row, columns]
            covariance = belief.kernel(kept.points[client, :k], scores.points[row, columns])
            covariance -= kept.features[client, :k] @ scores.features[rows].T
            c[rows] = (kept.J[client, :k, :k] @ covariance).T / belief.lam
        who = np.nonzero(scores.at >= 0)[0] + clients.start
        return Some(
            mean=scores.mean + np.einsum("fk,fk->f", c, kept.rho[who, :k]),
            signal=np.maximum(scores.signal - np.einsum("fk,fk->f", c, c), 0.0),
            explained=c,
        )

    def beyond(self, bounds: Bounds, clients: slice) -> Beyond:
        """What the rows of some clients change for all their arms, of which only bounds are known."""
        k, kept, lam = self.whole, self._kept, self.belief.lam
        self._turn(bounds.shadow)
        turned = np.stack([each[clients] for each in self._turned], axis=1)
        points, arms = kept.points[clients, :k], bounds.points.reshape(*bounds.shape, -1)
        K = bounds.K.reshape(-1, *bounds.shape).transpose(1, 0, 2)
        c = kept.J[clients, :k, :k] @ (self.belief.kernel(points, arms) - turned @ K) / lam
        return beyond_by(bounds, points, c, kept.rho[clients, :k], counts=kept.counts[clients, :k].max(axis=1))

    def _turn(self, shadow: Shadow) -> None:
        """Turn the features of rows that are whole since last time."""
        fresh = self._kept.features[:, len(self._turned) : self.whole]
        turned = shadow.turned(fresh.reshape(-1, fresh.shape[2])).T.reshape(fresh.shape)
        self._turned += [np.ascontiguousarray(turned[:, slot]) for slot in range(fresh.shape[1])]

    def append(self, clients: slice, new: NewPoints) -> None:
        at, kept, c = self.size - 1, self._kept, new.explained
        if not kept.counts[:, at].any():  # whoever does not act has a point here that a kernel can take, as all may not
            kept.points[:, at] = new.scores.points[0]
        kept.points[clients, at] = new.scores.points
        kept.features[clients, at] = new.scores.features
        kept.J[clients, at, :at] = -(c[:, None, :at] @ kept.J[clients, :at, :at])[:, 0] / new.s[:, None]
        kept.J[clients, at, at] = 1.0 / new.s
        kept.rho[clients, at] = new.pull
        kept.errors[clients, at] = new.error
        kept.counts[clients, at] = 1.0

    def known(self) -> tuple[Floats, list[Floats]]:
        """The points of all rows with the belief's features of them, where they lie."""
        if self.size == 0:
            return np.empty((0, self.belief.dim)), []
        kept = self._kept
        there = kept.counts[:, : self.size] > 0
        return kept.points[:, : self.size][there], [kept.features[at] for at in zip(*there.nonzero(), strict=True)]

    def compact(self) -> None:
        """Merge rows of equal points into one with their mean, where that halves the rows of every client."""
        self._merge_equal()
        self.whole = self.size

    def _merge_equal(self) -> None:
        if self.size < self._look_at:
            return
        groups = [self._groups(client) for client in range(self.clients)]
        longest = max(len(first) for first, _ in groups)
        if 2 * longest <= self.size:
            old, self._kept, self.size, self._turned = self._kept, self._room(longest), longest, []
            for client, (first, number) in enumerate(groups):
                self._merge(old, client, first=first, number=number)
        self._look_at = max(COLLAPSE_FROM, 2 * self.size)

    def _groups(self, client: int) -> tuple[Ints, Ints]:
        """The first row of each distinct point of a client, and the number of every row's point; −1 for no point."""
        rows = np.flatnonzero(self._kept.counts[client, : self.size])
        number = np.full(self._kept.slots, -1)
        number[rows] = first_appearances(self._kept.points[client, rows])
        return rows[np.unique(number[rows], return_index=True)[1]], number

    def _merge(self, old: _Kept, client: int, *, first: Ints, number: Ints) -> None:
        """Condition one client anew on its distinct points."""
        kept, k, there = self._kept, len(first), number >= 0
        points, counts, errors = old.points[client, first], old.counts[client], old.errors[client]
        U = kept.features[client, :k] = old.features[client, first]
        kept.points[client] = old.points[client, 0]  # in rows of count 0 too
        kept.points[client, :k] = points
        kept.counts[client, :k] = np.bincount(number[there], counts[there], k)
        kept.errors[client, :k] = np.bincount(number[there], (counts * errors)[there], k) / kept.counts[client, :k]
        C = (self.belief.kernel(points, points) - U @ U.T) / self.belief.lam
        H = lower_cholesky(C + np.diag(1.0 / kept.counts[client, :k]), ridge=1.0)
        kept.J[client, :k, :k] = solve_lower(H, np.eye(k))
        kept.rho[client, :k] = kept.J[client, :k, :k] @ kept.errors[client, :k]
