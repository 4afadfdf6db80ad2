"""The exact belief: every point, in a growing Cholesky factor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs.base import View, column_squares, weighted
from laconic.growing import GrowingPoints, collapsed, key
from laconic.kernels import Kernel
from laconic.linalg import GrowingFactor, lower_cholesky, solve_lower

#: New points are factored this many at a time, which bounds the memory that growing takes.
CHUNK_ROWS = 1024
#: Up to this many distinct points a factor is rebuilt whenever a point repeats, rather than carry repeats along.
SMALL_FACTOR = 128
#: A larger factor carries repeated points as rows of their own until it is this much longer than it need be.
SLACK = 1.25


@dataclass(frozen=True, eq=False)
class Recall:
    """Features of points that somebody has at hand, so that learning these points need not compute them again."""

    row_of: dict[bytes, int]
    features: Floats  # (m, p)

    def columns(self, X: Floats) -> Floats | None:
        """The features of the rows of X, a column each; None when one of them is not known."""
        rows = [self.row_of.get(key(x), -1) for x in X]
        return None if -1 in rows else np.ascontiguousarray(self.features[rows].T)


@dataclass(frozen=True, eq=False)
class ExactBelief:
    """All points, a growing Cholesky factor, repeated points collapsed to (x, count, mean reward).

    With row j standing for c_j rewards of mean ȳ_j and K + λ diag(1/c) = LLᵀ:
    v(x) = L⁻¹k(x), μ = v·L⁻¹ȳ, σ² = (k(x,x) − ‖v‖²)/λ.
    """

    kernel: Kernel
    lam: float
    dim: int
    store: GrowingPoints
    counts: Floats = field(default_factory=lambda: np.empty(0))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    factor: GrowingFactor = field(default_factory=GrowingFactor)
    weights: Floats = field(default_factory=lambda: np.empty(0))  # L⁻¹ȳ
    growth: tuple[int, ...] = ()  # rows added at each step, so that a saved belief is rebuilt to the last bit
    gram: Floats | None = None  # K, kept while only counts change
    recall: Recall | None = None

    @classmethod
    def empty(cls, *, kernel: Kernel, lam: float, dim: int, dtype: str = "float64") -> ExactBelief:
        """The belief before any data; its factor is kept and solved in ``dtype``."""
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
    def rank(self) -> int | None:
        return None

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

    @property
    def is_finite(self) -> bool:
        """True when nothing overflowed on the way here; cheaper than asking for the information."""
        # what is not finite makes every later weight so, but for an infinite pivot, which makes its own weight 0
        return len(self.weights) == 0 or math.isfinite(self.weights[-1] + self.factor.trace())

    def view(self, X: Floats) -> View:
        return self.view_of(X, self.kernel(self.points, X))

    def view_of(self, X: Floats, cross: Floats) -> View:
        """The view of the rows of X from the kernel's matrix of the belief's points with them, which is overwritten."""
        V = self.factor.solve(self._cast(cross))
        signal = np.maximum(self.kernel.diag(X) - column_squares(V), 0.0) / self.lam
        return View(points=X, features=V, mean=weighted(self.weights, V), signal=signal, residual=np.zeros(len(X)))

    def _cast(self, K: Floats) -> Floats:
        """A kernel matrix in the precision of the factor."""
        return K.astype(self.factor.dtype, copy=False)

    def covariance(self, a: View, b: View) -> Floats:
        return (self.kernel(a.points, b.points) - a.features.T @ b.features) / self.lam

    def extended(self, X: Floats, y: Floats) -> ExactBelief:
        """The belief that has also learnt rewards y of the rows of X."""
        if len(X) == 1 and len(self.points) <= SMALL_FACTOR and (row := self.store.row_of(X[0])) >= 0:
            return self._recounted(row, 1.0, y[0])
        X, counts, sums = collapsed(X, np.ones(len(X)), y)
        rows = self.store.rows_of(X)
        repeats = rows >= 0
        if not repeats.any():
            return self._grown(X, counts, sums)
        if len(self.points) <= SMALL_FACTOR:
            if repeats.all():
                return self._recounted(rows, counts, sums)
            recounted = self._recounted(rows[repeats], counts[repeats], sums[repeats])
            return recounted._grown(X[~repeats], counts[~repeats], sums[~repeats])
        distinct = self.store.distinct + int((~repeats).sum())
        if len(self.points) + len(X) > SLACK * distinct:
            return self._rebuilt(X, counts, sums)
        return self._grown(X, counts, sums)

    def _recounted(self, rows: Ints | int, counts: Floats | float, sums: Floats | float) -> ExactBelief:
        """The belief with more rewards of points that it has: only the diagonal of its matrix changes."""
        new_counts, new_sums = self.counts.copy(), self.sums.copy()
        new_counts[rows] += counts
        new_sums[rows] += sums
        gram = self.kernel(self.points, self.points) if self.gram is None else self.gram
        matrix = gram.copy()
        matrix.flat[:: len(gram) + 1] += self.lam / new_counts
        L = lower_cholesky(matrix)
        return ExactBelief(  # features at hand are of the factor that was, so nothing is recalled
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

    def _grown(self, X: Floats, counts: Floats, sums: Floats) -> ExactBelief:
        belief: ExactBelief = self if len(X) == 0 else replace(self, gram=None)
        for first in range(0, len(X), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            belief = belief._appended(X[part], counts[part], sums[part])
        return belief if belief.recall is None else replace(belief, recall=None)

    def recalling(self, points: Floats, features: Floats) -> ExactBelief:
        """The same belief with the features of some points at hand, a row of ``features`` for each of ``points``."""
        return replace(self, recall=Recall(row_of={key(x): j for j, x in enumerate(points)}, features=features))

    def _solved(self, X: Floats) -> Floats:
        """L⁻¹k(X), from the features at hand as far as they go."""
        known = self.recall.columns(X) if self.recall is not None else None
        if known is None:
            return self.factor.solve(self._cast(self.kernel(self.points, X)))
        done = len(known)
        V = np.concatenate([known, self.kernel(self.points[done:], X)])
        return self.factor.solve(self._cast(V), done=done)

    def continues(self, older: ExactBelief) -> bool:
        """True when this belief has only learnt more points since the older one."""
        size, rows = older.factor.size, self.store.rows
        return (
            size <= self.factor.size
            and (size == 0 or self.factor.blocks[0] is older.factor.blocks[0])  # else it was factored anew
            and (rows.shared is older.store.rows.shared or np.array_equal(rows.values[:size], older.points))
            and np.array_equal(self.counts[:size], older.counts)  # another count is another factor
            and np.array_equal(self.weights[:size], older.weights)
        )

    def continued(self, view: View) -> View:
        """The view of this belief from that of an older one which it continues: only the new rows are computed."""
        done = len(view.features)
        if done == self.factor.size:
            return view
        fresh = self.kernel(self.points[done:], view.points)
        V = self.factor.solve(self._cast(np.concatenate([view.features, fresh])), done=done)
        new = V[done:]
        signal = np.maximum(view.signal - column_squares(new) / self.lam, 0.0)
        return replace(view, features=V, mean=view.mean + weighted(self.weights[done:], new), signal=signal)

    def _appended(self, X: Floats, counts: Floats, sums: Floats) -> ExactBelief:
        corner = self.kernel(X, X)
        corner.flat[:: len(X) + 1] += self.lam / counts
        factor, rows = self.factor.extended(self._solved(X), corner)
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

    def regrown(self, arrays: dict[str, Floats]) -> ExactBelief:
        """The belief of these arrays, factored in the steps in which it once grew."""
        belief, first = self._emptied(), 0
        for size in arrays["growth"].astype(int):
            part = slice(first, first + size)
            belief = belief._appended(arrays["points"][part], arrays["counts"][part], arrays["sums"][part])
            first += size
        return belief
