"""The paper's synthetic problems: fresh arms uniform in the unit ball at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_at_least, require_no_grid, require_product, require_whole
from laconic.problems.base import Round
from laconic.problems.rounds import check_opening
from laconic.randomness import Role, generator

Reward = Callable[[Floats], Floats]


def cosine_reward(u: Floats) -> Floats:
    """f1 = cos(3u) of u = xᵀθ."""
    return np.cos(3.0 * u)


def polynomial_reward(u: Floats) -> Floats:
    """f2 = u³ − 3u² − u + 3 of u = xᵀθ."""
    return ((u - 3.0) * u - 1.0) * u + 3.0


REWARDS: Mapping[str, Reward] = {"cosine": cosine_reward, "polynomial": polynomial_reward}


def in_ball(normals: Floats) -> Floats:
    """Points uniform in the unit ball of R^d, from d + 2 standard normals each.

    A point uniform on the sphere of R^(d+2) without its last two coordinates is uniform in the ball of R^d.
    """
    points: Floats = normals[..., :-2] / np.linalg.norm(normals, axis=-1, keepdims=True)
    return points


def draw_theta(seed: int, *, dim: int) -> Floats:
    """θ uniform in the unit ball, the same for every problem of this seed."""
    return in_ball(generator(seed, Role.THETA).standard_normal(dim + 2))


def inner(points: Floats, theta: Floats) -> Floats:
    """xᵀθ summed row by row, as BLAS may round a row differently in a longer array."""
    return np.asarray((points * theta).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class FreshArms:
    """One seed of a synthetic problem."""

    reward: Reward
    theta: Floats
    arms: int
    noise: float
    seed: int
    clients: int

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return len(self.theta)

    def round(self, index: int) -> Round:
        """One generator a round, read client by client, so that more clients leave the first ones' arms as they are."""
        a, d = self.arms, self.dim
        rows = generator(self.seed, Role.ROUND, index).standard_normal((self.clients, a * (d + 2) + 1))
        arms = in_ball(rows[:, :-1].reshape(self.clients, a, d + 2))
        means = self.reward(inner(arms, self.theta))
        return Round(arms, means=means, rewards=means + self.noise * rows[:, -1:])


@dataclass(frozen=True)
class Cosine:
    """Fresh arms in the unit ball at every step; mean reward f1 = cos(3xᵀθ).

    Args:
        dim: Number of features d of an arm, from 1. Raising it makes the problem harder.
        arms: Arms shown at every step, from 1. Raising it makes the best of them better, so that a wrong choice costs
            more; with 1 there is nothing to choose.
        noise: Standard deviation of the reward around its mean, at least 0, in units of rewards. Raising it takes more
            observations to tell arms apart.

    Examples:
        >>> Cosine(dim=2, arms=5).instance(seed=0, clients=3, rounds=1).round(0).arms.shape
        (3, 5, 2)
    """

    dim: int = 20
    arms: int = 20
    noise: float = 0.1

    def __post_init__(self) -> None:
        check_sizes(dim=self.dim, arms=self.arms, noise=self.noise)

    def instance(self, *, seed: int, clients: int, rounds: int) -> FreshArms:
        """θ, arms and noise of one seed."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        theta = draw_theta(seed, dim=self.dim)
        return FreshArms(cosine_reward, theta=theta, arms=self.arms, noise=self.noise, seed=seed, clients=clients)


@dataclass(frozen=True)
class PolynomialReward:
    """Fresh arms in the unit ball at every step; mean reward f2 = (xᵀθ)³ − 3(xᵀθ)² − xᵀθ + 3.

    Args:
        dim: Number of features d of an arm, from 1. Raising it makes the problem harder.
        arms: Arms shown at every step, from 1. Raising it makes the best of them better, so that a wrong choice costs
            more; with 1 there is nothing to choose.
        noise: Standard deviation of the reward around its mean, at least 0, in units of rewards. Raising it takes more
            observations to tell arms apart.
    """

    dim: int = 20
    arms: int = 20
    noise: float = 0.1

    def __post_init__(self) -> None:
        check_sizes(dim=self.dim, arms=self.arms, noise=self.noise)

    def instance(self, *, seed: int, clients: int, rounds: int) -> FreshArms:
        """θ, arms and noise of one seed."""
        check_opening(seed=seed, clients=clients, rounds=rounds)
        theta = draw_theta(seed, dim=self.dim)
        return FreshArms(polynomial_reward, theta=theta, arms=self.arms, noise=self.noise, seed=seed, clients=clients)


def check_sizes(*, dim: object, arms: object, noise: object) -> None:
    """Refuse the sizes that no synthetic problem has."""
    require_no_grid(dim=dim, arms=arms, noise=noise)
    require_whole("dim", dim, least=1)
    require_whole("arms", arms, least=1)
    require_product(arms=arms, dim=dim)
    require_at_least("noise", noise, least=0)
