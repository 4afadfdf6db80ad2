"""The tails of all clients at once: the recursion of `laconic.tail` with a leading axis for clients.

Slot j of every client is the j-th round since the last sync; a client that did not act in it has a zero row there,
which changes nothing. c is a client's coordinates of its arms, so that μ += c·ρ and σ² −= ‖c‖².
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from laconic.beliefs import Belief, ExactBelief
from laconic.errors import InputError
from laconic.growing import first_appearances
from laconic.linalg import lower_cholesky, solve_lower
from laconic.tail import News

Floats = NDArray[np.float64]

#: How many slots the first piece of a finite tail's rows has.
PIECE = 16
#: A finite tail is folded to r rows when it is this much longer than that.
FOLD_SLACK = 1.25
#: Exact tails look for repeated points when they are this long, and at each doubling.
COLLAPSE_FROM = 48


@dataclass(frozen=True, eq=False)
class Scores:
    """What belief says of the arms of clients a … b: a leading axis of length 1 where all share the same points."""

    points: Floats  # (w or 1, A, d)
    features: Floats  # (w or 1, p, A)
    mean: Floats  # (w or 1, A)
    signal: Floats
    residual: Floats

    def chosen(self, column: NDArray[np.int64]) -> Scores:
        """The scores of one column a client."""
        if len(column) == 1:  # without the cost of indexing by arrays
            at = int(column[0])
            return Scores(
                points=self.points[0, at : at + 1],
                features=self.features[:1, :, at],
                mean=self.mean[0, at : at + 1],
                signal=self.signal[0, at : at + 1],
                residual=self.residual[0, at : at + 1],
            )
        rows = np.arange(len(column)) if len(self.mean) == len(column) else np.zeros(len(column), dtype=np.int64)
        return Scores(
            points=self.points[rows, column],
            features=self.features[rows, :, column],
            mean=self.mean[rows, column],
            signal=self.signal[rows, column],
            residual=self.residual[rows, column],
        )


class Rows(Protocol):
    """How the tails of one kind of belief keep their rows; ``pulls`` holds ρ, (N, size)."""

    size: int

    def open_slot(self) -> None:
        """Begin a new slot, with a zero row for everyone."""
        ...

    def coordinates(self, scores: Scores, first: int, last: int) -> Floats:
        """c of the arms of clients first … last, (w, k, A)."""
        ...

    def pulls(self, first: int, last: int) -> Floats:
        """ρ of clients first … last, (w, k)."""
        ...

    def append(self, clients: slice, new: NewPoints) -> None:
        """Put the new points of some clients into the slot that was opened last."""
        ...

    def compact(self) -> None:
        """Shorten the rows where that changes nothing."""
        ...


@dataclass(frozen=True, eq=False)
class NewPoints:
    """Points that clients have just learnt the rewards of, one a client."""

    scores: Scores
    c: Floats  # (w, k)
    s: Floats  # (w,)
    pull: Floats  # (w,)
    error: Floats  # (w,) reward minus the belief's mean

    def upto(self, count: int) -> NewPoints:
        """Those of the first ``count`` clients."""
        if count == len(self.s):
            return self
        scores = self.scores
        kept = Scores(
            points=scores.points[:count],
            features=scores.features[:count],
            mean=scores.mean[:count],
            signal=scores.signal[:count],
            residual=scores.residual[:count],
        )
        return NewPoints(kept, self.c[:count], self.s[:count], self.pull[:count], self.error[:count])


class FiniteRows:
    """Rows q with c = q·v; appending adds q = (u − Σ c_j q_j)/s. With no coordinates there are no rows."""

    def __init__(self, clients: int, rank: int) -> None:
        self.clients, self.rank = clients, rank
        self.pieces: list[Floats] = []  # (N, slots, r), each as long as all before it, so that growing copies nothing
        self.starts: list[int] = []
        self.rho = np.zeros((clients, 0))
        self.size = 0

    def open_slot(self) -> None:
        if self.rank == 0:
            return
        if self.size == self.rho.shape[1]:
            slots = max(self.size, PIECE)
            self.pieces.append(np.zeros((self.clients, slots, self.rank)))
            self.starts.append(self.size)
            self.rho = np.concatenate([self.rho, np.zeros((self.clients, slots))], axis=1)
        self.size += 1

    def _filled(self) -> Iterator[tuple[slice, Floats]]:
        """The pieces as far as they are filled, with the slots that they hold."""
        for start, piece in zip(self.starts, self.pieces, strict=True):
            stop = min(start + piece.shape[1], self.size)
            if start < stop:
                yield slice(start, stop), piece[:, : stop - start]

    def coordinates(self, scores: Scores, first: int, last: int) -> Floats:
        c = np.empty((last - first, self.size, scores.mean.shape[1]))
        for slots, rows in self._filled():
            np.matmul(rows[first:last], scores.features, out=c[:, slots])
        return c

    def pulls(self, first: int, last: int) -> Floats:
        return self.rho[first:last, : self.size]

    def append(self, clients: slice, new: NewPoints) -> None:
        if self.rank == 0:
            return
        fresh = new.scores.features.copy()
        for slots, rows in self._filled():
            part = new.c[:, None, slots]
            fresh -= (part @ rows[clients, : part.shape[2]])[:, 0]
        fresh /= new.s[:, None]
        at = self.size - 1
        piece = bisect_right(self.starts, at) - 1
        self.pieces[piece][clients, at - self.starts[piece]] = fresh
        self.rho[clients, at] = new.pull

    def compact(self) -> None:
        """Fold to as few rows as the rank by an orthogonal change of rows: QᵀQ and Qᵀρ stay what they were."""
        if self.rank == 0 or self.size <= FOLD_SLACK * self.rank + PIECE:
            return
        for client in range(self.clients):
            rows = np.concatenate([rows[client] for _, rows in self._filled()])
            joined = np.concatenate([rows, self.rho[client, : self.size, None]], axis=1)
            folded = np.zeros((self.size, self.rank + 1))
            folded[: self.rank] = np.linalg.qr(joined, mode="r")[: self.rank]
            for slots, kept in self._filled():
                kept[client] = folded[slots, :-1]
            self.rho[client, : self.size] = folded[:, -1]
        self.size = self.rank


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

    def coordinates(self, scores: Scores, first: int, last: int) -> Floats:
        k = self.size
        if k == 0:
            return np.empty((last - first, 0, scores.mean.shape[1]))
        covariance = self.belief.kernel(self.points[first:last, :k], scores.points)
        if self.belief.factor.size:
            covariance -= self.features[first:last, :k] @ scores.features
        covariance /= self.belief.lam
        return np.asarray(self.J[first:last, :k, :k] @ covariance)

    def pulls(self, first: int, last: int) -> Floats:
        return self.rho[first:last, : self.size] if self.size else np.empty((last - first, 0))

    def append(self, clients: slice, new: NewPoints) -> None:
        at = self.size - 1
        self.points[clients, at] = new.scores.points
        self.features[clients, at] = new.scores.features
        self.J[clients, at, :at] = -(new.c[:, None, :at] @ self.J[clients, :at, :at])[:, 0] / new.s[:, None]
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

    def _groups(self, client: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row of each distinct point of a client, and the number of every row's point; −1 for no point."""
        rows = np.flatnonzero(self.counts[client, : self.size])
        number = np.full(self.points.shape[1], -1)
        number[rows] = first_appearances(self.points[client, rows])
        return rows[np.unique(number[rows], return_index=True)[1]], number

    def _merge(
        self,
        client: int,
        first: NDArray[np.int64],
        number: NDArray[np.int64],
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


class Tails:
    """The tails of N clients on one belief."""

    def __init__(self, belief: Belief, clients: int) -> None:
        self.belief = belief
        self.rows: Rows
        if isinstance(belief, ExactBelief):
            self.rows = ExactRows(belief, clients)
        elif belief.rank is not None:
            self.rows = FiniteRows(clients, belief.rank)
        else:
            raise InputError(f"lockstep cannot batch tails on {type(belief).__name__}; use runtime='loopback'")
        self.count = np.zeros(clients, dtype=np.int64)
        self.log_det, self.variance, self.residual = np.zeros(clients), np.zeros(clients), np.zeros(clients)
        self._slot_is_open = False

    def begin_round(self) -> None:
        """Everyone may act once more."""
        self.rows.compact()
        self._slot_is_open = False

    def predict(self, scores: Scores, first: int, last: int) -> tuple[Floats, Floats, Floats]:
        """μ and σ² of the arms of clients first … last, and their coordinates c."""
        c = self.rows.coordinates(scores, first, last)
        if c.shape[1] == 0:
            mean, variance = scores.mean, scores.signal + scores.residual
            if len(mean) < last - first:  # all see the same points
                shape = (last - first, mean.shape[1])
                mean, variance = np.broadcast_to(mean, shape), np.broadcast_to(variance, shape)
            return mean, variance, c
        pulls = self.rows.pulls(first, last)
        mean = scores.mean + (pulls[:, None, :] @ c)[:, 0]
        signal = np.maximum(scores.signal - np.einsum("wka,wka->wa", c, c), 0.0)
        return mean, signal + scores.residual, c

    def information(self, first: int, last: int) -> Floats:
        """ln det(I + K/λ) of belief and tail together, or an upper bound of it, of each client."""
        return self.belief.information + self.log_det[first:last] + self.residual[first:last]

    def learnt(self, chosen: Scores, c: Floats, *, first: int, rewards: Floats) -> tuple[NewPoints, News]:
        """What clients from ``first`` on would add with these rewards, and the news that their triggers would see."""
        last = first + len(rewards)
        mean, signal = chosen.mean, chosen.signal
        if c.shape[1]:
            mean = mean + np.einsum("wk,wk->w", self.rows.pulls(first, last), c)
            signal = np.maximum(signal - np.einsum("wk,wk->w", c, c), 0.0)
        pivot = 1.0 + signal
        s = np.sqrt(pivot)
        new = NewPoints(scores=chosen, c=c, s=s, pull=(rewards - mean) / s, error=rewards - chosen.mean)
        news: dict[str, Any] = {
            "count": self.count[first:last] + 1,
            "log_det": self.log_det[first:last] + np.log(pivot),
            "variance": self.variance[first:last] + chosen.signal + chosen.residual,
            "residual": self.residual[first:last] + chosen.residual,
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
