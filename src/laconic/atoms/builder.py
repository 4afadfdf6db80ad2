"""Which points become atoms: the previous ones as far as they serve, and new ones where they do not suffice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from laconic.arrays import Bools, Floats, Ints
from laconic.atoms.settings import Recipe
from laconic.atoms.weighing import SINGLE, Singles, Weighing, row_squares
from laconic.atoms.whitened import Whitened
from laconic.linalg import lower_cholesky, product_with_lower, ridged, solve_lower


@dataclass(frozen=True, eq=False)
class Selection:
    """Some of the reference's points with weights, and their rows in whitened coordinates."""

    rows: Ints  # (m,) of the reference's distinct points
    weights: Floats  # (m,)
    A: Singles  # (m, r)

    def where(self, keep: Bools) -> Selection:
        """Only some of them."""
        return self if keep.all() else Selection(self.rows[keep], self.weights[keep], self.A[keep])

    def joined(self, other: Selection) -> Selection:
        """These, then the others."""
        return Selection(
            rows=np.concatenate([self.rows, other.rows]),
            weights=np.concatenate([self.weights, other.weights]),
            A=np.concatenate([self.A, other.A]),
        )

    @property
    def importance(self) -> Floats:
        """w‖a‖², what each atom adds to the trace of Σ w a aᵀ."""
        return np.asarray(self.weights * row_squares(self.A))


def select(
    whitened: Whitened, *, previous: Ints, weights: Floats, settings: Recipe, random: np.random.Generator
) -> tuple[Ints, Floats]:
    """Rows and weights of atoms with κ and e_hi as wanted, as far as the largest number of atoms allows.

    ``previous`` are the rows of the atoms before, ``weights`` what to begin with for them.
    """
    weighing = Weighing(ridge=whitened.ridge.astype(SINGLE), d_eff=whitened.d_eff)
    most = most_atoms(whitened, settings=settings)
    atoms = _largest(_selection(whitened, previous, weights), most)
    if len(previous) == 0:
        atoms = _beginning(whitened, most=most)
    steps, tried, pool = settings.first, 0, None
    while True:
        weighed = _weighed(atoms, weighing, steps=steps, settings=settings)
        atoms = weighed.atoms
        enough = weighed.kappa <= settings.kappa
        if enough and mean_missed(whitened, atoms.rows) <= settings.beta * settings.range:
            return weighed.scaled
        if pool is None:  # often the atoms before suffice
            pool = _pool(whitened, size=settings.pool, random=random)
        new = _additions(weighed, pool, settings=settings, most=most)
        tried += len(new.rows)
        # What is added may be dropped again, so that without an end to trying an aim out of reach has none.
        if len(new.rows) == 0 or tried > most:
            return weighed.scaled
        atoms, steps = atoms.joined(new), settings.more


def most_atoms(whitened: Whitened, *, settings: Recipe) -> int:
    """The largest number of atoms: some times d_eff, and no more than there are points."""
    return min(whitened.reference.distinct, int(settings.most * whitened.d_eff) + 4)


def mean_missed(whitened: Whitened, rows: Ints) -> float:
    """β in the coordinates of Q: the least ‖L⁻¹b − Lᵀθ‖ over θ in the span of some points, or a little more."""
    seen = product_with_lower(whitened.reference.coordinates.take(rows), whitened.root)
    gram = seen.T @ seen
    del seen  # matrices of this size are what a build takes in memory
    # A ridge that is all but nothing stands in for the rank: h − YᵀY(YᵀY + εI)⁻¹h = ε(YᵀY + εI)⁻¹h.
    epsilon = 1e-13 * float(np.trace(gram)) / max(len(gram), 1)
    factor = lower_cholesky(ridged(gram, max(epsilon, 1e-300)))
    half = solve_lower(factor, solve_lower(whitened.root, whitened.reference.moment))
    return float(epsilon * np.linalg.norm(solve_triangular(factor, half, lower=True, trans="T")))


def _largest_allowed(settings: Recipe) -> float:
    return 1.0 + settings.e_hi - settings.headroom


def _selection(whitened: Whitened, rows: Ints, weights: Floats) -> Selection:
    return Selection(rows=rows, weights=weights, A=np.ascontiguousarray(whitened.rows(rows), dtype=SINGLE))


def _pool(whitened: Whitened, *, size: int, random: np.random.Generator) -> Selection:
    """Random points that may become atoms; those that the reference does not see are none."""
    distinct = whitened.reference.distinct
    rows = random.choice(distinct, size=min(size, distinct), replace=False)
    pool = _selection(whitened, rows, np.ones(len(rows)))
    return pool.where(pool.importance > 0)


def _largest(atoms: Selection, most: int) -> Selection:
    """The most important ones, in the order in which they are."""
    keep = np.zeros(len(atoms.rows), dtype=np.bool_)
    keep[np.argsort(-atoms.importance, kind="stable")[:most]] = True
    return atoms.where(keep)


def _beginning(whitened: Whitened, *, most: int) -> Selection:
    """The points of Q, unlike each other and with the mean in their span, with equal weights of the right trace."""
    rows = whitened.reference.pivots[:most]
    start = _selection(whitened, rows, np.ones(len(rows)))
    return Selection(rows, np.full(len(rows), whitened.d_eff / start.importance.sum()), start.A)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Atoms with weights, Ĥ of these, and the common factor of the weights that is best, with κ there."""

    atoms: Selection
    H: Singles  # (r, r)
    scale: float
    kappa: float

    @property
    def scaled(self) -> tuple[Ints, Floats]:
        """Rows and weights."""
        return self.atoms.rows, self.atoms.weights * self.scale


def _weighed(atoms: Selection, weighing: Weighing, *, steps: int, settings: Recipe) -> Weighed:
    """The atoms with better weights and without those that hardly matter."""
    weights = weighing.stepped(atoms.A, atoms.weights, steps=steps)
    atoms = Selection(atoms.rows, weights, atoms.A)
    atoms = atoms.where(atoms.importance > settings.drop * atoms.importance.mean())
    H = weighing.matrix(atoms.A, atoms.weights)
    scale, kappa = weighing.scaled(H, largest=_largest_allowed(settings))
    return Weighed(atoms, H, scale, kappa)


def _additions(weighed: Weighed, pool: Selection, *, settings: Recipe, most: int) -> Selection:
    """Points of the pool in whose direction most is missing, unlike each other: 1 − aᵀĤa/‖a‖² is large."""
    atoms = weighed.atoms
    count = min(max(int(len(atoms.rows) * settings.batch), 2), most - len(atoms.rows))
    A, squares = pool.A, row_squares(pool.A)
    missing = 1.0 - np.einsum("ij,ij->i", A @ weighed.H, A) / squares
    missing[np.isin(pool.rows, atoms.rows)] = -np.inf
    unit = A / np.sqrt(squares)[:, None]
    chosen = list[int]()
    for j in np.argsort(-missing, kind="stable")[: 12 * max(count, 0)]:
        if len(chosen) >= count or missing[j] == -np.inf:
            break
        if not chosen or float(np.max(np.abs(unit[chosen] @ unit[j]))) ** 2 < settings.alike:
            chosen.append(int(j))
    weights = np.full(len(chosen), 0.3 * atoms.weights.mean())
    return Selection(pool.rows[chosen], weights, A[chosen])
