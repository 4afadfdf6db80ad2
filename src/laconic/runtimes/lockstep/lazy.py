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
from laconic.runtimes.lockstep.batch import INDEX_ROUNDING, Exploring, Narrowed, Prediction, not_known
from laconic.runtimes.lockstep.continuing import continues, shortened_each
from laconic.runtimes.lockstep.exact_rows import Some
from laconic.runtimes.lockstep.shadow import Beyond, Bounds, Room, Shadow

#: A smaller belief scores all arms: it has little to save.
LAZY_FROM = 384
#: Kernel values of arms in single precision are at most this many at a time.
MOST_VALUES = 24_000_000
#: Points that a sync adds are solved for, up to this share of the arms that wait; for more, bounds are made anew.
ADDED_UP_TO = 0.25

#: Arms are looked at that come this close to the best, in units of how far syncs within the last round moved means
#: by its end. With less, more arms overtake that were not looked at, and one by itself costs what twenty cost among
#: others.
DRIFTS = 2.0
#: So many times as close they are solved in single precision: an arm is then seen to overtake only where it does.
WIDER = 2.25

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
        self._room = Room()

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
        bounds = Bounds(self._shadow, self._arms.arms[first:last], room=self._room)
        slack = DRIFTS * self._moved * drift(last - first)
        return screened(bounds, tails, exploring(first, last), first=first, slack=slack)


def drift(clients: int) -> Floats:
    """(w, 1) how far means have moved at each client's turn, beside the end of a round: steps add up as a root."""
    return np.sqrt(np.arange(1, clients + 1) / clients)[:, None]


def pays(belief: ExactBelief, arms: Arms) -> bool:
    """Whether the arms of a round are scored lazily under a belief."""
    return belief.factor.size >= LAZY_FROM and belief.factor.dtype == DOUBLE and arms.shared is None


def most_clients(belief: ExactBelief, arms: Arms) -> int:
    """Of how many clients bounds are made at a time."""
    return max(MOST_VALUES // (belief.factor.size * int(arms.arms.shape[1])), 1)


def screened(
    bounds: Bounds, tails: TailsOfSome, exploring: Exploring, *, first: int = 0, slack: Floats | float = 0.0
) -> Screen:
    """What tails change for the arms of clients from ``first`` on, and what the belief says of those that may win."""
    clients = bounds.shape[0]
    bounds.beyond = tails.beyond(bounds, first, first + clients)
    screen = Screen(bounds, first=first, slack=slack)
    bounds.narrow(exploring, screen.finish, slack=WIDER * slack)
    screen.finish(bounds.candidates(slice(0, clients), exploring, slack=slack))
    return screen


class Screen:
    """Clients from ``first`` on: bounds of all their arms under one belief, and what it says of some."""

    def __init__(self, bounds: Bounds, *, first: int, slack: Floats | float = 0.0) -> None:
        self.bounds, self.first, self.last = bounds, first, first + len(bounds.mean)
        self.base = self.belief = bounds.shadow.belief
        self.at: Ints = np.full(bounds.shape, -1)
        self._slack = slack
        # of points that are finished, or that a sync added, a row each, under the base
        self._rows = GrowingRows.empty(self.base.factor.size)
        self._points = np.empty((0, self.base.dim))
        self._mean = self._signal = np.empty(0)
        self._number: dict[bytes, int] = {}  # of a point, its row
        self._among: Floats = np.empty((0, 0))  # the covariances, times λ, of all of them
        self._place: Ints = np.empty(0, dtype=np.int64)  # of a row, which of these it has; −1 for none
        self._covariances: Floats = np.empty((0, self.at.size), dtype=SINGLE)  # the same of some rows and all arms
        # of the belief's points beyond the base
        self._added: Ints = np.empty(0, dtype=np.int64)  # their rows
        self._corner: Floats = np.empty((0, 0))  # the factor of their covariances

    def covers(self, first: int, last: int) -> bool:
        """Whether all these clients are among its own."""
        return self.first <= first < last <= self.last

    def finish(self, arms: Bools) -> None:
        """Let the belief say what it knows of some arms."""
        columns = np.flatnonzero(arms & (self.at < 0))
        if len(columns) == 0:
            return
        view = self.base.view(self.bounds.points[columns])
        if self.bounds.prefixes is not None:
            view = shortened_each(self.base, view, self.bounds.rows(columns))
        self.bounds.settle(columns, view.signal)
        self.at.ravel()[columns] = self._keep(view.points, view.features.T)
        self._mean, self._signal = np.append(self._mean, view.mean), np.append(self._signal, view.signal)

    def _keep(self, points: Floats, features: Floats) -> Ints:
        """Give points rows of their own, which have these features under the base."""
        numbers = np.arange(self._rows.size, self._rows.size + len(points))
        self._rows, self._points = self._rows.appended(features), np.concatenate([self._points, points])
        self._place = np.append(self._place, np.full(len(points), -1))
        self._number |= dict(zip(keys(points), numbers.tolist(), strict=True))
        return numbers

    def taken_on(self, belief: ExactBelief, first: int) -> bool:
        """Go on with a belief that has new points, for clients from ``first`` on; False where that does not pay."""
        if belief is self.belief:
            return True
        if not continues(belief, self.belief):
            return False
        old, base = self.belief.factor.size, self.base.factor.size
        new, waiting = belief.points[old:], self.at[first - self.first :]
        numbers = np.array([self._number.get(key, -1) for key in keys(new)])
        if (numbers < 0).any():
            if len(new) > ADDED_UP_TO * waiting.size:
                return False
            numbers = self._keep(new, belief.factor.matrix(first=old)[:, :base])
            self._mean, self._signal = (np.append(each, np.zeros(len(new))) for each in (self._mean, self._signal))
        if not self.has_added:
            self.bounds.beyond = Beyond.room(self.at.shape)  # a sync ends all tails
        self.belief, self._added = belief, np.append(self._added, numbers)
        self._corner = belief.factor.corner(base)
        return True

    @property
    def has_added(self) -> bool:
        """Whether a sync added points since the bounds were made."""
        return self.belief is not self.base

    def _turn(self, first: int, exploring: ExploringOf) -> None:
        """See to it that covariances with all arms are known of what was added, at first of what may yet be too."""
        numbers = self._added[self._place[self._added] < 0]
        if len(numbers) == 0:
            return
        if len(self._covariances) == 0:  # many are turned at once for little more than one
            numbers = np.append(numbers, self._likely(slice(first - self.first, len(self.at)), exploring))
        numbers = np.unique(numbers)
        explained = self.bounds.against(self.bounds.shadow.turned(self._rows.values[numbers]))
        fresh = self.base.kernel(self._points[numbers], self.bounds.points) - explained
        self._place[numbers] = np.arange(len(self._covariances), len(self._covariances) + len(numbers))
        self._covariances = np.concatenate([self._covariances, fresh.astype(SINGLE)])

    def _likely(self, waiting: slice, exploring: ExploringOf) -> Ints:
        """The rows of finished arms of clients that wait which come close to the best of their client."""
        at, alpha = self.at[waiting], exploring(self.first + waiting.start, self.last).alpha
        index = np.where(at < 0, -np.inf, self._mean[at] + alpha * np.sqrt(self._signal[at]))
        slack = np.broadcast_to(self._slack, (len(self.at), 1))[waiting]
        return np.asarray(at[(index >= index.max(axis=1, keepdims=True) - slack) & (at >= 0)])

    @property
    def _finished(self) -> Floats:
        """The covariances, times λ, of all rows under the base."""
        have, rows, points = len(self._among), self._rows.values, self._points
        if have < len(rows):
            fresh = self.base.kernel(points[have:], points) - rows[have:] @ rows.T
            self._among = np.block([[self._among, fresh[:, :have].T], [fresh]]) if have else fresh
        return self._among

    def _shift(self, clients: slice) -> None:
        """Put all that was added into the bounds of some clients: further rows of v of their arms."""
        if not self.has_added:
            return
        bounds, belief, base, size = self.bounds, self.belief, self.base.factor.size, self.at.shape[1]
        weights, lam = belief.weights[base:], belief.lam
        columns = slice(clients.start * size, clients.stop * size)
        rows = solve_lower(self._corner, self._covariances[self._place[self._added], columns])
        most = np.sqrt(bounds.prior.max())
        own = np.sqrt(belief.kernel.diag(belief.points[base:]).max() * belief.counts.max() / lam)
        error = np.sqrt(len(weights)) * bounds.shadow.rounding * most * own  # of all rows of an arm
        beyond = bounds.beyond.of(clients)
        beyond.shift[:] = (weights @ rows).reshape(-1, size)
        beyond.drop[:] = column_squares(rows).reshape(-1, size) / lam
        beyond.shift_error[:] = error * np.linalg.norm(weights)
        beyond.drop_error[:] = error * (2.0 * most + error) / lam

    def scored(self, tails: TailsOfSome, first: int, last: int, exploring: ExploringOf) -> tuple[Narrowed, Prediction]:
        """What belief and tails say of the arms of some clients that may win; all others are bounded."""
        some, shown = slice(first - self.first, last - self.first), exploring(first, last)
        self._turn(first, exploring)
        self._shift(some)
        while True:
            scores = self._narrowed(some)
            prediction = self._predicted(scores, tails, first, last)
            missing = self._missing(scores, prediction, some, shown)
            if not missing.any():
                return scores, prediction
            wanted = np.zeros(self.at.shape, dtype=np.bool_)
            after = slice(last - self.first, self.at.shape[0])  # those who come next may lack some too
            if after.start < after.stop:
                self._shift(after)
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
            added = solve_lower(self._corner, self._finished[self._added[:, None], numbers])
            features = np.concatenate([features, added.T], axis=1)
            mean = mean + self.belief.weights[-len(added) :] @ added
            signal = np.maximum(signal - column_squares(added) / self.belief.lam, 0.0)
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
            mean, signal, explained=lambda column: found.explained[scores.at[who, column]], known=not_known
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
            behind = index < best - INDEX_ROUNDING["float64"] * most
            doubtful = ((finished >= best - TIE * least) != (finished >= best - TIE * most)).any(axis=1, keepdims=True)
        return np.asarray(there & ~done & (~behind | (doubtful & (size > least))))
