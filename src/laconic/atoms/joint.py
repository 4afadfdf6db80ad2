"""All points and the atoms in one set of coordinates: those of Q, and after them those of what Q leaves of the atoms.

Atoms need not lie in the span of Q, and a certificate that left out what lies beyond would be too good. With z the
coordinates of Q and K_UU − Z_U Z_Uᵀ = EEᵀ, a point has the further coordinates e(x) = L_E⁻¹(k_U(x) − Z_U z(x)), L_E the
pivots' rows of E. In these coordinates, W = Q ∪ U,

| symbol | name here |
|---|---|
| G + λI = LLᵀ over all points | `Joint.root` |
| L⁻¹b | `Joint.moment` |
| BL, so that G_U + λI = (BL)(BL)ᵀ in the coordinates of U's dictionary; B has a row for each, BBᵀ = I | `Joint.seen` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from laconic.arrays import Bools, Floats, Ints, apart, set_apart
from laconic.atoms.reference import Reference
from laconic.atoms.spanning import Spanning
from laconic.atoms.whitened import Whitened
from laconic.linalg import lower_cholesky, lower_product, product_with_lower, ridged, solve_identity, solve_lower

#: What Q leaves of an atom is kept down to this part of the largest k(x, x); less is rounding.
ATOM_ROUNDING = 1e-13
#: Sums over all points may be wrong by this part of λ; a certificate travels with eleven bits.
NEGLIGIBLE = 1e-7
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Joint:
    """The statistics of all points in the coordinates of Q ∪ U, and where U lies in them."""

    lam: float
    root: Floats  # (q, q)
    moment: Floats  # (q,)
    atoms: Floats  # (m, q) the coordinates of the atoms
    left: Floats  # (m,) what the coordinates leave of k(s, s)
    spanning: Bools  # (m,) which atoms are U's dictionary
    dictionary: Floats  # (p, p) the Cholesky root of its kernel matrix
    own: Floats  # (p, m) the atoms in the coordinates of U's dictionary

    @classmethod
    def of(cls, whitened: Whitened, rows: Ints, *, K: Floats, spanning: Spanning) -> Joint:
        """The joint coordinates of a reference and some of its points, of which K is the kernel matrix."""
        atoms, root, moment = _bases(whitened, rows, K=K)
        every, which, dictionary = spanning.every, spanning.which, set_apart(spanning.root)
        return cls(
            lam=whitened.lam,
            root=root,
            moment=moment,
            atoms=atoms,
            left=np.maximum(np.diagonal(K) - np.einsum("ij,ij->i", atoms, atoms), 0.0),
            spanning=which,
            dictionary=dictionary,
            own=dictionary.T if every else solve_lower(dictionary, K[which]),  # L_U⁻¹K is L_Uᵀ for U itself
        )

    @cached_property
    def seen(self) -> Floats:
        """BL, (p, q)."""
        atoms = self.atoms if self.spanning.all() else self.atoms[self.spanning]
        return product_with_lower(solve_lower(self.dictionary, atoms), self.root)

    def lighten(self) -> None:
        """Let go of BL, which is made again should it be asked for."""
        vars(self).pop("seen", None)


def _bases(whitened: Whitened, rows: Ints, *, K: Floats) -> tuple[Floats, Floats, Floats]:
    """The atoms in the joint coordinates, L, and L⁻¹b; what it takes to find them is let go."""
    reference = whitened.reference
    Z = reference.coordinates.take(rows)
    E, pivots = _beyond(K, Z, tolerance=ATOM_ROUNDING * float(reference.prior.max(initial=0.0)))
    cross, gram, moment = _statistics(reference, rows[pivots], Z=Z[pivots], root=E[pivots], lam=whitened.lam)
    root = _bordered(whitened.root, cross, ridged(gram, whitened.lam))
    atoms = np.concatenate([Z, E], axis=1, out=apart(len(Z), Z.shape[1] + E.shape[1]))
    return atoms, root, solve_lower(root, np.concatenate([reference.moment, moment]))


def _beyond(K: Floats, Z: Floats, *, tolerance: float) -> tuple[Floats, Ints]:
    """E with EEᵀ = K − ZZᵀ, and the rows of E that are lower triangular, in their order."""
    left = Z @ Z.T
    np.subtract(K, left, out=left)
    factor, order, rank, _ = lapack.dpstrf(left.T, tol=tolerance, lower=1, overwrite_a=1)
    order = order.astype(np.int64) - 1
    E = np.empty((len(K), rank))
    E[order] = np.tril(factor[:, :rank])
    return E, order[:rank]


def _statistics(
    reference: Reference, rows: Ints, *, Z: Floats, root: Floats, lam: float
) -> tuple[Floats, Floats, Floats]:
    """Σ e zᵀ, Σ e eᵀ and Σ e y over all observations.

    With C = Σ k_U zᵀ, the first is L_E⁻¹(C − Z_U G), and the second L_E⁻¹(Σ k_U k_Uᵀ − CZ_Uᵀ − Z_U(C − Z_U G)ᵀ)L_E⁻ᵀ,
    in half the operations that it takes to have e of every point. Where L_E⁻¹ would make too much of what rounding
    leaves of such differences, e is computed after all.
    """
    size = len(rows)
    if size == 0:
        return np.zeros((0, reference.rank)), np.zeros((0, 0)), np.zeros(0)
    solved, points = solve_identity(root), reference.points[rows]
    largest = float(np.einsum("ij,ij->i", solved, solved).max() * reference.prior.max())
    if EPS * float(reference.counts @ reference.prior) * largest > NEGLIGIBLE * lam:
        return _sums(reference, points, lambda k, z: lower_product(solved, (k - z @ Z.T).T).T)
    seen, gram, moment = _sums(reference, points, lambda k, _: k)
    cross = seen - Z @ reference.gram
    gram -= seen @ Z.T
    gram -= Z @ cross.T
    gram = lower_product(solved, lower_product(solved, gram).T)
    return lower_product(solved, cross), gram, solved @ (moment - Z @ reference.moment)


def _sums(
    reference: Reference, points: Floats, numbers: Callable[[Floats, Floats], Floats]
) -> tuple[Floats, Floats, Floats]:
    """Σ v zᵀ, Σ v vᵀ and Σ v y over all observations, with v = ``numbers(k, z)`` for k the values at some points."""
    size = len(points)
    cross, gram, moment = np.zeros((size, reference.rank)), np.zeros((size, size)), np.zeros(size)
    for where, block in reference.coordinates.blocks():
        v = numbers(reference.kernel(reference.points[where], points), block)
        moment += reference.sums[where] @ v
        counts = reference.counts[where, None]
        once = (counts == 1).all()  # as of arms that are new in every round
        cross += (v if once else v * counts).T @ block
        v = v if once else v * np.sqrt(counts)
        gram += v.T @ v
    return cross, gram, moment


def _bordered(root: Floats, cross: Floats, corner: Floats) -> Floats:
    """The Cholesky root of [[A, Cᵀ], [C, corner]], with C for ``cross``, from that of A."""
    left = solve_lower(root, cross.T).T
    size = len(root)
    bordered = apart(size + len(corner), size + len(corner))
    bordered[:size, :size], bordered[:size, size:], bordered[size:, :size] = root, 0.0, left
    bordered[size:, size:] = lower_cholesky(corner - left @ left.T, scale=np.diagonal(corner))
    return bordered
