"""Many agents, and many syncs: how long they take, and what the coordinator holds (``python -m benchmarks.scale``).

The coordinator is in a process of its own, all agents are in this one. Nothing is judged here by itself; the figures
are those of docs/deployment.md.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.service import Elsewhere, elsewhere
from laconic import Agent, ApproxDisKernelUCB, Gaussian, LaconicUCB
from laconic.algorithms import Algorithm

DIM = 20
TOGETHER = ApproxDisKernelUCB(Gaussian(gamma=0.5), D=1e9, qbar=1e9, lam=0.1)
ALONE = LaconicUCB(Gaussian(gamma=0.5))
ALGORITHMS: dict[str, Algorithm] = {"together": TOGETHER, "alone": ALONE}
WAIT = 300.0  # seconds
ROWS = 10


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--together", type=int, default=200, help="agents that sync together")
    parser.add_argument("--alone", type=int, default=500, help="agents that exchange alone")
    parser.add_argument("--dictionary", type=int, default=200, help="points of those that sync together")
    parser.add_argument("--syncs", type=int, default=1000, help="syncs of two agents, one after the other")
    given = parser.parse_args()
    for count in (given.together // 10, given.together):
        if count:
            together(count, dictionary=given.dictionary)
    if given.alone:
        alone(given.alone)
    if given.syncs:
        syncs(given.syncs)


@contextmanager
def _agents(way: str, count: int) -> Iterator[tuple[list[Agent], Elsewhere]]:
    algorithm = ALGORITHMS[way]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        there = stack.enter_context(elsewhere(way, Path(folder)))

        def join(number: int) -> Agent:
            state = Path(folder) / f"{number}.db"
            return Agent.join(
                there.address, name=f"{number}", state=state, insecure=True, algorithm=algorithm, dim=DIM, seed=number
            )

        yield [stack.enter_context(join(number)) for number in range(count)], there


def together(count: int, *, dictionary: int) -> None:
    """One sync of many agents that share a dictionary."""
    draw = np.random.default_rng(0)
    with _agents("together", count) as (agents, there):
        for agent in agents:
            agent.learn(draw.uniform(-0.25, 0.25, (dictionary // count or 1, DIM)), np.ones(dictionary // count or 1))
        while not all(agent.status().linked for agent in agents):
            time.sleep(0.01)
        agents[0].flush(WAIT)  # everyone who is there takes part
        before = there.memory()
        agents[0].learn(draw.uniform(-0.25, 0.25, (1, DIM)), [1.0])
        begun = time.perf_counter()
        agents[0].flush(WAIT)
        newest = agents[0].status().epoch
        while any(agent.status().epoch < newest for agent in agents):
            time.sleep(0.01)
        seconds = time.perf_counter() - begun
        size = agents[0].look(lambda client: client.learner.belief.dictionary_size)
        print(
            f"{count:5d} agents together, dictionary of {size}: one sync {seconds:.2f} s; the coordinator holds "
            f"{there.memory():.0f} MB (before it {before:.0f}, at most {there.memory('VmHWM'):.0f}); one part of each "
            f"is {count * 8 * size**2 / 1e6:.0f} MB",
            flush=True,
        )


def alone(count: int) -> None:
    """Many agents that flush at a time."""
    draw = np.random.default_rng(0)
    with _agents("alone", count) as (agents, there):
        for agent in agents:
            agent.learn(draw.uniform(-0.25, 0.25, (2, DIM)), draw.normal(size=2))
        errors: list[str] = []

        def flush(some: list[Agent]) -> None:
            for agent in some:
                try:
                    agent.flush(WAIT)
                except Exception as error:
                    errors.append(str(error))

        begun = time.perf_counter()
        threads = [threading.Thread(target=flush, args=(agents[first::20],)) for first in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(
            f"{count:5d} agents alone: all flushed in {time.perf_counter() - begun:.2f} s with {len(errors)} errors; "
            f"the coordinator holds {there.memory():.0f} MB",
            flush=True,
        )


def syncs(count: int) -> None:
    """Two agents and many syncs: what the coordinator holds after each tenth of them."""
    draw = np.random.default_rng(0)
    catalogue = draw.uniform(-0.25, 0.25, (50, DIM))
    with _agents("together", 2) as (agents, there):
        for agent in agents:
            agent.learn(catalogue, draw.normal(size=len(catalogue)))
            agent.flush(WAIT)
        for done in range(1, count + 1):
            agents[done % 2].learn(catalogue[done % 50 : done % 50 + 1], [1.0])
            agents[done % 2].flush(WAIT)
            if done % max(count // ROWS, 1) == 0:
                print(f"{done:5d} syncs: the coordinator holds {there.memory():.2f} MB", flush=True)


if __name__ == "__main__":
    main()
