"""Lazy scores under a large exact belief: bounds of all arms, and what the belief says of those that may win."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs import Belief, ExactBelief
from laconic.beliefs.contract import column_squares
from laconic.exploration import TIE
from laconic.growing import GrowingRows, keys
from laconic.linalg import DOUBLE, SINGLE, solve_lower
from laconic.runtimes.lockstep.arms import Arms
from laconic.runtimes.lockstep.batch import Exploring, Narrowed, Prediction
from laconic.runtimes.lockstep.continuing import continued, continues, shortened_each
from laconic.runtimes.lockstep.exact_rows import Some
from laconic.runtimes.lockstep.shadow import Beyond, Bounds, Prefixes, Shadow

#: A smaller belief scores all arms: it has little to save.
LAZY_FROM = 384
#: Kernel values of arms in single precision are at most this many at a time.
MOST_VALUES = 24_000_000
#: Rounding in double precision may move an index by this much, relative to the largest.
ROUNDING = 1e-9
#: Points that a sync adds are solved for, up to this share of the arms that wait; for more, bounds are made anew.
ADDED_UP_TO = 0.25

#: Arms are looked at that come this close to the best, in units of how far syncs within the last round moved means.
#: With less, more arms overtake that were not looked at, and one by itself costs what several cost among others.
SLACK = 3.0

ExploringOf = Callable[[int, int], Exploring]


class TailsOfSome(Protocol):
    """What scores ask of the tails of clients by their numbers."""

    def predict_some(self, scores: Narrowed, first: int, last: int) -> Some:
        """The arms of clients first … last that an exact belief was asked for, as belief and tails see them."""
        ...

    def beyond(self, bounds: Bounds, first: int, last: int) -> Beyond:
        """What tails change for the arms of clients first … last that an exact belief has bounds of."""
        ...


class Lazy:
    """The scores of a run's arms where only the largest index counts, round after round."""

    def __init__(self) -> None:
        self._shadow: Shadow | None = None
        self._moved = 0.0  # how far syncs within a round lately moved the means of arms apart
        self._arms: Arms
        self._screen: Screen | None = None

    def begin_round(self, arms: Arms) -> None:
        """Other arms."""
        if self._screen is not None:
            self._moved = float(self._screen.bounds.beyond.shift.std()) if self._screen.has_added else 0.0
        self._arms, self._screen = arms, None

    def scored(
        self, belief: Belief, tails: TailsOfSome, first: int, last: int, exploring: ExploringOf
    ) -> tuple[Narrowed, Prediction] | None:
        """What belief and tails say of the arms of clients ``first`` … ``last`` that may win; None if it pays not."""
        if not isinstance(belief, ExactBelief) or not pays(belief, self._arms):
            return None
        screen = self._screen
        if screen is None or not screen.covers(first, last) or not screen.taken_on(belief, first):
            screen = self._screen = self._made(belief, tails, first, last, exploring)
        return None if screen is None else screen.scored(tails, first, last, exploring)

    def _made(
        self, belief: ExactBelief, tails: TailsOfSome, first: int, last: int, exploring: ExploringOf
    ) -> Screen | None:
        """Bounds of the arms of these clients and of those after them."""
        if self._shadow is None or self._shadow.belief is not belief:
            self._shadow = Shadow.of(belief, self._shadow)
        if self._shadow is None:
            return None
        last = min(max(last, first + most_clients(belief, self._arms)), len(self._arms.arms))
        shown, slack = exploring(first, last), SLACK * self._moved
        return screened(self._shadow, self._arms.arms[first:last], tails, shown, first=first, slack=slack)


def pays(belief: ExactBelief, arms: Arms) -> bool:
    """Whether the arms of a round are scored lazily under a belief."""
    return belief.factor.size >= LAZY_FROM and belief.factor.dtype == DOUBLE and arms.shared is None


def most_clients(belief: ExactBelief, arms: Arms) -> int:
    """Of how many clients bounds are made at a time."""
    return max(MOST_VALUES // (belief.factor.size * int(arms.arms.shape[1])), 1)


def screened(
    shadow: Shadow,
    arms: Floats,
    tails: TailsOfSome,
    exploring: Exploring,
    *,
    first: int = 0,
    slack: float = 0.0,
    prefixes: Prefixes | None = None,
) -> Screen:
    """Bounds of the arms of clients from ``first`` on, and what the belief says of those that may win."""
    bounds = Bounds(shadow, arms, prefixes)
    bounds.beyond = tails.beyond(bounds, first, first + len(arms))
    screen = Screen(bounds, first=first)
    bounds.narrow(exploring, screen.finish, slack=slack)
    screen.finish(bounds.candidates(slice(0, len(arms)), exploring, slack=slack))
    return screen


class Screen:
    """Clients from ``first`` on: bounds of all their arms under one belief, and what it says of some."""

    def __init__(self, bounds: Bounds, *, first: int) -> None:
        self.bounds, self.first, self.last = bounds, first, first + len(bounds.mean)
        self.base = self.belief = bounds.shadow.belief
        self.at: Ints = np.full(bounds.shape, -1)
        self._rows = GrowingRows.empty(self.base.factor.size)
        self._points = np.empty((0, self.base.dim))
        self._mean = self._signal = np.empty(0)  # under the belief as it is now
        self._number: dict[bytes, int] = {}  # of a finished point, its row
        self._among: Floats | None = None  # the covariance, times λ, of all finished points under the base
        self._covariances: Floats = np.empty((0, self.at.size), dtype=SINGLE)  # the same of them and all arms
        self._added = GrowingRows.empty(self.at.size)  # of the belief's points beyond the base, their rows of v
        self._beyond = np.empty((0, 0))  # the same of the finished points only, in double precision

    def covers(self, first: int, last: int) -> bool:
        """Whether all these clients are among its own."""
        return self.first <= first < last <= self.last

    def finish(self, arms: Bools) -> None:
        """Let the belief say what it knows of some arms."""
        columns = np.flatnonzero(arms & (self.at < 0))
        if len(columns) == 0:
            return
        view, number, base = self.base.view(self.bounds.points[columns]), self._rows.size, self.base.factor.size
        if self.bounds.prefixes is not None:
            view = shortened_each(self.base, view, self.bounds.rows(columns))
        self.bounds.settle(columns, view.signal)
        self._rows = self._rows.appended(view.features.T)
        if self.has_added:
            view = continued(self.belief, view)
        self._beyond = np.concatenate([self._beyond, view.features[base:]], axis=1)
        self._points, self._among = np.concatenate([self._points, view.points]), None
        self._mean, self._signal = np.append(self._mean, view.mean), np.append(self._signal, view.signal)
        self.at.ravel()[columns] = np.arange(number, number + len(columns))
        self._number |= {key: row for row, key in enumerate(keys(view.points), start=number)}

    def taken_on(self, belief: ExactBelief, first: int) -> bool:
        """Take a belief's new points into the bounds of clients from ``first`` on; False where that does not pay."""
        if belief is self.belief:
            return True
        if not continues(belief, self.belief):
            return False
        old, base = self.belief.factor.size, self.base.factor.size
        new, waiting = belief.points[old:], slice(first - self.first, self.at.shape[0])
        numbers = np.array([self._number.get(key, -1) for key in keys(new)])
        known = bool((numbers >= 0).all())
        if not known and len(new) > ADDED_UP_TO * self.at[waiting].size:
            return False
        L, columns = belief.factor.matrix(first=old), slice(waiting.start * self.at.shape[1], None)
        corner = L[:, base:]
        covariance = self._known(numbers, columns) if known else self._unknown(new, L[:, :base], waiting)
        rows = np.zeros((len(new), self.at.size))
        rows[:, columns] = _continued(corner, self._added.values[:, columns], covariance)
        if known:
            covariance = self._finished[numbers]
        else:
            covariance = self.base.kernel(new, self._points) - L[:, :base] @ self._rows.values.T
        self._learn(belief, _continued(corner, self._beyond, covariance))
        self._added, self.belief = self._added.appended(rows), belief
        self._shift(rows)
        return True

    def _learn(self, belief: ExactBelief, rows: Floats) -> None:
        """Put new rows of v into what the belief says of finished arms."""
        self._beyond = np.concatenate([self._beyond, rows])
        self._mean = self._mean + belief.weights[-len(rows) :] @ rows
        self._signal = np.maximum(self._signal - column_squares(rows) / belief.lam, 0.0)

    @property
    def has_added(self) -> bool:
        """Whether a sync added points since the bounds were made."""
        return self.belief is not self.base

    def _unknown(self, new: Floats, features: Floats, waiting: slice) -> Floats:
        """The covariance, times λ, of points with these features and the arms of clients that wait, under the base."""
        explained = self.bounds.against(self.bounds.shadow.turned(features), waiting)
        arms = self.bounds.points[waiting.start * self.at.shape[1] :]
        return np.asarray(self.base.kernel(new, arms) - explained)

    def _known(self, numbers: Ints, columns: slice) -> Floats:
        """The same of finished points, which are all turned at once, and some arms."""
        have = len(self._covariances)
        if have <= numbers.max():
            fresh = self._unknown(self._points[have:], self._rows.values[have:], slice(0, self.at.shape[0]))
            self._covariances = np.concatenate([self._covariances, fresh.astype(SINGLE)])
        return self._covariances[numbers, columns]

    @property
    def _finished(self) -> Floats:
        """The covariance, times λ, of all finished points under the base."""
        if self._among is None:
            rows, points = self._rows.values, self._points
            self._among = self.base.kernel(points, points) - rows @ rows.T
        return self._among

    def _shift(self, rows: Floats) -> None:
        """Put what was added last into the bounds."""
        bounds, belief, base = self.bounds, self.belief, self.base.factor.size
        weights, lam, shape = belief.weights[base:], belief.lam, self.at.shape
        older = bounds.beyond if len(weights) > len(rows) else Beyond.none(shape)  # a sync ends all tails
        most = np.sqrt(bounds.prior.max())
        own = np.sqrt(belief.kernel.diag(belief.points[base:]).max() * belief.counts.max() / lam)
        error = np.sqrt(len(weights)) * bounds.shadow.rounding * most * own  # of all rows of an arm
        bounds.beyond = Beyond(
            shift=older.shift + (weights[-len(rows) :] @ rows).reshape(shape),
            drop=older.drop + np.einsum("ij,ij->j", rows, rows).reshape(shape) / lam,
            shift_error=np.full((len(self.at), 1), error * np.linalg.norm(weights)),
            drop_error=np.full((len(self.at), 1), error * (2.0 * most + error) / lam),
        )

    def scored(self, tails: TailsOfSome, first: int, last: int, exploring: ExploringOf) -> tuple[Narrowed, Prediction]:
        """What belief and tails say of the arms of some clients that may win; all others are bounded."""
        some, shown = slice(first - self.first, last - self.first), exploring(first, last)
        while True:
            scores = self._narrowed(some)
            prediction = self._predicted(scores, tails, first, last)
            missing = self._missing(scores, prediction, some, shown)
            if not missing.any():
                return scores, prediction
            wanted = np.zeros(self.at.shape, dtype=np.bool_)
            after = slice(last - self.first, self.at.shape[0])  # those who come next may lack some too
            if after.start < after.stop:
                wanted[after] = self.bounds.candidates(after, exploring(last, self.last))
            wanted[some] = missing
            self.finish(wanted)

    def _narrowed(self, some: slice) -> Narrowed:
        """The finished arms of some clients under the belief as it is now."""
        at, arms = self.at[some], self.bounds.points.reshape(*self.at.shape, -1)[some]
        there = at >= 0
        numbers = at[there]
        features, mean, signal = self._rows.values[numbers], self._mean[numbers], self._signal[numbers]
        if self.has_added:
            features = np.concatenate([features, self._beyond[:, numbers].T], axis=1)
        rows = np.full(at.shape, -1)
        rows[there] = np.arange(len(numbers))
        return Narrowed(arms, np.zeros(at.shape), at=rows, features=features, mean=mean, signal=signal)

    def _predicted(self, scores: Narrowed, tails: TailsOfSome, first: int, last: int) -> Prediction:
        some, there = slice(first - self.first, last - self.first), scores.at >= 0
        mean, signal = self.bounds.upper(some)
        found = tails.predict_some(scores, first, last)
        mean[there], signal[there] = found.mean, found.signal
        who = np.arange(last - first)
        return Prediction(
            mean, signal, explained=lambda column: found.explained[scores.at[who, column]], known=_not_known
        )

    def _missing(self, scores: Narrowed, prediction: Prediction, some: slice, exploring: Exploring) -> Bools:
        """Which arms are not finished and may yet win, or decide how close to the best another must come to tie."""
        done, width = scores.at >= 0, exploring.alpha * np.sqrt(prediction.signal)
        error = np.where(done, 0.0, self.bounds.errors(some))
        there = np.ones(done.shape, dtype=np.bool_) if exploring.there is None else exploring.there
        index, size = prediction.mean + width + error, np.abs(prediction.mean) + width + error
        finished = np.where(done & there, index, -np.inf)
        best = finished.max(axis=1, keepdims=True)
        least = np.where(done & there, size, 0.0).max(axis=1, keepdims=True)
        most = np.where(there, size, 0.0).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            behind = index < best - ROUNDING * most
            doubtful = ((finished >= best - TIE * least) != (finished >= best - TIE * most)).any(axis=1, keepdims=True)
        return np.asarray(there & ~done & (~behind | (doubtful & (size > least))))


def _continued(corner: Floats, before: Floats, covariance: Floats) -> Floats:
    """Further rows of v, from those before and from covariances under the belief that had none of these."""
    done = len(before)
    left = covariance - corner[:, :done] @ before
    return left / corner[0, done] if len(left) == 1 else solve_lower(corner[:, done:], left)


def _not_known(row: int) -> Floats:
    raise AssertionError("an exploration that asks for covariances has all columns looked at")
