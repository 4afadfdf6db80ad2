"""Finite beliefs in a form that costs few operations an arm, for the many clients that choose under one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from laconic.arrays import Floats, Ints, set_apart
from laconic.beliefs import Belief, FiniteBelief, NystromEmbedding, View
from laconic.beliefs.contract import column_squares
from laconic.linalg import (
    lower_product,
    paired,
    product_with_lower,
    reversed_cholesky,
    solve_identity,
    solve_transposed,
)

#: A matrix that saves little is kept up to this many rows.
MOST_KEPT = 768
#: Variances under a dictionary of this size or more are bounded first.
LAZY_FROM = 64


@dataclass(frozen=True, eq=False)
class Look:
    """What is known of m points: numbers that tails multiply, and μ and at most what σ² is under the belief alone."""

    numbers: Floats  # (m, r)
    mean: Floats  # (m,)
    upper: Floats  # (m,)
    variance: Callable[[Ints], Floats]  # σ² of some of them

    @classmethod
    def whole(cls, numbers: Floats, mean: Floats, variance: Floats) -> Look:
        """One that knows all variances."""
        return cls(numbers, mean, variance, lambda at: np.asarray(variance[at]))

    def taken(self, indices: Ints) -> Look:
        """The look at points in any order, some of them perhaps twice."""
        find = self.variance
        return Look(self.numbers[indices], self.mean[indices], self.upper[indices], lambda at: find(indices[at]))


class Sight(Protocol):
    """How points are looked at under a belief."""

    def look(self, X: Floats, *, lazily: bool = False) -> Look:
        """The look at the rows of X; taken ``lazily`` it bounds variances, of which few are then asked for."""
        ...

    def view(self, X: Floats) -> View:
        """The belief's view of the rows of X."""
        ...

    def turned(self, rows: Floats) -> Floats:
        """Rows q to multiply features v by, as rows p with p·numbers = q·v."""
        ...

    def lighten(self) -> None:
        """Let go of what is seldom needed and can be made again."""
        ...


@dataclass(frozen=True, eq=False)
class Plain:
    """By the belief's own features."""

    belief: Belief

    def look(self, X: Floats, *, lazily: bool = False) -> Look:
        view = self.belief.view(X)
        return Look.whole(view.features.T, view.mean, view.variance)

    def view(self, X: Floats) -> View:
        return self.belief.view(X)

    def turned(self, rows: Floats) -> Floats:
        return rows

    def lighten(self) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Folded:
    """By the kernel values k = k_S(x) of a dictionary S, with all that is to be solved multiplied out beforehand.

    With z = L_S⁻¹k, LLᵀ = G + λI and v = L⁻¹z = Pk: μ = (Pᵀβ)·k, β = L⁻¹b, and σ² = k(x,x)/λ − ‖Fk‖² where F = CL_S⁻¹
    and CᵀC = I/λ − (G + λI)⁻¹, all of them lower triangular. The first rows of F alone give an upper bound of σ², for a
    sixteenth of the work with a quarter of the rows. P serves few points. Where it is large it is not kept, and
    these points are solved for; L then lies beside F in the memory of one matrix.
    """

    belief: FiniteBelief
    solving: FiniteBelief  # the same, with the L by which the sight solves
    embedding: NystromEmbedding
    F: Floats  # (r, r)
    top: Floats | None  # the first rows of F, and as many columns; None where bounds would save little
    mean: Floats  # (r,) Pᵀβ
    P: Floats | None  # (r, r)

    @classmethod
    def of(cls, belief: FiniteBelief, embedding: NystromEmbedding) -> Folded:
        """A belief on a dictionary, multiplied out."""
        # Where they are large, a few matrices of this size are all the memory of a run: none is held for longer.
        solved, root = solve_identity(belief.factor), solve_identity(embedding.root)
        P = lower_product(solved, root)
        mean, kept = belief.weights @ P, P if embedding.size <= MOST_KEPT else None
        known = np.asarray(solved.T @ solved)
        del P, solved
        F = lower_product(_missing(known, lam=belief.lam), root)
        del known, root
        first = len(F) // (4 if kept is not None else 8)  # where memory is dear, half as many do nearly as well
        top = F[:first, :first].copy() if len(F) >= LAZY_FROM else None
        if kept is not None:
            return cls(belief, belief, embedding, F=set_apart(F), top=top, mean=mean, P=kept)
        factor, F = paired(belief.factor, F)
        return cls(belief, belief.knowing(factor=factor), embedding, F=F, top=top, mean=mean, P=None)

    def lighten(self) -> None:
        """Let go of factors by which the belief itself looks, and which it makes again should it have to.

        Of a belief that nobody is sent any more only this sight is asked, and there may be many such beliefs.
        """
        self.belief.lighten(embedding=self.P is not None)

    def look(self, X: Floats, *, lazily: bool = False) -> Look:
        K = self._values(X)
        if not lazily or self.top is None:
            return Look.whole(K, K @ self.mean, self._variance(X, K))
        upper = self._left(self.top, X, K[:, : len(self.top)])
        return Look(K, K @ self.mean, upper, lambda at: self._variance(X[at], K[at]))

    def view(self, X: Floats) -> View:
        if self.P is None:
            return self.solving.view(X)
        K = self._values(X)
        V = lower_product(self.P, K.T)
        signal = column_squares(V)
        residual = np.maximum(self._variance(X, K) - signal, 0.0)
        return View(points=X, features=V, mean=K @ self.mean, signal=signal, residual=residual)

    def turned(self, rows: Floats) -> Floats:
        if self.P is not None:
            return product_with_lower(rows, self.P)
        return solve_transposed(self.embedding.root, solve_transposed(self.solving.factor, rows.T)).T

    def _values(self, X: Floats) -> Floats:
        return self.embedding.kernel(X, self.embedding.dictionary)

    def _variance(self, X: Floats, K: Floats) -> Floats:
        return self._left(self.F, X, K)

    def _left(self, F: Floats, X: Floats, K: Floats) -> Floats:
        """What rows of F, and the values that these multiply, leave of the prior variance."""
        f = lower_product(F, K.T).T
        return np.asarray(np.maximum(self.embedding.prior(X) / self.belief.lam - np.einsum("ij,ij->i", f, f), 0.0))


def _missing(known: Floats, *, lam: float) -> Floats:
    """C with CᵀC = I/λ − L⁻ᵀL⁻¹, in place of L⁻ᵀL⁻¹."""
    np.negative(known, out=known)
    known.flat[:: len(known) + 1] += 1.0 / lam
    known[:] = reversed_cholesky(known, scale=1.0 / lam)
    return known


def sight_of(belief: Belief) -> Sight:
    """How to look at many points under a belief."""
    if isinstance(belief, FiniteBelief):
        embedding = belief.embedding
        if isinstance(embedding, NystromEmbedding) and embedding.dtype == "float64":
            return Folded.of(belief, embedding)
    return Plain(belief)
