"""A second opinion: what an algorithm must predict from the points that it knows, by formulas as they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from laconic.arrays import Floats
from laconic.beliefs import (
    Belief,
    BlankEmbedding,
    Embedding,
    ExactBelief,
    FiniteBelief,
    LinearEmbedding,
    NystromEmbedding,
    Statistics,
)
from laconic.errors import InputError
from laconic.kernels import Kernel


def predicted(belief: Belief, X: Floats, y: Floats, probes: Floats, *, blank: Belief) -> tuple[Floats, Floats] | None:
    """μ and σ² of the probes after these observations; None where nobody but the belief itself can say.

    ``blank`` is the belief of the same plan before any data, from which a belief of another package learns anew.
    """
    if isinstance(belief, ExactBelief):
        return _exact(belief.kernel, X, y, probes, belief.lam)
    if isinstance(belief, FiniteBelief):
        return _finite(belief.embedding, X, y, probes, belief.lam)
    anew = _learnt_anew(belief, X, y, blank=blank)
    if anew is None:
        return None
    view = anew.view(probes)
    return view.mean, view.variance


def _learnt_anew(belief: Belief, X: Floats, y: Floats, *, blank: Belief) -> Belief | None:
    """A belief of an unknown kind that has learnt these observations at once, by whichever way its kind has."""
    try:
        return blank.extended(X, y) if len(X) else blank
    except InputError:
        pass  # it learns no raw points
    try:  # in the belief's own coordinates, which may be of a dictionary that was agreed on
        return belief.with_statistics(Statistics.of(belief.coordinates, X, y))
    except InputError:
        return None


def _finite(embedding: Embedding, X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """By the formulas of our own embeddings, as far as we have any; by its coordinates for any other."""
    if isinstance(embedding, BlankEmbedding):
        return np.zeros(len(probes)), np.zeros(len(probes))
    if isinstance(embedding, NystromEmbedding):
        return _nystrom(embedding.kernel, embedding.dictionary, X, y, probes, lam)
    if isinstance(embedding, LinearEmbedding):
        return _linear(X, y, probes, lam)
    return _embedding(embedding, X, y, probes, lam)


def _exact(kernel: Kernel, X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """μ = kᵀ(K + λI)⁻¹y and σ² = [k(x,x) − kᵀ(K + λI)⁻¹k] / λ."""
    if not len(X):
        return np.zeros(len(probes)), kernel.diag(probes) / lam
    K, k = kernel(X, X) + lam * np.eye(len(X)), kernel(X, probes)
    mean = k.T @ np.linalg.solve(K, y)
    return mean, (kernel.diag(probes) - np.sum(k * np.linalg.solve(K, k), axis=0)) / lam


def _linear(X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """μ = xᵀA⁻¹b and σ² = xᵀA⁻¹x with A = XᵀX + λI."""
    A = X.T @ X + lam * np.eye(probes.shape[1])
    return probes @ np.linalg.solve(A, X.T @ y), np.sum(probes.T * np.linalg.solve(A, probes.T), axis=0)


def _embedding(embedding: Embedding, X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """μ = zᵀA⁻¹b and σ² = r/λ + zᵀA⁻¹z, with A = Σzzᵀ + λI and r the part of k(x,x) that z does not express."""
    Z, z = (np.asarray(embedding.embed(each), dtype=np.float64) for each in (X, probes))
    A = Z @ Z.T + lam * np.eye(len(z))
    left = embedding.residual(embedding.prior(probes), z)
    return z.T @ np.linalg.solve(A, Z @ y), left / lam + np.sum(z * np.linalg.solve(A, z), axis=0)


def _nystrom(kernel: Kernel, S: Floats, X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """μ̃ = zᵀ(G + λI)⁻¹b and σ̃² = [k(x,x) − zᵀG(G + λI)⁻¹z] / λ."""
    Z, z = _embedded(kernel, S, X), _embedded(kernel, S, probes)
    G, b = Z.T @ Z, Z.T @ y
    A = G + lam * np.eye(len(G))
    mean = z @ np.linalg.solve(A, b)
    return mean, (kernel.diag(probes) - np.sum(z.T * (G @ np.linalg.solve(A, z.T)), axis=0)) / lam


def _embedded(kernel: Kernel, S: Floats, X: Floats) -> Floats:
    """z(x) = Λ^(−1/2) Uᵀ k_S(x), from the eigenbasis of K_SS."""
    if not len(S):
        return np.zeros((len(X), 0))
    values, U = np.linalg.eigh(kernel(S, S))
    kept = values > len(S) * np.finfo(np.float64).eps * values.max()
    if not len(X):
        return np.zeros((0, np.count_nonzero(kept)))
    return np.asarray(kernel(X, S) @ U[:, kept] / np.sqrt(values[kept]))


# -- weighted atoms ----------------------------------------------------------------------------------------------------


class Points(NamedTuple):
    """Observations."""

    X: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class WeightedAtoms:
    """A version of a digest as it was built: atoms, those of them that span, and a weight each."""

    kernel: Kernel
    lam: float
    points: Floats
    spanning: Floats
    weights: Floats
    quantum: float

    @property
    def mean_step(self) -> float:
        """How far rounding takes the mean from the exact one, in units of σ̂: Δ√p/2."""
        return self.quantum * math.sqrt(len(self.spanning)) / 2


def weighted(atoms: WeightedAtoms, log: Points, tail: Points, probes: Floats) -> tuple[Floats, Floats]:
    """μ and σ̂² of the probes: the mean of the whole log in the span of the atoms, their variance, and then a tail."""
    kernel, S, lam = atoms.kernel, atoms.spanning, atoms.lam
    Za, Zl, Zt, z = (_embedded(kernel, S, X) for X in (atoms.points, log.X, tail.X, probes))
    ridge = lam * np.eye(Za.shape[1])
    theta = np.linalg.solve(Zl.T @ Zl + ridge, Zl.T @ log.y)
    H = (Za.T * atoms.weights) @ Za
    G, b = H + Zt.T @ Zt, (H + ridge) @ theta + Zt.T @ tail.y
    mean = z @ np.linalg.solve(G + ridge, b)
    return mean, (kernel.diag(probes) - np.sum(z.T * (G @ np.linalg.solve(G + ridge, z.T)), axis=0)) / lam


def extremes(atoms: WeightedAtoms, X: Floats, *, reference: Floats) -> tuple[float, float]:
    """The extreme eigenvalues of V^(−1/2) V̂ V^(−1/2) − I: V of all points X, V̂ of the weighted atoms.

    Points count as far as the span of the reference's points and the atoms expresses them, as a certificate has it.
    """
    span = np.unique(np.concatenate([reference, atoms.points]), axis=0)
    Z, Za = _embedded(atoms.kernel, span, X), _embedded(atoms.kernel, span, atoms.points)
    ridge = atoms.lam * np.eye(Z.shape[1])
    values = eigh((Za.T * atoms.weights) @ Za + ridge, Z.T @ Z + ridge, eigvals_only=True)
    return float(values[0]) - 1.0, float(values[-1]) - 1.0


def left_over(kernel: Kernel, reference: Floats, X: Floats) -> Floats:
    """The part of k(x, x) of each point that the span of the reference's points does not express."""
    Z = _embedded(kernel, reference, X)
    return np.asarray(np.maximum(kernel.diag(X) - np.sum(Z * Z, axis=1), 0.0))
