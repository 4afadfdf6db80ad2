"""What the belief says of a round's arms, computed for many clients at once and kept while it lasts."""

from __future__ import annotations

from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, View
from laconic.growing import GrowingRows
from laconic.runtimes.lockstep.arms import Arms
from laconic.runtimes.lockstep.batch import Scores
from laconic.runtimes.lockstep.continuing import continued, continues

#: Features in a batch of scores have at most about so many entries, so that memory does not grow with the clients.
BATCH_ENTRIES = 8_000_000


class RoundScores:
    """The scores of one round: a view of the arms of clients ``first`` … ``last`` under the belief that made it."""

    def __init__(self, arms: Arms) -> None:
        self.arms = arms
        self.belief: Belief | None = None
        self.first = self.last = 0
        self._clients = 1 if arms.shared is not None else len(arms.arms)
        self._looks_ahead = True  # an exact belief's scores go on after a sync, so others may be scored with the first
        self._crossed: tuple[GrowingRows, Floats] | None = None

    def widest(self, belief: Belief, *, tail: int = 0) -> int:
        """How many clients, with so many rows in their tails, a batch may hold."""
        size = belief.factor.size if isinstance(belief, ExactBelief) else belief.rank or 0
        return max(1, BATCH_ENTRIES // (max(size, tail, 32) * int(self.arms.arms.shape[1])))

    def of(self, belief: Belief, first: int, last: int) -> Scores:
        """The scores of clients ``first`` … ``last`` under a belief; what was computed is used while it holds."""
        if self.arms.shared is not None:
            first, last = 0, 1  # one set of columns serves everyone
        covers = self.first <= first < last <= self.last
        if covers and not self._holds_for(belief):
            self._looks_ahead, covers = False, False  # what was computed ahead was in vain
        if not covers:
            ahead = first + self.widest(belief) if self._looks_ahead and isinstance(belief, ExactBelief) else last
            self._compute(belief, first, min(max(last, ahead), self._clients))
        view = self._columns(first, last)
        if self.belief is not belief:
            assert isinstance(belief, ExactBelief)  # only an exact belief continues another
            view = continued(belief, view)
        return arranged(view, last - first)

    def _holds_for(self, belief: Belief) -> bool:
        """True when the view was made under this belief, or under one that it continues."""
        old = self.belief
        return old is belief or (
            isinstance(belief, ExactBelief) and isinstance(old, ExactBelief) and continues(belief, old)
        )

    def _compute(self, belief: Belief, first: int, last: int) -> None:
        points = self.arms.points(first, last)
        if isinstance(belief, ExactBelief) and self.arms.shared is not None:
            self.view = belief.view(points, cross=self._cross(belief).copy())
        else:
            self.view = belief.view(points)
        self.belief, self.first, self.last = belief, first, last

    def _cross(self, belief: ExactBelief) -> Floats:
        """The kernel of the belief's points with the shared ones, kept while the belief only counts points again."""
        rows = belief.store.rows
        if self._crossed is None or self._crossed[0] is not rows:
            self._crossed = rows, belief.kernel(belief.points, self.arms.points(0, 1))
        return self._crossed[1]

    def _columns(self, first: int, last: int) -> View:
        """The part of the view that belongs to some clients."""
        if (first, last) == (self.first, self.last):
            return self.view
        size = len(self.view.mean) // (self.last - self.first)
        part, view = slice((first - self.first) * size, (last - self.first) * size), self.view
        return View(
            points=view.points[part],
            features=view.features[:, part],
            mean=view.mean[part],
            signal=view.signal[part],
            residual=view.residual[part],
        )


def arranged(view: View, clients: int) -> Scores:
    """A view of the arms of some clients in turn, with an axis for clients."""
    size = len(view.mean) // clients
    p, shape = len(view.features), (clients, size)
    return Scores(
        points=view.points.reshape(*shape, view.points.shape[1]),
        features=view.features.reshape(p, *shape).transpose(1, 0, 2),
        mean=view.mean.reshape(shape),
        signal=view.signal.reshape(shape),
        residual=view.residual.reshape(shape),
    )
