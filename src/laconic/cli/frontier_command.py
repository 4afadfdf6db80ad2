"""``laconic frontier``: what regret costs in bytes, over all algorithms and wires on one problem."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli import complete, options, sweep
from laconic.cli.aside import fitted
from laconic.cli.options import named
from laconic.cli.progress import ManyProblems, watching
from laconic.cli.stopping import stoppable

if TYPE_CHECKING:
    from laconic.experiments.config import Experiment
    from laconic.experiments.frontier import Frontier

PROBLEM = "cosine"

Swept = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help=f"{options.PLAYED}, or a [bold]config.toml[/], whose algorithms are then swept.",
        autocompletion=complete.problems,
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        **named(),
        help="Every finished run, results.parquet, config.toml, figure.png and figure.svg go here. "
        "[dim]\\[default: frontier-PROBLEM][/]",
        show_default=False,
        rich_help_panel=sweep.OUTPUT,
    ),
]


def frontier(
    problem: Swept = PROBLEM,
    algorithms: options.SweptAlgorithms = None,
    kernel: options.Kernel = None,
    gamma: options.Gamma = None,
    lam: options.Lam = None,
    alpha: options.Alpha = None,
    overrides: options.Overrides = None,
    clients: options.SweptClients = None,
    rounds: options.SweptRounds = None,
    seeds: options.Seeds = None,
    out: Folder = None,
    jobs: sweep.Jobs = None,
    beyond_memory: sweep.BeyondMemory = False,
    as_json: sweep.Json = False,
    quiet: sweep.Quiet = False,
) -> None:
    """Sweep every algorithm and wire over its own knob: which settings does none beat in both regret and bytes?

    Draws regret against bytes, and marks what is best. Every finished run is saved at once. Stopped or killed, the same
    command goes on where it was.
    """
    from laconic.cli.request import SWEEP, Words, understand
    from laconic.cli.subject import PLAYED, require_taken
    from laconic.experiments.compare import Incomplete
    from laconic.experiments.frontier import Frontier

    require_taken(problem, by="frontier", kinds=PLAYED)
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
        overrides=tuple(overrides or ()),
    )
    experiment = understand(words, unless=SWEEP)
    folder = out or Path(f"frontier-{Path(problem).stem}")
    try:
        found = _swept(experiment, folder=folder, jobs=jobs, quiet=quiet, beyond_memory=beyond_memory)
    except Incomplete as incomplete:
        _say(Frontier(incomplete.results), folder=folder, as_json=as_json)
        raise
    _say(found, folder=folder, as_json=as_json)


def _swept(experiment: Experiment, *, folder: Path, jobs: int | None, quiet: bool, beyond_memory: bool) -> Frontier:
    from laconic.experiments.frontier import swept

    with stoppable() as stop:
        try:
            with watching(ManyProblems(), quiet=quiet) as watch:
                return swept(experiment, out=folder, jobs=jobs, watch=watch, beyond_memory=beyond_memory)
        except KeyboardInterrupt:
            stop.leave(folder)


def _say(found: Frontier, *, folder: Path, as_json: bool) -> None:
    from laconic.cli import display
    from laconic.experiments.folder import files_in

    if as_json:
        rows = [point.as_dict() for point in found.points]
        typer.echo(display.as_json({"points": rows, "files": [str(path) for path in files_in(folder)]}))
        return
    typer.echo(repr(found))
    typer.echo()
    typer.echo(fitted(f"wrote {', '.join(map(str, files_in(folder)))}", stream=sys.stdout))
