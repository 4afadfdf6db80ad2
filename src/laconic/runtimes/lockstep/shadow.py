"""Bounds of what a large exact belief says of many arms, from the first rows of their solves in single precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs import ExactBelief
from laconic.beliefs.contract import column_squares
from laconic.linalg import SINGLE, GrowingFactor, subtract_product
from laconic.runtimes.lockstep.batch import Exploring
from laconic.runtimes.lockstep.continuing import continues

#: After these shares of the rows, arms that cannot win any more are dropped.
STAGES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
#: From this share on the first of each client's arms is solved to the end, for others to be measured by.
LEAD_FROM = 1 / 8
#: The sum of products of a row may be wrong by so many units in the last place of its factors' norms; a fiftieth is seen.
UNITS = 8.0
#: Bounds that may be wrong by more than this share of k(x, x) drop too few arms.
SHARPEST = 0.01
#: Kernel values beyond this, or below its inverse, are not for single precision.
LARGEST = 1e15
#: So many rows of kernel values are computed at a time in double precision.
PART_ROWS = 512


def roundings(belief: ExactBelief) -> tuple[float, float]:
    """By how much ‖v‖² may be wrong in single precision, relative to k(x, x); and μ = k·a in double, per √k(x, x).

    A row of Lv = k is met up to e ≤ u·‖row‖·‖v‖ with ‖row‖² the matrix's diagonal entry and ‖v‖² ≤ k(x, x), and
    L⁻¹ magnifies by at most the root of the least eigenvalue, which is at least λ/c for points counted c times.
    """
    diagonal = belief.kernel.diag(belief.points)
    largest, counts = float(diagonal.max()), float(belief.counts.max())
    if not 1.0 / LARGEST < largest < LARGEST:
        return np.inf, np.inf
    least = belief.lam / counts
    spread = float(np.sqrt(belief.factor.size * (largest + belief.lam) / least))
    weights = float(np.linalg.norm(belief.weights))
    return (
        2.0 * UNITS * float(np.finfo(SINGLE).eps) / 2.0 * spread,
        UNITS * float(np.finfo(np.float64).eps) * spread**2 * weights,
    )


@dataclass(frozen=True, eq=False)
class Shadow:
    """An exact belief's factor in single precision, and a = (K + λ diag(1/c))⁻¹ȳ, so that μ = k·a."""

    belief: ExactBelief
    factor: GrowingFactor
    solution: Floats  # (t,) a
    rounding: float
    mean_rounding: float

    @classmethod
    def of(cls, belief: ExactBelief, older: Shadow | None = None) -> Shadow | None:
        """The shadow of a belief, by that of one which it continues; None where bounds would not be sharp."""
        rounding, mean_rounding = roundings(belief)
        if not rounding <= SHARPEST:
            return None
        kept = older is not None and continues(belief, older.belief)
        factor = belief.factor.in_single(older.factor if older is not None and kept else None)
        solution = belief.factor.solve_transposed(belief.weights[:, None].copy())[:, 0]
        return cls(belief, factor, solution, rounding, mean_rounding)

    def turned(self, rows: Floats) -> Floats:
        """L⁻ᵀv for rows v, in single precision: its product with k(x) is that of v with v(x)."""
        columns = np.ascontiguousarray(rows.T, dtype=SINGLE)
        return self.factor.solve_transposed(columns)


class Bounds:
    """Upper bounds of the indices of w clients' arms under one belief, lower ones of those that are solved whole.

    ``shift`` and ``drop`` are what points beyond the belief add to the mean and take from σ² of each arm.
    """

    def __init__(self, shadow: Shadow, points: Floats) -> None:
        belief = shadow.belief
        self.shadow, self.shape = shadow, points.shape[:2]
        self.points = points.reshape(-1, points.shape[2])
        self.K, mean = _kernel_values(shadow, self.points)
        self.mean = mean.reshape(self.shape)
        self.prior = belief.kernel.diag(self.points).reshape(self.shape)
        self.squares = np.zeros(self.shape)
        self.whole = np.zeros(self.shape, dtype=np.bool_)
        self.beyond = Beyond.none(self.shape)
        self.solved = 0  # multiplications in solves

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
        own = self.shadow.mean_rounding * np.sqrt(self.prior[clients])
        return np.asarray(own + self.beyond.of(clients).shift_error)

    def candidates(self, clients: slice, exploring: Exploring, *, slack: float = 0.0) -> Bools:
        """Which arms of some clients may have the best index, or come within ``slack`` of it."""
        return self._open(*self._indices(clients, exploring), slack=slack)

    @staticmethod
    def _open(upper: Floats, lower: Floats, *, slack: float) -> Bools:
        with np.errstate(invalid="ignore"):
            behind = upper < lower.max(axis=1, keepdims=True) - slack
        return np.asarray(~behind & (upper != -np.inf))  # what is no number is looked at

    def narrow(self, exploring: Exploring, *, slack: float = 0.0) -> None:
        """Solve all arms as far as it takes to see that they cannot win, and what remains to the end."""
        everyone, t = slice(0, self.shape[0]), self.shadow.factor.size
        stops = sorted({int(share * t) for share in STAGES} - {0}) + [t]
        columns = np.flatnonzero(self.candidates(everyone, exploring, slack=slack))
        V, led = np.empty((0, len(columns)), dtype=SINGLE), False
        for stop in stops:
            V = self._advanced(V, columns, stop)
            if stop == t or len(columns) == 0:
                break
            upper, lower = self._indices(everyone, exploring)
            if not led and stop >= LEAD_FROM * t:
                led = True
                self._lead(V, columns, upper)
                upper, lower = self._indices(everyone, exploring)
            keep = (self._open(upper, lower, slack=slack) & ~self.whole).ravel()[columns]
            columns, V = columns[keep], np.compress(keep, V, axis=1)

    def _advanced(self, V: Floats, columns: Ints, stop: int) -> Floats:
        """The solves of some columns taken on to row ``stop``."""
        done = len(V)
        V = np.concatenate([V, np.take(self.K[done:stop], columns, axis=1)])
        self.shadow.factor.solve(V, done=done)
        self.squares.ravel()[columns] += column_squares(V[done:])
        self.solved += (stop**2 - done**2) * len(columns)
        if stop == len(self.K):
            self.whole.ravel()[columns] = True
        return V

    def _lead(self, V: Floats, columns: Ints, upper: Floats) -> None:
        """Solve to the end, for each client, the arm whose index may be the largest."""
        there = np.full(self.shape, -np.inf)
        there.ravel()[columns] = upper.ravel()[columns]
        clients = np.flatnonzero((there != -np.inf).any(axis=1))
        leaders = clients * self.shape[1] + there[clients].argmax(axis=1)
        self._advanced(V[:, np.searchsorted(columns, leaders)], leaders, len(self.K))

    def against(self, turned: Floats, clients: slice) -> Floats:
        """What the belief explains of the kernel of points with the arms of some clients: turned·k, a row a point."""
        size = self.shape[1]
        some = self.K[:, clients.start * size : clients.stop * size]
        if some.shape != self.K.shape:
            some = np.ascontiguousarray(some)
        found = np.zeros((turned.shape[1], some.shape[1]), dtype=SINGLE)
        subtract_product(found, -turned.T, some)
        return found


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

    def of(self, clients: slice) -> Beyond:
        """The part of some clients."""
        return Beyond(*(each[clients] for each in (self.shift, self.drop, self.shift_error, self.drop_error)))


def _kernel_values(shadow: Shadow, X: Floats) -> tuple[Floats, Floats]:
    """k of the belief's points with X in single precision, and μ of X."""
    belief, t = shadow.belief, shadow.factor.size
    K, mean = np.empty((t, len(X)), dtype=SINGLE), np.zeros(len(X))
    for first in range(0, t, PART_ROWS):
        part = slice(first, first + PART_ROWS)
        values = belief.kernel(belief.points[part], X)
        mean += shadow.solution[part] @ values
        K[part] = values
    return K, mean
