"""A soak: agents and their coordinator as processes, killed at random and started again; at the end nothing is lost.

``python -m tests.service.soak --seconds 600 --agents 8 --kind together``; `make faults` runs it.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from laconic.runtimes.service.coordinator import Coordinator
from tests.service.dying import DIFFERENT
from tests.service.test_faults import TABLES, addresses, agree, coordinator, here, rewards_of, started, written

PAUSE, GAP = 0.1, 100  # seconds between rewards of an agent; numbers left out between two of its starts


class Soaked:
    """The processes of a federation, and what the agents were promised."""

    def __init__(self, folder: Path, *, kind: str, agents: int, port: int) -> None:
        self.kind, self.folder, self.address = kind, folder, f"127.0.0.1:{port}"
        self.names = [f"agent-{number}" for number in range(agents)]
        self.promised: dict[str, list[int]] = {name: [] for name in self.names}
        self.kills = dict.fromkeys([*self.names, "coordinator"], 0)
        self._file = written(folder, kind, port)
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._listeners: list[threading.Thread] = []
        for name in ["coordinator", *self.names]:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a process, for the first time or again."""
        if name == "coordinator":
            process = started("serve", self._file, stderr=(self.folder / "coordinator.log").open("a"))
            try:
                addresses(process)
            except AssertionError:
                raise AssertionError((self.folder / "coordinator.log").read_text()[-2000:]) from None
        else:
            first = GAP * (self.kills[name] + 1) + (self.promised[name] or [0])[-1]
            process = started(
                *("agent", self.address, self.folder / f"{name}.db", name, first, 10**9, PAUSE),
                stderr=(self.folder / f"{name}.log").open("a"),
            )
            listener = threading.Thread(target=self._listen, args=(name, process))
            listener.start()
            self._listeners.append(listener)
        self._processes[name] = process

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit() and line.endswith("\n"):
                self.promised[name].append(int(line))

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL."""
        self._processes[name].kill()
        self._processes[name].wait()
        self.kills[name] += 1

    def end(self) -> None:
        """Kill all of them."""
        for name in self._processes:
            self.kill(name)
        for listener in self._listeners:
            listener.join()

    def check(self) -> str:
        """Start everything anew in this process, and compare what is there with what was promised."""
        with coordinator(self.folder, self.kind, bind=self.address) as there:
            agents = [here(self.address, self.folder, name, kind=self.kind) for name in self.names]
            try:
                for agent in agents:
                    agent.reconnect()
                agree(there, agents)
                for agent in agents:
                    self._check_one(agent.name, rewards_of(agent))
                return self._said(there)
            finally:
                for agent in agents:
                    agent.close()

    def _check_one(self, name: str, found: list[int]) -> None:
        """What was promised is there in order; between two starts one more may be there, whose promise got lost."""
        rest = iter(found)
        lost = [reward for reward in self.promised[name] if reward % DIFFERENT not in rest]
        assert not lost, f"{name} lost {len(lost)} observations, the first of them {lost[0]}"
        extra = len(found) - len(self.promised[name])
        assert 0 <= extra <= self.kills[name], f"{name} has {extra} observations more than it was told of"

    def _said(self, there: Coordinator) -> str:
        promised = sum(map(len, self.promised.values()))
        kills = sum(self.kills.values()) - len(self.kills)
        return (
            f"{self.kind}: {kills} kills, {self.kills['coordinator'] - 1} of them of the coordinator; "
            f"{promised} observations acknowledged, {there.status()['observations']} at the coordinator, 0 lost"
        )


def soak(*, seconds: float, agents: int, kind: str, seed: int, port: int = 0) -> str:
    """Kill at random for some time; what came of it, or an error."""
    import socket

    if port == 0:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = int(listener.getsockname()[1])
    draw = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="laconic-soak-") as folder:
        soaked = Soaked(Path(folder), kind=kind, agents=agents, port=port)
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                time.sleep(draw.uniform(0.5, 3.0))
                victim = str(draw.choice(["coordinator", *soaked.names]))
                soaked.kill(victim)
                time.sleep(draw.uniform(0.0, 1.0))
                soaked.start(victim)
        finally:
            soaked.end()
        return soaked.check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--kind", choices=[*TABLES], action="append")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for kind in given.kind or [*TABLES]:
        print(soak(seconds=given.seconds, agents=given.agents, kind=kind, seed=given.seed), flush=True)


if __name__ == "__main__":
    main()
