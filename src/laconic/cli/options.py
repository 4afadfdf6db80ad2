"""The options of the commands, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from laconic import defaults
from laconic.cli import complete

LEARNING, SIZES, OUTPUT = "What learns", "How much", "What comes out"


def _option(*names: str, panel: str, help: str, default: object = None, **more: Any) -> Any:
    """An option that says its default in its help: the value itself is None where the option is not given."""
    stated = "" if default is None else f" [dim]\\[default: {default}][/]"
    return typer.Option(*names, help=help + stated, show_default=False, rich_help_panel=panel, **more)


Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A name that [bold]laconic list[/] shows, an [bold].npz[/] with arms, means and noise, or the "
        "[bold]config.toml[/] of an earlier run, which is then run again exactly.",
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
        help="Algorithms with the settings of a paper instead of the defaults: [bold]li2022[/]. What it has not "
        "has the defaults.",
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
        panel=LEARNING,
        metavar="γ",
        help="The Gaussian kernel's inverse width: larger is narrower.",
        default=defaults.GAMMA,
    ),
]
Lam = Annotated[
    float | None, _option("--lam", panel=LEARNING, metavar="λ", help="The ridge, above 0.", default=defaults.LAM)
]
Alpha = Annotated[
    str | None,
    _option(
        "--alpha",
        panel=LEARNING,
        metavar="α",
        help="Weight of σ in the index μ + ασ: a number, or [bold]theory[/] for the paper's schedule.",
        default=defaults.ALPHA,
    ),
]
D = Annotated[
    float | None,
    _option(
        "--D",
        panel=LEARNING,
        metavar="D",
        help="Threshold of the sync trigger, for all that have one: larger means fewer syncs.",
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
    return _option(*("--clients", "-N"), panel=SIZES, metavar="N", help="Clients that learn together.", default=said)


def _rounds(default: int, long: int) -> Any:
    said = f"{default}; where arms return {long}; of a file, all it has"
    return _option(
        *("--rounds", "-T"), panel=SIZES, metavar="T", help="Rounds; every client acts once in each.", default=said
    )


Clients = Annotated[int | None, _clients(defaults.CLIENTS)]
SweptClients = Annotated[int | None, _clients(defaults.SWEPT_CLIENTS)]
Rounds = Annotated[int | None, _rounds(defaults.ROUNDS, defaults.LONG_ROUNDS)]
SweptRounds = Annotated[int | None, _rounds(defaults.SWEPT_ROUNDS, defaults.SWEPT_LONG_ROUNDS)]
Seeds = Annotated[
    int | None,
    _option(
        "--seeds",
        panel=SIZES,
        metavar="COUNT",
        help="Seeds 0, 1, … On each, all algorithms meet the same arms and noise.",
        default=defaults.SEEDS,
    ),
]
Runtime = Annotated[
    str | None,
    _option("--runtime", panel=SIZES, metavar="NAME", help="What moves the messages.", default=defaults.RUNTIME),
]
Jobs = Annotated[
    int,
    _option(
        *("--jobs", "-j"),
        panel=SIZES,
        metavar="COUNT",
        help="Runs at a time, one core each; several take processes of their own.",
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
        help="Keep every finished run at once, and results.parquet, config.toml, figure.png and figure.svg at the end. "
        "What is there already is not run again; a folder with results of another comparison is refused.",
    ),
]
Choices = Annotated[
    Path | None,
    _option(
        "--choices",
        panel=OUTPUT,
        metavar="FILE.npz",
        help="Keep the chosen arm of every step, one array per ALGORITHM/SEED; every run is made for that.",
    ),
]
Json = Annotated[bool, _option("--json", panel=OUTPUT, help="Print one JSON object, a row a run, and nothing else.")]
Quiet = Annotated[bool, _option("--quiet", "-q", panel=OUTPUT, help="Show no progress.")]
