"""The store of a sweep: one file for each finished run, named by a hash of all that decides its result.

What has a name is in a task as a table, which any process of any machine can read. A value of the user's own, as a
class of a notebook makes it, goes along itself; its runs are named by its `identity`, and it is read from no store.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from laconic import registry
from laconic.algorithms import Algorithm
from laconic.canonical import FORMAT, canonical, fingerprint, parts
from laconic.errors import InputError
from laconic.experiments.config import Experiment, problem_table
from laconic.experiments.files import require_writable
from laconic.experiments.grid import params
from laconic.experiments.identity import identity
from laconic.experiments.parts import PATHS, is_listed, name_of, to_table
from laconic.experiments.results import Results, Row, labels
from laconic.problems.base import Problem
from laconic.release import __version__


@dataclass(frozen=True)
class Own:
    """The parts of a task that no table can make again; None where one can."""

    problem: Problem | None = None
    algorithm: Algorithm | None = None


@dataclass(frozen=True)
class Task:
    """One run: plain values that say all about it, and beside them what only the user's own code can make."""

    experiment: str  # the name under which its results are gathered
    problem: dict[str, Any]
    algorithm: dict[str, Any]
    clients: int
    rounds: int
    seed: int
    runtime: str
    label: str = ""  # what readers call its setting
    own: Own = Own()

    @cached_property
    def id(self) -> str:
        """A hash of what decides the result; where a file lies is not part of it, its content is."""
        decides = parts(self) | {"laconic": __version__, "problem": _content(self.problem)}
        return digest({key: value for key, value in decides.items() if key not in ("experiment", "label", "own")})

    @property
    def steps(self) -> int:
        """How many interactions it has."""
        return self.clients * self.rounds


def tasks_of(experiment: Experiment, *, name: str, dim: int | None = None, kept: bool = True) -> list[Task]:
    """Every run of an experiment, seed by seed, so that all algorithms have as many seeds at any time.

    ``dim`` is the number of features of its points, needed where a kernel has to be tried to be known. Runs that are
    not ``kept`` need not be found again, and may have parts that nobody could know again.
    """
    problem, own = _carried(experiment.problem, kind="problem", dim=dim, kept=kept)
    carried = [_carried(each, kind="algorithm", dim=dim, kept=kept) for each in experiment.algorithms]
    shown = labels([(name_of(each, kind="algorithm"), params(each)) for each in experiment.algorithms])
    return [
        Task(
            name,
            problem=problem,
            algorithm=algorithm if mine is None or kept else algorithm | {"place": place},
            clients=experiment.clients,
            rounds=experiment.rounds,
            seed=seed,
            runtime=experiment.runtime,
            label=shown[place],
            own=Own(problem=own, algorithm=mine),
        )
        for seed in experiment.seeds
        for place, (algorithm, mine) in enumerate(carried)
    ]


def _carried(value: Any, *, kind: registry.Kind, dim: int | None, kept: bool) -> tuple[dict[str, Any], Any]:
    """A value as a table; beside it itself, where no process could make it from the table."""
    name = name_of(value, kind=kind)
    if is_listed(value, kind=kind):
        with suppress(InputError):  # a part of it has no name
            return (problem_table(value) if kind == "problem" else to_table(value, name=name)), None
    return {"name": name} | (identity(value, dim=dim) if kept else {}), value


def id_of(experiment: Experiment) -> str:
    """The experiment's name for machines: a hash of its content, whatever the file looked like."""
    return digest({"runs": sorted(task.id for task in tasks_of(experiment, name=""))})


def digest(content: dict[str, Any]) -> str:
    """A hash of plain values."""
    return fingerprint(canonical({"format": FORMAT, **content}))


def _content(problem: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in problem.items() if "sha256" not in problem or key not in PATHS}


class Store:
    """Finished runs in a folder; each file is written whole or not at all, by whoever finishes first.

    Without a folder nothing is kept, and nothing is there.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:
            require_writable(folder)
        self.folder = folder

    def path(self, task: Task) -> Path:
        """Where the task's result is, once there is one."""
        assert self.folder is not None  # nobody asks where nothing is
        return self.folder / f"{task.id}.parquet"

    def has(self, task: Task) -> bool:
        """Whether the run has finished before, as far as can be told without reading it."""
        return self.folder is not None and self.path(task).exists()

    def load(self, task: Task) -> Row | None:
        """The finished run, None where it has to be made (again)."""
        if not self.has(task):
            return None
        from laconic.experiments.storage import read_named  # pyarrow is slow to import

        try:
            stored = read_named(self.path(task))
            row = stored.results.rows[0]
        except Exception:  # damaged by a full disk or by hand, in whatever way: it is made again
            return None
        is_this = stored.name in ("", task.id)  # a file may have been renamed; files of earlier versions have no name
        return row if is_this and (row.seed, row.algorithm) == (task.seed, task.algorithm["name"]) else None

    def save(self, task: Task, row: Row, *, about: Results) -> None:
        """Keep a finished run; ``about`` are results of its experiment."""
        if self.folder is not None:
            from laconic.experiments.storage import write  # see load

            results = replace(about, clients=task.clients, rounds=task.rounds, rows=(row,))
            write(results, self.path(task), name=task.id)

    def strangers(self, tasks: Iterable[Task]) -> list[Path]:
        """Finished runs that are none of these."""
        wanted = {task.id for task in tasks}
        found = () if self.folder is None else self.folder.glob("*.parquet")
        return sorted(path for path in found if path.stem not in wanted)
