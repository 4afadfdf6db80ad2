"""``laconic demo-federation``: a coordinator and agents as processes on this machine, one of which is killed."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

import typer

from laconic import limits
from laconic.cli.options import number, whole
from laconic.cli.stopping import Stop, stoppable

#: How long all agents may say nothing beside their pause, as while they start and at their last flush, and how long a
#: coordinator may take that is told to end, in seconds.
SILENT_SECONDS, ENDING_SECONDS = 300.0, 10.0
LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]


def demo_federation(
    agents: Annotated[
        int, typer.Option("--agents", metavar="N", help="Agent processes.", **whole(least=2, most=limits.MOST_JOBS))
    ] = 8,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="T", help="Rounds that each agent plays.", **whole(least=4))
    ] = 100,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="SEED", help="Seed of the problem.", **whole(least=0, most=limits.MOST_SEED)),
    ] = 0,
    pause: Annotated[
        float, typer.Option("--pause", metavar="SECONDS", help="Seconds between two rounds of an agent.", **number())
    ] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Try a federation here: agents learn together over gRPC, one is killed in the middle and brought back.

    At the end it shows what was lost (nothing), and how well the agents chose beside the same problem simulated.
    """
    from laconic.checks import require_at_least
    from laconic.cli.display import as_json as to_json

    require_at_least("--pause", pause, least=0)
    with stoppable() as stop:
        try:
            with tempfile.TemporaryDirectory(prefix="laconic-demo-") as folder:
                demo = _Demo(Path(folder), stop, agents=agents, rounds=rounds, seed=seed, pause=pause, quiet=as_json)
                found = demo.run()
            found |= _simulated(agents, rounds, seed)
        except KeyboardInterrupt:
            raise typer.Exit(stop.code) from None
    typer.echo(to_json(found) if as_json else "\n".join(_said(found)))
    if found["lost"]:
        raise typer.Exit(1)


class _Demo:
    """The processes, and what they tell."""

    def __init__(
        self, folder: Path, stop: Stop, *, agents: int, rounds: int, seed: int, pause: float, quiet: bool
    ) -> None:
        self._folder, self._stop, self._agents, self._rounds = folder, stop, agents, rounds
        self._seed, self._pause, self._quiet = seed, pause, quiet
        self._lines: queue.SimpleQueue[tuple[int, dict[str, Any] | None]] = queue.SimpleQueue()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._at: dict[int, int] = dict.fromkeys(range(agents), 0)  # the last round that each agent told of
        self._done: dict[int, dict[str, Any]] = {}
        self._killed: dict[str, Any] = {}
        self._shown = 0.0

    def run(self) -> dict[str, Any]:
        """Play it all, and what came of it."""
        from laconic.cli.status import fetched

        with self._coordinator() as where:
            try:
                for number in range(self._agents):
                    self._start(number, where["address"])
                self._follow(where["address"])
                found = fetched(where["http"])
            finally:
                for process in self._processes.values():
                    process.kill()
                    process.communicate()
        return self._summary(found)

    @contextmanager
    def _coordinator(self) -> Iterator[dict[str, str]]:
        file = self._folder / "federation.toml"
        file.write_text(_federation_file())
        one = None
        with (self._folder / "coordinator.log").open("w") as log:
            try:
                with self._stop.later():
                    one = _child([*LACONIC, "serve", str(file)], stderr=log)
                assert one.stdout is not None
                where: dict[str, str] = json.loads(one.stdout.readline() or "{}")
                if not where:
                    _fail((self._folder / "coordinator.log").read_text())
                self._say(f"coordinator at {where['address']}, live at http://{where['http']}/")
                yield where
            finally:
                if one is not None:
                    _end(one)

    def _start(self, number: int, address: str) -> None:
        part = {
            "address": address,
            "state": str(self._folder / f"agent-{number}.db"),
            "number": number,
            "agents": self._agents,
            "rounds": self._rounds,
            "seed": self._seed,
            "pause": self._pause,
        }
        command = [sys.executable, "-m", "laconic.cli.demo_agent", json.dumps(part)]
        with self._stop.later():
            process = self._processes[number] = _child(command)
        threading.Thread(target=self._listen, args=(number, process), daemon=True).start()

    def _listen(self, number: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put((number, json.loads(line)))
        self._lines.put((number, None))

    def _follow(self, address: str) -> None:
        """Hear what agents tell until all are done; one of them is killed in the middle and started again."""
        victim = self._agents - 1
        while len(self._done) < self._agents:
            number, told = self._told()
            if told is None:
                self._ended(number, address)
            elif "done" in told:
                self._done[number] = told
            else:
                self._at[number] = told["round"]
                self._show()
                if number == victim and not self._killed and told["round"] >= self._rounds // 2:
                    self._killed = {"agent": victim, "after_round": told["round"]}
                    self._processes[victim].send_signal(signal.SIGKILL)
                    self._say(f"agent-{victim} is killed with SIGKILL after round {told['round']}")

    def _told(self) -> tuple[int, dict[str, Any] | None]:
        """What an agent tells next; a run may be as long as it likes, and a silence may not."""
        longest = SILENT_SECONDS + self._pause
        try:
            return self._lines.get(timeout=longest)
        except queue.Empty:
            _fail(f"no agent has said anything for {longest:g} seconds")

    def _ended(self, number: int, address: str) -> None:
        code = self._processes[number].wait()
        if number == self._killed.get("agent") and code == -signal.SIGKILL:
            self._start(number, address)
            self._say(f"agent-{number} is started again on its state file")
        elif number not in self._done:
            _fail(f"agent-{number} ended with code {code}")

    def _show(self) -> None:
        if time.monotonic() - self._shown < 1.0:
            return
        self._shown = time.monotonic()
        played = " ".join(f"{each:{len(str(self._rounds))}}" for each in self._at.values())
        self._say(f"rounds played of {self._rounds}, by agent: {played}")

    def _say(self, line: str) -> None:
        if not self._quiet:
            typer.echo(line, err=True)

    def _summary(self, found: dict[str, Any]) -> dict[str, Any]:
        expected = self._agents * self._rounds
        acknowledged = sum(self._at.values())
        return {
            "agents": self._agents,
            "rounds": self._rounds,
            "killed": self._killed | {"resumed_after": self._done[self._agents - 1]["begun"]},
            "acknowledged": acknowledged,
            "in_state_files": sum(each["done"] for each in self._done.values()),
            "at_coordinator": found["observations"],
            "lost": expected - min(found["observations"], sum(each["done"] for each in self._done.values())),
            "regret": sum(each["regret"] for each in self._done.values()),
            "bytes": sum(row["bytes"] for row in found["traffic"]),
        }


def _child(command: list[str], *, stderr: IO[str] | None = None) -> subprocess.Popen[str]:
    """A process that Ctrl-C in this terminal does not reach: it is ended here, in order."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)


def _end(coordinator: subprocess.Popen[str]) -> None:
    """Have a coordinator end, and wait for that: its files are removed next."""
    with coordinator:  # which waits for it, and closes its stream
        coordinator.terminate()
        try:
            coordinator.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            coordinator.kill()


def _fail(message: str) -> NoReturn:
    from laconic.errors import LinkError

    raise LinkError(f"the demonstration broke off: {' '.join(message.split())[-500:]}")


def _federation_file() -> str:
    from laconic.cli.demo_agent import PROBLEM, TABLE
    from laconic.cli.federation import FederationFile
    from laconic.experiments.config import to_text

    file = FederationFile(
        algorithm=TABLE, dim=PROBLEM.dim, state="coordinator.db", bind="127.0.0.1:0", http="127.0.0.1:0", insecure=True
    )
    return to_text(file)


def _simulated(agents: int, rounds: int, seed: int) -> dict[str, Any]:
    """The same problem in one process: with the same algorithm, without any exchange, and at random."""
    from laconic.algorithms import NKernelUCB, Random
    from laconic.cli.demo_agent import ALGORITHM, PROBLEM
    from laconic.kernels import Gaussian
    from laconic.runtimes import run

    alone = NKernelUCB(Gaussian(gamma=0.5), lam=0.1, alpha=0.3)
    runs = {"simulated": ALGORITHM, "each_alone": alone, "at_random": Random()}
    return {
        f"regret_{name}": run(algorithm, PROBLEM, clients=agents, rounds=rounds, seed=seed).regret
        for name, algorithm in runs.items()
    }


def _said(found: dict[str, Any]) -> list[str]:
    killed, total = found["killed"], found["agents"] * found["rounds"]
    rivals = {
        "this federation": found["regret"],
        "the same algorithm simulated, in round robin": found["regret_simulated"],
        "each agent alone": found["regret_each_alone"],
        "uniformly random arms": found["regret_at_random"],
    }
    return [
        f"agent-{killed['agent']} was killed after round {killed['after_round']} and went on after round "
        f"{killed['resumed_after']}.",
        f"{found['at_coordinator']:,} of {total:,} observations are at the coordinator, "
        f"{found['in_state_files']:,} in state files; {found['lost']} lost.",
        f"{found['bytes']:,} bytes crossed the links.",
        "",
        "regret",
        *(f"  {regret:8.1f}  {name}" for name, regret in rivals.items()),
        "",
        verdict(found),
    ]


#: A federation chose as well as the simulation if at most this part of what sharing saves is lacking.
AS_WELL = 0.1


def verdict(found: dict[str, Any]) -> str:
    """What came of it, in a sentence: what was lost, and whether the agents chose as well as those of the simulation.

    Agents act when they like, and so not in the order of the simulation: the digits differ from run to run.
    """
    lost = "nothing was lost" if not found["lost"] else f"{found['lost']:,} observations were LOST"
    kept = found["regret_each_alone"] - found["regret"]
    shared = found["regret_each_alone"] - found["regret_simulated"]
    if found["regret"] <= found["regret_simulated"] + AS_WELL * max(shared, 0.0):
        return f"The federation chose as well as the simulation, and {lost}."
    part = f"{max(kept, 0.0) / shared:.0%} of" if shared > 0 else "none of"
    return (
        f"The federation kept {part} what sharing saves in the simulation, and {lost}; try more rounds, or --pause 0.2."
    )
