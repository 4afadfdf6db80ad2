"""Finite beliefs in a form that costs few operations an arm, for the many clients that choose under one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from laconic.arrays import Floats, Ints, set_apart
from laconic.beliefs import Belief, FiniteBelief, NystromEmbedding, View
from laconic.linalg import (
    lower_gram,
    lower_product,
    paired,
    product_with_lower,
    reversed_cholesky,
    solve_identity,
    solve_lower,
    solve_transposed,
)

#: A matrix that saves little is kept up to this many rows.
MOST_KEPT = 768
#: Variances under a dictionary of this size or more are bounded first.
BOUNDED_FROM = 64


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


class Sighting(NamedTuple):
    """What a belief says of m points that tails learn."""

    points: Floats  # (m, d)
    numbers: Floats  # (m, r) those of a look
    features: Floats  # (m, r) v, a row each
    turned: Floats  # (m, r) rows to multiply the numbers of a look by: the covariance of these points and those
    mean: Floats  # (m,)
    signal: Floats  # (m,)
    residual: Floats  # (m,)

    def between(self, first: int, stop: int) -> Sighting:
        """The part of some points in a row."""
        return Sighting(*(each[first:stop] for each in self))


class Sight(Protocol):
    """How points are looked at under a belief."""

    def look(self, X: Floats, *, lazily: bool = False) -> Look:
        """The look at the rows of X; taken ``lazily`` it bounds variances, of which few are then asked for."""
        ...

    def sighting(self, X: Floats) -> Sighting:
        """What tails that learn the rows of X want to know of them."""
        ...

    def numbers(self, view: View) -> Floats:
        """The numbers of a look at the points of the belief's view."""
        ...

    def variance(self, X: Floats, *, most: Floats) -> Floats:
        """σ² of the rows of X; of one that is at most ``most`` perhaps an upper bound that is no more than that."""
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

    def sighting(self, X: Floats) -> Sighting:
        view = self.belief.view(X)
        rows = np.ascontiguousarray(view.features.T)
        return Sighting(X, rows, rows, rows, view.mean, view.signal, view.residual)

    def numbers(self, view: View) -> Floats:
        return view.features.T

    def variance(self, X: Floats, *, most: Floats) -> Floats:
        return self.belief.view(X).variance

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
    factor: Floats | None  # L, where P is not kept
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
        known = lower_gram(solved)
        del P, solved
        F = lower_product(_missing(known, lam=belief.lam), root)
        del known, root
        first = len(F) // (4 if kept is not None else 8)  # where memory is dear, half as many do nearly as well
        top = F[:first, :first].copy() if len(F) >= BOUNDED_FROM else None
        if kept is not None:
            return cls(belief, None, embedding, F=set_apart(F), top=top, mean=mean, P=kept)
        factor, F = paired(belief.factor, F)
        return cls(belief, factor, embedding, F=F, top=top, mean=mean, P=None)

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

    def sighting(self, X: Floats) -> Sighting:
        K = self._values(X)
        if self.factor is not None:
            Z = solve_lower(self.embedding.root, K.T)
            residual = self.embedding.residual(self.embedding.prior(X), Z) / self.belief.lam
            V = solve_lower(self.factor, Z).T
            return Sighting(X, K, V, self.turned(V), K @ self.mean, np.einsum("ij,ij->i", V, V), residual)
        assert self.P is not None
        V = lower_product(self.P, K.T).T
        signal = np.einsum("ij,ij->i", V, V)
        residual = np.maximum(self._variance(X, K) - signal, 0.0)
        return Sighting(X, K, V, self.turned(V), K @ self.mean, signal, residual)

    def numbers(self, view: View) -> Floats:
        return self._values(view.points)

    def variance(self, X: Floats, *, most: Floats) -> Floats:
        if self.top is None:
            return self._variance(X, self._values(X))
        upper = self._left(self.top, X, self.embedding.kernel(X, self.embedding.dictionary[: len(self.top)]))
        beyond = np.flatnonzero(upper > most)
        if len(beyond):  # seldom: an observed point is known far better than a certificate must allow
            upper[beyond] = self._variance(X[beyond], self._values(X[beyond]))
        return upper

    def turned(self, rows: Floats) -> Floats:
        if self.factor is not None:
            return solve_transposed(self.embedding.root, solve_transposed(self.factor, rows.T)).T
        assert self.P is not None
        return product_with_lower(rows, self.P)

    def _values(self, X: Floats) -> Floats:
        return self.embedding.kernel(X, self.embedding.dictionary)

    def _variance(self, X: Floats, K: Floats) -> Floats:
        return self._left(self.F, X, K)

    def _left(self, F: Floats, X: Floats, K: Floats) -> Floats:
        """What rows of F, and the values that these multiply, leave of the prior variance."""
        f = lower_product(F, K.T).T
        return np.asarray(np.maximum(self.embedding.prior(X) / self.belief.lam - np.einsum("ij,ij->i", f, f), 0.0))


def _missing(known: Floats, *, lam: float) -> Floats:
    """C with CᵀC = I/λ − L⁻ᵀL⁻¹, of which what is on and above the diagonal is known, in its place."""
    np.negative(known, out=known)
    np.einsum("ii->i", known)[:] += 1.0 / lam
    known[:] = reversed_cholesky(known, scale=1.0 / lam)
    return known


def sight_of(belief: Belief) -> Sight:
    """How to look at many points under a belief."""
    if isinstance(belief, FiniteBelief):
        embedding = belief.embedding
        if isinstance(embedding, NystromEmbedding) and embedding.dtype == "float64":
            return Folded.of(belief, embedding)
    return Plain(belief)


class Sights:
    """The sights of beliefs that somebody has, each of them made once."""

    def __init__(self) -> None:
        # A belief is kept beside its sight: while it is, nobody else has its id.
        self._sights: dict[int, tuple[Belief, Sight]] = {}

    def of(self, belief: Belief) -> Sight:
        """The sight of a belief."""
        known = self._sights.get(id(belief))
        if known is None:
            known = self._sights[id(belief)] = belief, sight_of(belief)
        return known[1]

    def keep(self, beliefs: Iterable[Belief], *, newest: Belief | None) -> None:
        """Forget all other beliefs; of those that are kept only the newest may be sent to somebody again."""
        self._sights = {id(belief): (belief, self.of(belief)) for belief in beliefs}
        for belief, sight in self._sights.values():
            if belief is not newest:
                sight.lighten()
