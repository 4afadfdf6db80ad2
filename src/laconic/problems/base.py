"""What a problem is: a value that opens into an instance, which makes one round at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from laconic.arrays import Bools, Floats


@dataclass(frozen=True)
class Round:
    """What the N clients meet in one round: row i belongs to client i.

    ``rewards`` holds what each arm would pay if chosen, so every algorithm meets the same noise.
    Whoever chooses an arm whose reward is not revealed learns nothing.

    Args:
        arms: Features of the arms that each client is shown, (N, A, d).
        means: Mean reward of each arm, (N, A).
        rewards: What each arm would pay, noise included, (N, A).
        mask: Which arms exist, (N, A); None where all do.
        revealed: Which rewards are known, (N, A); None where all are.
    """

    arms: Floats
    means: Floats
    rewards: Floats
    mask: Bools | None = None
    revealed: Bools | None = None


@runtime_checkable
class Instance(Protocol):
    """One seed of a problem for N clients: pure, so that round l is the same whenever it is asked for."""

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        ...

    def round(self, index: int) -> Round:
        """The arms, means and rewards of a round.

        Args:
            index: Number of the round, from 0 to T−1.
        """
        ...


@runtime_checkable
class Problem(Protocol):
    """A family of instances, one for each seed."""

    def instance(self, *, seed: int, clients: int, rounds: int) -> Instance:
        """The instance that all algorithms of this seed play.

        Args:
            seed: Seed of all that is drawn, from 0. Another one gives other arms and noise.
            clients: Clients N that are shown arms in every round, from 1.
            rounds: Rounds T that will be played, from 1.
        """
        ...
