"""What one of many clients sees of its arms, for explorations that choose client by client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints
from laconic.beliefs import Belief, View
from laconic.errors import InputError
from laconic.exploration import Draws, Shown
from laconic.runtimes.lockstep.batch import Prediction, Scores
from laconic.tail import with_diagonal


@dataclass(frozen=True, eq=False)
class Showing:
    """The scores of some clients' columns, with their tails."""

    belief: Belief
    scores: Scores
    prediction: Prediction
    width: Floats  # (w, columns) ασ
    alpha: float | Floats  # one for all, or (w, 1)

    def shown(self, row: int, columns: Ints, *, address: tuple[int, int, int]) -> Shown:
        """What the client of a row is shown, whose arms are scored in these columns."""
        mean, width = self.prediction.mean[row, columns], self.width[row, columns]
        if not (np.isfinite(mean).all() and np.isfinite(width).all()):
            raise InputError("the model's predictions overflow; rescale features and rewards to moderate sizes")
        distinct, first, same = np.unique(columns, return_index=True, return_inverse=True)
        order = np.argsort(first)  # points are counted in order of first appearance
        points = distinct[order]
        return Shown(
            mean=mean,
            width=width,
            same=np.argsort(order)[same],
            draws=Draws(lambda: address),
            tie=self.belief.precision.tie,
            joint=lambda: self._covariance(row, points),
        )

    def _covariance(self, row: int, columns: Ints) -> Floats:
        """α² times the covariance of some columns, as one client sees them."""
        at = row if len(self.scores.mean) > 1 else 0  # all may share one set of columns
        view = View(
            points=self.scores.points[at, columns],
            features=np.ascontiguousarray(self.scores.features[at][:, columns]),
            mean=self.scores.mean[at, columns],
            signal=self.scores.signal[at, columns],
            residual=self.scores.residual[at, columns],
        )
        alpha = self.alpha if np.ndim(self.alpha) == 0 else np.asarray(self.alpha)[row, 0]
        alone = self.belief.covariance(view, view) - self.prediction.known(row)[np.ix_(columns, columns)]
        return with_diagonal(alpha**2 * alone, self.width[row, columns] ** 2)
