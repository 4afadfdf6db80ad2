"""The arm of the largest index, ties broken by a draw: UCB and Greedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from laconic.arrays import Floats
from laconic.exploration.shown import Chance, Choice, Shown, tied_with_best


@dataclass(frozen=True)
class UCB:
    """The arm of the largest μ + ασ; among those that tie with it, each with the same probability."""

    equation: ClassVar[str] = "argmax μ + ασ"

    def choose(self, shown: Shown, /) -> Choice:
        return greatest(shown, shown.mean, shown.width)


@dataclass(frozen=True)
class Greedy:
    """The arm of the largest μ; among those that tie with it, each with the same probability."""

    equation: ClassVar[str] = "argmax μ"

    def choose(self, shown: Shown, /) -> Choice:
        return greatest(shown, shown.mean, np.zeros_like(shown.width))


def greatest(shown: Shown, mean: Floats, width: Floats) -> Choice:
    """The arm of the largest mean + width; a draw of the decision's own chooses among those that tie."""
    tied = np.flatnonzero(tied_with_best(mean, width, tie=shown.tie))
    arm = tied[0] if len(tied) == 1 else tied[shown.random().integers(len(tied))]
    return Choice(int(arm), lambda each: Chance(1.0 / len(tied) if each in tied else 0.0))
