"""``laconic suggest``: settings for a problem or for data of one's own, in plain words and as a file to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic import limits
from laconic.cli import complete
from laconic.cli.aside import aside, is_terminal
from laconic.cli.options import named, whole

if TYPE_CHECKING:
    from laconic.suggestion import Suggestion

SAMPLE, FEWEST = 500, 2


def suggest(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM|FILE",
            help="A name that [bold]laconic list[/] shows, or an [bold].npz[/], [bold].csv[/] or [bold].parquet[/] "
            "with one point in each row.",
            autocompletion=complete.problems,
        ),
    ],
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward", metavar="COLUMN", help="The column of rewards in a file. Without it, a column named reward."
        ),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel", metavar="NAME", help="The kernel whose scale is chosen.", autocompletion=complete.kernels
        ),
    ] = "Gaussian",
    clients: Annotated[
        int, typer.Option("--clients", "-N", metavar="N", help="Clients that learn together.", **whole())
    ] = 50,
    traffic: Annotated[
        int, typer.Option("--traffic", metavar="COUNT", help="Interactions of one client in a day.", **whole())
    ] = 100,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            metavar="COUNT",
            help="Random choices of a pilot; of a file, the most rows that are used.",
            **whole(least=FEWEST),
        ),
    ] = SAMPLE,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="SEED",
            help="Seed of the pilot and of all draws.",
            **whole(least=0, most=limits.MOST_SEED),
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.toml",
            **named(),
            help="Keep an experiment for [bold]laconic run[/] here; of a file of points, with a problem made of them "
            "beside it, as FILE-rehearsal.npz.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Suggest kernel scale, λ, α and the rest from a sample, and estimate what each algorithm would send.

    A problem is sampled as a pilot of uniformly random choices would see it.
    """
    from laconic.cli.display import as_json as to_json
    from laconic.cli.subject import SAMPLED, require_taken
    from laconic.report.table import wrapped
    from laconic.suggestion import suggest_for
    from laconic.suggestion.own_data import is_sample, read_sample
    from laconic.suggestion.suggesting import suggest_from

    if is_sample(subject):
        read = read_sample(subject, reward=reward)
        _ask_for_patience()
        found = suggest_from(read, kernel=kernel, clients=clients, traffic=traffic, most=sample, seed=seed)
    else:
        require_taken(subject, by="suggest", kinds=SAMPLED)
        _refuse_reward(reward)
        _ask_for_patience()
        found = suggest_for(subject, sample=sample, kernel=kernel, clients=clients, traffic=traffic, seed=seed)
    kept = [] if out is None else _keep(found, out)
    typer.echo(to_json(found.to_dict()) if as_json else wrapped(found.explain()))
    if kept:
        aside(f"wrote {', '.join(kept)}")


def _ask_for_patience() -> None:
    if is_terminal():
        aside("fitting the kernel and estimating what would be sent, which takes some seconds")


def _refuse_reward(reward: str | None) -> None:
    from laconic.errors import InputError

    if reward is not None:
        raise InputError("--reward names a column of a file, and a problem has none; leave it out")


def _keep(found: Suggestion, out: Path) -> list[str]:
    """Write the experiment, and beside it a problem made of the sample where there is no other."""
    from laconic.errors import InputError
    from laconic.experiments.files import replace_file, require_writable_file
    from laconic.problems import save_recorded
    from laconic.suggestion import rehearsal

    if out.suffix.lower() != ".toml":
        better = out.parent / f"{out.stem or 'own'}.toml"
        raise InputError(f"--out must be the name of a .toml file, not {str(out)!r}; try {better}")
    beside = out.with_name(f"{out.stem}-rehearsal.npz")
    for path in (out, beside):
        if path.exists():
            raise InputError(f"{path} is there already, and nothing is replaced; remove it, or try another --out")
    require_writable_file(out)
    made: list[str] = []
    problem = None
    if found.problem is None:
        log = rehearsal(found)
        save_recorded(beside, log.instance(seed=0, clients=1, rounds=log.steps), clients=1, rounds=log.steps)
        problem, made = str(beside), [str(beside)]
    text = found.to_toml(problem=problem, folder=out.parent)
    replace_file(out, lambda path: path.write_text(text, encoding="utf-8"))
    return [str(out), *made]
