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
from laconic.atoms.joint import EPS, Joint
from laconic.atoms.whitened import Whitened
from laconic.linalg import (
    add_gram,
    lower_cholesky,
    lower_product,
    reversed_outer,
    ridged,
    solve_identity,
    solve_lower,
)


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
    factor = lower_cholesky(joint.seen @ joint.seen.T)  # G_U + λI = (BL)(BL)ᵀ
    half = solve_lower(factor, joint.seen @ joint.moment)
    return np.asarray(solve_triangular(factor, half, lower=True, trans="T", check_finite=False))


def certified(joint: Joint, weights: Floats, *, theta: Floats, whitened: Whitened) -> tuple[Certificate, Floats]:
    """The certificate of these weights, with θ the exact mean, and c = L_Hᵀθ, L_H the root of H + λI."""
    gram = weighted_gram(joint.own, weights, triangular=bool(joint.spanning.all()))
    factor = lower_cholesky(ridged(gram, joint.lam), ridge=joint.lam)
    del gram
    c, solved = factor.T @ theta, solve_identity(factor)
    inverse = float(np.vdot(solved, solved))  # tr (H + λI)⁻¹
    beta = float(np.linalg.norm(joint.moment - theta @ joint.seen))
    del factor, solved
    joint.lighten()  # what follows takes the most memory of a build, and does not need this matrix
    values, d_eff = _spectrum(joint, weights)
    e_lo, e_hi = _extremes(joint, weights, values=values)
    certificate = Certificate(
        e_lo=e_lo,
        e_hi=e_hi,
        kappa=_inflated(joint, values=values, inverse=inverse) / d_eff if d_eff > 0 else 1.0,
        beta=beta,
        d_eff=whitened.d_eff,
        log_det=whitened.log_det,
        missed=whitened.reference.missed,
    )
    return certificate, c


def _spectrum(joint: Joint, weights: Floats) -> tuple[Floats, float]:
    """The eigenvalues of L⁻¹V̂L⁻ᵀ = λL⁻¹L⁻ᵀ + Σ w (L⁻¹φ)(L⁻¹φ)ᵀ over the atoms, rising, and tr L⁻¹GL⁻ᵀ.

    Matrices of this size are the largest that the server ever has, so that sums are taken where they lie. Backwards,
    as they are here, they have the same eigenvalues.
    """
    solved = solve_identity(joint.root)
    d_eff = len(solved) - joint.lam * float(np.vdot(solved, solved))
    atoms = lower_product(solved, (joint.atoms * np.sqrt(weights)[:, None]).T)
    relative = reversed_outer(solved)
    del solved
    relative *= joint.lam
    relative = add_gram(relative, atoms[::-1])
    return np.asarray(np.linalg.eigvalsh(relative, UPLO="U"), dtype=np.float64), d_eff


def _extremes(joint: Joint, weights: Floats, *, values: Floats) -> tuple[float, float]:
    """The extreme eigenvalues of L⁻¹V̂L⁻ᵀ, less 1, moved apart by what the coordinates leave of the atoms.

    V̂ is the square of (√λ I, (Φ + O)W^(1/2)), with Φ the atoms in these coordinates and O what is left of them, so that
    no singular value of L⁻¹ times it moves by more than ‖OW^(1/2)‖/√λ when O is left out.
    """
    if len(values) == 0:
        return 0.0, 0.0
    allowance = float(np.sqrt(weights @ joint.left / joint.lam))
    least, largest = np.sqrt(np.maximum(values[[0, -1]], 0.0))
    return float(max(least - allowance, 0.0) ** 2) - 1.0, float((largest + allowance) ** 2) - 1.0


def _inflated(joint: Joint, *, values: Floats, inverse: float) -> float:
    """tr V̂⁻¹G = tr V̂⁻¹V − λ tr V̂⁻¹: the inverse eigenvalues of L⁻¹V̂L⁻ᵀ, less those of (H + λI)/λ and 1 beyond U."""
    beyond = len(joint.root) - len(joint.dictionary)
    least = EPS * values.max(initial=0.0)  # below this an eigenvalue is rounding
    return float((1.0 / np.maximum(values, least)).sum()) - beyond - joint.lam * inverse
