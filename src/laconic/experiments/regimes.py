"""Sizes and settings of the frontier where nobody says others, by the problem's name; imports nothing slow."""

from __future__ import annotations

from typing import NamedTuple

CLIENTS, ROUNDS, SEEDS = 30, 50, 3
#: Where the same few arms return, exact algorithms stay small however long they run.
RETURNING, LONG_ROUNDS = ("catalogue", "magic", "mushroom", "shuttle", "clustered"), 100


class Regime(NamedTuple):
    """The kernel's γ, and λ and α of all algorithms."""

    gamma: float
    lam: float
    alpha: float


#: On fresh arms in many dimensions a wide kernel and a small ridge learn best; where arms return nearly any will do.
FRESH, RETURN = Regime(0.1, lam=0.1, alpha=0.1), Regime(1.0, lam=1.0, alpha=0.3)


def regime(problem: str) -> Regime:
    """γ, λ and α on a problem."""
    return RETURN if problem in RETURNING else FRESH


def rounds(problem: str) -> int:
    """How many rounds a problem is played for."""
    return LONG_ROUNDS if problem in RETURNING else ROUNDS
