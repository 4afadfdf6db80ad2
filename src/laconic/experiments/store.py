"""The store of a sweep: one file a finished run, named by a hash of all that decides its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from laconic import __version__
from laconic.canonical import FORMAT, canonical, fingerprint, parts
from laconic.experiments.config import Experiment, problem_table
from laconic.experiments.files import require_writable
from laconic.experiments.parts import PATHS, name_of, to_table
from laconic.experiments.results import Results, Row


@dataclass(frozen=True)
class Task:
    """One run as plain values, so that any process of any machine can make it."""

    experiment: str  # the name under which its results are gathered
    problem: dict[str, Any]
    algorithm: dict[str, Any]
    clients: int
    rounds: int
    seed: int
    runtime: str

    @cached_property
    def id(self) -> str:
        """A hash of what decides the result; where a file lies is not part of it, its content is."""
        decides = parts(self) | {"laconic": __version__, "problem": _content(self.problem)}
        del decides["experiment"]
        return digest(decides)


def tasks_of(experiment: Experiment, *, name: str) -> list[Task]:
    """Every run of an experiment, seed by seed, so that all algorithms have as many seeds at any time."""
    problem = problem_table(experiment.problem)
    algorithms = [to_table(each, name=name_of(each, kind="algorithm")) for each in experiment.algorithms]
    return [
        Task(
            name,
            problem=problem,
            algorithm=algorithm,
            clients=experiment.clients,
            rounds=experiment.rounds,
            seed=seed,
            runtime=experiment.runtime,
        )
        for seed in experiment.seeds
        for algorithm in algorithms
    ]


def id_of(experiment: Experiment) -> str:
    """The experiment's name for machines: a hash of its content, whatever the file looked like."""
    return digest({"runs": sorted(task.id for task in tasks_of(experiment, name=""))})


def digest(content: dict[str, Any]) -> str:
    """A hash of plain values."""
    return fingerprint(canonical({"format": FORMAT, **content}))


def _content(problem: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in problem.items() if "sha256" not in problem or key not in PATHS}


class Store:
    """Finished runs in a folder; each file is written whole or not at all, by whoever finishes first."""

    def __init__(self, folder: Path) -> None:
        require_writable(folder)
        self.folder = folder

    def path(self, task: Task) -> Path:
        """Where the task's result is, once there is one."""
        return self.folder / f"{task.id}.parquet"

    def load(self, task: Task) -> Row | None:
        """The finished run, None where it has to be made (again)."""
        path = self.path(task)
        if not path.exists():
            return None
        try:
            row = Results.from_parquet(path).rows[0]
        except Exception:  # damaged by a full disk or by hand, in whatever way: it is made again
            return None
        return row if (row.seed, row.algorithm) == (task.seed, task.algorithm["name"]) else None

    def save(self, task: Task, row: Row, *, about: Results) -> None:
        """Keep a finished run; ``about`` are results of its experiment."""
        replace(about, clients=task.clients, rounds=task.rounds, rows=(row,)).to_parquet(self.path(task))
