"""The federation is the simulation: over real sockets agents choose what `loopback` chooses, for the same bytes."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from laconic import Catalogue, Cosine, DisKernelUCB
from laconic.algorithms import Algorithm
from laconic.problems.base import Instance
from laconic.protocol.ledger import Count
from laconic.runtimes import loopback
from laconic.runtimes.service.agent import Agent
from laconic.runtimes.service.coordinator import Coordinator
from laconic.testing.runtime_checks import SEED, _algorithms
from tests.service.proxy import Proxy
from tests.service.settling import federation, is_linked, serving, settle, until

CLIENTS, ROUNDS = 4, 9


def named(algorithm: Algorithm) -> str:
    return type(algorithm).__name__


def played(instance: Instance, coordinator: Coordinator, agents: list[Agent]) -> list[int]:
    """Every agent in turn, round by round; all that follows from a reward is waited for."""
    choices = []
    for index in range(ROUNDS):
        round_ = instance.round(index)
        for i, agent in enumerate(agents):
            decision = agent.choose(round_.arms[i])
            agent.observe(decision, float(round_.rewards[i, decision.arm]))
            settle(coordinator, agents)
            choices.append(decision.arm)
    return choices


@pytest.mark.parametrize("repeat", [False, True], ids=["fresh", "repeated"])
@pytest.mark.parametrize("algorithm", _algorithms(), ids=named)
def test_agents_choose_arm_for_arm_what_the_simulation_chooses_for_the_same_bytes(
    algorithm: Algorithm, repeat: bool, tmp_path: Path
) -> None:
    problem = Catalogue(dim=2, items=6, arms=4) if repeat else Cosine(dim=3, arms=5)
    instance = problem.instance(seed=SEED, clients=CLIENTS, rounds=ROUNDS)
    reference = loopback.play(algorithm, instance, clients=CLIENTS, rounds=ROUNDS, seed=SEED)
    with federation(algorithm, tmp_path, dim=instance.dim, clients=CLIENTS, seed=SEED) as (coordinator, agents):
        choices = played(instance, coordinator, agents)
        counted = coordinator.desk.traffic.by_phase()
        crossed = sum((agent.traffic.of("up") + agent.traffic.of("down") for agent in agents), start=Count())
    np.testing.assert_array_equal(choices, reference.choices)
    # What the coordinator counted is what the agents sent and received, and what the simulation's ledger has.
    assert sum(counted.values(), start=Count()) == crossed
    exchanged = {address: count for address, count in counted.items() if address[1] != "greeting"}
    assert exchanged == reference.ledger.by("direction", "phase")


def test_grpc_adds_at_most_two_in_a_hundred_to_large_messages(tmp_path: Path) -> None:
    algorithm = DisKernelUCB(D=1e9)
    with (
        Coordinator(algorithm.plan(20), state=tmp_path / "c.db", serving=serving()) as there,
        Proxy(there.address) as proxy,
        Agent.join(
            proxy.address, name="a", state=tmp_path / "a.db", insecure=True, algorithm=algorithm, dim=20
        ) as agent,
    ):
        until(partial(is_linked, agent))
        settle(there, [agent])
        before, told = proxy.carried, there.desk.traffic.of("up") + there.desk.traffic.of("down")
        agent.learn(np.random.default_rng(0).uniform(-1, 1, (1500, 20)), np.ones(1500))
        agent.flush()
        settle(there, [agent])
        now = there.desk.traffic.of("up") + there.desk.traffic.of("down")
        until(lambda: proxy.carried - before >= now.bytes - told.bytes)
        assert now.bytes - told.bytes > 200_000
        assert proxy.carried - before <= 1.02 * (now.bytes - told.bytes)
