"""Arms from a fixed catalogue, as in a shop or a newsroom: points repeat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_no_grid, require_one_of, require_product, require_whole
from laconic.errors import InputError
from laconic.problems.base import Round
from laconic.problems.rounds import check_opening
from laconic.problems.synthetic import REWARDS, check_sizes, draw_theta, in_ball, inner
from laconic.randomness import Role, generator


@dataclass(frozen=True, eq=False)
class CatalogueInstance:
    """One seed of a catalogue: its items (items, d) and what each pays on average."""

    items: Floats
    values: Floats
    arms: int
    noise: float
    seed: int
    clients: int

    @property
    def dim(self) -> int:
        """The number of features of an item."""
        return int(self.items.shape[1])

    def round(self, index: int) -> Round:
        """Each client is shown distinct items in random order: those with the smallest of random keys."""
        rows = generator(self.seed, Role.ROUND, index).standard_normal((self.clients, len(self.items) + 1))
        shown = np.argsort(rows[:, :-1], axis=1, kind="stable")[:, : self.arms]
        means = self.values[shown]
        return Round(self.items[shown], means=means, rewards=means + self.noise * rows[:, -1:])


@dataclass(frozen=True)
class Catalogue:
    """Each step's arms are drawn from a fixed catalogue of items, so points repeat; mean reward f1 or f2.

    Args:
        reward: Mean reward of u = xᵀθ: cosine is cos(3u), polynomial is u³ − 3u² − u + 3.
        items: Items in the catalogue, at least as many as arms. Raising it makes points repeat less: there is more to
            learn, and more to send.
        dim: Number of features d of an arm, from 1. Raising it makes the problem harder.
        arms: Arms shown at every step, all different, from 1 to items. Raising it makes the best of them better, so
            that a wrong choice costs more; with 1 there is nothing to choose.
        noise: Standard deviation of the reward around its mean, at least 0, in units of rewards. Raising it takes more
            observations to tell arms apart.

    Examples:
        >>> instance = Catalogue().instance(seed=0, clients=2, rounds=1)
        >>> instance.items.shape, instance.round(0).arms.shape
        ((30, 10), (2, 10, 10))
    """

    reward: str = "cosine"
    items: int = 30
    dim: int = 10
    arms: int = 10
    noise: float = 0.1

    def __post_init__(self) -> None:
        require_no_grid(reward=self.reward, items=self.items)
        require_one_of("reward", self.reward, choices=REWARDS)
        check_sizes(dim=self.dim, arms=self.arms, noise=self.noise)
        require_whole("items", self.items, least=1)
        require_product(items=self.items, dim=self.dim)
        if self.arms > self.items:
            raise InputError(
                f"arms={self.arms} distinct arms cannot come from items={self.items}; try items={self.arms} or more"
            )

    def instance(self, *, seed: int, clients: int, rounds: int) -> CatalogueInstance:
        """θ and items of one seed, uniform in the unit ball."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        items = in_ball(generator(seed, Role.CATALOGUE).standard_normal((self.items, self.dim + 2)))
        values = REWARDS[self.reward](inner(items, draw_theta(seed, dim=self.dim)))
        return CatalogueInstance(items, values=values, arms=self.arms, noise=self.noise, seed=seed, clients=clients)
