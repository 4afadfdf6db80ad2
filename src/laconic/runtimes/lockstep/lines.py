"""Exact beliefs of clients that exchange alone: most are beginnings of one log, and so of the longest of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import cast

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, View
from laconic.growing import keys
from laconic.runtimes.lockstep.continuing import continues
from laconic.runtimes.lockstep.lone_tails import LateTail
from laconic.runtimes.lockstep.shadow import Prefixes, Shadow
from laconic.runtimes.lockstep.sights import MOST_KEPT, Sight, Sights
from laconic.tail import Learning, Tail


class Line:
    """Beliefs each of which is continued by the longest."""

    def __init__(self, belief: ExactBelief) -> None:
        self.longest = belief
        self._beliefs: dict[int, ExactBelief] = {id(belief): belief}  # as long as they are here, nobody has their ids
        self._solutions: dict[int, Floats] = {}
        self._shadow: Shadow | None = None

    def has(self, belief: ExactBelief) -> bool:
        """Whether a belief is one of the line, as which it is taken if it can be."""
        if id(belief) not in self._beliefs:
            if continues(belief, self.longest):
                self.longest = belief
            elif not continues(self.longest, belief):
                return False
            self._beliefs[id(belief)] = belief
        return True

    def keep(self, beliefs: Iterable[ExactBelief]) -> None:
        """Forget all others."""
        self._beliefs = {id(belief): belief for belief in beliefs}
        self.longest = max(self._beliefs.values(), key=lambda belief: belief.factor.size)
        self._solutions = {name: a for name, a in self._solutions.items() if name in self._beliefs}

    @property
    def shadow(self) -> Shadow | None:
        """The shadow of the longest; None where bounds would not be sharp."""
        if self._shadow is None or self._shadow.belief is not self.longest:
            self._shadow = Shadow.of(self.longest, self._shadow)
        return self._shadow

    def prefixes(self, beliefs: list[ExactBelief]) -> Prefixes:
        """How much each of some clients has of the longest, by their beliefs."""
        self._solve({id(belief): belief for belief in beliefs if id(belief) not in self._solutions})
        solutions = np.zeros((len(beliefs), self.longest.factor.size))
        for row, belief in enumerate(beliefs):
            solutions[row, : belief.factor.size] = self._solutions[id(belief)]
        return Prefixes(np.array([belief.factor.size for belief in beliefs]), solutions)

    def _solve(self, fresh: dict[int, ExactBelief]) -> None:
        """Find a = (K + λ diag(1/c))⁻¹ȳ of beliefs, all by one factor: where one has no rows, zeros stay zeros."""
        if not fresh:
            return
        columns = np.zeros((self.longest.factor.size, len(fresh)))
        for column, belief in enumerate(fresh.values()):
            columns[: belief.factor.size, column] = belief.weights
        a = self.longest.factor.solve_transposed(columns)
        for column, (name, belief) in enumerate(fresh.items()):
            self._solutions[name] = a[: belief.factor.size, column].copy()


class Lines:
    """The lines of a run's beliefs: another one begins where a factor was made anew."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def sorted(self, beliefs: dict[int, ExactBelief]) -> list[tuple[Line, list[int]]]:
        """The lines that clients have beliefs of, each with its clients."""
        found: dict[int, list[int]] = {}
        for number, belief in beliefs.items():
            found.setdefault(self._number(belief), []).append(number)
        kept = [(self._lines[at], numbers) for at, numbers in found.items()]
        for line, numbers in kept:
            line.keep(beliefs[number] for number in numbers)
        self._lines = [line for line, _ in kept]
        return kept

    def together(self, belief: ExactBelief, others: Iterable[ExactBelief]) -> bool:
        """Whether a belief and others are of one line."""
        line = self._lines[self._number(belief)]
        return all(line.has(other) for other in others)

    def _number(self, belief: ExactBelief) -> int:
        for at, line in enumerate(self._lines):
            if line.has(belief):
                return at
        self._lines.append(Line(belief))
        return len(self._lines) - 1


class AtHand(Learning):
    """What a fleet has at hand when beliefs learn points or are asked about them.

    The features that tails have of their points need not be computed again by exact beliefs that learn these. Finite
    beliefs are asked by the sights by which arms are scored.
    """

    def __init__(self, lines: Lines, sights: Sights | None = None) -> None:
        self._lines, self._sights = lines, sights
        self._known: dict[bytes, tuple[ExactBelief, Floats]] = {}  # of a point, its features and under which belief

    def begin_round(self) -> None:
        """Forget what tails had."""
        self._known = {}

    def note(self, belief: ExactBelief, points: Floats, features: Floats) -> None:
        """Keep a belief's features of some points, a row each."""
        self._known |= {identity: (belief, row) for identity, row in zip(keys(points), features, strict=True)}

    def extended(self, belief: Belief, X: Floats, y: Floats) -> Belief:
        if not isinstance(belief, ExactBelief):
            return super().extended(belief, X, y)
        return belief.extended(X, y, known=partial(self.columns, belief))

    def view(self, belief: Belief, X: Floats) -> View:
        if not isinstance(belief, ExactBelief):
            return super().view(belief, X)
        return belief.view(X, known=partial(self.columns, belief))

    def replayed(self, belief: Belief, X: Floats, y: Floats) -> Tail:
        if self._sights is None or not belief.rank or len(y) == 0:
            return super().replayed(belief, X, y)
        return cast(Tail, LateTail(belief, X, y))  # a fleet makes it a tail before anybody asks anything of it

    def variance(self, belief: Belief, X: Floats, *, most: Floats) -> Floats:
        sight = self._sight(belief)
        return super().variance(belief, X, most=most) if sight is None else sight.variance(X, most=most)

    def _sight(self, belief: Belief) -> Sight | None:
        """The sight of a belief whose holders will be looked at by it anyway; None where it waits until they are.

        A large one is made when it is needed and not before: while a belief is adopted, the last builds' memory is
        still taken.
        """
        if self._sights is None or not belief.rank or belief.width > MOST_KEPT:
            return None
        return self._sights.of(belief)

    def columns(self, belief: ExactBelief, X: Floats) -> Floats | None:
        """The first features of the rows of X under a belief, a column each; None when one of them is not known."""
        found = []
        for identity in keys(X):
            known = self._known.get(identity)
            if known is None:  # as arms are, mostly
                return None
            found.append(known)
        olders = {id(older): older for older, _ in found}
        if not found or not self._lines.together(belief, olders.values()):
            return None
        shortest = min(belief.factor.size, *(len(row) for _, row in found))
        return np.ascontiguousarray(np.array([row[:shortest] for _, row in found]).T)
