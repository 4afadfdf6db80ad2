"""Real faults of real processes: whatever is killed, stopped or cut, nothing that was acknowledged is lost.

Every agent's rewards are numbers of their own, so that each observation is known wherever it turns up.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import Agent, ApproxDisKernelUCB, DisKernelUCB, Gaussian, LaconicUCB
from laconic.algorithms import Algorithm
from laconic.beliefs import belief_hash
from laconic.errors import LinkError
from laconic.protocol.roster import Patience
from laconic.runtimes.service.coordinator import Coordinator
from tests.service.proxy import Proxy
from tests.service.settling import PATIENCE, is_linked, linked_again, serving, until

DIM = 2
TOGETHER = {"name": "ApproxDisKernelUCB", "D": 1.0, "qbar": 3.0}
ALONE = {"name": "LaconicUCB", "reward": 4.0}
TABLES = {"together": TOGETHER, "alone": ALONE}
NEVER = "never"
SCRIPT = str(Path(__file__).with_name("dying.py"))


def algorithm(kind: str) -> Algorithm:
    return ApproxDisKernelUCB(D=1.0, qbar=3.0) if kind == "together" else LaconicUCB(reward=4.0)


def coordinator(folder: Path, kind: str, **options: Any) -> Coordinator:
    plan = algorithm(kind).plan(DIM)
    return Coordinator(plan, state=folder / "c.db", serving=serving(**options), algorithm=TABLES[kind])


def here(address: str, folder: Path, name: str, *, kind: str) -> Agent:
    """An agent in this process."""
    state = folder / f"{name}.db"
    return Agent.join(address, name=name, state=state, insecure=True, algorithm=algorithm(kind), dim=DIM)


def started(
    *arguments: object,
    where: str = NEVER,
    at: int = 0,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """A process of a federation, which kills itself at a store."""
    command = [sys.executable, SCRIPT, where, str(at), *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
    return subprocess.Popen(command, text=True, env=variables, **{**pipes, **options})


def acknowledged(process: subprocess.Popen[str]) -> list[int]:
    """Rewards that a process was told it may rely on, until it died or was done."""
    assert process.stdout is not None
    rewards = []
    for line in process.stdout:
        if line.strip().isdigit():
            rewards.append(int(line))
        elif line.strip() == "done":
            break
    return rewards


def ended(process: subprocess.Popen[str]) -> None:
    """Let a process end by itself."""
    out, err = process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0, out + err


def rewards_of(agent: Agent) -> list[int]:
    """The numbers that an agent's own observations bear."""
    history = agent._diary.look(lambda client: client.learner.history.rewards)
    return [round(1024 * each) for each in history.tolist()]


def agree(there: Coordinator, agents: list[Agent]) -> None:
    """After flushes nobody lacks anything, and all who hold an epoch hold the same."""
    for agent in agents:
        agent.flush(timeout=PATIENCE)
    own = {agent.name: agent.status().observations for agent in agents}
    until(lambda: {agent.name: agent.status().shared for agent in agents} == own)
    if there.plan.digest is not None:
        until(lambda: {each["name"]: each["observations"] for each in there.status()["members"]} == own)
        assert there.status()["log"] == sum(own.values())
    else:
        until(lambda: {mark(agent) for agent in agents} == {belief_hash(there.desk.server.belief)})
        assert {agent.name: agent.status().covered for agent in agents} == own


def mark(agent: Agent) -> int:
    """A hash of the belief that an agent holds."""
    return belief_hash(agent._diary.look(lambda client: client.learner.belief))


# -- killed agents -----------------------------------------------------------------------------------------------------

#: Where an agent dies, and at which of its stores: while it greets, learns, contributes, absorbs, installs.
DEATHS = [("before", 4), ("within", 7), ("after", 9), ("within", 14), ("after", 21)]


@pytest.mark.parametrize("kind", TABLES)
def test_an_agent_that_is_killed_at_any_store_loses_nothing_that_it_acknowledged(kind: str, tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, kind, patience=Patience(seconds=1.0)) as there,
        here(there.address, tmp_path, "other", kind=kind) as other,
    ):
        other.learn(np.random.default_rng(0).uniform(-1, 1, (5, DIM)), np.full(5, 3.0))
        promised: list[int] = []
        for turn, (where, at) in enumerate(DEATHS):
            process = started(*("agent", there.address, tmp_path / "a.db", "a", 100 * turn, 40), where=where, at=at)
            promised += acknowledged(process)
            process.communicate("\n", timeout=PATIENCE)
            assert process.returncode == -signal.SIGKILL
        with here(there.address, tmp_path, "a", kind=kind) as again:
            found = rewards_of(again)
            assert set(promised) <= set(found)
            assert len(set(found)) == len(found)  # none came twice, also where the promise did not get out
            assert len(found) <= len(promised) + len(DEATHS)
            agree(there, [again, other])


def test_an_agent_that_is_stopped_holds_up_nobody_for_longer_than_patience(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, "together", patience=Patience(seconds=1.0)) as there,
        here(there.address, tmp_path, "other", kind="together") as other,
    ):
        process = started("agent", there.address, tmp_path / "a.db", "a", 0, 3)
        rewards = acknowledged(process)
        os.kill(process.pid, signal.SIGSTOP)
        other.learn(np.random.default_rng(0).uniform(-1, 1, (5, DIM)), np.full(5, 3.0))
        other.flush(timeout=PATIENCE)
        assert other.status().covered == 5
        os.kill(process.pid, signal.SIGCONT)
        ended(process)
        with here(there.address, tmp_path, "a", kind="together") as again:
            assert rewards_of(again) == rewards
            agree(there, [again, other])


# -- a killed coordinator ----------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def written(folder: Path, kind: str, port: int, **more: Any) -> Path:
    """The file of a federation."""
    table = TABLES[kind]
    lines = [f"dim = {DIM}", 'state = "c.db"', f'bind = "127.0.0.1:{port}"', "insecure = true", 'http = "127.0.0.1:0"']
    lines += [f"{name} = {json.dumps(value)}" for name, value in more.items()]
    lines += ["[patience]", "seconds = 2.0", "[algorithm]", *(f"{key} = {json.dumps(v)}" for key, v in table.items())]
    (folder / "federation.toml").write_text("\n".join(lines))
    return folder / "federation.toml"


def addresses(process: subprocess.Popen[str]) -> dict[str, str]:
    """Where a coordinator that has started serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr and process.stderr.read()
    found: dict[str, str] = json.loads(line)
    return found


@contextmanager
def running(file: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = started("serve", file, **options)
    try:
        yield process
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
        print(said)  # pytest shows it where the test failed


@pytest.mark.parametrize("kind", TABLES)
def test_a_coordinator_that_is_killed_before_or_after_an_epoch_is_durable_loses_nothing(
    kind: str, port: int, tmp_path: Path
) -> None:
    file, address = written(tmp_path, kind, port), f"127.0.0.1:{port}"
    with here(address, tmp_path, "a", kind=kind) as one, here(address, tmp_path, "b", kind=kind) as two:
        reward = 0
        for where, at in [("before", 5), ("within", 4), ("after", 4), ("after", 3)]:
            process = started("serve", file, where=where, at=at, stderr=subprocess.DEVNULL)
            addresses(process)
            for agent in (one, two):
                agent.reconnect()
            while process.poll() is None:
                for agent in (one, two):
                    reward += 1
                    agent.learn(np.random.default_rng(reward).uniform(-1, 1, (1, DIM)), [reward / 1024])
                    try:
                        agent.flush(timeout=0.3)
                    except LinkError:
                        continue
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        with coordinator(tmp_path, kind, bind=address) as there:
            for agent in (one, two):
                agent.reconnect()
            agree(there, [one, two])
            assert sorted(rewards_of(one) + rewards_of(two)) == list(range(1, reward + 1))


def test_a_coordinator_stops_gracefully_on_sigterm_and_reads_names_again_on_sighup(port: int, tmp_path: Path) -> None:
    file = written(tmp_path, "alone", port, names=["a"])
    with running(file) as process:
        where = addresses(process)
        with here(where["address"], tmp_path, "b", kind="alone") as agent:
            until(lambda: "not among the names" in (agent.status().link_error or ""))
            written(tmp_path, "alone", port, names=["a", "b"])
            process.send_signal(signal.SIGHUP)
            until(partial(linked_again, agent))
            agent.learn([[0.1, 0.2]], [1.0])
            agent.flush(timeout=PATIENCE)
            process.terminate()
            until(lambda: not agent.status().linked)
            assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        events = [json.loads(line) for line in process.stderr if line.startswith("{")]
    assert events[-1]["event"] == "stopped"
    assert {"serving", "greeted", "refused", "names read again"} <= {each["event"] for each in events}
    with coordinator(tmp_path, "alone") as there:
        assert there.status()["observations"] == 1


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_links_that_are_cut_again_and_again_lose_nothing(kind: str, tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, kind, patience=Patience(seconds=1.0)) as there,
        Proxy(there.address) as proxy,
        here(proxy.address, tmp_path, "a", kind=kind) as one,
        here(proxy.address, tmp_path, "b", kind=kind) as two,
    ):
        cuts = 0
        for reward in range(1, 60):
            agent = (one, two)[reward % 2]
            agent.learn(np.random.default_rng(reward).uniform(-1, 1, (1, DIM)), [reward / 1024])
            if reward % 6 == 0:
                until(partial(linked_again, agent))
                cuts += proxy.cut()
        assert cuts >= 5
        for agent in (one, two):
            agent.reconnect()
        agree(there, [one, two])
        assert sorted(rewards_of(one) + rewards_of(two)) == list(range(1, 60))


def test_slow_and_late_links_still_bring_everything(tmp_path: Path) -> None:
    exact = DisKernelUCB(Gaussian(1.0), D=1e6)
    plan = exact.plan(DIM)
    with (
        Coordinator(plan, state=tmp_path / "c.db", serving=serving(patience=Patience(seconds=60.0))) as there,
        Proxy(there.address, rate=10_000.0) as slow,
        Proxy(there.address, seconds=2.0) as late,
        Agent.join(slow.address, name="a", state=tmp_path / "a.db", insecure=True, algorithm=exact, dim=DIM) as one,
        Agent.join(late.address, name="b", state=tmp_path / "b.db", insecure=True, algorithm=exact, dim=DIM) as two,
    ):
        for agent in (one, two):
            until(partial(is_linked, agent))
        one.learn(np.random.default_rng(1).uniform(-1, 1, (500, DIM)), np.ones(500))
        two.learn(np.random.default_rng(2).uniform(-1, 1, (500, DIM)), np.ones(500))
        one.choose([[0.1, 0.2]])
        two.flush(timeout=PATIENCE)
        assert two.status().covered == 500
        until(lambda: one.status().covered == 500)
        assert one.status().epoch == two.status().epoch == 1  # a flush that takes long asks for one sync all the same


@pytest.mark.parametrize("kind", TABLES)
def test_links_that_are_two_seconds_late_lose_nothing(kind: str, tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, kind) as there,
        Proxy(there.address, seconds=2.0) as proxy,
        here(proxy.address, tmp_path, "a", kind=kind) as one,
        here(proxy.address, tmp_path, "b", kind=kind) as two,
    ):
        for reward in range(1, 9):
            agent = (one, two)[reward % 2]
            agent.observe(agent.choose(np.random.default_rng(reward).uniform(-1, 1, (4, DIM))), reward / 1024)
        agree(there, [one, two])
        assert sorted(rewards_of(one) + rewards_of(two)) == list(range(1, 9))


# -- clocks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """The time of day as a process sees it, which can be set while the process runs; how time passes stays true."""

    file: Path

    def set(self, seconds: float) -> None:
        """Set it by so much."""
        draft = self.file.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self.file)

    @property
    def environment(self) -> dict[str, str]:
        """What a process is started with to see it."""
        self.set(0)
        return {"TEST_CLOCK": str(self.file)}


@pytest.mark.parametrize("step", [3600.0, -3600.0])
@pytest.mark.parametrize("kind", TABLES)
def test_a_clock_that_is_set_by_an_hour_in_the_middle_holds_up_nobody(
    kind: str, step: float, port: int, tmp_path: Path
) -> None:
    ours, theirs = Clock(tmp_path / "agent.clock"), Clock(tmp_path / "coordinator.clock")
    with running(written(tmp_path, kind, port), environment=theirs.environment) as serving_:
        where = addresses(serving_)
        process = started(*("agent", where["address"], tmp_path / "a.db", "a", 1, 20), environment=ours.environment)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.strip() == "8":
                ours.set(step)
            if line.strip() == "14":
                theirs.set(step)
            if line.strip() == "done":
                break
        assert [each for each in lines if each.startswith("#")] == []  # every flush was answered
        assert [int(each) for each in lines if each.isdigit()] == list(range(1, 21))
        told = status(where["http"])
        assert 0 <= told["seconds"] < 3600.0
        ended(process)
    with coordinator(tmp_path, kind) as there, here(there.address, tmp_path, "a", kind=kind) as again:
        assert rewards_of(again) == list(range(1, 21))
        agree(there, [again])


def status(address: str) -> Any:
    """How a coordinator stands that is a process of its own."""
    with urllib.request.urlopen(f"http://{address}/status", timeout=PATIENCE) as answer:
        return json.loads(answer.read())
