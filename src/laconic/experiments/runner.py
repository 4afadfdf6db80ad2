"""The runner under comparisons, experiment files and papers: what has run is skipped, the rest runs side by side.

A run that has finished is saved at once, whichever process made it, so that whoever was stopped goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from laconic.errors import LaconicError, OutputError
from laconic.experiments.grid import params
from laconic.experiments.pace import Pace, smaller, telling_first
from laconic.experiments.parts import algorithm_from, name_of, problem_from
from laconic.experiments.results import Results, Row
from laconic.experiments.tasks import Store, Task
from laconic.runtimes.jobs import Engine
from laconic.runtimes.needs import Need
from laconic.runtimes.one_run import run
from laconic.runtimes.trace import Run

TIMING = "timing"  # the part of a sweep that is made of smaller runs


@dataclass(frozen=True)
class Begun:
    """A part of a sweep starts: how many runs it has, those that were there already, and what they are runs of.

    ``stages`` are all parts of the job in their order, where it has several.
    """

    part: str
    total: int
    known: tuple[tuple[Task, Row], ...]
    about: Mapping[str, Results] = field(default_factory=dict)
    stages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Started:
    """A run has begun in this process; of runs in others only their end is told."""

    task: Task
    number: int  # 1 for the first that is run or was there already
    total: int


@dataclass(frozen=True)
class Advanced:
    """A run in this process has made so many of its steps."""

    task: Task
    steps: int


@dataclass(frozen=True)
class Finished:
    """A run is done and saved."""

    task: Task
    row: Row
    done: int
    total: int
    left: float | None  # seconds until the whole job is done, later stages included, as far as can be told
    run: Run | None = None  # the whole trace, where it was asked for


@dataclass(frozen=True)
class Failed:
    """A run could not be made; the others go on."""

    task: Task
    error: LaconicError

    @property
    def why(self) -> str:
        """What was wrong, in a line."""
        return str(self.error)


@dataclass(frozen=True)
class Estimate:
    """How long the runs to come will take: what is asked for is long, and this was measured."""

    seconds: float
    runs: int
    slots: int


@dataclass(frozen=True)
class Memory:
    """A run to come needs much of it."""

    need: Need


Event = Estimate | Memory | Begun | Started | Advanced | Finished | Failed
Watch = Callable[[Event], None]


def silent(event: object) -> None:
    """For those who do not watch."""


@dataclass
class Sweep:
    """Runs of any number of experiments, kept in one store."""

    store: Store
    engine: Engine
    watch: Watch = silent
    closely: bool = False  # whether starts and steps are told of too, where runs are made in this process
    traced: bool = False  # whether whole traces are wanted: those are not kept, so that every run is made
    pace: Pace = field(default_factory=Pace)
    rows: dict[str, Row] = field(default_factory=dict)  # by the task's id
    failures: list[Failed] = field(default_factory=list)
    unkept: list[OutputError] = field(default_factory=list)  # why what was made could not be saved

    def complete(
        self,
        tasks: Sequence[Task],
        *,
        about: Mapping[str, Results],
        part: str = "runs",
        stages: tuple[str, ...] = (),
        later: Sequence[Task] = (),
    ) -> None:
        """Run what the store lacks; ``about`` has, by experiment, results without rows.

        ``later`` stands for the runs of later stages, which count in the time that is left.
        """
        wanted = list({task.id: task for task in tasks}.values())
        missing = telling_first([task for task in wanted if not self._recall(task)])
        waiting = {task.id: task for task in missing}
        known = tuple((task, self.rows[task.id]) for task in wanted if task.id in self.rows)
        self.watch(Begun(part, total=len(wanted), known=known, about=about, stages=stages))
        self.pace.begin()
        for place, outcome in self.engine.results(self._work(waiting, about=about, total=len(wanted)), missing):
            task = waiting.pop(missing[place].id)
            if isinstance(outcome, LaconicError):
                self.failures.append(Failed(task, error=outcome))
                self.watch(self.failures[-1])
                continue
            row, trace = outcome
            if not (self.engine.is_local and self.store.has(task)):
                self._save(task, row, about=about[task.experiment])
            self._keep(task, row)
            left = self.pace.left([*waiting.values(), *later], slots=self.engine.slots)
            done = len(wanted) - len(waiting)
            self.watch(Finished(task, row, done=done, total=len(wanted), left=left, run=trace))

    def foretell(
        self,
        tasks: Sequence[Task],
        *,
        about: Mapping[str, Results],
        more: Sequence[Task] = (),
        stages: tuple[str, ...] = (),
    ) -> None:
        """Where runs are long and not there yet, time smaller ones and tell how long these, and ``more``, will take."""
        missing = [task for task in tasks if not self.store.has(task)]
        small = smaller(missing)
        if not small:
            return
        to_come = [*missing, *more]
        self.complete(small, about=about, part=TIMING, stages=stages, later=to_come)
        seconds = self.pace.left(to_come, slots=self.engine.slots)
        if seconds is not None:
            self.watch(Estimate(seconds, runs=len(to_come), slots=self.engine.slots))

    def results(self, tasks: Sequence[Task], *, about: Results) -> Results:
        """The finished ones of these runs, in their order, whatever the order in which they finished."""
        return replace(about, rows=tuple(self.rows[task.id] for task in tasks if task.id in self.rows))

    def _work(
        self, waiting: Mapping[str, Task], *, about: Mapping[str, Results], total: int
    ) -> Callable[[Task], Outcome]:
        """What is done with a task, where it is done; only in this process can somebody look on."""
        if not self.engine.is_local:
            return partial(play, traced=self.traced)
        work = partial(played_and_kept, store=self.store, about=about, traced=self.traced)
        if not (self.closely and self.engine.is_here):
            return work

        def watched(task: Task) -> Outcome:
            self.watch(Started(task, number=total - len(waiting) + 1, total=total))
            return work(task, tell=lambda steps: self.watch(Advanced(task, steps=steps)))

        return watched

    def _save(self, task: Task, row: Row, *, about: Results) -> None:
        """Save a run, or note that it could not be: it is among the results all the same."""
        with self.noting_losses():
            self.store.save(task, row, about=about)

    @contextmanager
    def noting_losses(self) -> Iterator[None]:
        """Go on where something cannot be written: what was made is not lost with it."""
        try:
            yield
        except OutputError as error:
            self.unkept.append(error)

    def _recall(self, task: Task) -> bool:
        if self.traced:
            return False
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


Outcome = tuple[Row, Run | None] | LaconicError


def played_and_kept(
    task: Task,
    *,
    store: Store,
    about: Mapping[str, Results],
    traced: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Outcome:
    """Make a run and save it where it was made, so that nothing is lost when the process that asked for it is gone."""
    outcome = play(task, traced=traced, tell=tell)
    if not isinstance(outcome, LaconicError):
        with suppress(OutputError):  # whoever asked for it finds that it is not there, tries again and says so
            store.save(task, outcome[0], about=about[task.experiment])
    return outcome


def play(task: Task, *, traced: bool = False, tell: Callable[[int], None] | None = None) -> Outcome:
    """Make a run, wherever this is called; a foreseeable mistake is returned, as it stops no other run."""
    try:
        own = task.own
        algorithm = algorithm_from(task.algorithm) if own.algorithm is None else own.algorithm
        problem = problem_from(task.problem) if own.problem is None else own.problem
        finished = run(
            algorithm,
            problem,
            clients=task.clients,
            rounds=task.rounds,
            seed=task.seed,
            runtime=task.runtime,
            progress=tell,
            beyond_memory=True,  # that was asked before any run began
        )
    except LaconicError as error:
        return error
    row = Row.of(finished, algorithm=name_of(algorithm, kind="algorithm"), params=params(algorithm))
    return row, finished if traced else None
