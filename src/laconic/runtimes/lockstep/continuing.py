"""Exact beliefs that grow from sync to sync: what was computed under one of them is taken on to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import ExactBelief, View
from laconic.beliefs.contract import column_squares, weighted
from laconic.growing import keys


@dataclass(frozen=True, eq=False)
class Known:
    """Features of points that tails have at hand, so that learning these points need not compute them again."""

    features: Mapping[bytes, Floats]  # of a point, (p,) where they lie

    @classmethod
    def of(cls, points: Floats, features: Iterable[Floats]) -> Known:
        """A row of ``features`` for each of ``points``."""
        return cls(dict(zip(keys(points), features, strict=True)))

    def columns(self, X: Floats) -> Floats | None:
        """The features of the rows of X, a column each; None when one of them is not known."""
        rows = [self.features[each] for each in keys(X) if each in self.features]
        return None if len(rows) < len(X) or not rows else np.stack(rows).T


def continues(belief: ExactBelief, older: ExactBelief) -> bool:
    """True when a belief has only learnt more points since the older one."""
    size, rows = older.factor.size, belief.store.rows
    return (
        size <= belief.factor.size
        and (size == 0 or belief.factor.blocks[0] is older.factor.blocks[0])  # else it was factored anew
        and (rows.shared is older.store.rows.shared or np.array_equal(rows.values[:size], older.points))
        and np.array_equal(belief.counts[:size], older.counts)  # another count is another factor
        and np.array_equal(belief.weights[:size], older.weights)
    )


def continued(belief: ExactBelief, view: View) -> View:
    """The view of a belief from that of an older one which it continues: only the new rows are computed."""
    done = len(view.features)
    if done == belief.factor.size:
        return view
    fresh = belief.kernel(belief.points[done:], view.points)
    rows = np.concatenate([view.features, fresh]).astype(belief.factor.dtype, copy=False)
    V = belief.factor.solve(rows, done=done)
    new = V[done:]
    signal = np.maximum(view.signal - column_squares(new) / belief.lam, 0.0)
    return replace(view, features=V, mean=view.mean + weighted(belief.weights[done:], new), signal=signal)


def shortened(belief: ExactBelief, view: View) -> View:
    """The view of a belief from that of a newer one that continues it: the first rows of the features are its own."""
    V = view.features[: belief.factor.size]
    return replace(view, features=V, mean=weighted(belief.weights, V), signal=_signal(belief, view.points, V))


def shortened_each(belief: ExactBelief, view: View, rows: Ints) -> View:
    """The view of beliefs of which this one continues all: each point's has so many rows, and zeros after them."""
    V = view.features
    shortest = int(rows.min(initial=len(V)))
    V[shortest:][np.arange(shortest, len(V))[:, None] >= rows] = 0.0
    return replace(view, features=V, mean=weighted(belief.weights, V), signal=_signal(belief, view.points, V))


def _signal(belief: ExactBelief, X: Floats, V: Floats) -> Floats:
    return np.maximum(belief.kernel.diag(X) - column_squares(V), 0.0) / belief.lam
