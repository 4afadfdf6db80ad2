"""The options of the commands, each with its help."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from laconic import defaults, limits
from laconic.cli import complete
from laconic.described import said_of

LEARNING, SIZES, OUTPUT = "What learns", "How much", "What comes out"


def _option(*names: str, panel: str, help: str, default: object = None, **more: Any) -> Any:
    """An option that says its default in its help: the value itself is None where the option is not given."""
    stated = "" if default is None else f" [dim]\\[default: {default}][/]"
    return typer.Option(*names, help=help + stated, show_default=False, rich_help_panel=panel, **more)


def listed(option: str, given: Sequence[str] | None, *, one: str) -> list[str]:
    """The names in a comma-separated option, which may be repeated; an option that is given names something."""
    names = [name.strip() for each in given or () for name in each.split(",") if name.strip()]
    if given and not names:
        from laconic.errors import InputError  # numpy comes with it

        raise InputError(f"{option} names nothing: {', '.join(map(repr, given))}; try {option} {one}, or without it")
    return names


def whole(*, least: int = 1, most: int = limits.MOST_COUNT) -> Any:
    """How an option is read that is a whole number: every one of them has a least and a most."""

    def read(text: str) -> int:
        with suppress(ValueError):
            found = int(text)
            if least <= found <= most:
                return found
        raise typer.BadParameter(f"must be a whole number from {least} to {most}, not {_cut(text)}")

    return {"parser": read}


def number() -> Any:
    """How an option is read that is a number."""

    def read(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise typer.BadParameter(f"must be a number, not {_cut(text)}") from None

    return {"parser": read}


def named() -> Any:
    """How a file or a folder is read, with ``~`` for a home; no name at all is no folder, though it is to pathlib."""

    def read(text: str | Path) -> Path:
        if not str(text).strip():
            raise typer.BadParameter("is empty; try . for the current folder, or a name")
        try:
            return Path(text).expanduser()
        except RuntimeError:
            raise typer.BadParameter(
                f"there is no home {Path(text).parts[0]} on this machine; try the whole path"
            ) from None

    return {"parser": read}


def _cut(text: object) -> str:
    return reprlib.repr(str(text))


def _whole(*names: str, most: int = limits.MOST_COUNT, **more: Any) -> Any:
    return _option(*names, **whole(most=most), **more)


def _said_of(where: str, name: str) -> str:
    """What a docstring says of a parameter, as it is on a command line: without what concerns Python alone."""
    text = re.sub(r" \(in Python [^)]*\)| In Python [^.]*\.", "", said_of(where, name))
    text = text.replace("….", "…").replace("Theory()", "[bold]theory[/]")
    return re.sub(r"(\w+)\(\)", r"\1", text)


#: What is played by name, and which files are.
PLAYED = (
    "A name that [bold]laconic list[/] shows, an [bold].npz[/] with arms, means and noise, a [bold].parquet[/] of "
    "decisions as [bold]laconic log[/] writes it"
)
Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help=f"{PLAYED}, or the [bold]config.toml[/] of an earlier run, which is then run again exactly.",
        autocompletion=complete.problems,
    ),
]


def _algorithms(*, default: object) -> Any:
    return _option(
        *("--algorithms", "-a"),
        panel=LEARNING,
        metavar="NAMES",
        help="Comma separated, in any case, or the option repeated.",
        default=default,
        autocompletion=complete.algorithms,
    )


Algorithms = Annotated[list[str] | None, _algorithms(default=", ".join(defaults.ALGORITHMS))]
Preset = Annotated[
    str | None,
    _option(
        "--preset",
        panel=LEARNING,
        metavar="PAPER",
        help="Algorithms with the settings of a paper instead of the defaults: [bold]li2022[/]. What the paper "
        "does not say has its default.",
    ),
]
SweptAlgorithms = Annotated[list[str] | None, _algorithms(default="all, on all wires, over all knobs")]
Kernel = Annotated[
    str | None,
    _option(
        "--kernel",
        panel=LEARNING,
        metavar="NAME",
        help="The kernel, for all that have one.",
        default="Gaussian",
        autocompletion=complete.kernels,
    ),
]


Gamma = Annotated[
    float | None,
    _option(
        "--gamma",
        **number(),
        panel=LEARNING,
        metavar="γ",
        help=f"Of the Gaussian kernel. {_said_of('laconic.kernels:Gaussian', 'gamma')}",
        default=defaults.GAMMA,
    ),
]
Lam = Annotated[
    float | None,
    _option(
        "--lam",
        **number(),
        panel=LEARNING,
        metavar="λ",
        help=_said_of("laconic.algorithms:DisKernelUCB", "lam"),
        default=defaults.LAM,
    ),
]
Alpha = Annotated[
    str | None,
    _option(
        "--alpha",
        panel=LEARNING,
        metavar="α",
        help=_said_of("laconic.algorithms:DisKernelUCB", "alpha"),
        default=defaults.ALPHA,
    ),
]
D = Annotated[
    float | None,
    _option(
        "--D",
        **number(),
        panel=LEARNING,
        metavar="D",
        help=f"For all that have one. {_said_of('laconic.algorithms:DisKernelUCB', 'D')}",
        default=f"{defaults.D_EXACT:g}; of ApproxDisKernelUCB {defaults.D_NYSTROM:g}",
    ),
]
Overrides = Annotated[
    list[str] | None,
    _option(
        "--set",
        panel=LEARNING,
        metavar="WHO.NAME=VALUE",
        help="One parameter of one algorithm or of the problem: [bold]ApproxDisKernelUCB.qbar=1[/], default "
        f"{defaults.QBAR:g}; [bold]problem.dim=5[/]. A list tries each: [bold]DisKernelUCB.gamma=\\[0.1,1][/]. "
        "Repeatable; [bold]laconic show[/] lists parameters.",
    ),
]


def _clients(default: int) -> Any:
    said = f"{default}; of a file, ⌊√steps⌋"
    meaning = _said_of("laconic.experiments.compare:compare", "clients")
    return _whole(*("--clients", "-N"), panel=SIZES, metavar="N", help=meaning, default=said)


def _rounds(default: int, long: int) -> Any:
    said = f"{default}; where arms return {long}; of a file, all it has"
    meaning = _said_of("laconic.experiments.compare:compare", "rounds")
    return _whole(*("--rounds", "-T"), panel=SIZES, metavar="T", help=meaning, default=said)


Clients = Annotated[int | None, _clients(defaults.CLIENTS)]
SweptClients = Annotated[int | None, _clients(defaults.SWEPT_CLIENTS)]
Rounds = Annotated[int | None, _rounds(defaults.ROUNDS, defaults.LONG_ROUNDS)]
SweptRounds = Annotated[int | None, _rounds(defaults.SWEPT_ROUNDS, defaults.SWEPT_LONG_ROUNDS)]
Seeds = Annotated[
    int | None,
    _whole(
        "--seeds",
        most=limits.MOST_SEEDS,
        panel=SIZES,
        metavar="COUNT",
        help=_said_of("laconic.experiments.compare:compare", "seeds"),
        default=defaults.SEEDS,
    ),
]
Runtime = Annotated[
    str | None,
    _option(
        "--runtime",
        panel=SIZES,
        metavar="NAME",
        help=_said_of("laconic.experiments.compare:compare", "runtime"),
        default=defaults.RUNTIME,
    ),
]
Jobs = Annotated[
    int,
    _whole(
        *("--jobs", "-j"),
        most=limits.MOST_JOBS,
        panel=SIZES,
        metavar="COUNT",
        help=_said_of("laconic.experiments.compare:compare", "jobs"),
        default=1,
    ),
]
BeyondMemory = Annotated[
    bool,
    _option("--beyond-memory", panel=SIZES, help="Go on where exact algorithms need more memory than there is."),
]
Out = Annotated[
    Path | None,
    _option(
        "--out",
        panel=OUTPUT,
        metavar="DIR",
        **named(),
        help="Keep every finished run at once, and results.parquet, config.toml, figure.png and figure.svg at the end, "
        "with certificates.png and .svg where LaconicUCB ran. "
        "What is there already is not run again; a folder with results of another comparison is refused.",
    ),
]
Choices = Annotated[
    Path | None,
    _option(
        "--choices",
        panel=OUTPUT,
        metavar="FILE.npz",
        **named(),
        help="Keep the chosen arm of every step, one array per ALGORITHM/SEED; every run is made for that.",
    ),
]
Json = Annotated[
    bool, _option("--json", panel=OUTPUT, help="Print one JSON object, one row for each run, and nothing else.")
]
Quiet = Annotated[bool, _option("--quiet", "-q", panel=OUTPUT, help="Show no progress.")]
