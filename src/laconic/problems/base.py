"""What a problem is: a value that opens into an instance, which makes one round at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from laconic.arrays import Bools, Floats


@dataclass(frozen=True)
class Round:
    """What the N clients meet in one round: row i belongs to client i.

    ``rewards`` holds what each arm would pay if chosen, so every algorithm meets the same noise.
    ``mask`` is None when every client has all A arms; otherwise True marks the arms that exist. ``revealed`` is None
    when every reward is known; otherwise True marks those that are, and whoever chooses another arm learns nothing.
    """

    arms: Floats  # (N, A, d)
    means: Floats  # (N, A)
    rewards: Floats  # (N, A)
    mask: Bools | None = None  # (N, A)
    revealed: Bools | None = None  # (N, A)


@runtime_checkable
class Instance(Protocol):
    """One seed of a problem for N clients: pure, so that round l is the same whenever it is asked for."""

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        ...

    def round(self, index: int) -> Round:
        """The arms, means and rewards of round ``index`` = 0 … T−1."""
        ...


@runtime_checkable
class Problem(Protocol):
    """A family of instances, one a seed."""

    def instance(self, *, seed: int, clients: int, rounds: int) -> Instance:
        """The instance that all algorithms of this seed play."""
        ...
