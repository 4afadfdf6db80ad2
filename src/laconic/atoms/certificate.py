"""What is certain of a digest, computed from the weights as they travel.

V = G + λI over all points and V̂ = H + λI over the weighted atoms, both in the coordinates of Q ∪ U
(`laconic.atoms.joint`), where V = LLᵀ and B are the coordinates of U.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from laconic.arrays import Floats
from laconic.atoms.belief import weighted_gram
from laconic.atoms.joint import Joint
from laconic.atoms.whitened import Whitened
from laconic.linalg import lower_cholesky, lower_gram, lower_product, ridged, solve_identity, solve_lower


@dataclass(frozen=True)
class Certificate:
    """How far the weighted atoms are from all points."""

    e_lo: float  # (1 + e_lo)V ≼ V̂
    e_hi: float  # V̂ ≼ (1 + e_hi)V
    kappa: float  # tr V̂⁻¹G / tr V⁻¹G, the mean inflation of the variance
    beta: float  # the distance of the exact mean from the span of U, in the norm of V
    d_eff: float  # tr G(G+λI)⁻¹, in the coordinates of Q
    log_det: float  # ln det(I + G/λ), in the coordinates of Q
    missed: float  # ρ, the sum of what Q leaves of the observations


def exact_mean(joint: Joint) -> Floats:
    """θ with (G_U + λI)θ = b_U, the mean of all points among the functions in the span of U."""
    factor = lower_cholesky(joint.within)
    half = solve_lower(factor, joint.seen @ joint.moment)
    return np.asarray(solve_triangular(factor, half, lower=True, trans="T", check_finite=False))


def certified(joint: Joint, weights: Floats, *, theta: Floats, whitened: Whitened) -> tuple[Certificate, Floats]:
    """The certificate of these weights, with θ the exact mean, and c = L_Hᵀθ, L_H the root of H + λI."""
    factor = lower_cholesky(ridged(weighted_gram(joint.own, weights), joint.lam), ridge=joint.lam)
    c, inflated = factor.T @ theta, _inflated(joint, factor)
    beta = float(np.linalg.norm(joint.moment - theta @ joint.seen))
    del factor
    joint.lighten()  # what follows takes the most memory of a build, and needs neither of these matrices
    e_lo, e_hi, d_eff = _extremes(joint, weights)
    certificate = Certificate(
        e_lo=e_lo,
        e_hi=e_hi,
        kappa=inflated / d_eff if d_eff > 0 else 1.0,
        beta=beta,
        d_eff=whitened.d_eff,
        log_det=whitened.log_det,
        missed=whitened.reference.missed,
    )
    return certificate, c


def _relative(joint: Joint, weights: Floats) -> tuple[Floats, float]:
    """L⁻¹V̂L⁻ᵀ = λL⁻¹L⁻ᵀ + Σ w (L⁻¹φ)(L⁻¹φ)ᵀ over the atoms, and tr L⁻¹GL⁻ᵀ.

    Matrices of this size are the largest that the server ever has, so that sums are taken where they lie.
    """
    solved = solve_identity(joint.root)
    atoms = lower_product(solved, (joint.atoms * np.sqrt(weights)[:, None]).T)
    d_eff = len(solved) - joint.lam * float(np.vdot(solved, solved))
    relative = np.asarray(solved @ solved.T)
    del solved
    relative *= joint.lam
    relative += atoms @ atoms.T
    return relative, d_eff


def _extremes(joint: Joint, weights: Floats) -> tuple[float, float, float]:
    """The extreme eigenvalues of L⁻¹V̂L⁻ᵀ − I, moved apart by what the coordinates leave of the atoms; and tr L⁻¹GL⁻ᵀ.

    V̂ is the square of (√λ I, (Φ + O)W^(1/2)), with Φ the atoms in these coordinates and O what is left of them, so that
    no singular value of L⁻¹ times it moves by more than ‖OW^(1/2)‖/√λ when O is left out.
    """
    relative, d_eff = _relative(joint, weights)
    if len(relative) == 0:
        return 0.0, 0.0, d_eff
    values = np.linalg.eigvalsh(relative)
    allowance = float(np.sqrt(weights @ joint.left / joint.lam))
    least, largest = np.sqrt(np.maximum(values[[0, -1]], 0.0))
    return float(max(least - allowance, 0.0) ** 2) - 1.0, float((largest + allowance) ** 2) - 1.0, d_eff


def _inflated(joint: Joint, factor: Floats) -> float:
    """tr V̂⁻¹G = tr V̂⁻¹V − λ tr V̂⁻¹, with V̂⁻¹ = (I − BᵀB)/λ + Bᵀ(H + λI)⁻¹B."""
    lam, (p, q) = joint.lam, joint.seen.shape
    missing = (np.vdot(joint.root, joint.root) - np.vdot(joint.seen, joint.seen)) / lam
    known = lower_gram(solve_identity(factor))  # (H + λI)⁻¹, on and above the diagonal
    diagonal = np.diagonal(known)
    # tr B(H + λI)⁻¹Bᵀ with BBᵀ = G_U + λI; both are symmetric, so that one half counts twice.
    product = 2.0 * np.vdot(np.triu(known, 1), joint.within) + diagonal @ np.diagonal(joint.within)
    return float(missing + product - (q - p) - lam * diagonal.sum())
