"""The schedule of a sweep: what has been run is skipped, what is missing runs side by side and is saved at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from laconic.errors import LaconicError
from laconic.experiments.grid import params
from laconic.experiments.pace import Pace
from laconic.experiments.parts import algorithm_from, name_of, problem_from
from laconic.experiments.results import Results, Row
from laconic.experiments.store import Store, Task
from laconic.runtimes.jobs import Engine
from laconic.runtimes.run import run


@dataclass(frozen=True)
class Begun:
    """A part of a sweep starts: how many runs it has, and those that were there already."""

    part: str
    total: int
    known: tuple[tuple[Task, Row], ...]


@dataclass(frozen=True)
class Finished:
    """A run is done and saved."""

    task: Task
    row: Row
    done: int
    total: int
    left: float | None  # seconds until all are done, as far as can be told


@dataclass(frozen=True)
class Failed:
    """A run could not be made; the others go on."""

    task: Task
    why: str


Event = Begun | Finished | Failed
Watch = Callable[[Event], None]


def silent(event: object) -> None:
    """For those who do not watch."""


@dataclass
class Sweep:
    """Runs of any number of experiments, kept in one store."""

    store: Store
    engine: Engine
    watch: Watch = silent
    pace: Pace = field(default_factory=Pace)
    rows: dict[str, Row] = field(default_factory=dict)  # by the task's id
    failures: list[Failed] = field(default_factory=list)

    def complete(self, tasks: Sequence[Task], *, about: Mapping[str, Results], part: str = "runs") -> None:
        """Run what the store lacks; ``about`` has, by experiment, results without rows."""
        wanted = list({task.id: task for task in tasks}.values())
        missing = [task for task in wanted if not self._recall(task)]
        waiting = {task.id: task for task in missing}
        known = tuple((task, self.rows[task.id]) for task in wanted if task.id in self.rows)
        self.watch(Begun(part, total=len(wanted), known=known))
        self.pace.begin()
        for place, outcome in self.engine.results(play, missing):
            task = waiting.pop(missing[place].id)
            if isinstance(outcome, str):
                self.failures.append(Failed(task, why=outcome))
                self.watch(self.failures[-1])
                continue
            self.store.save(task, outcome, about=about[task.experiment])
            self._keep(task, outcome)
            left = self.pace.left(waiting.values(), slots=self.engine.slots)
            self.watch(Finished(task, outcome, done=len(wanted) - len(waiting), total=len(wanted), left=left))

    def results(self, tasks: Sequence[Task], *, about: Results) -> Results:
        """The finished ones of these runs, in their order, whatever the order in which they finished."""
        return replace(about, rows=tuple(self.rows[task.id] for task in tasks if task.id in self.rows))

    def _recall(self, task: Task) -> bool:
        if task.id in self.rows:
            return True
        row = self.store.load(task)
        if row is None:
            return False
        self._keep(task, row, now=False)
        return True

    def _keep(self, task: Task, row: Row, *, now: bool = True) -> None:
        self.rows[task.id] = row
        self.pace.note(task, row.seconds, now=now)


def play(task: Task) -> Row | str:
    """Make a run, wherever this is called; a foreseeable mistake is returned as its message."""
    try:
        algorithm = algorithm_from(task.algorithm)
        finished = run(
            algorithm,
            problem_from(task.problem),
            clients=task.clients,
            rounds=task.rounds,
            seed=task.seed,
            runtime=task.runtime,
        )
    except LaconicError as error:
        return str(error)
    return Row.of(finished, algorithm=name_of(algorithm, kind="algorithm"), params=params(algorithm))
