"""A second opinion: what an algorithm must predict from the points that it knows, by formulas as they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from laconic.arrays import Floats
from laconic.beliefs import Belief, BlankEmbedding, ExactBelief, FiniteBelief, NystromEmbedding
from laconic.kernels import Kernel


def predicted(belief: Belief, X: Floats, y: Floats, probes: Floats) -> tuple[Floats, Floats]:
    """μ and σ² of the probes after these observations."""
    if isinstance(belief, ExactBelief):
        return _exact(belief.kernel, X, y, probes, belief.lam)
    assert isinstance(belief, FiniteBelief)
    if isinstance(belief.embedding, BlankEmbedding):
        return np.zeros(len(probes)), np.zeros(len(probes))
    if isinstance(belief.embedding, NystromEmbedding):
        return _nystrom(belief.embedding.kernel, belief.embedding.dictionary, X, y, probes, belief.lam)
    return _linear(X, y, probes, belief.lam)


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


def _nystrom(kernel: Kernel, S: Floats, X: Floats, y: Floats, probes: Floats, lam: float) -> tuple[Floats, Floats]:
    """μ̃ = zᵀ(G + λI)⁻¹b and σ̃² = [k(x,x) − zᵀG(G + λI)⁻¹z] / λ."""
    Z, z = _embedded(kernel, S, X), _embedded(kernel, S, probes)
    G, b = Z.T @ Z, Z.T @ y
    A = G + lam * np.eye(len(G))
    mean = z @ np.linalg.solve(A, b)
    return mean, (kernel.diag(probes) - np.sum(z.T * (G @ np.linalg.solve(A, z.T)), axis=0)) / lam


def _embedded(kernel: Kernel, S: Floats, X: Floats) -> Floats:
    """z(x) = Λ^(−1/2) Uᵀ k_S(x), from the eigenbasis of K_SS."""
    if not len(S) or not len(X):
        return np.zeros((len(X), len(S)))
    values, U = np.linalg.eigh(kernel(S, S))
    kept = values > len(S) * np.finfo(np.float64).eps * values.max()
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


def extremes(atoms: WeightedAtoms, X: Floats) -> tuple[float, float]:
    """The extreme eigenvalues of V^(−1/2) V̂ V^(−1/2) − I in the span of all points: V of them, V̂ of weighted atoms."""
    every = np.unique(X, axis=0)
    Z, Za = _embedded(atoms.kernel, every, X), _embedded(atoms.kernel, every, atoms.points)
    ridge = atoms.lam * np.eye(Z.shape[1])
    values = eigh((Za.T * atoms.weights) @ Za + ridge, Z.T @ Z + ridge, eigvals_only=True)
    return float(values[0]) - 1.0, float(values[-1]) - 1.0
