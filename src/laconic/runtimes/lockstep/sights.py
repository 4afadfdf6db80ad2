"""Finite beliefs in a form that costs few operations an arm, for the many clients that choose under one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, FiniteBelief, NystromEmbedding
from laconic.linalg import lower_product, reversed_cholesky, solve_identity, solve_transposed


@dataclass(frozen=True, eq=False)
class Look:
    """What is known of m points: numbers that tails multiply, and μ and σ² under the belief alone."""

    numbers: Floats  # (m, r)
    mean: Floats  # (m,)
    variance: Floats  # (m,)

    def between(self, first: int, stop: int) -> Look:
        """The look at some points in a row."""
        return Look(self.numbers[first:stop], self.mean[first:stop], self.variance[first:stop])

    def taken(self, indices: Ints) -> Look:
        """The look at points in any order, some of them perhaps twice."""
        return Look(self.numbers[indices], self.mean[indices], self.variance[indices])


class Sight(Protocol):
    """How points are looked at under a belief."""

    def look(self, X: Floats) -> Look:
        """The look at the rows of X."""
        ...

    def turned(self, rows: Floats) -> Floats:
        """Rows q to multiply features v by, as rows p with p·numbers = q·v."""
        ...


@dataclass(frozen=True, eq=False)
class Plain:
    """By the belief's own features."""

    belief: Belief

    def look(self, X: Floats) -> Look:
        view = self.belief.view(X)
        return Look(view.features.T, view.mean, view.variance)

    def turned(self, rows: Floats) -> Floats:
        return rows


@dataclass(frozen=True, eq=False)
class Folded:
    """By the kernel values k = k_S(x) of a dictionary S, with all that is to be solved multiplied out beforehand.

    With z = L_S⁻¹k, v = L⁻¹z and LLᵀ = G + λI: μ = (L_S⁻ᵀL⁻ᵀβ)·k, β = L⁻¹b, and σ² = k(x,x)/λ − ‖Fk‖² where F = CL_S⁻¹
    and CᵀC = I/λ − (G + λI)⁻¹, both of them lower triangular.
    """

    belief: FiniteBelief
    embedding: NystromEmbedding
    F: Floats  # (r, r)
    mean: Floats  # (r,)

    @classmethod
    def of(cls, belief: FiniteBelief, embedding: NystromEmbedding) -> Folded:
        """A belief on a dictionary, multiplied out."""
        solved, most = solve_identity(belief.factor), 1.0 / belief.lam
        C = reversed_cholesky(most * np.eye(embedding.size) - solved.T @ solved, largest=most)
        F = lower_product(C, solve_identity(embedding.root))
        return cls(belief, embedding, F, mean=_turned(belief, embedding, belief.weights[None])[0])

    def look(self, X: Floats) -> Look:
        K = self.embedding.kernel(X, self.embedding.dictionary)
        f = lower_product(self.F, K.T).T
        variance = self.embedding.prior(X) / self.belief.lam - np.einsum("ij,ij->i", f, f)
        return Look(K, K @ self.mean, np.maximum(variance, 0.0))

    def turned(self, rows: Floats) -> Floats:
        return _turned(self.belief, self.embedding, rows)


def _turned(belief: FiniteBelief, embedding: NystromEmbedding, rows: Floats) -> Floats:
    """L_S⁻ᵀL⁻ᵀq of each row q."""
    return solve_transposed(embedding.root, solve_transposed(belief.factor, rows.T)).T


def sight_of(belief: Belief) -> Sight:
    """How to look at many points under a belief."""
    if isinstance(belief, FiniteBelief):
        embedding = belief.embedding
        if isinstance(embedding, NystromEmbedding) and embedding.dtype == "float64":
            return Folded.of(belief, embedding)
    return Plain(belief)
