"""What is shown on stderr while runs are made: the table so far above bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from laconic.cli.aside import aside, is_terminal

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import Progress, TaskID

    from laconic.experiments.conduct import Step, Watch
    from laconic.experiments.results import Results, Row
    from laconic.experiments.runner import Advanced, Begun, Finished, Started
    from laconic.experiments.tasks import Task
    from laconic.report.table import Table


class SoFar(Protocol):
    """The runs that are done: how one of them is called, and the table that they make."""

    def called(self, task: Task) -> str:
        """A run without its seed."""

    def begin(self, step: Begun) -> None:
        """Take up the runs that were there already."""

    def add(self, task: Task, row: Row) -> None:
        """Take up a run."""

    def table(self) -> Table | None:
        """All of them, where there are any."""


@dataclass
class OneProblem:
    """The table of a comparison."""

    results: Results | None = None

    def called(self, task: Task) -> str:
        """Its setting: there is one problem, and readers know which."""
        return task.label

    def begin(self, step: Begun) -> None:
        """Begin the table anew, with what was there already."""
        for about in step.about.values():
            self.results = replace(about, rows=tuple(row for _, row in step.known))

    def add(self, task: Task, row: Row) -> None:
        """Add a row to the table."""
        self.results = None if self.results is None else self.results.with_row(row)

    def table(self) -> Table | None:
        """The table that is printed in the end, as far as it goes."""
        return self.results.table() if self.results is not None and self.results.rows else None


@dataclass
class ManyProblems:
    """For each problem and algorithm the best mean regret among the settings seen."""

    regrets: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)

    def called(self, task: Task) -> str:
        """Its problem and its setting."""
        return f"{task.problem['name']}: {task.label}"

    def begin(self, step: Begun) -> None:
        """Add what was there already."""
        for task, row in step.known:
            self.add(task, row)

    def add(self, task: Task, row: Row) -> None:
        """Add the regret of a run."""
        algorithms = self.regrets.setdefault(str(task.problem["name"]), {})
        algorithms.setdefault(row.algorithm, {}).setdefault(str(row.params), []).append(row.regret)

    def table(self) -> Table | None:
        """Problems × algorithms."""
        from laconic.report.table import NOTHING, Table, number

        if not self.regrets:
            return None
        names = list(dict.fromkeys(name for each in self.regrets.values() for name in each))
        rows = tuple(
            (problem, *(number(min(map(fmean, each[name].values()))) if name in each else NOTHING for name in names))
            for problem, each in self.regrets.items()
        )
        return Table(("best mean regret so far", *names), rows=rows)


@contextmanager
def watching(so_far: SoFar, *, quiet: bool) -> Iterator[Watch]:
    """The display that suits stderr: live on a terminal, lines elsewhere."""
    from laconic.experiments.runner import silent

    if quiet:
        yield silent
    elif is_terminal():
        with _live_bars() as (live, bars):
            yield Screen.on(live, bars=bars, so_far=so_far).watch
    else:
        yield _Lines(so_far).watch


@dataclass(frozen=True)
class _Lines:
    """One plain line for what readers of a log want to know."""

    so_far: SoFar

    def watch(self, step: Step) -> None:
        text = describe(step, so_far=self.so_far)
        if text:
            aside(text)


def describe(step: Step, *, so_far: SoFar) -> str:
    """A step in one line; nothing for steps that are not worth one."""
    from laconic.experiments.conduct import Absent, Opening
    from laconic.experiments.naming import duration
    from laconic.experiments.runner import Begun, Estimate, Failed, Finished, Memory

    match step:
        case Opening(spec):
            return f"opening {spec.file.problem['name']}"
        case Absent(_, why):
            return f"not run: {why}"
        case Estimate(seconds, runs, slots):
            return f"estimated time: {duration(seconds)} for {runs:,} runs, {slots} at a time"
        case Memory(need):
            return str(need)
        case Begun():
            return _begun(step)
        case Failed(task, _):
            return f"failed: {so_far.called(task)}, seed {task.seed}: {step.why}"
        case Finished():
            return _finished(step, called=so_far.called(step.task))
    return ""


def _begun(step: Begun) -> str:
    """How many runs there are, where the job has several parts, and how many of them need not be made."""
    there = len(step.known)
    if step.stages:
        return f"{stage(step)}: {step.total:,} runs{f', {there:,} of them there already' if there else ''}"
    return f"{there:,} of {step.total:,} runs are there already" if there else ""


def stage(step: Begun) -> str:
    """What a part of a job is called, with its place among those that the job has."""
    if len(step.stages) < 2:
        return step.part
    return f"stage {step.stages.index(step.part) + 1} of {len(step.stages)}, {step.part}"


def _finished(step: Finished, *, called: str) -> str:
    from laconic.report.table import amount, number

    row, width = step.row, len(str(step.total))
    left = f"; {time_left(step)}".removesuffix("; ")
    return (
        f"[{step.done:{width}}/{step.total}] {called}, seed {row.seed}: regret {number(row.regret)}, "
        f"{amount(row.scalars)} scalars, {row.syncs:,} syncs, {number(row.seconds)} s{left}"
    )


def time_left(step: Finished) -> str:
    """How long the whole job still takes, in words, where that is known."""
    from laconic.experiments.naming import duration

    return "" if step.left is None else f"{duration(step.left)} left in all"


@dataclass
class Screen:
    """What is on the terminal: runs that are done, steps of the one under way where it is in this process, the table.

    Runs are counted, and the time left is told from what those of each algorithm take: their steps differ too much.
    """

    live: Live
    bars: Progress
    so_far: SoFar
    everything: TaskID
    current: TaskID
    done: int = 0  # runs
    shown: bool = False  # whether the runs of this part belong into the table

    @classmethod
    def on(cls, live: Live, *, bars: Progress, so_far: SoFar) -> Screen:
        """Two bars, one for all runs and one for the run under way."""
        everything = bars.add_task("all runs", total=None, left="getting ready")
        return cls(live, bars, so_far, everything, bars.add_task("", total=None, visible=False, left=""))

    def watch(self, step: Step) -> None:
        """Show what has happened."""
        from laconic.experiments.runner import Advanced, Begun, Finished, Started

        match step:
            case Begun():
                self._begin(step)
            case Started():
                self._start(step)
            case Advanced():
                self._advance(step)
            case Finished():
                self._finish(step)
            case _ if describe(step, so_far=self.so_far):
                self.live.console.print(describe(step, so_far=self.so_far), highlight=False, markup=False)

    def _begin(self, step: Begun) -> None:
        from laconic.experiments.conduct import SENSITIVITY
        from laconic.experiments.runner import TIMING

        self.done = len(step.known)
        said = stage(step) if step.stages else "all runs"
        self.bars.update(self.everything, description=said, total=step.total, completed=self.done, left="")
        self.bars.update(self.current, visible=False)
        self.shown = step.part not in (TIMING, SENSITIVITY)  # which have other sizes or settings
        if self.shown:
            self.so_far.begin(step)

    def _start(self, step: Started) -> None:
        from rich.markup import escape

        said = escape(f"{self.so_far.called(step.task)}, seed {step.task.seed}")  # brackets in it are no markup
        self.bars.reset(self.current, total=step.task.steps, visible=True, description=said)

    def _advance(self, step: Advanced) -> None:
        self.bars.update(self.current, completed=step.steps)
        self.bars.update(self.everything, completed=self.done + step.steps / step.task.steps)

    def _finish(self, step: Finished) -> None:
        from rich.console import Group

        from laconic.cli.display import rich_table

        self.done = step.done
        self.bars.update(self.everything, completed=self.done, left=time_left(step))
        if self.shown:
            self.so_far.add(step.task, step.row)
        table = self.so_far.table()
        if table is not None:
            self.live.update(Group(rich_table(table), "", above_the_cursor(self.bars)))


def bars_of_runs() -> Progress:
    """Bars with a count, and with what is said of the time left beside them."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = BarColumn(bar_width=None)  # as wide as there is room, so that words beside it stay whole
    columns = (TextColumn("{task.description}"), bar, MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.fields[left]}"))


def above_the_cursor(bars: Progress) -> Group:
    """Bars and an empty line: behind a full one a terminal's ^C begins another, and a line too few would be cleared."""
    from rich.console import Group

    return Group(bars, "")


@contextmanager
def _live_bars() -> Iterator[tuple[Live, Progress]]:
    """Bars on stderr that are gone when all is done; what is said meanwhile goes through the console they are on."""
    from rich.console import Console
    from rich.live import Live

    bars = bars_of_runs()
    with Live(above_the_cursor(bars), console=Console(stderr=True), transient=True, refresh_per_second=8) as live:
        yield live, bars
