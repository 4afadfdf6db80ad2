"""What ``laconic run`` and ``laconic reproduce`` share: options, what is shown meanwhile, what is said at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic import limits
from laconic.cli.aside import aside, is_terminal
from laconic.cli.options import whole
from laconic.cli.stopping import stoppable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress, TaskID

    from laconic.experiments.conduct import Outcome, Step, Watch
    from laconic.experiments.results import Group, Row
    from laconic.experiments.runner import Begun, Finished
    from laconic.experiments.spec import Spec
    from laconic.experiments.tasks import Task
    from laconic.pages.report import Subject
    from laconic.report.table import Table

WHERE, OUTPUT = "Where it runs", "What comes out"

Jobs = Annotated[
    int | None,
    typer.Option(
        *("--jobs", "-j"),
        **whole(most=limits.MOST_JOBS),
        metavar="COUNT",
        help="Runs at a time, one core each. [dim]\\[default: as many as there are cores][/]",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Engine = Annotated[
    str,
    typer.Option(metavar="joblib|ray", help="Processes of this machine, or a Ray cluster.", rich_help_panel=WHERE),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="The Ray cluster, with [bold]--engine ray[/]; without it one is started here.",
        show_default=False,
        rich_help_panel=WHERE,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=OUTPUT)]
BeyondMemory = Annotated[
    bool,
    typer.Option(
        "--beyond-memory",
        help="Go on where exact algorithms need more memory than there is.",
        rich_help_panel=WHERE,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=OUTPUT)]


@dataclass(frozen=True)
class Sweeping:
    """A sweep from its experiments to its report."""

    out: Path
    jobs: int | None
    engine: str
    address: str | None
    as_json: bool
    quiet: bool
    beyond_memory: bool = False

    def run(self, specs: Sequence[Spec], *, subject: Subject) -> None:
        """Run, write and say what came of it."""
        from laconic.errors import InputError, LaconicError
        from laconic.experiments.conduct import conduct
        from laconic.experiments.files import locked
        from laconic.pages.output import require_place, write
        from laconic.report.charts import require_charts
        from laconic.runtimes.jobs import engine

        require_charts()
        require_place(self.out)
        where = engine(self.engine, jobs=self.jobs, address=self.address)
        with locked(self.out):
            with stoppable() as stop:
                try:
                    with watching(quiet=self.quiet) as watch:
                        outcome = conduct(
                            specs, out=self.out, engine=where, watch=watch, beyond_memory=self.beyond_memory
                        )
                except KeyboardInterrupt:
                    stop.leave(self.out)
            if outcome.absent and not outcome.panels and not outcome.failures:
                raise InputError("; ".join(each.why for each in outcome.absent))
            if not self.quiet:
                aside(f"writing the report into {self.out}")
            files: list[Path] = []
            try:
                files = write(outcome, out=self.out, subject=subject)
            finally:  # what has run is shown also where it could not be written
                self._say(outcome, files=files, with_claims=subject.with_claims)
        if outcome.failures:
            raise LaconicError(f"{len(outcome.failures)} runs failed, the first with: {outcome.failures[0].why}")
        if outcome.unkept:
            raise LaconicError(f"not all could be kept: {outcome.unkept[0]}; make room and run it again")

    def _say(self, outcome: Outcome, *, files: Sequence[Path], with_claims: bool) -> None:
        from laconic.report.table import wrapped

        if self.as_json:
            from laconic.cli.display import as_json

            typer.echo(as_json(_plain(outcome, files=files, with_claims=with_claims)))
            return
        if outcome.panels:
            typer.echo(_tuned(outcome).text())
            typer.echo(f"\n{_sent(outcome).text()}")
        if with_claims:
            typer.echo(f"\n{_claims(outcome).text()}{_rehearsal(outcome)}")
        for text in _standings(outcome):
            typer.echo(f"\n{wrapped(text)}")
        for each in outcome.absent:
            typer.echo(f"\nnot run: {each.why}")
        if files:
            typer.echo(f"\nreport: {files[0]} (and {len(files) - 1} files beside it)")


def _plain(outcome: Outcome, *, files: Sequence[Path], with_claims: bool) -> dict[str, Any]:
    from laconic.pages.output import verdicts

    tuned = [
        {"problem": panel.results.problem, **row.as_dict()}
        for panel in outcome.panels
        for row in panel.results.tuned("regret").rows
    ]
    return {
        "tuned": tuned,
        "claims": verdicts(outcome) if with_claims else [],
        "frontier": _standings(outcome),
        "absent": [{"problem": each.spec.file.problem["name"], "why": each.why} for each in outcome.absent],
        "failures": [each.why for each in outcome.failures],
        "files": [str(path) for path in files],
    }


def _tuned(outcome: Outcome) -> Table:
    """Problems × algorithms, each cell the regret at the tuned setting."""
    from laconic.report.table import spread

    return _by_algorithm(outcome, "regret, tuned", lambda group: spread(group.mean("regret"), group.sd("regret")))


def _sent(outcome: Outcome) -> Table:
    """Problems × algorithms, each cell the bytes at the tuned setting."""
    from laconic.report.table import amount

    return _by_algorithm(outcome, "bytes, tuned", lambda group: amount(group.mean("bytes"), unit="B"))


def _by_algorithm(outcome: Outcome, title: str, cell: Callable[[Group], str]) -> Table:
    from laconic.experiments.tuning import best_of
    from laconic.report.table import NOTHING, Table

    best = {panel.results.problem: best_of(panel.results) for panel in outcome.panels}
    names = list(dict.fromkeys(name for each in best.values() for name in each))
    rows = tuple(
        (problem, *(cell(each[name]) if name in each else NOTHING for name in names)) for problem, each in best.items()
    )
    return Table((title, *names), rows=rows)


def _standings(outcome: Outcome) -> list[str]:
    """One line for each problem on where LaconicUCB stands."""
    from laconic.pages.placing import standing

    found = [each for panel in outcome.panels if (each := standing(panel)) is not None]
    return [f"{each.problem}: {each.text}" for each in found]


def _claims(outcome: Outcome) -> Table:
    """Problems × claims."""
    from laconic.pages.output import verdicts
    from laconic.report.table import Table

    found: dict[str, dict[str, str]] = {}
    for each in verdicts(outcome):
        short = each["verdict"].removesuffix(" to tell")  # so that four fit beside each other
        found.setdefault(each["problem"], {})[each["claim"]] = short
    keys = list(dict.fromkeys(key for each in found.values() for key in each))
    return Table(("claims", *keys), rows=tuple((problem, *each.values()) for problem, each in found.items()))


def _rehearsal(outcome: Outcome) -> str:
    from laconic.papers.evidence import is_rehearsal

    return "\na rehearsal judges nothing; try --profile half" if is_rehearsal(outcome) else ""


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watch]:
    """The display that suits stderr: live on a terminal, lines elsewhere."""
    from laconic.experiments.runner import silent

    if quiet:
        yield silent
    elif is_terminal():
        with _live() as watch:
            yield watch
    else:
        yield _line


def _line(step: Step) -> None:
    """One plain line on stderr for what readers of a log want to know."""
    text = describe(step)
    if text:
        aside(text)


def describe(step: Step) -> str:
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
        case Begun(_, total, known):
            return f"{stage(step)}: {total:,} runs{f', {len(known):,} of them there already' if known else ''}"
        case Failed(task, why):
            return f"failed: {task.algorithm['name']} on {task.problem['name']}, seed {task.seed}: {why}"
        case Finished():
            return _finished(step)
    return ""


def stage(step: Begun) -> str:
    """What a part of a job is called, with its place among those that the job has."""
    if len(step.stages) < 2:
        return step.part
    return f"stage {step.stages.index(step.part) + 1} of {len(step.stages)}, {step.part}"


def _finished(step: Finished) -> str:
    from laconic.experiments.naming import setting, variant
    from laconic.report.table import amount, number

    row, width = step.row, len(str(step.total))
    left = f"; {time_left(step)}".removesuffix("; ")
    who = " ".join(filter(None, (row.algorithm, variant(row.params), setting(row.params))))
    return (
        f"[{step.done:{width}}/{step.total}] {step.task.problem['name']}: {who}, "
        f"seed {row.seed}: regret {number(row.regret)}, {amount(row.scalars)} scalars, {number(row.seconds)} s{left}"
    )


@dataclass
class _SoFar:
    """The table so far: for each problem and algorithm the best mean regret among the settings seen."""

    regrets: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)

    def add(self, task: Task, row: Row) -> None:
        algorithms = self.regrets.setdefault(str(task.problem["name"]), {})
        algorithms.setdefault(row.algorithm, {}).setdefault(str(row.params), []).append(row.regret)

    def table(self) -> Table:
        from laconic.report.table import NOTHING, Table, number

        names = list(dict.fromkeys(name for each in self.regrets.values() for name in each))
        rows = tuple(
            (problem, *(number(min(map(fmean, each[name].values()))) if name in each else NOTHING for name in names))
            for problem, each in self.regrets.items()
        )
        return Table(("best mean regret so far", *names), rows=rows)


@dataclass
class _Screen:
    """The table so far above a bar with the time left."""

    live: Live
    bars: Progress
    bar: TaskID
    so_far: _SoFar = field(default_factory=_SoFar)
    in_grid: bool = False

    def watch(self, step: Step) -> None:
        from laconic.experiments.runner import Begun, Finished

        if isinstance(step, Begun):
            self._begin(step)
        elif isinstance(step, Finished):
            self._advance(step)
        elif describe(step):
            self.live.console.print(describe(step), highlight=False, markup=False)

    def _begin(self, step: Begun) -> None:
        from laconic.experiments.conduct import GRID

        self.bars.update(self.bar, description=stage(step), total=step.total, completed=len(step.known), left="")
        self.in_grid = step.part == GRID  # other parts have other sizes or settings: not for this table
        for task, row in step.known if self.in_grid else ():
            self.so_far.add(task, row)

    def _advance(self, step: Finished) -> None:
        from rich.console import Group

        from laconic.cli.display import rich_table

        self.bars.update(self.bar, completed=step.done, left=time_left(step))
        if self.in_grid:
            self.so_far.add(step.task, step.row)
        if self.so_far.regrets:
            self.live.update(Group(rich_table(self.so_far.table()), "", self.bars))


def time_left(step: Finished) -> str:
    """How long the whole job still takes, in words, where that is known."""
    from laconic.experiments.naming import duration

    return "" if step.left is None else f"{duration(step.left)} left in all"


def _bars() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = BarColumn(bar_width=None)  # as wide as there is room, so that words beside it stay whole
    columns = (TextColumn("{task.description}"), bar, MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TextColumn("{task.fields[left]}"))


@contextmanager
def live_bars(*, refresh_per_second: int) -> Iterator[tuple[Live, Progress]]:
    """Bars on stderr that are gone when all is done; what is said meanwhile goes through the console they are on."""
    from rich.console import Console
    from rich.live import Live

    bars = _bars()
    with Live(bars, console=Console(stderr=True), transient=True, refresh_per_second=refresh_per_second) as live:
        yield live, bars


@contextmanager
def _live() -> Iterator[Watch]:
    with live_bars(refresh_per_second=4) as (live, bars):
        yield _Screen(live, bars=bars, bar=bars.add_task("", total=None, left="")).watch
