"""What a client makes of a version: an ordinary finite belief on the atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.arrays import Bools, Floats, set_apart
from laconic.beliefs import FiniteBelief, NystromEmbedding, Statistics
from laconic.checks import finite_array, require_positive
from laconic.errors import InputError
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky, lower_gram, ridged


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Statistics of weighted atoms, with H in place of G; see `belief_of`.

    H is made whenever it is asked for, and not kept: many versions are alive, and few are ever asked.
    """

    embedding: NystromEmbedding
    atoms: Floats  # (m, d)
    weights: Floats  # (m,)
    spanning: Bools  # (m,) those that are the dictionary
    moment: Floats
    prior: float
    count: int
    squares: float

    @property
    def gram(self) -> Floats:
        """H."""
        return _gram(self.embedding, self.atoms, self.weights, self.spanning)


def weighted_gram(Z: Floats, weights: Floats, *, triangular: bool) -> Floats:
    """H = Σ w z zᵀ over atoms, whose coordinates are the columns of Z, in fewer operations where that is triangular."""
    scaled = Z * np.sqrt(weights)
    if not triangular:
        return np.asarray(scaled @ scaled.T)
    upper = lower_gram(scaled.T)  # and zeros below the diagonal, as Z has them there
    del scaled  # matrices of this size are what a build takes in memory
    whole = upper + upper.T
    np.einsum("ii->i", whole)[:] *= 0.5
    return whole


def belief_of(
    atoms: Floats, weights: Floats, c: Floats, *, spanning: Bools, kernel: Kernel, lam: float, count: int
) -> FiniteBelief:
    """The belief with statistics G := H and b := L_H c, in which μ(x) = v(x)·c and σ̂² is that of weighted atoms.

    The ``spanning`` atoms are its dictionary; ``count`` says how many observations it covers.
    """
    atoms, weights, c = _checked(atoms, weights, c, spanning)
    require_positive("lam", lam)
    embedding = NystromEmbedding(kernel=kernel, dictionary=atoms[spanning])
    gram = _gram(embedding, atoms, weights, spanning)
    factor = set_apart(lower_cholesky(ridged(gram, lam), ridge=lam))
    prior = float(weights @ embedding.prior(atoms))
    moment = factor @ c
    # No rewards stand behind these sums; this is the least Σy² with which they could.
    squares = float(np.max(moment**2 / np.maximum(np.diagonal(gram), 1e-300), initial=0.0))
    totals: dict[str, Any] = {"moment": moment, "prior": prior, "count": count, "squares": squares}
    whole = FiniteBelief(embedding=embedding, lam=lam, statistics=Statistics(gram=gram, **totals))
    information = whole.knowing(factor=factor).information
    sums = WeightedSums(embedding, atoms, weights, spanning, **totals)
    return FiniteBelief(embedding=embedding, lam=lam, statistics=sums).knowing(factor=factor, information=information)


def _gram(embedding: NystromEmbedding, atoms: Floats, weights: Floats, spanning: Bools) -> Floats:
    """H in the coordinates of the atoms' dictionary."""
    every = bool(spanning.all())
    own = embedding.root.T if every else embedding.embed(atoms)  # L⁻¹K is Lᵀ where all are in it
    return weighted_gram(own, weights, triangular=every)


def _checked(atoms: Floats, weights: Floats, c: Floats, spanning: Bools) -> tuple[Floats, Floats, Floats]:
    atoms = finite_array("atoms", atoms, ndim=2)
    weights, c = finite_array("weights", weights, ndim=1), finite_array("c", c, ndim=1)
    if not len(atoms) == len(weights) == len(spanning):
        raise InputError(
            f"{len(atoms)} atoms came with {len(weights)} weights and {len(spanning)} marks of the dictionary; "
            "one of each for every atom is due"
        )
    if len(c) != int(np.sum(spanning)):
        raise InputError(f"{int(np.sum(spanning))} atoms span the belief, but {len(c)} coefficients came")
    if (weights < 0).any():
        raise InputError(f"weights must not be negative, got {weights.min():.6g}")
    return atoms, weights, c
