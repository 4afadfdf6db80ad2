"""``laconic reproduce``: a paper's experiments at one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli import options, sweep

if TYPE_CHECKING:
    from laconic.experiments.conduct import Absent
    from laconic.papers.library import Paper

PROFILE = "quick"


def _papers(incomplete: str) -> list[str]:
    from laconic.papers.library import names

    return [name for name in names() if name.startswith(incomplete.lower())]


def _profiles(incomplete: str) -> list[str]:
    return [name for name in ("quick", "half", "paper") if name.startswith(incomplete.lower())]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="[bold]li2022[/].", autocompletion=_papers)],
    profile: Annotated[
        str,
        typer.Option(
            metavar="quick|half|paper",
            help="[bold]quick[/] rehearses in minutes; [bold]half[/] has half the paper's clients and rounds, and its "
            "whole grid and seeds, in less than an hour; [bold]paper[/] has its sizes too, and says first how long.",
            autocompletion=_profiles,
        ),
    ] = PROFILE,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Problems to run, comma separated. [dim]\\[default: all][/]",
            show_default=False,
        ),
    ] = None,
    tuned_in: Annotated[
        Path | None,
        typer.Option(
            "--tuned-in",
            metavar="DIR",
            **options.named(),
            help="Run each algorithm only at the setting that did best in this folder, which an earlier "
            "[bold]reproduce[/] has written: no grid and no sensitivity study.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            **options.named(),
            help="Results and report.html go here. [dim]\\[default: PAPER-PROFILE, or PAPER-PROFILE-tuned][/]",
            show_default=False,
            rich_help_panel=sweep.OUTPUT,
        ),
    ] = None,
    jobs: sweep.Jobs = None,
    engine: sweep.Engine = "joblib",
    address: sweep.Address = None,
    beyond_memory: sweep.BeyondMemory = False,
    as_json: sweep.Json = False,
    quiet: sweep.Quiet = False,
) -> None:
    """Reproduce a paper: run its experiments, tune as it does, and check its claims, with a report.

    Problems whose data is not here are left out, and it is said how to get it. Every finished run is saved at once.
    Stopped or killed, the same command goes on where it was.
    """
    from laconic.pages.report import Subject
    from laconic.papers.library import read_paper

    found = read_paper(paper)
    wanted = options.listed("--only", only, one="cosine")
    chosen = found.under(profile).only(wanted)
    some = f" --only {','.join(wanted)}" if wanted else ""
    name = profile.strip().lower()
    folder = out or Path(f"{found.name}-{name}{'' if tuned_in is None else '-tuned'}")
    about = f"profile {name}: {found.file.profiles[name].about}"
    absent: tuple[Absent, ...] = ()
    if tuned_in is not None:
        _require_another(folder, tuned_in)
        chosen, absent = _tuned(chosen, tuned_in, all_of_it=bool(wanted))
        some, about = f"{some} --tuned-in ANOTHER", f"sizes of profile {name}, without its grid"
    subject = Subject(
        title=found.file.title,
        about=f"{found.file.authors}. {found.file.venue}",
        profile=about,
        command=f"laconic reproduce {found.name} --profile {name}{some} --out DIR",
        with_claims=True,
    )
    sweeping = sweep.Sweeping(
        folder, jobs=jobs, engine=engine, address=address, as_json=as_json, quiet=quiet, beyond_memory=beyond_memory
    )
    sweeping.run(chosen.figures, subject=subject, absent=absent)


def _require_another(folder: Path, tuned_in: Path) -> None:
    """What was tuned on must not be replaced by the few runs that it led to."""
    from laconic.errors import InputError

    if folder.resolve() == tuned_in.resolve():
        raise InputError(
            f"--tuned-in: {tuned_in} is where the results would go, in place of its own; try another --out"
        )


def _tuned(paper: Paper, folder: Path, *, all_of_it: bool) -> tuple[Paper, tuple[Absent, ...]]:
    """The figures at the settings that did best in a folder, and those that cannot run as they are not there."""
    from laconic.errors import InputError
    from laconic.experiments.conduct import Absent
    from laconic.pages.output import left_in

    tuned = paper.tuned_by(left_in(folder))
    there = {each.name for each in tuned.figures}
    lacking = [each for each in paper.figures if each.name not in there]
    absent = tuple(Absent(each, why=f"{each.problem}: no results of it in {folder.name}") for each in lacking)
    if lacking and (all_of_it or not there):
        names = [each.problem for each in lacking]
        raise InputError(
            f"--tuned-in: {folder} has no results of {', '.join(names)}; "
            f"try laconic reproduce {paper.name} --profile half --only {','.join(names)} --out {folder} first"
        )
    return tuned, absent
