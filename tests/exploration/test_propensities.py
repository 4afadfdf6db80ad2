"""Propensities mean what they say: arms are chosen as often, and rewards weighed by them tell what a policy is worth.

Every test here rejects at the level 10⁻⁴ for each run of it; seeds are fixed, so a test that passes passes always.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import norm

from laconic import (
    UCB,
    Catalogue,
    Chance,
    Choice,
    Client,
    DisKernelUCB,
    EpsilonFloor,
    Gaussian,
    Greedy,
    LaconicUCB,
    NKernelUCB,
    Random,
    Run,
    Shown,
    Softmax,
    Thompson,
    run,
)
from laconic.arrays import Floats
from laconic.exploration import Draws

LEVEL = 1e-4
DRAWS = 10_000
EXPLORATIONS = [
    UCB(),
    Greedy(),
    Softmax(0.5),
    EpsilonFloor(UCB(), 0.3),
    EpsilonFloor(Thompson(), 0.2),
    Thompson(),
    Thompson(joint=False),
]


def require_agreement(arms: list[int], chances: list[Chance]) -> None:
    """Each arm is chosen as often as said, at its share of the level."""
    seen, z = Counter(arms), norm.isf(LEVEL / (2 * len(chances)))
    for arm, chance in enumerate(chances):
        error = math.sqrt(chance.value * (1 - chance.value) / len(arms) + chance.error**2)
        assert abs(seen[arm] / len(arms) - chance.value) <= z * error + 1e-12, (arm, seen[arm] / len(arms), chance)


def client_with(exploration: Any) -> tuple[Client, Floats]:
    """A client that has learnt something of the arms that it is shown, of which one is there twice."""
    arms = np.random.default_rng(5).uniform(-1, 1, (6, 2))
    client = Client(NKernelUCB(Gaussian(0.5), lam=0.5, alpha=0.7, exploration=exploration).plan(2), seed=3)
    client.learn(arms[[0, 1, 2, 2]], [0.3, 0.1, -0.2, 0.1])
    return client, arms[[0, 1, 2, 3, 4, 5, 3]]


def at(shown: Shown, decision: int) -> Shown:
    return replace(shown, draws=Draws(lambda: (7, 0, decision)))


@dataclass(frozen=True)
class Watching(UCB):
    """Notes what it is shown."""

    seen: ClassVar[list[Shown]] = []

    def choose(self, shown: Shown, /) -> Choice:
        self.seen.append(shown)
        return super().choose(shown)


@pytest.mark.parametrize("exploration", EXPLORATIONS, ids=repr)
def test_arms_are_chosen_as_often_as_their_propensities_say_over_10_000_draws(exploration: Any) -> None:
    client, arms = client_with(Watching())
    client.choose(arms)
    shown = Watching.seen[-1]
    choices = [exploration.choose(at(shown, t)) for t in range(DRAWS)]
    require_agreement([choice.arm for choice in choices], [choices[0].chance_of(arm) for arm in range(len(arms))])


def test_the_decisions_of_a_client_are_those_of_its_exploration() -> None:
    client, arms = client_with(EpsilonFloor(Thompson(), 0.2))
    decisions = [client.choose(arms) for _ in range(2000)]
    require_agreement(
        [decision.arm for decision in decisions], [decisions[0].choice.chance_of(arm) for arm in range(len(arms))]
    )
    for decision in decisions[:20]:  # each by draws of its own
        other = decisions[0].choice.chance_of(decision.arm)
        assert abs(decision.propensity - other.value) <= 6 * math.hypot(decision.propensity_error, other.error)


# What a policy is worth


def differences(played: Run, problem: Any, chosen_by: Any) -> Floats:
    """w·r − v of each event: the reward weighed for a policy, less the policy's value there. Zero on average."""
    table = played.log()
    instance = problem.instance(seed=played.seed, clients=played.clients, rounds=played.rounds)
    means = np.concatenate([instance.round(index).means for index in range(played.rounds)])
    policy = np.array([chosen_by(np.array(arms)) for arms in table["arms"].to_pylist()])  # (events, arms) probabilities
    chosen = table["chosen"].to_numpy()
    weights = policy[np.arange(len(chosen)), chosen] / table["propensity"].to_numpy()
    return np.asarray(weights * table["reward"].to_numpy() - (policy * means).sum(axis=1))


def uniformly(arms: Floats) -> Floats:
    return np.full(len(arms), 1 / len(arms))


def by_the_first_feature(arms: Floats) -> Floats:
    return np.asarray(arms[:, 0] == arms[:, 0].max(), dtype=np.float64)


@pytest.mark.parametrize("policy", [uniformly, by_the_first_feature])
@pytest.mark.parametrize(
    "algorithm",
    [
        DisKernelUCB(Gaussian(1.0), D=5.0, lam=0.5, alpha=1.0, exploration=EpsilonFloor(UCB(), 0.3)),
        DisKernelUCB(Gaussian(1.0), D=5.0, lam=0.5, alpha=1.0, exploration=Softmax(0.5)),
        DisKernelUCB(Gaussian(1.0), D=5.0, lam=0.5, alpha=1.0, exploration=EpsilonFloor(Thompson(), 0.2)),
        NKernelUCB(Gaussian(1.0), lam=1.0, alpha=1.0, exploration=Thompson(joint=False)),
        LaconicUCB(Gaussian(1.0), lam=0.3, alpha=1.0, delta=0.5, exploration=EpsilonFloor(Greedy(), 0.4)),
        Random(),
    ],
    ids=lambda each: f"{type(each).__name__} {getattr(each, 'exploration', '')}",
)
def test_rewards_weighed_by_propensities_give_the_value_of_another_policy(algorithm: Any, policy: Any) -> None:
    problem = Catalogue(dim=3, items=12, arms=5)
    runs = [run(algorithm, problem, clients=4, rounds=50, seed=seed, log=True) for seed in range(6)]
    found = np.concatenate([differences(each, problem, policy) for each in runs])
    interval = norm.isf(LEVEL / 2) * found.std() / math.sqrt(len(found))
    assert abs(found.mean()) <= interval
    assert interval < 0.5  # of rewards between −1 and 1: it says something


def test_without_the_weights_the_same_estimate_is_far_off() -> None:
    problem = Catalogue(dim=3, items=12, arms=5)
    algorithm = DisKernelUCB(Gaussian(1.0), D=5.0, lam=0.5, alpha=1.0, exploration=EpsilonFloor(UCB(), 0.3))
    runs = [run(algorithm, problem, clients=4, rounds=50, seed=seed, log=True) for seed in range(6)]
    rewards = np.concatenate([each.log()["reward"].to_numpy() for each in runs])
    weighed = np.concatenate([differences(each, problem, uniformly) for each in runs])
    instances = [problem.instance(seed=seed, clients=4, rounds=50) for seed in range(6)]
    value = np.mean([each.round(index).means.mean() for each in instances for index in range(50)])
    interval = norm.isf(LEVEL / 2) * weighed.std() / math.sqrt(len(weighed))
    assert rewards.mean() - value > interval
