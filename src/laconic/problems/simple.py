"""A problem of one's own from two functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.checks import real_array, require_at_least
from laconic.errors import InputError, ProblemError
from laconic.problems.base import Round
from laconic.problems.rounds import check_opening, check_round
from laconic.randomness import Role, generator

Mean = Callable[[Floats], Floats]
Arms = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, eq=False)
class FromFunctionsInstance:
    """One seed of a problem made from functions."""

    problem: FromFunctions
    seed: int
    clients: int
    dim: int

    def round(self, index: int) -> Round:
        """Arms, then noise, from the round's own generator."""
        rng = generator(self.seed, Role.ROUND, index)
        arms = self.problem.draw(rng, clients=self.clients)
        means = self.problem.means(arms)
        rewards = means + self.problem.noise * rng.standard_normal((self.clients, 1))
        return check_round(Round(arms, means=means, rewards=rewards), index=index, clients=self.clients, dim=self.dim)


@dataclass(frozen=True)
class FromFunctions:
    """Your own problem: ``mean`` of rows of features, and ``arms`` of (rng, clients) → (clients, arms, d).

    Args:
        mean: Function of points (n, d) that gives their mean rewards, (n,).
        arms: Function of a random generator and the number of clients that gives the arms of a round, (clients, arms,
            d). More arms make the best of them better, so that a wrong choice costs more.
        noise: Standard deviation of the reward around its mean, at least 0, in units of rewards. Raising it takes more
            observations to tell arms apart.

    Examples:
        >>> problem = FromFunctions(
        ...     mean=lambda x: 1 - (x**2).sum(axis=1),
        ...     arms=lambda rng, clients: rng.uniform(-1, 1, size=(clients, 10, 2)),
        ... )
        >>> problem.instance(seed=0, clients=4, rounds=1).round(0).means.shape
        (4, 10)
    """

    mean: Mean
    arms: Arms
    noise: float = 0.1

    def __post_init__(self) -> None:
        for name, function in (("mean", self.mean), ("arms", self.arms)):
            if not callable(function):
                raise InputError(f"{name} must be a function, not {type(function).__name__}; see FromFunctions")
        require_at_least("noise", self.noise, least=0)

    def instance(self, *, seed: int, clients: int, rounds: int) -> FromFunctionsInstance:
        """One seed; its first round is made at once, so that functions that do not fit are refused here."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        dim = self.draw(generator(seed, Role.ROUND, 0), clients=clients).shape[2]
        instance = FromFunctionsInstance(self, seed=seed, clients=clients, dim=dim)
        instance.round(0)
        return instance

    def draw(self, rng: np.random.Generator, *, clients: int) -> Floats:
        """The arms of a round."""
        arms = _returned("arms", self.arms(rng, clients), ndim=3)
        if len(arms) != clients:
            raise ProblemError(f"arms() returned shape {arms.shape} for {clients} clients; try one row for each client")
        if arms.shape[2] == 0:
            raise ProblemError(f"arms() returned shape {arms.shape}; try at least one feature for each arm")
        return arms

    def means(self, arms: Floats) -> Floats:
        """The mean reward of each arm."""
        rows = arms.reshape(-1, arms.shape[2])
        means = _returned("mean", self.mean(rows), ndim=1)
        if len(means) != len(rows):
            raise ProblemError(f"mean() returned {len(means)} numbers for {len(rows)} points; try one for each row")
        return means.reshape(arms.shape[:2])


def _returned(function: str, value: object, *, ndim: int) -> Floats:
    try:
        return real_array(f"what {function}() returned", value, ndim=ndim)
    except InputError as error:
        raise ProblemError(str(error)) from None
