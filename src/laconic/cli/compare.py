"""``laconic compare``: algorithms side by side on one problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli import complete, defaults

if TYPE_CHECKING:
    from laconic.cli.request import Request
    from laconic.experiments.compare import Event, Progress
    from laconic.experiments.results import Results

LEARNING, SIZES, OUTPUT = "What learns", "How much", "What comes out"
D_DEFAULT = ", ".join(f"{own['D']:g} for {name}" for name, own in defaults.OWN.items() if "D" in own)


def compare(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="[PROBLEM]",
            help="A name that [bold]laconic list[/] shows, an [bold].npz[/] with arms, means and noise, or the "
            "[bold]config.toml[/] of an earlier run, which is run again exactly.",
            autocompletion=complete.problems,
        ),
    ] = defaults.PROBLEM,
    algorithms: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithms",
            "-a",
            metavar="NAMES",
            help="Comma separated, or the option repeated.",
            show_default=", ".join(defaults.ALGORITHMS),
            autocompletion=complete.algorithms,
            rich_help_panel=LEARNING,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The kernel, for all that have one.",
            show_default=str(defaults.SHARED["kernel"]),
            autocompletion=complete.kernels,
            rich_help_panel=LEARNING,
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(
            metavar="γ",
            help="Inverse width of the Gaussian kernel.",
            show_default=str(defaults.SHARED["gamma"]),
            rich_help_panel=LEARNING,
        ),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(
            metavar="λ",
            help="Ridge, above 0.",
            show_default=str(defaults.SHARED["lam"]),
            rich_help_panel=LEARNING,
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            metavar="α",
            help="Weight of σ in the index μ + ασ: a number, or [bold]theory[/] for the paper's schedule.",
            show_default=str(defaults.SHARED["alpha"]),
            rich_help_panel=LEARNING,
        ),
    ] = None,
    D: Annotated[
        float | None,
        typer.Option(
            "--D",
            metavar="D",
            help="Threshold of the sync trigger, for all that have one: larger means fewer syncs.",
            show_default=D_DEFAULT,
            rich_help_panel=LEARNING,
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="WHO.PARAMETER=VALUE",
            help="One parameter of one algorithm or of the problem: [bold]ApproxDisKernelUCB.qbar=0.3[/], "
            "[bold]problem.dim=5[/]; a list [bold]DisKernelUCB.gamma=[[0.1,1]][/] tries each. Repeatable; "
            "[bold]laconic show NAME[/] lists parameters.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients",
            "-N",
            help="Clients that learn together.",
            show_default=f"{defaults.CLIENTS}, or what a recorded problem has",
            rich_help_panel=SIZES,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            "-T",
            help="Rounds; every client acts once in each.",
            show_default=f"{defaults.ROUNDS}, or what a recorded problem has",
            rich_help_panel=SIZES,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How many seeds: 0, 1, … All algorithms meet the same arms and noise.",
            show_default=str(defaults.SEEDS),
            rich_help_panel=SIZES,
        ),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What moves the messages.", show_default=defaults.RUNTIME, rich_help_panel=SIZES
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep results.parquet (after every run), config.toml, figure.png and figure.svg here; files of these "
            "names are replaced when the first run has finished.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    choices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Keep the chosen arm of every step, one array per ALGORITHM/SEED.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with a row a run, and nothing else.", rich_help_panel=OUTPUT)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Run algorithms side by side on one problem: regret, communication and time, as a table and a figure.

    Without options this is the demo: a catalogue of items that repeat, where sharing a small dictionary costs a fraction
    of sharing all points. Try [bold]laconic compare cosine[/] for a problem where it does not.
    """
    from laconic.cli.request import Words, understand

    words = Words(
        problem=problem,
        algorithms=tuple(algorithms or ()),
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
    _Session(understand(words), out=out, choices=choices, as_json=as_json, quiet=quiet).run()


@dataclass
class _Session:
    """One comparison from its request to what is printed and kept."""

    request: Request
    out: Path | None
    choices: Path | None
    as_json: bool
    quiet: bool
    chosen: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        from laconic.cli import display
        from laconic.experiments.compare import Interrupted
        from laconic.experiments.files import require_writable_file

        if self.choices is not None:
            require_writable_file(self.choices)
        try:
            with display.progress(quiet=self.quiet) as show:
                results = self._compare(show)
        except Interrupted as stopped:
            self._report(stopped.results)
            self._tell(f"interrupted: {len(stopped.results.rows)} runs had finished")
            raise typer.Exit(130) from None
        self._report(results)

    def _compare(self, show: Progress) -> Results:
        from laconic.experiments.compare import Finished
        from laconic.experiments.compare import compare as run_all

        def follow(event: Event) -> None:
            if isinstance(event, Finished) and self.choices is not None:
                self.chosen[f"{event.job.label}/{event.job.seed}"] = event.run.choices
            show(event)

        return run_all(
            self.request.algorithms,
            problem=self.request.problem,
            clients=self.request.clients,
            rounds=self.request.rounds,
            seeds=self.request.seeds,
            runtime=self.request.runtime,
            progress=follow,
            out=self.out,
        )

    def _report(self, results: Results) -> None:
        """Print what has finished, and say where it is kept."""
        from laconic.cli import display
        from laconic.experiments.verdict import verdicts

        if self.as_json:
            typer.echo(display.as_json({"rows": [row.as_dict() for row in results.rows]}))
        elif results.rows:
            display.outcome(results, verdicts=verdicts(results))
        kept = self._keep_choices() + self._kept_in_folder(results)
        if kept:
            self._tell(f"wrote {', '.join(kept)}")

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
        from laconic.experiments.output import files_in

        return [] if self.out is None or not results.rows else [str(path) for path in files_in(self.out)]

    def _tell(self, message: str) -> None:
        """On stdout after the table, but never beside JSON."""
        typer.echo(message, err=self.as_json)
