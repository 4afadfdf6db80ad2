"""Beliefs on finitely many coordinates, Nyström or linear, and the statistics that they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs.base import View, column_squares, weighted
from laconic.beliefs.embeddings import Embedding, NystromEmbedding
from laconic.linalg import lower_cholesky, solve_lower, solve_lower_in_place


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
        gram = np.asarray(Z @ Z.T, dtype=np.float64)
        return cls(gram=gram, moment=weighted(y, Z.T), prior=float(embedding.prior(X).sum()), count=len(X))

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
        return View(points=X, features=V, mean=weighted(self.weights, V), signal=column_squares(V), residual=residual)

    def covariance(self, a: View, b: View) -> Floats:
        return a.features.T @ b.features

    def arrays(self) -> dict[str, Floats]:
        statistics = self.statistics
        totals = np.array([statistics.prior, statistics.count], float)
        learnt = {"gram": statistics.gram, "moment": statistics.moment, "totals": totals}
        if isinstance(self.embedding, NystromEmbedding):
            learnt["dictionary"] = self.embedding.dictionary
        return learnt
