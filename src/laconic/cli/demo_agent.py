"""One agent of ``laconic demo-federation``, as a process of its own: it plays its part of a problem, round by round.

It tells what it does on stdout, one JSON object for each line. Started again, it goes on after the last round whose
reward is in its state file.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import msgspec
import numpy as np

from laconic.algorithms import Algorithm, LaconicUCB
from laconic.arrays import Floats
from laconic.kernels import Gaussian
from laconic.problems import Cosine
from laconic.problems.base import Instance
from laconic.runtimes.service.agent import Agent
from laconic.runtimes.threads import one_thread

PROBLEM = Cosine(dim=4, arms=10)
ALGORITHM: Algorithm = LaconicUCB(Gaussian(gamma=0.5), lam=0.1, alpha=0.3)
#: The same as a configuration file has it.
TABLE: dict[str, Any] = {
    "name": "LaconicUCB",
    "lam": 0.1,
    "alpha": 0.3,
    "kernel": {"name": "Gaussian", "gamma": 0.5},
}


class Part(msgspec.Struct, frozen=True):
    """Which agent of how many this is, and what it plays."""

    address: str
    state: str
    number: int
    agents: int
    rounds: int
    seed: int
    pause: float  # seconds between rounds

    @property
    def instance(self) -> Instance:
        """What all agents play."""
        return PROBLEM.instance(seed=self.seed, clients=self.agents, rounds=self.rounds)


def say(**values: Any) -> None:
    """Tell whoever started this."""
    print(json.dumps(values), flush=True)


def play(part: Part) -> None:
    """Play the rounds that are left, share everything, and tell how it went."""
    instance = part.instance
    with Agent.join(
        part.address, name=f"agent-{part.number}", state=part.state, insecure=True, seed=part.seed
    ) as agent:
        begun = agent.status().observations
        for index in range(begun, part.rounds):
            round_ = instance.round(index)
            decision = agent.choose(round_.arms[part.number])
            agent.observe(decision, float(round_.rewards[part.number, decision.arm]))
            say(round=index + 1)
            time.sleep(part.pause)
        agent.flush(timeout=60.0)
        status = agent.status()
        points = agent.look(lambda client: client.learner.history.points)
        sent = {"bytes": status.bytes_sent + status.bytes_received, "begun": begun}
        say(done=status.observations, shared=status.shared, regret=regret(instance, part.number, points), **sent)


def regret(instance: Instance, number: int, points: Floats) -> float:
    """The regret of what is in the state file: which arm each of its points is, and what the best would have paid."""
    total = 0.0
    for index, point in enumerate(points):
        round_ = instance.round(index)
        arm = int(
            np.argmin(((round_.arms[number] - point) ** 2).sum(axis=1))
        )  # points are kept as they travel, rounded
        total += float(round_.means[number].max() - round_.means[number, arm])
    return total


if __name__ == "__main__":
    with one_thread():
        play(msgspec.json.decode(sys.argv[1], type=Part))
