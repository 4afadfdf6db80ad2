"""What ``laconic run`` and ``laconic reproduce`` share: options, and what is said at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic import limits
from laconic.cli.aside import aside
from laconic.cli.options import whole
from laconic.cli.progress import ManyProblems, watching
from laconic.cli.stopping import stoppable

if TYPE_CHECKING:
    from laconic.experiments.conduct import Absent, Outcome
    from laconic.experiments.results import Group
    from laconic.experiments.spec import Spec
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

    def run(self, specs: Sequence[Spec], *, subject: Subject, absent: Sequence[Absent] = ()) -> None:
        """Run, write and say what came of it; ``absent`` are experiments that were asked for and cannot run."""
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
                    with watching(ManyProblems(), quiet=self.quiet) as watch:
                        outcome = conduct(
                            specs, out=self.out, engine=where, watch=watch, beyond_memory=self.beyond_memory
                        )
                except KeyboardInterrupt:
                    stop.leave(self.out)
            outcome = replace(outcome, absent=(*outcome.absent, *absent))
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
            typer.echo(f"\n{_judged(outcome)}")
        for text in _standings(outcome):
            typer.echo(f"\n{wrapped(text)}")
        for sizes in outcome.tuned_at:
            typer.echo(f"\n{wrapped(f'each algorithm at the setting that did best at {sizes}; no grid was run')}")
        for each in outcome.absent:
            typer.echo(f"\n{wrapped(f'not run: {each.why}')}")
        if files:
            typer.echo(f"\nreport: {files[0]} (and {len(files) - 1} files beside it)")


def _plain(outcome: Outcome, *, files: Sequence[Path], with_claims: bool) -> dict[str, Any]:
    from laconic.cli.display import plain
    from laconic.pages.output import verdicts

    tuned = [
        {"problem": panel.results.problem, **plain(row)}
        for panel in outcome.panels
        for row in panel.results.tuned("regret").rows
    ]
    return {
        "tuned": tuned,
        "claims": verdicts(outcome) if with_claims else [],
        "frontier": _standings(outcome),
        "absent": [{"problem": each.spec.problem, "why": each.why} for each in outcome.absent],
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


def _judged(outcome: Outcome) -> str:
    """The claims with their verdicts; of a rehearsal, which judges nothing, the claims alone."""
    from laconic.papers.evidence import is_rehearsal

    if is_rehearsal(outcome):
        return (
            f"a rehearsal judges no claim; at the paper's sizes, or half of them, these are judged:\n{_legend(outcome)}"
        )
    return f"{_claims(outcome).text()}\n{_legend(outcome)}"


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


def _legend(outcome: Outcome) -> str:
    """What each claim says."""
    from laconic.pages.output import verdicts
    from laconic.report.table import hanging

    texts = {each["claim"]: each["text"] for each in verdicts(outcome)}
    return "\n".join(f"{key}  {hanging(text, indent=len(key) + 2)}" for key, text in texts.items())
