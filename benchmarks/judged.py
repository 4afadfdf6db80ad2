"""``python -m benchmarks.judged``: LaconicUCB beside its rivals, on the same seeds, against what is required of it.

Every finished run is kept in the folder, so that the same command goes on where it was stopped; after a change of code
``--anew`` makes LaconicUCB's runs again and keeps those of its rivals.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.contests import CONTESTS, Contest, Rival
from benchmarks.ratios import Ratio, ratio_of_means
from laconic.algorithms import Algorithm
from laconic.cli.progress import ManyProblems, describe
from laconic.errors import LaconicError
from laconic.experiments.compare import prepare, try_out
from laconic.experiments.config import Experiment
from laconic.experiments.results import Group, Results
from laconic.experiments.runner import Event, Sweep, silent
from laconic.experiments.tasks import Store, Task, tasks_of
from laconic.experiments.tuning import complete_only
from laconic.report.table import NOTHING, Table, amount, number
from laconic.runtimes.jobs import engine

app = typer.Typer(add_completion=False)
HEADERS = (
    *("problem", "rival", "seeds", "regret", "its", "ratio, 95 %", "required"),
    *("bytes", "its", "1/ratio, 95 %", "required", "met"),
)
#: Of a grid, settings that do worse than this many times the best at half the sizes, on two seeds, are left out.
HOPELESS = 1.3
SCREENED = 2


@dataclass(frozen=True)
class Verdict:
    """LaconicUCB beside one rival on one problem."""

    contest: Contest
    rival: Rival
    mine: Group
    its: Group

    @property
    def regret(self) -> Ratio:
        """Of the mean regrets."""
        return self._ratio("regret")

    @property
    def bytes(self) -> Ratio:
        """Of the mean bytes, both ways."""
        return self._ratio("bytes")

    @classmethod
    def of(cls, contest: Contest, rival: Rival, mine: Group, its: Group) -> Verdict | None:
        """On the seeds that both have, if there are any."""
        seeds = {row.seed for row in mine.rows} & {row.seed for row in its.rows}
        both = [replace(each, rows=tuple(row for row in each.rows if row.seed in seeds)) for each in (mine, its)]
        return cls(contest, rival, *both) if seeds else None

    def _ratio(self, metric: str) -> Ratio:
        return ratio_of_means(self.mine.values(metric), self.its.values(metric))

    @property
    def is_met(self) -> bool:
        """Whether all that is required holds."""
        rival, bytes_ = self.rival, self.mine.mean("bytes") or 0.0
        regret = self.regret.high if rival.surely else self.regret.value
        within = rival.megabytes is None or bytes_ <= 1e6 * rival.megabytes
        saved = rival.saving is None or self.bytes.value * rival.saving <= 1.0
        return within and saved and (rival.regret is None or regret <= rival.regret)

    def cells(self) -> tuple[str, ...]:
        """The verdict as a row."""
        regret, sent, rival = self.regret, self.bytes, self.rival
        limit = "" if rival.megabytes is None else f"≤ {rival.megabytes:g} MB"
        return (
            self.contest.name,
            self.its.label if rival.is_grid else rival.name,
            str(len(self.its.rows)),
            *(number(group.mean("regret")) for group in (self.mine, self.its)),
            f"{regret.value:.3f} [{regret.low:.3f}, {regret.high:.3f}]",
            NOTHING if rival.regret is None else f"{'upper ' if rival.surely else ''}≤ {rival.regret:g}",
            *(amount(group.mean("bytes"), unit="B") for group in (self.mine, self.its)),
            f"{1 / sent.value:.1f} [{1 / sent.high:.1f}, {1 / sent.low:.1f}]",
            f"≥ {rival.saving:g}" if rival.saving is not None else limit or NOTHING,
            "yes" if self.is_met else "NO",
        )


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="Finished runs are kept here.")] = Path("judged"),
    only: Annotated[list[str] | None, typer.Option(help=f"Problems: {', '.join(CONTESTS)}.")] = None,
    rivals: Annotated[list[str] | None, typer.Option(help="Rivals, by how their names begin.")] = None,
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds.")] = 8,
    first: Annotated[int, typer.Option(min=0, help="The first of them; 100 to 139 were used for tuning.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    anew: Annotated[bool, typer.Option("--anew", help="Make LaconicUCB's runs again.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Run nothing: judge what there is.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the table alone.")] = False,
) -> None:
    """Play all that is compared, and print what is required and whether it is met."""
    sweep = Sweep(Store(out / "runs"), engine=engine(jobs=jobs), watch=silent if quiet else _say)
    verdicts = list[Verdict]()
    for name in only or CONTESTS:
        if name not in CONTESTS:
            raise typer.BadParameter(f"no problem is called {name!r}; there are {', '.join(CONTESTS)}")
        contest = CONTESTS[name].among(rivals or [""])
        try:
            judge = Judge(contest, sweep=sweep, seeds=tuple(range(first, first + seeds)), show=show)
            verdicts += judge.verdicts(anew=anew)
        except LaconicError as error:
            typer.echo(f"{name}: {error}", err=True)
    typer.echo(table(verdicts).text())
    raise typer.Exit(0 if verdicts and all(each.is_met for each in verdicts) else 1)


def table(verdicts: Sequence[Verdict]) -> Table:
    """All verdicts as a table."""
    return Table(HEADERS, rows=tuple(each.cells() for each in verdicts))


def _say(event: Event) -> None:
    text = describe(event, so_far=ManyProblems())
    if text:
        typer.echo(text, err=True)
        sys.stderr.flush()


@dataclass
class Judge:
    """One contest: which runs it takes, and what they show."""

    contest: Contest
    sweep: Sweep
    seeds: tuple[int, ...]
    show: bool = False

    def verdicts(self, *, anew: bool = False) -> list[Verdict]:
        """One for each rival that has run, on the seeds that it shares with LaconicUCB."""
        if anew and not self.show:
            for task in self._tasks([self.contest.subject], self.seeds):
                self.sweep.store.path(task).unlink(missing_ok=True)
        found = [(rival, self._group(self._hopeful(rival))) for rival in self.contest.rivals]
        mine = self._group([self.contest.subject])
        verdicts = [Verdict.of(self.contest, rival, mine, its) for rival, its in found if mine and its]
        return [each for each in verdicts if each]

    def _hopeful(self, rival: Rival) -> list[Algorithm]:
        """The settings of a rival that are worth all seeds and sizes."""
        if not rival.is_grid:
            return list(rival.settings)
        small = replace(self, contest=self.contest.halved(), seeds=self.seeds[:SCREENED])
        found = [(setting, group) for setting in rival.settings if (group := small._group([setting]))]
        least = min((group.mean("regret") or 0.0 for _, group in found), default=0.0)
        return [setting for setting, group in found if (group.mean("regret") or 0.0) <= HOPELESS * least]

    def _group(self, settings: Sequence[Algorithm]) -> Group | None:
        """The setting with the least mean regret, over the seeds that it has run on; None where it has on too few."""
        if not settings:
            return None
        results = self._results(settings, self.seeds)
        groups = (results if self.show else complete_only(results, seeds=self.seeds)).groups
        return min(groups, key=lambda group: group.mean("regret") or 0.0, default=None)

    def _results(self, settings: Sequence[Algorithm], seeds: tuple[int, ...]) -> Results:
        experiment, tasks = self._experiment(settings, seeds), self._tasks(settings, seeds)
        about = try_out(experiment)
        wanted = [task for task in tasks if self.sweep.store.load(task) is not None] if self.show else tasks
        self.sweep.complete(wanted, about={self.contest.name: about}, part=self.contest.name)
        return self.sweep.results(tasks, about=about)

    def _tasks(self, settings: Sequence[Algorithm], seeds: tuple[int, ...]) -> list[Task]:
        return tasks_of(self._experiment(settings, seeds), name=self.contest.name)

    def _experiment(self, settings: Sequence[Algorithm], seeds: tuple[int, ...]) -> Experiment:
        contest = self.contest
        return prepare(
            settings,
            problem=contest.problem(),
            clients=contest.clients,
            rounds=contest.rounds,
            seeds=seeds,
            runtime="lockstep",
        )


if __name__ == "__main__":
    app()
