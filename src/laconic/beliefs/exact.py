"""The exact belief: every point, in a growing Cholesky factor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs.contract import Belief, BeliefBase, View, column_squares, weighted
from laconic.beliefs.finite import FiniteBelief
from laconic.beliefs.precision import PRECISIONS, Precision
from laconic.beliefs.reading import expect_bounded, expect_shapes, expect_usable, length
from laconic.errors import InputError, RemoteProtocolError
from laconic.growing import GrowingPoints, collapsed
from laconic.kernels import Kernel
from laconic.linalg import DOUBLE, GrowingFactor, lower_cholesky, solve_lower

#: New points are factored this many at a time, which bounds the memory that growing takes.
CHUNK_ROWS = 1024
#: Up to this many distinct points a factor is rebuilt whenever a point repeats, rather than carry repeats along.
SMALL_FACTOR = 128
#: A larger factor carries repeated points as rows of their own until it is this much longer than it need be.
SLACK = 1.25


#: The features of the rows of X as far as somebody has them at hand, a column each; None when one is not known.
KnownFeatures = Callable[[Floats], Floats | None]


@dataclass(frozen=True, eq=False)
class ExactBelief(BeliefBase):
    """All points, a growing Cholesky factor, repeated points collapsed to (x, count, mean reward).

    With row j standing for c_j rewards of mean ȳ_j and K + λ diag(1/c) = LLᵀ:
    v(x) = L⁻¹k(x), μ = v·L⁻¹ȳ, σ² = (k(x,x) − ‖v‖²)/λ.

    `ExactBelief.empty` makes one, and ``extended`` a longer one; the fields below follow from these.

    Args:
        kernel: Kernel k of points.
        lam: Ridge λ, above 0.
        dim: Features d of a point, from 1.
        store: Points of the rows, each with its place.
        counts: How many rewards c each row stands for, (n,).
        sums: Sum of the rewards of each row, (n,).
        factor: Cholesky factor L.
        weights: L⁻¹ȳ, (n,).
        growth: Rows added at each step, so that a saved belief is rebuilt to the last bit.
        gram: Kernel matrix K of the rows, kept while only counts change; None: it is computed when it is needed.
    """

    bookkeeping: ClassVar[frozenset[str]] = frozenset({"growth"})

    kernel: Kernel
    lam: float
    dim: int
    store: GrowingPoints
    counts: Floats = field(default_factory=lambda: np.empty(0))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    factor: GrowingFactor = field(default_factory=GrowingFactor)
    weights: Floats = field(default_factory=lambda: np.empty(0))
    growth: tuple[int, ...] = ()
    gram: Floats | None = None

    @classmethod
    def empty(cls, *, kernel: Kernel, lam: float, dim: int, dtype: str = "float64") -> ExactBelief:
        """The belief before any data.

        Args:
            kernel: Kernel k of points.
            lam: Ridge λ, above 0. Raising it trusts each observation less.
            dim: Features d of a point, from 1.
            dtype: Precision in which its factor is kept and solved, float64 or float32. float32 takes half the memory
                and is less exact.
        """
        return cls(
            kernel=kernel, lam=lam, dim=dim, store=GrowingPoints.empty(dim), factor=GrowingFactor(dtype=np.dtype(dtype))
        )

    def _emptied(self) -> ExactBelief:
        """The same belief before any data."""
        return ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=self.dim, dtype=self.factor.dtype.name)

    @property
    def points(self) -> Floats:
        """The distinct points (or nearly: see `SLACK`), a row each."""
        return self.store.rows.values

    @property
    def precision(self) -> Precision:
        return PRECISIONS["float64" if self.factor.dtype == DOUBLE else "float32"]  # a dtype takes long to say its name

    @property
    def parameters(self) -> dict[str, object]:
        kind, dtype = type(self).__name__, self.factor.dtype.name
        return {"belief": kind, "dim": self.dim, "kernel": self.kernel, "dtype": dtype, "lam": self.lam}

    @property
    def rank(self) -> int | None:
        return None

    @property
    def width(self) -> int:
        return self.factor.size

    @property
    def dictionary_size(self) -> int | None:
        return None

    @property
    def observations(self) -> int:
        """How many rewards the belief has learnt from."""
        return int(self.counts.sum())

    @cached_property
    def information(self) -> float:
        """ln det(I + K_DD/λ) over all points, repeated ones included."""
        return float(2.0 * np.log(self.factor.diagonal()).sum() + np.log(self.counts / self.lam).sum())

    def is_sound(self) -> bool:
        # what is not finite makes every later weight so, but for an infinite pivot, which makes its own weight 0
        return len(self.weights) == 0 or math.isfinite(self.weights[-1] + self.factor.trace())

    def prior(self, X: Floats) -> Floats:
        return self.kernel.diag(X)

    def view(self, X: Floats, *, cross: Floats | None = None, known: KnownFeatures | None = None) -> View:
        """What the belief says of the rows of X.

        Args:
            X: Points, (m, d).
            cross: Kernel matrix of its points with X, where it is at hand, (n, m); it is overwritten. None: it is
                computed.
            known: Function that gives the first rows of the features of X, where they are at hand; None: none are.
        """
        V = self._solved(X, known) if cross is None else self.factor.solve(self._cast(cross))
        signal = np.maximum(self.kernel.diag(X) - column_squares(V), 0.0) / self.lam
        return View(points=X, features=V, mean=weighted(self.weights, V), signal=signal, residual=np.zeros(len(X)))

    def _cast(self, K: Floats) -> Floats:
        """A kernel matrix in the precision of the factor."""
        return K.astype(self.factor.dtype, copy=False)

    def covariance(self, a: View, b: View) -> Floats:
        return (self.kernel(a.points, b.points) - a.features.T @ b.features) / self.lam

    def extended(self, X: Floats, y: Floats, *, known: KnownFeatures | None = None) -> ExactBelief:
        """The belief that has also learnt rewards y of the rows of X; this one stays as it is.

        Args:
            X: Points, (m, d).
            y: Reward of each, (m,).
            known: Function that gives the first rows of the features of X, where they are at hand; None: none are.
        """
        if len(X) == 1 and len(self.points) <= SMALL_FACTOR and (row := self.store.row_of(X[0])) >= 0:
            return self._recounted(row, 1.0, y[0])
        X, counts, sums = collapsed(X, np.ones(len(X)), y)
        rows = self.store.rows_of(X)
        repeats = rows >= 0
        if not repeats.any():
            return self._grown(X, counts, sums, known)
        if len(self.points) <= SMALL_FACTOR:
            if repeats.all():
                return self._recounted(rows, counts, sums)
            recounted = self._recounted(rows[repeats], counts[repeats], sums[repeats])
            return recounted._grown(X[~repeats], counts[~repeats], sums[~repeats])
        distinct = self.store.distinct + int((~repeats).sum())
        if len(self.points) + len(X) > SLACK * distinct:
            return self._rebuilt(X, counts, sums)
        return self._grown(X, counts, sums, known)

    def _recounted(self, rows: Ints | int, counts: Floats | float, sums: Floats | float) -> ExactBelief:
        """The belief with more rewards of points that it has: only the diagonal of its matrix changes."""
        new_counts, new_sums = self.counts.copy(), self.sums.copy()
        new_counts[rows] += counts
        new_sums[rows] += sums
        gram = self.kernel(self.points, self.points) if self.gram is None else self.gram
        matrix = gram.copy()
        matrix.reshape(-1)[:: len(gram) + 1] += self.lam / new_counts
        L = lower_cholesky(matrix, ridge=self.lam)
        return ExactBelief(
            kernel=self.kernel,
            lam=self.lam,
            dim=self.dim,
            store=self.store,
            counts=new_counts,
            sums=new_sums,
            factor=GrowingFactor.of(L, dtype=self.factor.dtype),
            weights=solve_lower(L, new_sums / new_counts),
            growth=(len(gram),),
            gram=gram,
        )

    def _rebuilt(self, X: Floats, counts: Floats, sums: Floats) -> ExactBelief:
        merged = collapsed(
            np.concatenate([self.points, X]),
            np.concatenate([self.counts, counts]),
            np.concatenate([self.sums, sums]),
        )
        return self._emptied()._grown(*merged)

    def _grown(self, X: Floats, counts: Floats, sums: Floats, known: KnownFeatures | None = None) -> ExactBelief:
        belief: ExactBelief = self if len(X) == 0 else replace(self, gram=None)
        for first in range(0, len(X), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            belief = belief._appended(X[part], counts[part], sums[part], known)
        return belief

    def _solved(self, X: Floats, known: KnownFeatures | None = None) -> Floats:
        """L⁻¹k(X), from the features at hand as far as they go."""
        columns = None if known is None else known(X)
        if columns is None:
            return self.factor.solve(self._cast(self.kernel(self.points, X)))
        done = len(columns)
        if done == len(self.points):
            return self._cast(columns)
        V = np.empty((len(self.points), len(X)), dtype=self.factor.dtype)  # C-ordered, as solves want it
        V[:done], V[done:] = columns, self.kernel(self.points[done:], X)
        return self.factor.solve(V, done=done)

    def _appended(self, X: Floats, counts: Floats, sums: Floats, known: KnownFeatures | None = None) -> ExactBelief:
        corner = self.kernel(X, X)
        corner.flat[:: len(X) + 1] += self.lam / counts
        factor, rows = self.factor.extended(self._solved(X, known), corner, ridge=self.lam)
        old = len(self.points)
        new_weights = solve_lower(rows[:, old:], sums / counts - rows[:, :old] @ self.weights)
        return replace(
            self,
            store=self.store.appended(X),
            counts=np.concatenate([self.counts, counts]),
            sums=np.concatenate([self.sums, sums]),
            factor=factor,
            weights=np.concatenate([self.weights, new_weights]),
            growth=(*self.growth, len(X)),
        )

    def arrays(self) -> dict[str, Floats]:
        return {"points": self.points, "counts": self.counts, "sums": self.sums, "growth": np.array(self.growth, float)}

    def from_arrays(self, arrays: dict[str, Floats]) -> Belief:
        if "dictionary" in arrays:  # this exact model was a cold start
            return self.on_dictionary(np.empty((0, self.dim))).from_arrays(arrays)
        _check_arrays(arrays, dim=self.dim)
        with np.errstate(all="ignore"):
            try:
                belief = self._regrown(arrays)
            except InputError as error:
                raise RemoteProtocolError(f"for another plan, or damaged: {error}") from None
            if not belief.is_sound():
                raise RemoteProtocolError("a belief that overflows; rescale features and rewards to moderate sizes")
        return belief

    def _regrown(self, arrays: dict[str, Floats]) -> ExactBelief:
        """The belief of these arrays, factored in the steps in which it once grew."""
        belief, first = self._emptied(), 0
        for size in arrays["growth"].astype(int):
            part = slice(first, first + size)
            belief = belief._appended(arrays["points"][part], arrays["counts"][part], arrays["sums"][part])
            first += size
        return belief

    def check_points(self, X: Floats) -> None:
        expect_usable(self, self.kernel, X, dtype=self.factor.dtype)

    def dictionary_kernel(self) -> Kernel:
        return self.kernel

    def on_dictionary(self, points: Floats) -> FiniteBelief:
        return FiniteBelief.nystrom(kernel=self.kernel, dictionary=points, lam=self.lam, dtype=self.factor.dtype.name)


def _check_arrays(arrays: dict[str, Floats], *, dim: int) -> None:
    """Refuse what no exact belief learnt."""
    rows, steps = length(arrays, "points"), length(arrays, "growth")
    expect_shapes(arrays, {"points": (rows, dim), "counts": (rows,), "sums": (rows,), "growth": (steps,)})
    expect_bounded(arrays)
    growth, counts = arrays["growth"], arrays["counts"]
    largest = max(CHUNK_ROWS, SMALL_FACTOR)  # a step of more rows was never taken
    whole = ((growth >= 1) & (growth <= largest) & (growth == np.floor(growth))).all()
    if not whole or growth.sum() != rows:
        raise RemoteProtocolError(f"{rows} points cannot have come in steps of {growth[:5]} …")
    few = ~((counts >= 1) & (counts == np.floor(counts)))
    if few.any():
        raise RemoteProtocolError(f"a point was counted {counts[few][0]:g} times")
