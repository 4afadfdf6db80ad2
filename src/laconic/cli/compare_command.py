"""``laconic compare``: algorithms side by side on one problem."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from laconic import defaults
from laconic.cli import options
from laconic.cli.aside import aside, fitted
from laconic.cli.progress import OneProblem, watching
from laconic.cli.stopping import stoppable

if TYPE_CHECKING:
    from laconic.experiments.config import Experiment
    from laconic.experiments.results import Results
    from laconic.experiments.runner import Event, Watch


def compare(
    problem: options.Problem = defaults.PROBLEM,
    algorithms: options.Algorithms = None,
    preset: options.Preset = None,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    lam: options.Lam = None,
    alpha: options.Alpha = None,
    D: options.D = None,
    overrides: options.Overrides = None,
    clients: options.Clients = None,
    rounds: options.Rounds = None,
    seeds: options.Seeds = None,
    runtime: options.Runtime = None,
    jobs: options.Jobs = 1,
    beyond_memory: options.BeyondMemory = False,
    out: options.Out = None,
    choices: options.Choices = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run algorithms side by side on one problem: regret, communication and time, as a table and a figure.

    Without options the problem is a catalogue of items that return, where few points stand for all. In
    [bold]laconic compare cosine[/] every item is new.

    With [bold]--out[/] every finished run is saved at once. Stopped or killed, the same command goes on where it was.
    """
    from laconic.cli.request import Words, understand
    from laconic.cli.subject import PLAYED, require_taken

    require_taken(problem, by="compare", kinds=PLAYED)
    words = Words(
        problem=problem,
        algorithms=tuple(algorithms or ()),
        preset=preset,
        clients=clients,
        rounds=rounds,
        seeds=seeds,
        kernel=kernel,
        gamma=gamma,
        lam=lam,
        alpha=alpha,
        D=D,
        overrides=tuple(overrides or ()),
        runtime=runtime,
    )
    _Session(
        understand(words),
        jobs=jobs,
        out=out,
        choices=choices,
        as_json=as_json,
        quiet=quiet,
        beyond_memory=beyond_memory,
    ).run()


@dataclass
class _Session:
    """One comparison from what is to be run to what is printed and kept."""

    experiment: Experiment
    jobs: int
    out: Path | None
    choices: Path | None
    as_json: bool
    quiet: bool
    beyond_memory: bool = False
    chosen: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        from laconic.experiments.compare import Incomplete, Interrupted
        from laconic.experiments.files import require_writable_file

        if self.choices is not None:
            require_writable_file(self.choices)
        try:
            with stoppable() as stop, watching(OneProblem(), quiet=self.quiet) as show:
                results = self._compare(show)
        except Interrupted as stopped:
            self._report(stopped.results)
            self._tell(f"stopped; {_runs(len(stopped.results.rows))} had finished{self._from_here()}")
            raise typer.Exit(stop.code) from None
        except Incomplete as incomplete:
            self._report(incomplete.results)
            raise
        self._report(results)

    def _from_here(self) -> str:
        return "" if self.out is None else "; the same command goes on from there"

    def _compare(self, show: Watch) -> Results:
        from laconic.experiments.compare import played
        from laconic.experiments.runner import Finished

        def follow(event: Event) -> None:
            if isinstance(event, Finished) and event.run is not None:
                self.chosen[f"{event.task.label}/{event.task.seed}"] = event.run.choices
            show(event)

        traced = self.choices is not None
        return played(
            self.experiment,
            jobs=self.jobs,
            out=self.out,
            progress=follow,
            traced=traced,
            foretold=not self.quiet,
            beyond_memory=self.beyond_memory,
        )

    def _report(self, results: Results) -> None:
        """Print what has finished, and say where it is kept."""
        from laconic.cli import display
        from laconic.experiments.verdict import verdicts

        if self.as_json:
            typer.echo(display.as_json({"rows": [display.plain(row) for row in results.rows]}))
        elif results.rows:
            display.outcome(results, verdicts=verdicts(results))
        kept = self._keep_choices() + self._kept_in_folder(results)
        if kept:
            self._tell(f"wrote {', '.join(kept)}")
            self._explain_missing_config()

    def _keep_choices(self) -> list[str]:
        if self.choices is None or not self.chosen:
            return []
        import numpy as np

        from laconic.experiments.files import replace_file

        def write(path: Path) -> None:
            with path.open("wb") as file:  # by handle: given a name, savez would add .npz to it
                np.savez_compressed(file, **self.chosen)

        replace_file(self.choices, write)
        return [str(self.choices)]

    def _kept_in_folder(self, results: Results) -> list[str]:
        from laconic.experiments.folder import files_in

        return [] if self.out is None or not results.rows else [str(path) for path in files_in(self.out)]

    def _explain_missing_config(self) -> None:
        from laconic.experiments.folder import CONFIG, why_without_config

        if self.out is not None and not (self.out / CONFIG).exists():
            self._tell(f"no {CONFIG} to run this again: {why_without_config(self.experiment)}")

    def _tell(self, message: str) -> None:
        """On stdout after the table, but never beside JSON."""
        if self.as_json:
            aside(message)
        else:
            typer.echo(fitted(message, stream=sys.stdout))


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
