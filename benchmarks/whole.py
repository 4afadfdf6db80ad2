"""``python -m benchmarks.whole``: CPU time and memory of whole runs of LaconicUCB, building and certificate apart.

``--prototype`` names a folder with another implementation of the same algorithm, as `benchmarks.atoms` says. It then
plays a problem of the same sizes in the same run, so that what counts is a ratio on one machine under one load.
``--repeat`` plays both in turns and takes the least of each, as whatever else a machine does only ever adds to what a
run takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.atoms import Played, Prototype, clocked, require_prototype
from benchmarks.clock import peak_memory, timed
from benchmarks.lag import SETTINGS, Setting
from benchmarks.threads import environment
from laconic import Catalogue, Cosine, LaconicUCB, run
from laconic.atoms import version as versions
from laconic.problems.base import Problem
from laconic.protocol.digests import atoms as digests
from laconic.report.table import NOTHING, Table

app = typer.Typer(add_completion=False)
HEADERS = ("setting", "cpu s", "building", "certificate", "peak MB", "other cpu s", "ratio", "required", "met")
#: At most this part of the other implementation's CPU time, and so many megabytes.
REQUIRED = {"d20": 0.7, "d20-rich": 0.35, "d5-long": 0.7}
MEGABYTES = 500
#: With this clients ask as often as in the other implementation, so that both do the same work.
DELTA = 0.5


@dataclass(frozen=True)
class Whole:
    """What a run took: all of it, building versions, and the certificate in that."""

    cpu: float
    building: float = 0.0
    certificate: float = 0.0
    peak: float = 0.0  # megabytes


@app.command()
def main(
    only: Annotated[list[str] | None, typer.Option(help=f"Settings: {', '.join(SETTINGS)}.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 100,
    prototype: Prototype = None,
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each, in turns; the least counts.")] = 1,
    here: Annotated[bool, typer.Option("--here", hidden=True)] = False,
) -> None:
    """Play whole runs, each in a process of its own, and print what they took."""
    if prototype is not None:
        require_prototype(prototype)
    names = only or list(REQUIRED)
    if unknown := [name for name in names if name not in SETTINGS]:
        raise typer.BadParameter(f"no setting is called {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    if here:
        (name,) = names
        found = played(SETTINGS[name], seed=seed) if prototype is None else other(prototype, SETTINGS[name], seed=seed)
        typer.echo(json.dumps(vars(found)))
        return
    rows = [_row(name, seed=seed, prototype=prototype, repeat=repeat) for name in names]
    typer.echo(Table(HEADERS, rows=tuple(rows)).text())


def _row(name: str, *, seed: int, prototype: Path | None, repeat: int) -> tuple[str, ...]:
    both = [None] if prototype is None else [None, prototype]
    rounds = [[_in_child(name, seed=seed, prototype=folder) for folder in both] for _ in range(repeat)]
    mine, *others = (min(runs, key=lambda each: each.cpu) for runs in zip(*rounds, strict=True))
    cells = (name, f"{mine.cpu:.1f}", f"{mine.building:.1f}", f"{mine.certificate:.1f}", f"{mine.peak:.0f}")
    small = mine.peak <= MEGABYTES
    limit = REQUIRED.get(name)
    if not others:
        return (*cells, NOTHING, NOTHING, f"≤ {MEGABYTES} MB", "yes" if small else "NO")
    ratio = mine.cpu / others[0].cpu
    met = small and (limit is None or ratio <= limit)
    required = f"≤ {MEGABYTES} MB" if limit is None else f"≤ {limit:g}, {MEGABYTES} MB"
    return (*cells, f"{others[0].cpu:.1f}", f"{ratio:.2f}", required, "yes" if met else "NO")


def _in_child(name: str, *, seed: int, prototype: Path | None = None) -> Whole:
    command = [sys.executable, "-m", "benchmarks.whole", "--here", "--only", name, "--seed", str(seed)]
    command += [] if prototype is None else ["--prototype", str(prototype)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment(threads=1))
    return Whole(**json.loads(answer.stdout))


def problem_of(setting: Setting) -> Problem:
    """The problem of a setting, as this package draws it."""
    if setting.items:
        return Catalogue(dim=setting.dim, items=setting.items, arms=setting.arms)
    return Cosine(dim=setting.dim, arms=setting.arms)


def played(setting: Setting, *, seed: int) -> Whole:
    """A run of this implementation."""
    algorithm = LaconicUCB(setting.kernel, lam=setting.lam, alpha=setting.alpha, delta=DELTA)
    _play(algorithm, replace(setting, clients=2, rounds=2), seed=seed)  # imports
    with clocked(digests.Atoms, "build") as building, clocked(versions, "_finished") as certificate:
        cost, _ = timed(lambda: _play(algorithm, setting, seed=seed))
    return Whole(cost.cpu, building[0].cpu, certificate[0].cpu, peak_memory() / 1e6)


def _play(algorithm: LaconicUCB, setting: Setting, *, seed: int) -> object:
    return run(algorithm, problem_of(setting), clients=setting.clients, rounds=setting.rounds, seed=seed)


def other(folder: Path, setting: Setting, *, seed: int) -> Whole:
    """A run of the other implementation."""
    there = Played(folder)
    play: Callable[[], Any] = there.prepared(setting, seed=seed)
    with clocked(there.simlag, "build_atoms") as building:
        cost, _ = timed(play)
    return Whole(cost.cpu, building[0].cpu, 0.0, peak_memory() / 1e6)


if __name__ == "__main__":
    app()
