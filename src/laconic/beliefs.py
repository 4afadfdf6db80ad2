"""Beliefs: what was agreed at the last sync, immutable and shared.

A belief says of any point x its mean, its variance and a feature column v(x) such that further points can be
conditioned on (see `laconic.tail`). Variances are in the paper's units, σ² = (posterior variance) / λ.

| symbol | name here |
|---|---|
| K_DD + λI = LLᵀ | `ExactBelief.factor` |
| v(x) = L⁻¹k_D(x), L⁻¹z(x) | `View.features` |
| z(x) = L_S⁻¹k_S(x) | `NystromEmbedding.embed` |
| G = ZᵀZ, b = Zᵀy | `Statistics.gram`, `Statistics.moment` |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from laconic.errors import InputError
from laconic.growing import GrowingPoints, collapsed, key
from laconic.kernels import Kernel
from laconic.linalg import GrowingFactor, lower_cholesky, solve_lower, solve_lower_in_place

Floats = NDArray[np.float64]

#: New points are factored this many at a time, which bounds the memory that growing takes.
CHUNK_ROWS = 1024
#: Up to this many distinct points a factor is rebuilt whenever a point repeats, rather than carry repeats along.
SMALL_FACTOR = 128
#: A larger factor carries repeated points as rows of their own until it is this much longer than it need be.
SLACK = 1.25


@dataclass(frozen=True, eq=False)
class View:
    """What a belief says of m points: enough to predict them and to condition on them.

    ``signal`` is the variance that data on these points would reduce; ``residual`` is what a Nyström belief adds for
    the part of a point that its dictionary cannot express.
    """

    points: Floats  # (m, d)
    features: Floats  # (p, m)
    mean: Floats  # (m,)
    signal: Floats  # (m,)
    residual: Floats  # (m,)

    @property
    def variance(self) -> Floats:
        """σ² of each point under the belief alone."""
        return self.signal + self.residual

    def at(self, index: int) -> View:
        """The view of one of the points."""
        one = slice(index, index + 1)
        return View(
            points=self.points[one],
            features=np.ascontiguousarray(self.features[:, one]),
            mean=self.mean[one],
            signal=self.signal[one],
            residual=self.residual[one],
        )


class Belief(Protocol):
    """What every belief offers to tails, triggers and phases."""

    @property
    def dim(self) -> int:
        """The number of features of a point."""
        ...

    @property
    def lam(self) -> float:
        """The ridge λ."""
        ...

    @property
    def rank(self) -> int | None:
        """The number of coordinates of a finite belief; None where every point adds one."""
        ...

    @property
    def dictionary_size(self) -> int | None:
        """|S| for beliefs that have a dictionary."""
        ...

    @property
    def information(self) -> float:
        """ln det(I + K_DD/λ), or an upper bound of it."""
        ...

    def view(self, X: Floats) -> View:
        """What the belief says of the rows of X."""
        ...

    def covariance(self, a: View, b: View) -> Floats:
        """The covariance, in units of λ, of the points of two views."""
        ...

    def arrays(self) -> dict[str, Floats]:
        """All that was learnt, as named arrays from which `restored` makes the belief again."""
        ...


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
    def empty(cls, *, kernel: Kernel, lam: float, dim: int) -> ExactBelief:
        """The belief before any data."""
        return cls(kernel=kernel, lam=lam, dim=dim, store=GrowingPoints.empty(dim))

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

    def view(self, X: Floats) -> View:
        return self.view_of(X, self.kernel(self.points, X))

    def view_of(self, X: Floats, cross: Floats) -> View:
        """The view of the rows of X from the kernel's matrix of the belief's points with them, which is overwritten."""
        V = self.factor.solve(cross)
        signal = np.maximum(self.kernel.diag(X) - np.einsum("ij,ij->j", V, V), 0.0) / self.lam
        return View(points=X, features=V, mean=self.weights @ V, signal=signal, residual=np.zeros(len(X)))

    def covariance(self, a: View, b: View) -> Floats:
        return (self.kernel(a.points, b.points) - a.features.T @ b.features) / self.lam

    def extended(self, X: Floats, y: Floats) -> ExactBelief:
        """The belief that has also learnt rewards y of the rows of X."""
        X, counts, sums = collapsed(X, np.ones(len(X)), y)
        rows = self.store.rows_of(X)
        repeats = rows >= 0
        if not repeats.any():
            return self._grown(X, counts, sums)
        if len(self.points) <= SMALL_FACTOR:
            recounted = self._recounted(rows[repeats], counts[repeats], sums[repeats])
            return recounted._grown(X[~repeats], counts[~repeats], sums[~repeats])
        distinct = self.store.distinct + int((~repeats).sum())
        if len(self.points) + len(X) > SLACK * distinct:
            return self._rebuilt(X, counts, sums)
        return self._grown(X, counts, sums)

    def _recounted(self, rows: NDArray[np.int64], counts: Floats, sums: Floats) -> ExactBelief:
        """The belief with more rewards of points that it has: only the diagonal of its matrix changes."""
        new_counts, new_sums = self.counts.copy(), self.sums.copy()
        new_counts[rows] += counts
        new_sums[rows] += sums
        gram = self.kernel(self.points, self.points) if self.gram is None else self.gram
        matrix = gram.copy()
        matrix.flat[:: len(gram) + 1] += self.lam / new_counts
        L = lower_cholesky(matrix)
        return replace(
            self,
            counts=new_counts,
            sums=new_sums,
            factor=GrowingFactor().appended(L),
            weights=solve_lower(L, new_sums / new_counts),
            growth=(len(gram),),
            gram=gram,
            recall=None,  # features are of the factor that was
        )

    def _rebuilt(self, X: Floats, counts: Floats, sums: Floats) -> ExactBelief:
        merged = collapsed(
            np.concatenate([self.points, X]),
            np.concatenate([self.counts, counts]),
            np.concatenate([self.sums, sums]),
        )
        return ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=self.dim)._grown(*merged)

    def _grown(self, X: Floats, counts: Floats, sums: Floats) -> ExactBelief:
        belief: ExactBelief = self if len(X) == 0 else replace(self, gram=None)
        for first in range(0, len(X), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            belief = belief._appended(X[part], counts[part], sums[part])
        return belief if belief.recall is None else replace(belief, recall=None)

    def recalling(self, points: Floats, features: Floats) -> ExactBelief:
        """The same belief, with the features of some points at hand; rows of ``features`` belong to rows of ``points``."""
        return replace(self, recall=Recall(row_of={key(x): j for j, x in enumerate(points)}, features=features))

    def _solved(self, X: Floats) -> Floats:
        """L⁻¹k(X), from the features at hand as far as they go."""
        known = self.recall.columns(X) if self.recall is not None else None
        if known is None:
            return self.factor.solve(self.kernel(self.points, X))
        done = len(known)
        V = np.concatenate([known, self.kernel(self.points[done:], X)])
        return self.factor.solve(V, done=done)

    def continues(self, older: ExactBelief) -> bool:
        """True when this belief has only learnt more points since the older one."""
        size, rows = older.factor.size, self.store.rows
        return (
            size <= self.factor.size
            and (rows.shared is older.store.rows.shared or np.array_equal(rows.values[:size], older.points))
            and np.array_equal(self.weights[:size], older.weights)
        )

    def continued(self, view: View) -> View:
        """The view of this belief from that of an older one which it continues: only the new rows are computed."""
        done = len(view.features)
        if done == self.factor.size:
            return view
        fresh = self.kernel(self.points[done:], view.points)
        V = self.factor.solve(np.concatenate([view.features, fresh]), done=done)
        new = V[done:]
        signal = np.maximum(view.signal - np.einsum("ij,ij->j", new, new) / self.lam, 0.0)
        return replace(view, features=V, mean=view.mean + self.weights[done:] @ new, signal=signal)

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
        belief, first = ExactBelief.empty(kernel=self.kernel, lam=self.lam, dim=self.dim), 0
        for size in arrays["growth"].astype(int):
            part = slice(first, first + size)
            belief = belief._appended(arrays["points"][part], arrays["counts"][part], arrays["sums"][part])
            first += size
        return belief


class Embedding(Protocol):
    """A map of points to finitely many coordinates."""

    @property
    def dim(self) -> int:
        """The number of features of a point."""
        ...

    @property
    def size(self) -> int:
        """The number of coordinates."""
        ...

    def embed(self, X: Floats) -> Floats:
        """The coordinates of the rows of X, a column each, in a new array."""
        ...

    def prior(self, X: Floats) -> Floats:
        """k(x, x) of the rows of X."""
        ...

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        """The part of k(x, x) that the coordinates do not express."""
        ...


@dataclass(frozen=True, eq=False)
class NystromEmbedding:
    """z(x) = L_S⁻¹k_S(x) with L_S the Cholesky root of K_SS for a dictionary S of full rank."""

    kernel: Kernel
    dictionary: Floats  # (r, d)

    @property
    def dim(self) -> int:
        return int(self.dictionary.shape[1])

    @property
    def size(self) -> int:
        return len(self.dictionary)

    @cached_property
    def root(self) -> Floats:
        """L_S, lower triangular with L_S L_Sᵀ = K_SS."""
        return lower_cholesky(self.kernel(self.dictionary, self.dictionary))

    def embed(self, X: Floats) -> Floats:
        Z = self.kernel(self.dictionary, X)
        solve_lower_in_place(self.root, Z)
        return Z

    def prior(self, X: Floats) -> Floats:
        return np.asarray(self.kernel.diag(X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.asarray(np.maximum(prior - np.einsum("ij,ij->j", Z, Z), 0.0))


@dataclass(frozen=True)
class LinearEmbedding:
    """z(x) = x."""

    dim: int

    @property
    def size(self) -> int:
        return self.dim

    def embed(self, X: Floats) -> Floats:
        return np.array(X.T, order="C")

    def prior(self, X: Floats) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", X, X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.zeros(Z.shape[1])


@dataclass(frozen=True)
class BlankEmbedding:
    """No coordinates and no variance: every arm ties with every other."""

    dim: int

    @property
    def size(self) -> int:
        return 0

    def embed(self, X: Floats) -> Floats:
        return np.empty((0, len(X)))

    def prior(self, X: Floats) -> Floats:
        return np.zeros(len(X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.zeros(Z.shape[1])


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over points: G = ZᵀZ, b = Zᵀy, Σk(x, x) and how many there were."""

    gram: Floats  # (r, r)
    moment: Floats  # (r,)
    prior: float = 0.0
    count: int = 0

    @classmethod
    def zeros(cls, size: int) -> Statistics:
        """The statistics of no points."""
        return cls(gram=np.zeros((size, size)), moment=np.zeros(size))

    @classmethod
    def of(cls, embedding: Embedding, X: Floats, y: Floats) -> Statistics:
        """The statistics of rewards y of the rows of X."""
        Z = embedding.embed(X)
        return cls(gram=Z @ Z.T, moment=Z @ y, prior=float(embedding.prior(X).sum()), count=len(X))

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            gram=self.gram + other.gram,
            moment=self.moment + other.moment,
            prior=self.prior + other.prior,
            count=self.count + other.count,
        )


@dataclass(frozen=True, eq=False)
class FiniteBelief:
    """Ridge regression on finitely many coordinates, Nyström or linear.

    With G + λI = LLᵀ and v(x) = L⁻¹z(x): μ = v·L⁻¹b, σ² = (k(x,x) − ‖z‖²)/λ + ‖v‖².
    """

    embedding: Embedding
    lam: float
    statistics: Statistics

    @classmethod
    def empty(cls, *, embedding: Embedding, lam: float) -> FiniteBelief:
        """The belief before any data."""
        return cls(embedding=embedding, lam=lam, statistics=Statistics.zeros(embedding.size))

    @property
    def dim(self) -> int:
        return self.embedding.dim

    @property
    def rank(self) -> int | None:
        return self.embedding.size

    @property
    def dictionary_size(self) -> int | None:
        return self.embedding.size if isinstance(self.embedding, NystromEmbedding) else None

    @property
    def observations(self) -> int:
        """How many rewards the belief has learnt from."""
        return self.statistics.count

    @cached_property
    def factor(self) -> Floats:
        """L, lower triangular with LLᵀ = G + λI."""
        return lower_cholesky(self.statistics.gram + self.lam * np.eye(self.embedding.size))

    @cached_property
    def weights(self) -> Floats:
        """L⁻¹b."""
        return solve_lower(self.factor, self.statistics.moment)

    @cached_property
    def information(self) -> float:
        """ln det(I + G/λ) + (Σ k(x,x) − tr G)/λ, an upper bound of ln det(I + K/λ); exact for linear beliefs."""
        expressed = 2.0 * np.log(np.diagonal(self.factor)).sum() - self.embedding.size * np.log(self.lam)
        missed = max(self.statistics.prior - float(np.trace(self.statistics.gram)), 0.0) / self.lam
        return float(expressed) + missed

    def view(self, X: Floats) -> View:
        V = self.embedding.embed(X)
        residual = self.embedding.residual(self.embedding.prior(X), V) / self.lam
        solve_lower_in_place(self.factor, V)
        return View(points=X, features=V, mean=self.weights @ V, signal=np.einsum("ij,ij->j", V, V), residual=residual)

    def covariance(self, a: View, b: View) -> Floats:
        return a.features.T @ b.features

    def arrays(self) -> dict[str, Floats]:
        statistics = self.statistics
        totals = np.array([statistics.prior, statistics.count], float)
        learnt = {"gram": statistics.gram, "moment": statistics.moment, "totals": totals}
        if isinstance(self.embedding, NystromEmbedding):
            learnt["dictionary"] = self.embedding.dictionary
        return learnt


def with_dictionary(belief: Belief, dictionary: Floats) -> FiniteBelief:
    """A Nyström belief without data on a new dictionary, with the kernel and λ of the old belief."""
    if isinstance(belief, FiniteBelief) and isinstance(belief.embedding, NystromEmbedding):
        kernel = belief.embedding.kernel
    elif isinstance(belief, ExactBelief):  # a cold start on exact local models
        kernel = belief.kernel
    else:
        raise InputError(f"a dictionary needs a belief with a kernel, got {type(belief).__name__}")
    return FiniteBelief.empty(embedding=NystromEmbedding(kernel=kernel, dictionary=dictionary), lam=belief.lam)


def restored(template: Belief, arrays: dict[str, Floats]) -> Belief:
    """The belief of which `arrays` were taken, with the kernel and λ of a belief of the same plan."""
    if "dictionary" in arrays:
        template = with_dictionary(template, arrays["dictionary"])
    if isinstance(template, ExactBelief):
        return template.regrown(arrays)
    if isinstance(template, FiniteBelief):
        prior, count = arrays["totals"]
        statistics = Statistics(gram=arrays["gram"], moment=arrays["moment"], prior=float(prior), count=int(count))
        return replace(template, statistics=statistics)
    raise InputError(f"cannot restore a belief of type {type(template).__name__}")
