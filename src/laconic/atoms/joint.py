"""All points and the atoms in one set of coordinates: those of R, and after them those of what R leaves of the atoms.

Atoms need not lie in the span of R, and a certificate that left out what lies beyond would be too good. With z the
coordinates of R and K_SS − Z_S Z_Sᵀ = UUᵀ, a point has the further coordinates u(x) = L_U⁻¹(k_S(x) − Z_S z(x)), L_U the
pivots' rows of U. In these coordinates, W = R ∪ S,

| symbol | name here |
|---|---|
| G + λI = LLᵀ over all points | `Joint.root` |
| L⁻¹b | `Joint.moment` |
| BL, so that G_S + λI = (BL)(BL)ᵀ in the coordinates of S's dictionary; B has a row for each, BBᵀ = I | `Joint.seen` |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Bools, Floats, Ints
from laconic.atoms.reference import Reference
from laconic.atoms.whitened import Whitened
from laconic.linalg import lower_cholesky, lower_product, product_with_lower, ridged, solve_identity, solve_lower

#: What R leaves of an atom is kept down to this part of the largest k(x, x); less is rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Joint:
    """The statistics of all points in the coordinates of R ∪ S, and where S lies in them."""

    lam: float
    root: Floats  # (q, q)
    moment: Floats  # (q,)
    atoms: Floats  # (m, q) the coordinates of the atoms
    left: Floats  # (m,) what the coordinates leave of k(s, s)
    seen: Floats  # (p, q)
    own: Floats  # (p, m) the atoms in the coordinates of S's dictionary

    @classmethod
    def of(cls, whitened: Whitened, rows: Ints, *, K: Floats, spanning: Bools) -> Joint:
        """The joint coordinates of a reference and some of its points, of which K is the kernel matrix."""
        atoms, root, moment = _bases(whitened, rows, K=K)
        dictionary = lower_cholesky(K if spanning.all() else K[np.ix_(spanning, spanning)])
        return cls(
            lam=whitened.lam,
            root=root,
            moment=moment,
            atoms=atoms,
            left=np.maximum(np.diagonal(K) - np.einsum("ij,ij->i", atoms, atoms), 0.0),
            seen=product_with_lower(solve_lower(dictionary, atoms if spanning.all() else atoms[spanning]), root),
            own=dictionary.T if spanning.all() else solve_lower(dictionary, K[spanning]),  # L_S⁻¹K is L_Sᵀ for S itself
        )


def _bases(whitened: Whitened, rows: Ints, *, K: Floats) -> tuple[Floats, Floats, Floats]:
    """The atoms in the joint coordinates, L, and L⁻¹b; what it takes to find them is let go."""
    reference = whitened.reference
    Z = reference.coordinates.take(rows)
    U, pivots = _beyond(K, Z, tolerance=ROUNDING * float(reference.prior.max(initial=0.0)))
    cross, gram, moment = _statistics(reference, rows[pivots], Z=Z[pivots], root=U[pivots])
    root = _bordered(whitened.root, cross, ridged(gram, whitened.lam))
    return np.concatenate([Z, U], axis=1), root, solve_lower(root, np.concatenate([reference.moment, moment]))


def _beyond(K: Floats, Z: Floats, *, tolerance: float) -> tuple[Floats, Ints]:
    """U with UUᵀ = K − ZZᵀ, and the rows of U that are lower triangular, in their order."""
    left = Z @ Z.T
    np.subtract(K, left, out=left)
    factor, order, rank, _ = lapack.dpstrf(left.T, tol=tolerance, lower=1, overwrite_a=1)
    order = order.astype(np.int64) - 1
    U = np.empty((len(K), rank))
    U[order] = np.tril(factor[:, :rank])
    return U, order[:rank]


def _statistics(reference: Reference, rows: Ints, *, Z: Floats, root: Floats) -> tuple[Floats, Floats, Floats]:
    """Σ u zᵀ, Σ u uᵀ and Σ u y over all observations."""
    size = len(rows)
    cross, gram, moment = np.zeros((size, reference.rank)), np.zeros((size, size)), np.zeros(size)
    if size == 0:
        return cross, gram, moment
    points = reference.points[rows]
    solved = solve_identity(root)
    for where, block in reference.coordinates.blocks():
        u = reference.kernel(reference.points[where], points)
        u -= block @ Z.T
        u = lower_product(solved, u.T).T
        moment += reference.sums[where] @ u
        counts = reference.counts[where, None]
        once = (counts == 1).all()  # as of arms that are new in every round
        cross += (u if once else u * counts).T @ block
        u = u if once else u * np.sqrt(counts)
        gram += u.T @ u
    return cross, gram, moment


def _bordered(root: Floats, cross: Floats, corner: Floats) -> Floats:
    """The Cholesky root of [[A, Cᵀ], [C, E]] from that of A."""
    left = solve_lower(root, cross.T).T
    size = len(root)
    bordered = np.zeros((size + len(corner), size + len(corner)))
    bordered[:size, :size], bordered[size:, :size] = root, left
    bordered[size:, size:] = lower_cholesky(corner - left @ left.T, scale=np.diagonal(corner))
    return bordered
