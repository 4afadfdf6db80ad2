"""What an exploration sees of the arms, and what it answers: an arm, and the probability of each arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Protocol, runtime_checkable

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.beliefs import PRECISIONS
from laconic.checks import finite_array, is_grid, seen
from laconic.errors import InputError
from laconic.randomness import Role, generator

#: Where a belief computes in double precision; see `laconic.beliefs.Precision`.
TIE = PRECISIONS["float64"].tie
#: Rounding may take probabilities so far beyond 0 and 1.
ROUNDED = 1e-6


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a decision, addressed by seed, client and decision: nothing of them is stored."""

    address: Callable[[], tuple[int, int, int]] = field(repr=False)
    depth: int = 0  # how many explorations have this one inside them

    def random(self) -> np.random.Generator:
        """The generator of this decision: the same draws whenever it is asked for."""
        return self._at(Role.TIES)

    def estimating(self) -> np.random.Generator:
        """Another one, for probabilities that have to be estimated, so that doing so changes no choice."""
        return self._at(Role.PROPENSITY)

    def _at(self, role: Role) -> np.random.Generator:
        seed, client, decision = self.address()
        return generator(seed, role, client, decision, *([self.depth] if self.depth else ()))


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """The arms that a client is shown, as it sees them, and the draws of its decision.

    Attributes:
        mean: μ of each arm, (A,), in units of rewards.
        width: ασ of each arm, (A,), in units of rewards.
        same: A number for each arm, (A,), that counts points in order of first appearance; arms that are the same
            point have the same one.
        draws: The random numbers of this decision.
        joint: A function that gives α² times the covariance of the distinct points.
        tie: Arms tie whose index is this close to the best, relative to the largest |μ| + ασ. It is 1e-10, and 1e-4
            where a belief computes in float32.
    """

    mean: Floats
    width: Floats
    same: Ints
    draws: Draws
    joint: Callable[[], Floats] = field(repr=False)
    tie: float = TIE

    def __len__(self) -> int:
        return len(self.mean)

    def random(self) -> np.random.Generator:
        """The generator of this decision: the same draws whenever it is asked for."""
        return self.draws.random()

    def estimating(self) -> np.random.Generator:
        """Another one, for probabilities that have to be estimated, so that doing so changes no choice."""
        return self.draws.estimating()

    def within(self) -> Shown:
        """The same arms for an exploration inside another, with draws of its own."""
        return replace(self, draws=replace(self.draws, depth=self.draws.depth + 1))

    def covariance(self) -> Floats:
        """α² times the covariance of the arms under belief and tail, (A, A); its diagonal is ``width²``."""
        return self.joint()[np.ix_(self.same, self.same)]


@dataclass(frozen=True)
class Chance:
    """A probability, exact or an estimate.

    Attributes:
        value: The probability, from 0 to 1.
        error: Its standard error where it was estimated, and 0 where it is exact.
    """

    value: float
    error: float = 0.0


#: The probability of a choice that was made where nobody told it.
NOT_KNOWN = Chance(math.nan)


@dataclass(frozen=True, eq=False)
class Choice:
    """An arm, and with which probability each arm is chosen.

    Args:
        arm: The place of the chosen arm among those shown, from 0.
        chances: The probability of each arm, as an array (A,), or as a function of an arm's place where working it out
            takes time.
    """

    arm: int
    chances: Floats | Callable[[int], Chance] = field(repr=False)

    def chance_of(self, arm: int) -> Chance:
        """The probability with which an arm is chosen, over all draws that there might have been."""
        return self.chances(arm) if callable(self.chances) else Chance(float(self.chances[arm]))

    @cached_property
    def chance(self) -> Chance:
        """The probability with which this arm was chosen, worked out when it is first asked for."""
        if not callable(self.chances):
            chances = finite_array("chances", self.chances, ndim=1)
            if not self.arm < len(chances) or abs(chances.sum() - 1.0) > ROUNDED:
                raise InputError(
                    f"chances are {len(chances)} numbers with the sum {chances.sum():g}, and must be one for each arm "
                    "with the sum 1; see check_exploration"
                )
        found: object = self.chance_of(self.arm)
        if found is NOT_KNOWN:
            return NOT_KNOWN
        if not isinstance(found, Chance) or not -ROUNDED <= found.value <= 1.0 + ROUNDED:
            raise InputError(f"the chance of an arm is {seen(found)}, which is no probability; see check_exploration")
        return found


@runtime_checkable
class Exploration(Protocol):
    """How a client chooses among the arms that it is shown; a frozen dataclass whose fields are its parameters."""

    def choose(self, shown: Shown, /) -> Choice:
        """An arm: a function of what is shown and of draws from ``shown.random()``, and of nothing else.

        Args:
            shown: The arms, as μ and ασ of each, and the draws of this decision.
        """
        ...


def choice_of(exploration: Exploration, shown: Shown) -> Choice:
    """What an exploration chooses among the arms shown; refused where that is no choice, or none of them."""
    choice: object = exploration.choose(shown)
    if not isinstance(choice, Choice):
        raise InputError(f"{exploration!r} gave {seen(choice)}, not Choice(arm, chances); see check_exploration")
    if not isinstance(choice.arm, Integral) or not 0 <= choice.arm < len(shown):
        raise InputError(f"{exploration!r} chose arm {seen(choice.arm)} of {len(shown)}; see check_exploration")
    return choice


def tied_with_best(mean: Floats, width: Floats, *, tie: float = TIE, there: Bools | None = None) -> Bools:
    """Which arms, along the last axis, have an index mean + width that ties with the best, among those that exist."""
    index, size = mean + width, np.abs(mean) + width
    if there is not None:
        index, size = np.where(there, index, -np.inf), np.where(there, size, 0.0)
    margin = tie * np.maximum.reduce(size, axis=-1, keepdims=True)
    return np.asarray(index >= np.maximum.reduce(index, axis=-1, keepdims=True) - margin)


def require_exploration(exploration: object, *, name: str = "exploration") -> None:
    """A value that chooses, or an error that says what one is."""
    if is_grid(exploration):
        return
    if isinstance(exploration, type):
        kind = exploration.__name__
        raise InputError(f"{name} must be a value, got the class {kind}; try {name}={kind}()")
    if not isinstance(exploration, Exploration):
        hint = ", and give α as alpha" if name == "exploration" else ""
        raise InputError(
            f"{name} must have a method choose(shown), not {seen(exploration)}; try {name}=Thompson(){hint}"
        )
