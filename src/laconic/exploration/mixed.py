"""Explorations that give every arm a chance: Softmax, and EpsilonFloor around any other."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import numpy as np

from laconic.checks import require_positive, require_probability, seen
from laconic.errors import InputError
from laconic.exploration.greatest import UCB
from laconic.exploration.shown import Chance, Choice, Exploration, Shown, choice_of, require_exploration


@dataclass(frozen=True)
class Softmax:
    """Each arm with a probability that grows with its index: p ∝ exp((μ + ασ)/temperature).

    A small temperature is UCB; α = 0 gives Boltzmann's exploration, which looks at means only.

    Args:
        temperature: Above 0, in units of rewards. Raising it spreads choices more evenly over the arms.
    """

    temperature: float = 0.1

    equation: ClassVar[str] = "p ∝ exp((μ + ασ)/temperature)"

    def __post_init__(self) -> None:
        require_positive("temperature", self.temperature)

    def choose(self, shown: Shown, /) -> Choice:
        index = shown.mean + shown.width
        weights = np.exp((index - index.max()) / self.temperature)
        upto = np.cumsum(weights)
        arm = np.searchsorted(upto, shown.random().random() * upto[-1], side="right")
        return Choice(min(int(arm), len(shown) - 1), weights / upto[-1])


@dataclass(frozen=True)
class EpsilonFloor:
    """With probability ε any arm, otherwise as ``of`` chooses: no arm has a probability below ε/A.

    Args:
        of: The exploration that chooses the rest of the time.
        epsilon: Probability ε that the arm is drawn uniformly, from 0 to 1. Raising it explores more, and raises the
            least propensity ε/A of a log.
    """

    of: Exploration = field(default_factory=UCB)
    epsilon: float = 0.1

    equation: ClassVar[str] = "p = ε/A + (1 − ε) p_of"

    def __post_init__(self) -> None:
        if isinstance(self.of, Real):  # EpsilonFloor(0.1) and EpsilonFloor(0.1, UCB()) are what people write
            raise InputError(
                f"of must be the exploration around which there is a floor, not {seen(self.of)}; "
                f"try EpsilonFloor(epsilon={seen(self.of)}) around UCB(), or EpsilonFloor(Thompson(), {seen(self.of)})"
            )
        require_exploration(self.of, name="of")
        require_probability("epsilon", self.epsilon)

    def choose(self, shown: Shown, /) -> Choice:
        random, inner, arms = shown.random(), choice_of(self.of, shown.within()), len(shown)
        arm = int(random.integers(arms)) if random.random() < self.epsilon else inner.arm

        def chance(each: int) -> Chance:
            given, rest = inner.chance_of(each), 1.0 - self.epsilon
            return Chance(self.epsilon / arms + rest * given.value, rest * given.error)

        return Choice(arm, chance)
