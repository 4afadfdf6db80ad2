"""Bounds of what a large exact belief says of many arms, from the first rows of their solves in single precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs import ExactBelief
from laconic.beliefs.contract import column_squares
from laconic.kernels import Gaussian
from laconic.linalg import SINGLE, GrowingFactor, subtract_product
from laconic.runtimes.lockstep.batch import Exploring
from laconic.runtimes.lockstep.continuing import continues

#: Rows are solved in so many parts, or up to twice as many, of no fewer rows than these; after each, arms that cannot
#: win any more are dropped.
STAGES, LEAST_ROWS = 16, 64
#: Of a client whose means leave this share of its arms or fewer, the first is finished before any stage.
FEW = 0.5
#: After so many stages the first of any other client's arms is solved to the end, for others to be measured by.
LEAD_AFTER = 2
#: The solves that go on are moved together when they are less than this share of those that were begun.
CROWDED = 0.8
#: A row's sum of products may be wrong by so many units in the last place of its factors' norms; a fiftieth is seen.
UNITS = 8.0
#: Bounds that may be wrong by more than this share of k(x, x) drop too few arms.
SHARPEST = 0.01
#: Kernel values beyond this, or below its inverse, are not for single precision.
LARGEST = 1e15
#: A Gaussian kernel of single precision is right to some units in the last place up to this exponent, and for points
#: of no more features than these: what rounding does to an arm's norm all its kernel values share, and so its mean.
TAME, MOST_FEATURES = 4.0, 256
#: Memory for kernel values is larger than it need be by one part in so many, for the rounds that follow.
ROOM = 8
#: So many rows of kernel values are computed at a time in double precision.
PART_ROWS = 512


def spread_of(belief: ExactBelief) -> float:
    """How far rounding in a row of Lv = k may grow on its way into ‖v‖; infinite where single precision has no range.

    A row is met up to an error relative to ‖row‖·‖v‖, with ‖row‖² the matrix's diagonal entry and ‖v‖² ≤ k(x, x), and
    L⁻¹ magnifies by at most the root of the least eigenvalue, which is at least λ/c for points counted c times.
    """
    largest = float(belief.kernel.diag(belief.points).max())
    if not 1.0 / LARGEST < largest < LARGEST:
        return np.inf
    return float(np.sqrt(belief.factor.size * (largest + belief.lam) * belief.counts.max() / belief.lam))


@dataclass(frozen=True, eq=False)
class Shadow:
    """An exact belief's factor in single precision, and a = (K + λ diag(1/c))⁻¹ȳ, so that μ = k·a."""

    belief: ExactBelief
    factor: GrowingFactor
    rounding: float  # of ‖v‖², relative to k(x, x)

    @classmethod
    def of(cls, belief: ExactBelief, older: Shadow | None = None) -> Shadow | None:
        """The shadow of a belief, by that of one which it continues; None where bounds would not be sharp."""
        rounding = UNITS * float(np.finfo(SINGLE).eps) * spread_of(belief)
        if not rounding <= SHARPEST:
            return None
        kept = older is not None and continues(belief, older.belief)
        return cls(belief, belief.factor.in_single(older.factor if older is not None and kept else None), rounding)

    @cached_property
    def solution(self) -> Floats:
        """(t,) a."""
        return self.belief.factor.solve_transposed(self.belief.weights[:, None].copy())[:, 0]

    @cached_property
    def mean_rounding(self) -> float:
        """What μ may lose, relative to √k(x, x)."""
        return self.mean_rounding_by(self.solution)

    def mean_rounding_by(self, a: Floats) -> float:
        """The same of k·a: in the product of single precision, and in a itself."""
        belief = self.belief
        longest = np.sqrt(belief.factor.size * belief.kernel.diag(belief.points).max())
        product = np.finfo(SINGLE).eps * longest * np.linalg.norm(a)
        solves = np.finfo(np.float64).eps * spread_of(belief) ** 2
        return float(UNITS * (product + solves * np.linalg.norm(belief.weights)))

    def turned(self, rows: Floats) -> Floats:
        """L⁻ᵀv for rows v, in single precision: its product with k(x) is that of v with v(x)."""
        columns = np.ascontiguousarray(rows.T, dtype=SINGLE)
        return self.factor.solve_transposed(columns)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Clients whose own beliefs are beginnings of one: how many of its rows each has, and its own solution a."""

    rows: Ints  # (w,)
    solutions: Floats  # (w, t) zero beyond a client's own rows


class Room:
    """Memory for the kernel values of one round, which the next round takes again: new memory has to be cleared."""

    def __init__(self) -> None:
        self._flat: Floats = np.empty(0, dtype=SINGLE)

    def of(self, rows: int, columns: int) -> Floats:
        """A matrix to be filled, in place of the one before."""
        size = rows * columns
        if size > self._flat.size:
            self._flat = np.empty(0, dtype=SINGLE)  # first, so that there are never two
            self._flat = np.empty(size + size // ROOM, dtype=SINGLE)
        return self._flat[:size].reshape(rows, columns)


class Bounds:
    """Upper bounds of the indices of w clients' arms under one belief, lower ones of those that are solved whole.

    ``shift`` and ``drop`` are what points beyond the belief add to the mean and take from σ² of each arm. ``prefixes``
    say of clients that have not all of the belief how much they have.
    """

    def __init__(
        self, shadow: Shadow, points: Floats, prefixes: Prefixes | None = None, *, room: Room | None = None
    ) -> None:
        belief = shadow.belief
        self.shadow, self.shape = shadow, points.shape[:2]
        self.points = points.reshape(-1, points.shape[2])
        self.prefixes = prefixes
        self.K = (Room() if room is None else room).of(shadow.factor.size, len(self.points))
        mean = _kernel_values(shadow, self.points, shadow.solution if prefixes is None else prefixes.solutions, self.K)
        self.mean = mean.reshape(self.shape)
        self.mean_rounding = shadow.mean_rounding if prefixes is None else _mean_rounding(shadow, prefixes)
        self.prior = belief.kernel.diag(self.points).reshape(self.shape)
        self.squares = np.zeros(self.shape)
        self.whole = np.zeros(self.shape, dtype=np.bool_)
        self.beyond = Beyond.none(self.shape)

    def upper(self, clients: slice) -> tuple[Floats, Floats]:
        """μ of the arms of some clients, and an upper bound of σ²."""
        left = self.prior[clients] * (1.0 + self.shadow.rounding) - self.squares[clients]
        some = self.beyond.of(clients)
        signal = np.maximum(left / self.shadow.belief.lam - some.drop + some.drop_error, 0.0)
        return self.mean[clients] + some.shift, signal

    def _indices(self, clients: slice, exploring: Exploring) -> tuple[Floats, Floats]:
        """Upper and lower bounds of indices; an arm that is not there has −inf."""
        mean, signal = self.upper(clients)
        some, error = self.beyond.of(clients), self.errors(clients)
        least = self.prior[clients] * (1.0 - self.shadow.rounding) - self.squares[clients]
        least = np.maximum(least / self.shadow.belief.lam - some.drop - some.drop_error, 0.0)
        upper = mean + error + exploring.alpha * np.sqrt(signal)
        lower = mean - error + exploring.alpha * np.sqrt(np.where(self.whole[clients], least, 0.0))
        if exploring.there is not None:
            upper, lower = (np.where(exploring.there, each, -np.inf) for each in (upper, lower))
        return upper, lower

    def errors(self, clients: slice) -> Floats:
        """By how much the means of arms may be wrong."""
        own = self.mean_rounding * np.sqrt(self.prior[clients])
        return np.asarray(own + self.beyond.of(clients).shift_error)

    def rows(self, columns: Ints) -> Ints:
        """How many rows of the belief count for each of some columns."""
        if self.prefixes is None:
            return np.full(len(columns), len(self.K))
        return np.asarray(self.prefixes.rows[columns // self.shape[1]])

    def candidates(self, clients: slice, exploring: Exploring, *, slack: Floats | float = 0.0) -> Bools:
        """Which arms of some clients may have the best index, or come within ``slack`` of it."""
        return self._open(*self._indices(clients, exploring), slack=slack)

    @staticmethod
    def _open(upper: Floats, lower: Floats, *, slack: Floats | float) -> Bools:
        with np.errstate(invalid="ignore"):
            behind = upper < lower.max(axis=1, keepdims=True) - slack
        return np.asarray(~behind & (upper != -np.inf))  # what is no number is looked at

    def settle(self, columns: Ints, signal: Floats) -> None:
        """Take σ² of some arms as somebody knows it in double precision."""
        self.squares.ravel()[columns] = self.prior.ravel()[columns] - self.shadow.belief.lam * signal
        self.whole.ravel()[columns] = True

    def narrow(self, exploring: Exploring, finish: Callable[[Bools], None], *, slack: Floats | float = 0.0) -> None:
        """Solve all arms as far as it takes to see that they cannot win, and what remains to the end.

        An arm that is the last of its client's is left as it is: it has to be looked at in any case. Where means leave
        few arms of a client, the first of them nearly always wins: ``finish`` is asked to `settle` it, in the precision
        in which it is needed, and the others are measured by it.
        """
        everyone, t = slice(0, self.shape[0]), self.shadow.factor.size
        finish(self._early(exploring, slack=slack))
        open_ = _several(self.candidates(everyone, exploring, slack=slack)) & ~self.whole
        solves = _Solves.begun(self, np.flatnonzero(open_))
        step = _step(t)
        for stage, stop in enumerate(range(step, t + step, step), start=1):
            solves.go_on(min(stop, t))
            if stop >= t or len(solves.columns) == 0:
                return
            upper, lower = self._indices(everyone, exploring)
            if stage == LEAD_AFTER:
                without = ~self.whole.any(axis=1, keepdims=True)
                several = (_several(self._open(upper, lower, slack=slack)) & without).ravel()[solves.columns]
                solves.of(self._leaders(solves.columns[several], upper)).go_on(t)
                upper, lower = self._indices(everyone, exploring)
            keep = (_several(self._open(upper, lower, slack=slack)) & ~self.whole).ravel()[solves.columns]
            if stage == LEAD_AFTER or np.count_nonzero(keep) <= CROWDED * len(keep):
                solves = solves.of(solves.columns[keep])

    def _early(self, exploring: Exploring, *, slack: Floats | float) -> Bools:
        """The most promising arm of each client whose means leave few."""
        upper, lower = self._indices(slice(0, self.shape[0]), exploring)
        open_, there = (
            self._open(upper, lower, slack=slack),
            np.count_nonzero(upper != -np.inf, axis=1, keepdims=True),
        )
        few = open_ & (np.count_nonzero(open_, axis=1, keepdims=True) <= FEW * there)
        arms = np.zeros(self.shape, dtype=np.bool_)
        arms.ravel()[self._leaders(np.flatnonzero(few), upper)] = True
        return arms

    def _leaders(self, columns: Ints, upper: Floats) -> Ints:
        """Of each client the column, among these, whose index may be the largest."""
        there = np.full(self.shape, -np.inf)
        there.ravel()[columns] = upper.ravel()[columns]
        clients = np.flatnonzero((there != -np.inf).any(axis=1))
        return np.asarray(clients * self.shape[1] + there[clients].argmax(axis=1))

    def against(self, turned: Floats) -> Floats:
        """What the belief explains of the kernel of points, a row for each, with all arms: turned·k."""
        found = np.zeros((turned.shape[1], self.K.shape[1]), dtype=SINGLE)
        subtract_product(found, -turned.T, self.K)
        return found


def _step(rows: int) -> int:
    """How many rows a part has: a power of two, so that blocks of the factor and parts end together.

    Where they do not, a part is several products, some of a few rows only, and takes a third longer.
    """
    return int(max(1 << max(rows // STAGES, 1).bit_length() - 1, LEAST_ROWS))


def _several(arms: Bools) -> Bools:
    """These arms without those of clients that have one only."""
    return np.asarray(arms & (np.count_nonzero(arms, axis=1, keepdims=True) > 1))


class _Solves:
    """Forward solves of some columns, side by side, as far as they have come."""

    def __init__(self, bounds: Bounds, columns: Ints, V: Floats, done: int) -> None:
        self.bounds, self.columns, self._V, self._done = bounds, columns, V, done

    @classmethod
    def begun(cls, bounds: Bounds, columns: Ints) -> _Solves:
        """Solves of which nothing is done."""
        return cls(bounds, columns, np.empty((len(bounds.K), len(columns)), dtype=SINGLE), 0)

    def of(self, columns: Ints) -> _Solves:
        """Some of the solves, to go on by themselves."""
        V = np.empty((len(self._V), len(columns)), dtype=SINGLE)
        np.take(self._V[: self._done], np.searchsorted(self.columns, columns), axis=1, out=V[: self._done], mode="clip")
        return _Solves(self.bounds, columns, V, self._done)

    def go_on(self, stop: int) -> None:
        """Solve the rows up to ``stop``."""
        bounds, done, new = self.bounds, self._done, self._V[self._done : stop]
        np.take(bounds.K[done:stop], self.columns, axis=1, out=new, mode="clip")  # which writes without a buffer
        bounds.shadow.factor.solve(self._V[:stop], done=done)
        rows = bounds.rows(self.columns)
        if done < stop and rows.min(initial=stop) < stop:  # what comes after a client's own rows is nothing to it
            new[np.arange(done, stop)[:, None] >= rows] = 0.0
        bounds.squares.ravel()[self.columns] += column_squares(new)
        bounds.whole.ravel()[self.columns] |= stop >= rows
        self._done = stop


@dataclass(frozen=True, eq=False)
class Beyond:
    """What points beyond the belief change for each arm, and by how much that may be wrong for each client."""

    shift: Floats  # (w, A) of the mean
    drop: Floats  # (w, A) of σ²
    shift_error: Floats  # (w, 1)
    drop_error: Floats  # (w, 1)

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Beyond:
        """No such points."""
        nothing, exact = np.zeros(shape), np.zeros((shape[0], 1))
        return cls(nothing, nothing, exact, exact)

    @classmethod
    def room(cls, shape: tuple[int, ...]) -> Beyond:
        """Arrays of their own, for what is found out client by client."""
        each = (shape[0], 1)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(each), np.zeros(each))

    def of(self, clients: slice) -> Beyond:
        """The part of some clients."""
        return Beyond(*(each[clients] for each in (self.shift, self.drop, self.shift_error, self.drop_error)))


def _mean_rounding(shadow: Shadow, prefixes: Prefixes) -> float:
    """What the means of all these clients may lose at most: a shorter belief has smaller norms but for that of a."""
    norms = np.einsum("wt,wt->w", prefixes.solutions, prefixes.solutions)
    return shadow.mean_rounding_by(prefixes.solutions[int(norms.argmax())])


def _kernel_values(shadow: Shadow, X: Floats, a: Floats, K: Floats) -> Floats:
    """μ of X by a solution for all, or one a client; K becomes k of the belief's points with X, in its precision."""
    belief, t = shadow.belief, shadow.factor.size
    mean, points = np.zeros(len(X)), belief.points
    kernel = belief.kernel
    if type(kernel) is Gaussian and _is_tame(kernel, points, X):
        points, X, a = (each.astype(SINGLE) for each in (points, X, a))
        for part in _parts(t):
            kernel.fill(K[part], points[part], X)
            mean += _weighted(a[..., part], K[part])
    else:
        for part in _parts(t):
            values = kernel(points[part], X)
            mean += _weighted(a[..., part], values)
            K[part] = values
    return mean


def _weighted(a: Floats, values: Floats) -> Floats:
    """a·k of each column, by one a for all or, of as many columns each, by one a client."""
    if a.ndim == 1:
        return np.asarray(a @ values)
    each = values.reshape(len(values), len(a), -1).transpose(1, 0, 2)
    return np.asarray((a[:, None] @ each).reshape(-1))


def _parts(rows: int) -> list[slice]:
    return [slice(first, first + PART_ROWS) for first in range(0, rows, PART_ROWS)]


def _is_tame(kernel: Gaussian, *sets: Floats) -> bool:
    """Whether a kernel of points in single precision is right up to its last few bits."""
    if sets[0].shape[1] > MOST_FEATURES:
        return False
    return float(kernel.gamma * sum(np.einsum("ij,ij->i", X, X).max() for X in sets)) <= TAME
