"""The tail: a client's own points that its belief does not contain yet, conditioned on top of the belief.

One routine serves all beliefs: GP conditioning with noise 1 under the belief's covariance of two points. With the
tail's points u_1 … u_k, C = cov(u, u) and I + C = HHᵀ, a point x has

    c = H⁻¹ cov(u, x),    μ(x) += c·ρ,    σ²(x) −= ‖c‖²,    ρ = H⁻¹(y − μ_belief(u)),

and appending a point adds the row (c, s) to H with s² = 1 + σ²(x); the sum of ln s² is the log-det ratio of Eq. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, View
from laconic.beliefs.contract import chunks
from laconic.beliefs.reading import expect_bounded, expect_shapes, length
from laconic.errors import RemoteProtocolError
from laconic.growing import GrowingRows, first_appearances
from laconic.linalg import SMALL_BLOCK, GrowingFactor, lower_cholesky, solve_lower

#: A tail of an exact belief looks for repeated points to collapse when it is this long, and at each doubling.
COLLAPSE_FROM = 32


@dataclass(frozen=True)
class News:
    """What triggers see; fields may also be arrays over clients.

    The first four are sums over the tail since the last sync. The client puts the others beside them when it asks its
    trigger.

    Attributes:
        count: Own points since the last exchange.
        log_det: Σ ln(1 + σ²_{s−1}(x_s)), the log-determinant ratio of Eq. 2.
        variance: Σ σ²_last(x_s), the left side of Eq. 4.
        residual: The part of that sum which no point of the dictionary expresses.
        share: The part d_eff/N of what the belief knows, where a digest said it.
        own: Observations that the client has made in all.
        sent: Bytes that it has sent in all.
        received: Bytes that it has received in all.
    """

    count: int
    log_det: float
    variance: float
    residual: float
    share: float = 0.0
    own: int = 0
    sent: int = 0
    received: int = 0

    def and_one(self, *, log_det: float, variance: float, residual: float) -> News:
        """The news with one more observation.

        Args:
            log_det: What it adds to ``log_det``.
            variance: What it adds to ``variance``.
            residual: What it adds to ``residual``.
        """
        return self.and_some(1, log_det=log_det, variance=variance, residual=residual)

    def and_some(self, count: int, *, log_det: float, variance: float, residual: float) -> News:
        """The news with more observations.

        Args:
            count: How many there are, from 0.
            log_det: What they add to ``log_det``.
            variance: What they add to ``variance``.
            residual: What they add to ``residual``.
        """
        return News(
            count=self.count + count,
            log_det=self.log_det + log_det,
            variance=self.variance + variance,
            residual=self.residual + residual,
        )

    def beside(self, *, share: float, own: int, sent: int, received: int) -> News:
        """The news beside a client's share of what is known, and what it has done and spent in all.

        Args:
            share: The part d_eff/N of what the belief knows, at least 0.
            own: Observations that the client has made in all, from 0.
            sent: Bytes that it has sent in all, from 0.
            received: Bytes that it has received in all, from 0.
        """
        return News(self.count, self.log_det, self.variance, self.residual, share, own, sent, received)

    def sums(self) -> list[float]:
        """The first four fields, as numbers to keep."""
        return [float(self.count), self.log_det, self.variance, self.residual]

    @classmethod
    def of_sums(cls, sums: Floats) -> News:
        """The news that had these sums.

        Args:
            sums: What `sums` gave, (4,).
        """
        count, log_det, variance, residual = sums
        return cls(int(count), float(log_det), float(variance), float(residual))


NOTHING_NEW = News(count=0, log_det=0.0, variance=0.0, residual=0.0)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The rows that a tail conditions on: all arrays have one entry a row."""

    points: GrowingRows  # (k, d)
    features: GrowingRows  # (k, p), in the tail's basis
    errors: Floats  # (k,)  mean reward minus the belief's mean
    counts: Floats  # (k,)  how many rewards a row stands for
    factor: GrowingFactor  # (k, k) H
    pulls: Floats  # (k,)  ρ

    @classmethod
    def none(cls) -> Conditioned:
        """No rows."""
        zero = np.empty(0)
        return cls(GrowingRows.empty(), GrowingRows.empty(), zero, zero, GrowingFactor(block_rows=SMALL_BLOCK), zero)

    def with_row(self, view: View, *, error: float, c: Floats, s: float) -> Conditioned:
        """The rows and one more, of which ``c`` and ``s`` are the row of H."""
        return Conditioned(
            points=self.points.appended(view.points),
            features=self.features.appended(view.features.T),
            errors=and_one(self.errors, error),
            counts=and_one(self.counts, 1.0),
            factor=self.factor.appended(and_one(c, s)[None, :]),
            pulls=and_one(self.pulls, (error - float(c @ self.pulls)) / s),
        )

    def __len__(self) -> int:
        return len(self.errors)

    def as_view(self) -> View:
        """The rows as a view, for covariances."""
        zero = np.zeros(len(self))
        return View(points=self.points.values, features=self.features.values.T, mean=zero, signal=zero, residual=zero)


def with_diagonal(covariance: Floats, variance: Floats) -> Floats:
    """The covariance, as float64, with these variances in place of its own."""
    full = np.array(covariance, dtype=np.float64)
    full.flat[:: len(full) + 1] = variance
    return full


def and_one(numbers: Floats, last: float) -> Floats:
    """The numbers and one more."""
    longer = np.empty(len(numbers) + 1)
    longer[:-1], longer[-1] = numbers, last
    return longer


@dataclass(frozen=True, eq=False)
class Basis:
    """A folded tail: the belief's features v become R⁻¹v, and the mean gains (R⁻¹v)·shift."""

    root: Floats  # (r, r) R, lower triangular
    shift: Floats  # (r,)


class Tail:
    """Own points on top of a belief: predicts with them, and keeps the sums that triggers need.

    ``news`` is of all its points. ``fresh`` leaves out those that were replayed, which a belief once missed: triggers
    look at it, or a slow member would start sync after sync.
    """

    def __init__(self, belief: Belief) -> None:
        self.belief = belief
        self.news = self.fresh = NOTHING_NEW
        self.basis: Basis | None = None
        self.rows = Conditioned.none()
        self._look_at = COLLAPSE_FROM

    def __copy__(self) -> Tail:
        twin = Tail.__new__(Tail)  # twice as fast as what `copy` does by itself, and done at every observation
        twin.__dict__.update(self.__dict__)
        return twin

    def predict(self, view: View) -> tuple[Floats, Floats]:
        """μ and σ² of a view's points under belief and tail together."""
        view = self._in_basis(view)
        if len(self.rows) == 0:
            return view.mean, view.variance
        c = self._against(view)
        signal = np.maximum(view.signal - np.einsum("ij,ij->j", c, c), 0.0)
        return view.mean + self.rows.pulls @ c, signal + view.residual

    def covariance(self, view: View) -> Floats:
        """The covariance of a view's points under belief and tail together; what ``predict`` says is its diagonal.

        What no dictionary point expresses is a variance of each point's own, and correlates with nothing.
        """
        variance = self.predict(view)[1]
        view = self._in_basis(view)
        c = self._against(view)
        return with_diagonal(self.belief.covariance(view, view) - c.T @ c, variance)

    def append(self, view: View, reward: float, *, replayed: bool = False) -> None:
        """Learn the reward of the one point of ``view``; ``replayed`` if it was observed under an earlier belief."""
        prior_variance, residual = float(view.variance[0]), float(view.residual[0])
        view = self._in_basis(view)
        c = self._against(view)[:, 0]
        pivot = 1.0 + max(float(view.signal[0]) - float(c @ c), 0.0)
        if self.belief.rank != 0:  # with no coordinates there is nothing to condition on
            error = reward - float(view.mean[0])
            self.rows = self.rows.with_row(view, error=error, c=c, s=float(np.sqrt(pivot)))
            self._compact()
        gain = float(np.log(pivot))
        self.news = self.news.and_one(log_det=gain, variance=prior_variance, residual=residual)
        if not replayed:
            self.fresh = self.fresh.and_one(log_det=gain, variance=prior_variance, residual=residual)

    def append_points(
        self, X: Floats, y: Floats, *, view: Callable[[Belief, Floats], View], replayed: bool = False
    ) -> None:
        """Learn rewards y of the rows of X, which ``view`` looks at, without holding the features of all at once."""
        for part in self._parts(len(X)):
            self.append_all(view(self.belief, X[part]), y[part], replayed=replayed)

    def _parts(self, count: int) -> Iterator[slice]:
        """Some rows after the others, each part up to a fold, so that folds are where they are without parts."""
        if count == 0:
            return
        period = 1 + (self.belief.rank or 0)
        size = max(chunks(count, self.belief.width)[0].stop // period, 1) * period
        first, stop = 0, size + -len(self.rows) % period
        while first < count:
            yield slice(first, stop)
            first, stop = stop, stop + size

    def append_all(self, view: View, rewards: Floats, *, replayed: bool = False) -> None:
        """Learn the rewards of all points of a view: on finitely many coordinates many at once, up to the next fold."""
        first, rank = 0, self.belief.rank or 0
        while first < len(rewards):
            count = 1 if rank == 0 or len(self.rows) else min(len(rewards) - first, rank + 1)
            some = view.between(first, first + count)
            if count == 1:
                self.append(some, float(rewards[first]), replayed=replayed)
            else:
                self._append_some(some, rewards[first : first + count], replayed=replayed)
            first += count

    def _append_some(self, view: View, rewards: Floats, *, replayed: bool) -> None:
        """Learn from several points where there is nothing yet to condition on."""
        seen = self._in_basis(view)
        self.rows = self._conditioned(seen.points, seen.features.T, rewards - seen.mean, np.ones(len(rewards)))
        sums = {
            "log_det": float(2.0 * np.log(np.maximum(self.rows.factor.diagonal(), 1.0)).sum()),
            "variance": float(view.variance.sum()),
            "residual": float(view.residual.sum()),
        }
        self._compact()
        self.news = self.news.and_some(len(rewards), **sums)
        if not replayed:
            self.fresh = self.fresh.and_some(len(rewards), **sums)

    @property
    def information(self) -> float:
        """ln det(I + K/λ) of belief and tail together, or an upper bound of it."""
        return self.belief.information + self.news.log_det + self.news.residual

    def _in_basis(self, view: View) -> View:
        if self.basis is None:
            return view
        features = solve_lower(self.basis.root, view.features)
        return replace(
            view,
            features=features,
            mean=view.mean + self.basis.shift @ features,
            signal=np.einsum("ij,ij->j", features, features),
        )

    def _against(self, view: View) -> Floats:
        if len(self.rows) == 0:
            return np.empty((0, len(view.mean)))
        return self.rows.factor.solve(self.belief.covariance(self.rows.as_view(), view))

    def _compact(self) -> None:
        rank = self.belief.rank
        if rank is not None and len(self.rows) > rank:
            self._fold()
        elif rank is None and len(self.rows) >= self._look_at:
            self._collapse()

    def _fold(self) -> None:
        """Turn k > r rows into a change of basis: I + UᵀU = RRᵀ, and the rows are gone."""
        U, errors = self.rows.features.values, self.rows.errors
        root = lower_cholesky(np.eye(U.shape[1]) + U.T @ U, ridge=1.0)
        shift = solve_lower(root, U.T @ errors)
        if self.basis is not None:
            # errors are taken against the old shift, so the old one is carried over into the new coordinates
            root, shift = self.basis.root @ root, shift + root.T @ self.basis.shift
        self.basis = Basis(root=root, shift=shift)
        self.rows = Conditioned.none()

    def _collapse(self) -> None:
        """Merge rows of equal points into one with their mean: noise 1/count instead of 1."""
        rows = self.rows
        number = first_appearances(rows.points.values)
        distinct = int(number.max()) + 1
        if 2 * distinct <= len(rows):
            first = np.unique(number, return_index=True)[1]
            counts = np.asarray(np.bincount(number, rows.counts), dtype=np.float64)
            errors = np.bincount(number, rows.counts * rows.errors) / counts
            points, features = rows.points.values[first], rows.features.values[first]
            self.rows = self._conditioned(points, features, errors, counts)
        self._look_at = max(COLLAPSE_FROM, 2 * len(self.rows))

    def arrays(self) -> dict[str, Floats]:
        """All that the tail knows, as named arrays from which `from_arrays` makes it again."""
        rows = self.rows
        named = {
            "points": rows.points.values,
            "features": rows.features.values,
            "errors": rows.errors,
            "counts": rows.counts,
            "factor": rows.factor.matrix(),
            "pulls": rows.pulls,
            "news": np.array([*self.news.sums(), self._look_at]),
            "fresh": np.array(self.fresh.sums()),
        }
        return named | ({"root": self.basis.root, "shift": self.basis.shift} if self.basis else {})

    @classmethod
    def from_arrays(cls, belief: Belief, arrays: dict[str, Floats]) -> Tail:
        """The tail of which ``arrays`` were taken, on the same belief; `RemoteProtocolError` if they are of none."""
        _expect_tail(belief, arrays)
        tail, none = cls(belief), Conditioned.none()
        tail.news, tail.fresh = News.of_sums(arrays["news"][:4]), News.of_sums(arrays["fresh"])
        tail._look_at = int(arrays["news"][4])
        if "root" in arrays:
            tail.basis = Basis(root=arrays["root"], shift=arrays["shift"])
        if len(arrays["errors"]):
            tail.rows = Conditioned(
                points=none.points.appended(arrays["points"]),
                features=none.features.appended(arrays["features"]),
                errors=arrays["errors"],
                counts=arrays["counts"],
                factor=none.factor.appended(arrays["factor"]),
                pulls=arrays["pulls"],
            )
        return tail

    def _conditioned(self, points: Floats, features: Floats, errors: Floats, counts: Floats) -> Conditioned:
        none = Conditioned.none()
        view = replace(
            none, points=none.points.appended(points), features=none.features.appended(features), errors=errors
        )
        C = self.belief.covariance(view.as_view(), view.as_view())
        H = lower_cholesky(C + np.diag(1.0 / counts), ridge=1.0)
        return replace(view, counts=counts, factor=none.factor.appended(H), pulls=solve_lower(H, errors))


class Learning:
    """How beliefs learn points and are asked about them: by their own functions, and nothing is spared."""

    def extended(self, belief: Belief, X: Floats, y: Floats) -> Belief:
        """The belief that has also learnt rewards y of the rows of X."""
        return belief.extended(X, y)

    def variance(self, belief: Belief, X: Floats, *, most: Floats) -> Floats:
        """σ² of the rows of X; of one that is at most ``most`` perhaps an upper bound that is no more than that."""
        return belief.view(X).variance

    def replayed(self, belief: Belief, X: Floats, y: Floats) -> Tail:
        """A tail on a belief that lacks these observations, which were made under an earlier one."""
        tail = Tail(belief)
        tail.append_points(X, y, view=self.view, replayed=True)
        return tail

    def view(self, belief: Belief, X: Floats) -> View:
        """What the belief says of the rows of X."""
        return belief.view(X)


def _expect_tail(belief: Belief, arrays: dict[str, Floats]) -> None:
    """Refuse arrays that no tail on this belief has."""
    k, width = length(arrays, "errors"), belief.width
    shapes: dict[str, tuple[int, ...]] = {
        "points": (k, belief.dim if k else 0),
        "features": (k, width if k else 0),
        "errors": (k,),
        "counts": (k,),
        "factor": (k, k),
        "pulls": (k,),
        "news": (5,),
        "fresh": (4,),
    }
    if "root" in arrays and belief.rank is not None:  # only finite beliefs fold
        shapes |= {"root": (width, width), "shift": (width,)}
    expect_shapes(arrays, shapes)
    expect_bounded(arrays)
    pivots = [np.diagonal(arrays[name]) for name in ("factor", "root") if name in arrays]
    too_small = [(arrays["news"] < 0).any(), (arrays["fresh"] < 0).any(), (arrays["counts"] < 1).any()]
    if any(too_small) or any((pivot <= 0).any() for pivot in pivots):
        raise RemoteProtocolError("for another plan, or damaged: a tail that is not one of any points")
