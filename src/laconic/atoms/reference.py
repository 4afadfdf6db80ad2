"""The server's reference dictionary Q and the statistics of all points in its coordinates.

Q never travels. It is a pivoted Cholesky factorisation of the kernel over all distinct points, continued as points
come: of the new points the one of which Q expresses least becomes a pivot, until it expresses all but a small part of
each.

| symbol | name here |
|---|---|
| Q, L_Q with L_Q L_Qᵀ = K_QQ | `Reference.pivots`, `Reference.root` |
| z(x) = L_Q⁻¹k_Q(x), a row for each distinct point | `Reference.coordinates` |
| k(x, x) − ‖z(x)‖² | `Reference.residual` |
| G = Σ z zᵀ, b = Σ z y over all observations | `Reference.gram`, `Reference.moment` |
| ρ = Σ (k(x, x) − ‖z‖²) over all observations | `Reference.missed` |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from laconic.arrays import Floats, Ints, apart
from laconic.atoms.panels import Panels
from laconic.checks import finite_array, require_positive, require_whole
from laconic.errors import InputError, KernelError
from laconic.growing import GrowingPoints, collapsed
from laconic.kernels import Kernel
from laconic.linalg import solve_lower

#: Q expresses all but this part of every point's k(x, x).
TOLERANCE = 0.005
#: Beside that part of k(x, x) Q leaves no more than the same part of so many times what tells alike points apart, and
#: of so many times λ. Else a kernel with a large constant in it, or a coarse feature beside fine ones, would lose all
#: that is fine, and a large kernel what λ would not hide.
SPREADS, RIDGES = 40.0, 100.0
#: What tells alike points apart counts as no less than this many times λ: of smaller differences thousands of
#: observations tell nothing, and points that return with a little noise would all go into Q.
LEAST_RIDGES = 0.2
#: Points are alike that are nearest to each other: this quantile of how far the nearest is tells such points apart.
NEAREST = 0.25
#: What tells points apart is looked at in the first of them: so many, and no fewer.
SAMPLE, LEAST_SAMPLE = 64, 8
#: Less than this part of k(x, x) is rounding.
RESIDUAL_ROUNDING = 1e-9
#: Q has at most so many points.
CAP = 1500
#: New points are taken in this many at a time, which bounds the memory and the work of choosing pivots among them.
CHUNK_ROWS = 1024


def _empty() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Reference:
    """All points of a log in the coordinates of Q; a value, of which `extended` makes the next one.

    Which points become pivots depends on how the log was cut into steps: the same steps make the same reference, to the
    last bit.
    """

    kernel: Kernel
    dim: int
    lam: float = np.inf
    tolerance: float = TOLERANCE
    cap: int = CAP
    spread: float = np.inf  # what tells alike points apart: ½‖φ(x) − φ(x')‖² of points and those nearest to them
    covered: int = 0  # how many observations of the log are in
    store: GrowingPoints = field(default_factory=lambda: GrowingPoints.empty(0))
    counts: Floats = field(default_factory=_empty)  # (n,) how often each distinct point was observed
    sums: Floats = field(default_factory=_empty)  # (n,) the sum of its rewards
    prior: Floats = field(default_factory=_empty)  # (n,) k(x, x)
    residual: Floats = field(default_factory=_empty)  # (n,)
    coordinates: Panels = field(default_factory=Panels)  # (n, r)
    pivots: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (r,) rows of the store
    root: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (r, r)
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (r, r)
    moment: Floats = field(default_factory=_empty)  # (r,)

    def __post_init__(self) -> None:
        require_whole("dim", self.dim, least=1)
        require_whole("cap", self.cap, least=1)
        require_positive("tolerance", self.tolerance)

    @property
    def points(self) -> Floats:
        """The distinct points in order of first appearance, a row each."""
        return self.store.rows.values

    @property
    def distinct(self) -> int:
        """How many distinct points there are."""
        return len(self.counts)

    @property
    def rank(self) -> int:
        """The number of points of Q."""
        return len(self.pivots)

    @property
    def missed(self) -> float:
        """ρ, what Q does not express of all observations."""
        return float(self.counts @ self.residual)

    @property
    def overflows(self) -> bool:
        """Whether Q is at its cap and still leaves too much of some point."""
        return self.rank >= self.cap and bool((self.residual > self.allowed(self.prior)).any())

    def allowed(self, prior: Floats) -> Floats:
        """How much Q may leave of points with this k(x, x)."""
        apart = SPREADS * self.spread
        if np.isfinite(self.lam):
            apart = max(apart, LEAST_RIDGES * self.lam)
        most = min(apart, RIDGES * self.lam)
        return np.maximum(self.tolerance * np.minimum(prior, most), RESIDUAL_ROUNDING * prior)

    def extended(self, X: Floats, y: Floats) -> Reference:
        """The reference of the log with these observations at its end."""
        X, y = self._checked(X, y)
        if len(X) == 0:
            return self
        points, counts, sums = collapsed(X, np.ones(len(X)), y)
        rows = self.store.rows_of(points) if self.distinct else np.full(len(points), -1, dtype=np.int64)
        known, fresh = rows >= 0, np.flatnonzero(rows < 0)
        grown = self._recounted(rows[known], counts[known], sums[known])
        for first in range(0, len(fresh), CHUNK_ROWS):
            part = fresh[first : first + CHUNK_ROWS]
            grown = grown._grown(points[part], counts[part], sums[part])
        return replace(grown, covered=self.covered + len(X))

    def embedded(self, X: Floats) -> Floats:
        """z of the rows of X, a row each."""
        if self.rank == 0:
            return np.empty((len(X), 0))
        return solve_lower(self.root, self.kernel(self.points[self.pivots], X)).T

    def _checked(self, X: Floats, y: Floats) -> tuple[Floats, Floats]:
        X, y = finite_array("X", X, ndim=2), finite_array("y", y, ndim=1)
        if X.shape[1] != self.dim:
            raise InputError(f"X has {X.shape[1]} features a point, not {self.dim}; try X[:, :{self.dim}]")
        if len(X) != len(y):
            raise InputError(f"X has {len(X)} points but y has {len(y)} rewards; give one reward a point")
        return X, y

    def _recounted(self, rows: Ints, counts: Floats, sums: Floats) -> Reference:
        """With more rewards of points that are known: a correction of rank len(rows)."""
        if len(rows) == 0:
            return self
        Z = self.coordinates.take(rows)
        new_counts, new_sums = self.counts.copy(), self.sums.copy()
        new_counts[rows] += counts
        new_sums[rows] += sums
        gram = self.gram + (Z * counts[:, None]).T @ Z
        return replace(self, counts=new_counts, sums=new_sums, gram=gram, moment=self.moment + sums @ Z)

    def _grown(self, X: Floats, counts: Floats, sums: Floats) -> Reference:
        """With new distinct points: their coordinates, the pivots among them, and those pivots' column for everyone."""
        prior = self._prior(X)
        Z = self.embedded(X)
        residual = np.maximum(prior - np.einsum("ij,ij->i", Z, Z), 0.0)
        spread = self._spread(X)
        chosen, C = replace(self, spread=spread)._pivoted(X, Z, residual, prior)
        residual = np.maximum(residual - np.einsum("ji,ji->i", C, C), 0.0)
        residual[chosen] = 0.0
        gram = self.gram + (Z * counts[:, None]).T @ Z
        store = self.store if self.distinct else GrowingPoints.empty(self.dim)
        grown = replace(
            self,
            store=store.appended(X),
            counts=np.concatenate([self.counts, counts]),
            sums=np.concatenate([self.sums, sums]),
            prior=np.concatenate([self.prior, prior]),
            residual=np.concatenate([self.residual, residual]),
            gram=gram,
            moment=self.moment + sums @ Z,
            spread=spread,
        )
        return grown._widened(self, Z=Z, C=C, chosen=chosen)

    def _spread(self, X: Floats) -> float:
        """What tells alike points apart, once there are enough of them with these new ones."""
        known = min(self.distinct, SAMPLE)
        first = np.concatenate([self.points[:known], X[: SAMPLE - known]]) if self.distinct else X[:SAMPLE]
        if known == SAMPLE or len(first) < LEAST_SAMPLE:
            return self.spread
        K = self.kernel(first, first)
        own = np.diagonal(K)
        between = (own[:, None] + own) / 2.0 - K
        np.fill_diagonal(between, np.inf)
        return max(float(np.quantile(between.min(axis=1), NEAREST)), 0.0)

    def _prior(self, X: Floats) -> Floats:
        prior = np.asarray(self.kernel.diag(X), dtype=np.float64)
        if not (np.isfinite(prior).all() and (prior >= 0).all()):
            raise KernelError(f"kernel {self.kernel!r} gives k(x, x) below zero or not finite; rescale the features")
        return prior

    def _pivoted(self, X: Floats, Z: Floats, residual: Floats, prior: Floats) -> tuple[Ints, Floats]:
        """Which of the new points become pivots, and a row of coordinates of all new points for each of them."""
        left, chosen = residual.copy(), list[int]()
        C = np.empty((0, len(X)))
        threshold = self.allowed(prior)
        # What is left is measured by what may be; where k(x, x) is the same for all, the scale is 1.
        scale = np.where(threshold > 0, threshold, 1.0) / (float(threshold.max(initial=0.0)) or 1.0)
        while self.rank + len(chosen) < self.cap:
            j = int(np.argmax(left / scale))
            if left[j] <= threshold[j]:
                break
            k = len(chosen)
            if k == len(C):
                C = np.concatenate([C, np.empty((max(k, 16), len(X)))])
            C[k] = (self.kernel(X[j : j + 1], X)[0] - Z @ Z[j] - C[:k, j] @ C[:k]) / np.sqrt(left[j])
            left = np.maximum(left - C[k] ** 2, 0.0)
            left[j] = 0.0
            chosen.append(j)
        return np.array(chosen, dtype=np.int64), C[: len(chosen)]

    def _widened(self, old: Reference, *, Z: Floats, C: Floats, chosen: Ints) -> Reference:
        """This reference, which has new points in old coordinates, with columns for the new pivots."""
        rank, width = old.rank, old.rank + len(chosen)
        table = old.coordinates.resized(size=self.distinct, width=width)
        left, corner = Z[chosen], np.tril(C[:, chosen].T)
        residual = self.residual.copy()
        for where, block in table.blocks():
            last = min(where.stop, old.distinct)
            if len(chosen) and where.start < last:
                part = block[: last - where.start]
                column = self.kernel(self.points[old.distinct + chosen], self.points[where.start : last])
                part[:, rank:] = solve_lower(corner, column - left @ part[:, :rank].T).T
                square = np.einsum("ij,ij->i", part[:, rank:], part[:, rank:])
                residual[where.start : last] = np.maximum(residual[where.start : last] - square, 0.0)
            first = max(where.start, old.distinct)
            if first < where.stop:
                fresh = slice(first - old.distinct, where.stop - old.distinct)
                block[first - where.start :, :rank] = Z[fresh]
                block[first - where.start :, rank:] = C.T[fresh]
        grown = replace(self, coordinates=table, residual=residual)
        return grown if len(chosen) == 0 else grown._with_pivots(old, left=left, corner=corner, chosen=chosen)

    def _with_pivots(self, old: Reference, *, left: Floats, corner: Floats, chosen: Ints) -> Reference:
        """The factor and the statistics of the columns that are new."""
        rank, width = old.rank, old.rank + len(chosen)
        root, gram = apart(width, width), apart(width, width)
        root[:rank, :rank], root[:rank, rank:], root[rank:, :rank], root[rank:, rank:] = self.root, 0.0, left, corner
        cross, moment = np.zeros((width - rank, width)), np.zeros(width - rank)
        for where, block in self.coordinates.blocks():
            new = block[:, rank:]
            cross += (new * self.counts[where, None]).T @ block
            moment += self.sums[where] @ new
        gram[:rank, :rank], gram[rank:, :], gram[:rank, rank:] = self.gram, cross, cross[:, :rank].T
        return replace(
            self,
            pivots=np.concatenate([self.pivots, old.distinct + chosen]),
            root=root,
            gram=gram,
            moment=np.concatenate([self.moment, moment]),
        )
