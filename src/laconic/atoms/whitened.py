"""The reference in coordinates in which G + λI is the identity.

With G + λI = LLᵀ a point is a = L⁻¹z, and M = L⁻¹GL⁻ᵀ = I − λL⁻¹L⁻ᵀ. Only norms, traces and extreme eigenvalues are
asked for, and these do not depend on which root is taken: the Cholesky root costs a small part of the eigenbasis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.atoms.reference import Reference
from laconic.checks import require_positive
from laconic.linalg import lower_cholesky, lower_product, ridged, solve_identity


@dataclass(frozen=True, eq=False)
class Whitened:
    """The reference seen through L⁻¹ with LLᵀ = G + λI."""

    reference: Reference
    lam: float

    def __post_init__(self) -> None:
        require_positive("lam", self.lam)

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return self.reference.rank

    @cached_property
    def root(self) -> Floats:
        """L."""
        return lower_cholesky(ridged(self.reference.gram, self.lam), ridge=self.lam)

    @cached_property
    def solved(self) -> Floats:
        """L⁻¹."""
        return solve_identity(self.root)

    @cached_property
    def ridge(self) -> Floats:
        """I − M = λL⁻¹L⁻ᵀ, the part of the identity that the ridge supplies."""
        return np.asarray(self.lam * (self.solved @ self.solved.T))

    @cached_property
    def d_eff(self) -> float:
        """tr G(G+λI)⁻¹, the effective dimension."""
        return max(self.rank - float(np.trace(self.ridge)), 0.0)

    @cached_property
    def log_det(self) -> float:
        """ln det(I + G/λ)."""
        return max(float(2.0 * np.log(np.diagonal(self.root)).sum() - self.rank * np.log(self.lam)), 0.0)

    def bare(self) -> Whitened:
        """The same without L⁻¹ and I − M, which only the choice of atoms needs."""
        bare = Whitened(reference=self.reference, lam=self.lam)
        vars(bare).update(root=self.root, d_eff=self.d_eff, log_det=self.log_det)
        return bare

    def lighten(self) -> None:
        """Let go of L, which is made again should it be asked for."""
        vars(self).pop("root", None)

    def rows(self, rows: Ints) -> Floats:
        """a of some of the reference's points, a row each."""
        return lower_product(self.solved, self.reference.coordinates.take(rows).T).T
