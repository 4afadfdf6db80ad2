"""``laconic run``: one experiment file, with grids, seeds and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laconic.cli import sweep
from laconic.cli.options import named


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.toml",
            **named(),
            help="Problem, sizes, algorithms with grids, seeds; [bold]laconic reproduce[/] leaves some in config/.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", **named(), help="Results and report.html go here.", rich_help_panel=sweep.OUTPUT
        ),
    ],
    jobs: sweep.Jobs = None,
    engine: sweep.Engine = "joblib",
    address: sweep.Address = None,
    beyond_memory: sweep.BeyondMemory = False,
    as_json: sweep.Json = False,
    quiet: sweep.Quiet = False,
) -> None:
    """Run an experiment file: every setting of its grids on every seed, in parallel, with a report.

    Every finished run is saved at once. Stopped or killed, the same command goes on where it was.
    """
    from laconic.experiments.spec import read_spec
    from laconic.pages.report import Subject

    spec = read_spec(file)
    subject = Subject(
        title=spec.title,
        about=file.name,
        profile="",
        command=f"laconic run {file.name} --out DIR",
        with_claims=spec.file.paper is not None,
    )
    sweeping = sweep.Sweeping(
        out, jobs=jobs, engine=engine, address=address, as_json=as_json, quiet=quiet, beyond_memory=beyond_memory
    )
    sweeping.run([spec], subject=subject)
