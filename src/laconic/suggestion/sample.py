"""A sample of points, and of rewards where there are some: given, or what a pilot of random choices would see."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from laconic.arrays import Floats
from laconic.checks import finite_array, require_number, require_whole
from laconic.errors import InputError
from laconic.problems.base import Problem
from laconic.problems.rounds import check_round
from laconic.randomness import Role, generator

#: Larger numbers do not fit into the 32 bits in which they may travel.
LARGEST = 1e30
#: Features whose deviations differ by more than this factor are no scale for one kernel width.
UNEQUAL = 20.0
#: Smaller differences are no scale for anything.
SMALLEST = 1e-30
#: Rewards whose mean is this many deviations from zero should be centred: the algorithms begin with zero.
OFFSET = 20.0
#: A feature whose deviation is this part of its size does not change but for rounding.
STILL = 1e-12


@dataclass(frozen=True, eq=False)
class Sample:
    """Points, perhaps with their rewards, that settings are chosen from.

    Args:
        points: Features, (n, d), a row for each; two points or more, that are not all the same.
        rewards: What each of them paid, (n,), not all the same; None where nothing is known of that.
        drawn_from: How many points there were, of which these were drawn; None where these are all.
        file: The name of the file that they were read from; empty where they were not.
        columns: The names of the features, where their file is a table.
    """

    points: Floats
    rewards: Floats | None = None
    drawn_from: int | None = None
    file: str = ""
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        X = finite_array("X", self.points, ndim=2)
        if len(X) < 2 or X.shape[1] < 1:
            raise InputError(f"X has shape {X.shape}; a suggestion needs two points or more, of one feature or more")
        _refuse_huge("X", X)
        if (X == X[0]).all():
            raise InputError(f"all {len(X)} points of X are the same, so nothing says how wide a kernel is; try others")
        _refuse_flat("X", X)
        object.__setattr__(self, "points", X)
        if self.rewards is not None:
            object.__setattr__(self, "rewards", _checked_rewards(self.rewards, points=len(X)))

    @property
    def dim(self) -> int:
        """The number of features."""
        return int(self.points.shape[1])

    def shuffled(self, most: int, *, seed: int) -> Sample:
        """At most so many of its rows, without return and in random order, by an addressed draw."""
        require_whole("most", most, least=2)
        require_number("seed", seed)
        n = len(self.points)
        rows = generator(seed, Role.SAMPLE, n).permutation(n)[:most]
        rewards = None if self.rewards is None else self.rewards[rows]
        drawn_from = n if n > most else self.drawn_from
        return replace(self, points=self.points[rows], rewards=rewards, drawn_from=drawn_from)

    def remarks(self) -> tuple[str, ...]:
        """What about the features should be mended before they are used."""
        deviations = self.points.std(axis=0)
        still = deviations <= STILL * np.abs(self.points).max(axis=0)
        moving = deviations[~still]
        said = []
        if still.any():
            places = np.flatnonzero(still)
            which = ", ".join(map(str, places[:5])) + (", …" if len(places) > 5 else "")
            said.append(f"Of the features, counted from 0, these never change and could go: {which}.")
        if len(moving) and moving.max() > UNEQUAL * moving.min():
            said.append(
                f"The features' deviations range from {moving.min():.3g} to {moving.max():.3g}. One kernel width "
                "cannot suit all of them: divide each feature by its deviation first."
            )
        y = self.rewards
        if y is not None and abs(y.mean()) > OFFSET * y.std():
            said.append(
                f"Rewards lie around {y.mean():.4g} with a deviation of only {y.std():.2g}, and the algorithms begin "
                "with zero: subtract a constant near their mean first."
            )
        return tuple(said)


def pilot(problem: Problem, *, interactions: int = 500, seed: int = 0) -> Sample:
    """What one client that chooses uniformly at random would see of a problem.

    Of a log in which only the reward of the chosen arm is known, it sees that arm of each event that counts.

    Args:
        problem: The problem that is looked at.
        interactions: Choices that are made, from 2; of a log no more than it has. Raising it takes longer and sees
            more.
        seed: Seed of the problem and of the choices, from 0.

    Examples:
        >>> from laconic import Cosine
        >>> pilot(Cosine(dim=3), interactions=7).points.shape
        (7, 3)
    """
    require_whole("interactions", interactions, least=2)
    require_number("seed", seed)
    sizes = getattr(problem, "sizes", None)
    rounds = interactions if sizes is None else min(interactions, sizes(1, None)[1])
    instance = problem.instance(seed=seed, clients=1, rounds=rounds)
    points, rewards = [], []
    for index in range(rounds):
        met = check_round(instance.round(index), index=index, clients=1, dim=instance.dim)
        known = met.mask if met.revealed is None else met.revealed
        there = np.arange(met.means.shape[1]) if known is None else np.flatnonzero(known[0])
        if len(there):
            arm = there[generator(seed, Role.SAMPLE, index).integers(len(there))]
            points.append(met.arms[0, arm])
            rewards.append(met.rewards[0, arm])
    return Sample(np.array(points).reshape(-1, instance.dim), np.array(rewards))


def _checked_rewards(rewards: object, *, points: int) -> Floats:
    y = finite_array("y", rewards, ndim=1)
    if len(y) != points:
        raise InputError(f"y has {len(y)} rewards for {points} points; try one reward a point")
    _refuse_huge("y", y)
    if (y == y[0]).all():
        raise InputError(f"all {len(y)} rewards are {y[0]:g}, so they say nothing; try without y")
    _refuse_flat("y", y)
    return y


def _refuse_flat(name: str, array: Floats) -> None:
    spread = float(np.ptp(array, axis=0).max())
    if spread < SMALLEST:
        raise InputError(f"{name} differs by {spread:.3g} at most, too little to compute with; rescale it")


def _refuse_huge(name: str, array: Floats) -> None:
    largest = float(np.abs(array).max())
    if largest > LARGEST:
        raise InputError(f"{name} has {largest:.3g} in it, beyond what can travel; rescale, or mend the entry")
