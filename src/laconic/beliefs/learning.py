"""Learning: how beliefs are extended and asked, so that whoever has some of the work done already can spare it."""

from __future__ import annotations

from laconic.arrays import Floats
from laconic.beliefs.contract import Belief, View


class Learning:
    """How beliefs learn points and are asked about them: by their own functions, and nothing is spared."""

    def extended(self, belief: Belief, X: Floats, y: Floats) -> Belief:
        """The belief that has also learnt rewards y of the rows of X."""
        return belief.extended(X, y)

    def view(self, belief: Belief, X: Floats) -> View:
        """What the belief says of the rows of X."""
        return belief.view(X)
