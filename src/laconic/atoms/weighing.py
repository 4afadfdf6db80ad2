"""Weights for given atoms: the weighted atoms should look like all points.

In whitened coordinates (`laconic.atoms.whitened`) all points are M = I − B with B the ridge's part, and the atoms are
Ĥ = B + Σ w a aᵀ, which should be near I from both sides. The weights minimise tr Ĥ⁻¹ + tr Ĥ³/3: the first part is the
inflated variance, the second, which has its least slope where the first has its steepest, holds large eigenvalues down.
Where its gradient vanishes aᵀĤ⁻²a = aᵀĤ²a for every atom with w > 0, hence the multiplicative step

    w ← w · (‖Ĥ⁻¹a‖² / ‖Ĥa‖²)^η.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse.linalg import eigsh

from laconic.arrays import Floats

Singles = NDArray[np.float32]

#: η: near Ĥ = I the logarithm of the ratio has slope −4, so that a step of 1/4 is Newton's and one below 1/2 converges.
DAMPING = 0.4
#: Up to this size all eigenvalues are computed rather than the largest alone.
DENSE_UP_TO = 128
#: Ĥ is near the identity, so that single precision leaves six digits of weights that are rounded to one.
SINGLE = np.float32


@dataclass(frozen=True, eq=False)
class Weighing:
    """The ridge's part B, in single precision, and d_eff = tr(I − B)."""

    ridge: Singles
    d_eff: float

    def matrix(self, A: Singles, weights: Floats) -> Singles:
        """Ĥ = B + Σ w a aᵀ."""
        scaled = A * np.sqrt(weights, dtype=SINGLE)[:, None]
        return self.ridge + scaled.T @ scaled

    def stepped(self, A: Singles, weights: Floats, *, steps: int) -> Floats:
        """The weights after some multiplicative steps."""
        for _ in range(steps):
            H = self.matrix(A, weights)
            solved = _solved(H, A)
            ratio = row_squares(solved) / np.maximum(row_squares(A @ H), 1e-30)
            weights = weights * ratio.astype(np.float64) ** DAMPING
        return weights

    def kappa(self, H: Singles) -> float:
        """κ = tr Ĥ⁻¹M / d_eff, with Ĥ⁻¹M = Ĥ⁻¹ − Ĥ⁻¹B."""
        inverse = _upper_inverse(H)
        diagonal = np.diagonal(inverse)
        with_ridge = 2.0 * np.vdot(inverse, self.ridge) - diagonal @ np.diagonal(self.ridge)  # one half counts twice
        return float(diagonal.sum(dtype=np.float64) - with_ridge) / self.d_eff

    def scaled(self, H: Singles, *, largest: float) -> tuple[float, float]:
        """A common factor of the weights of Ĥ, and κ there: its largest eigenvalue is then as given, or κ is 1.

        It raises `ArithmeticError` where points say so little beside λ that rounding leaves nothing of it.
        """
        total = H - self.ridge
        scale = 1.0
        for _ in range(3):  # the largest eigenvalue is convex in the scale and nearly proportional to it
            scale *= largest / max(largest_eigenvalue(self.ridge + SINGLE(scale) * total), 1e-30)
        kappa = self._certain(scale, total)
        if kappa < 1.0:
            scale *= kappa
            kappa = self._certain(scale, total)
        return scale, kappa

    def _certain(self, scale: float, total: Singles) -> float:
        """κ with a common factor of the weights, where rounding leaves anything of it."""
        kappa = self.kappa(self.ridge + SINGLE(scale) * total)
        if not kappa > 0.0:
            raise ArithmeticError("the inflation of the variance is lost in rounding")
        return kappa


def largest_eigenvalue(H: Singles) -> float:
    """The largest eigenvalue of a symmetric matrix, to about three digits."""
    if len(H) <= DENSE_UP_TO:
        return float(np.linalg.eigvalsh(H)[-1])
    start = np.cos(np.arange(len(H), dtype=SINGLE))  # any fixed vector without structure
    return float(eigsh(H, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)[0])


def _root(H: Singles) -> Singles:
    """U, upper triangular with H = UᵀU."""
    upper, failed = lapack.spotrf(H.T, lower=0, clean=1)
    if failed:
        raise ArithmeticError("the weighted atoms are not positive definite")
    return np.asarray(upper)


def _upper_inverse(H: Singles) -> Singles:
    """H⁻¹ on and above the diagonal, and zeros below it."""
    return np.asarray(lapack.spotri(_root(H), lower=0)[0]) if len(H) else H


def _solved(H: Singles, A: Singles) -> Singles:
    """H⁻¹a for each row a of A."""
    upper = _root(H)
    # Rows of a C-ordered A are columns to BLAS, and H = UᵀU.
    half = blas.strsm(1.0, upper, A.T, side=0, lower=0, trans_a=1)
    return np.asarray(blas.strsm(1.0, upper, half, side=0, lower=0, overwrite_b=1).T)


def row_squares(A: Singles) -> Singles:
    """‖a‖² of each row."""
    return np.asarray(np.einsum("ij,ij->i", A, A))
