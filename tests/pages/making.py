"""A sweep small enough for tests, and results out of thin air."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from laconic import ApproxDisKernelUCB, Cosine, DisKernelUCB, DisLinUCB, Gaussian, LaconicUCB, NKernelUCB, OneKernelUCB
from laconic.algorithms import Random
from laconic.datasets import data_dir
from laconic.experiments.conduct import Absent, Outcome, Panel
from laconic.experiments.config import Experiment
from laconic.experiments.grid import params
from laconic.experiments.parts import name_of
from laconic.experiments.results import Results, Row
from laconic.experiments.sensitivity import Study
from laconic.experiments.spec import Spec, SpecFile
from laconic.pages.report import Subject
from tests.experiments.making import results, row

SMALL = """
title = "a < b"
figure = "Figure 0"
paper = "li2022"
clients = 4
rounds = 5
seeds = [0, 1]

[problem]
name = "cosine"
dim = 3
arms = 4

[[algorithms]]
name = "OneKernelUCB"
kernel = { name = "Gaussian", gamma = [0.1, 1.0] }
lam = 1.0
alpha = 1.0

[[algorithms]]
name = "DisKernelUCB"
kernel = { name = "Gaussian", gamma = [0.1, 1.0] }
D = 1.0
lam = 1.0
alpha = 1.0

[[algorithms]]
name = "ApproxDisKernelUCB"
kernel = { name = "Gaussian", gamma = [0.1, 1.0] }
D = 1.0
qbar = 0.3
lam = 1.0
alpha = 1.0

[[algorithms]]
name = "NKernelUCB"
kernel = { name = "Gaussian", gamma = 1.0 }
lam = 1.0
alpha = 1.0

[[algorithms]]
name = "DisLinUCB"
D = 1.0
alpha = [0.1, 1.0]
lam = 1.0

[[algorithms]]
name = "LaconicUCB"
kernel = { name = "Gaussian", gamma = 1.0 }
lam = 1.0
alpha = 1.0
delta = 0.5

[[sensitivity]]
algorithm = "ApproxDisKernelUCB"
qbar = [1.0]
lam = [0.5, 2.0]
"""


def write_small(path: Path, *, text: str = SMALL) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(outcome: Outcome) -> list[Row]:
    """All that a sweep has found out, but for how long it took."""
    found = [row for panel in outcome.panels for row in (*panel.results.rows, *panel.varied.rows)]
    return [replace(each, seconds=0.0) for each in found]


PARTS: dict[str, Any] = {"kernel": Gaussian(gamma=1.0), "lam": 1.0, "alpha": 1.0}
SETTINGS: dict[str, Any] = {
    "OneKernelUCB": OneKernelUCB(**PARTS),
    "DisKernelUCB": DisKernelUCB(**PARTS),
    "ApproxDisKernelUCB": ApproxDisKernelUCB(**PARTS, D=5.0, qbar=0.3),
    "NKernelUCB": NKernelUCB(**PARTS),
    "DisLinUCB": DisLinUCB(lam=1.0, alpha=1.0),
}


def run_of(algorithm: Any, *, regret: float, scalars: int, seed: int = 0) -> Row:
    """A run that sends eight bytes a scalar."""
    name = name_of(algorithm, kind="algorithm")
    return row(name, params=params(algorithm), regret=regret, scalars=scalars, seed=seed)


def runs_of(algorithm: Any, *, regret: float, scalars: int, apart: float = 0.0) -> list[Row]:
    """A run on each of three seeds; their regrets lie so far apart around the mean."""
    return [
        run_of(algorithm, regret=regret + apart * step, scalars=scalars, seed=seed)
        for seed, step in enumerate((-1.0, 0.0, 1.0))
    ]


def laconic(*, regret: float, scalars: int, apart: float = 0.0) -> list[Row]:
    """Runs of our own algorithm, beside those of the paper."""
    return runs_of(LaconicUCB(), regret=regret, scalars=scalars, apart=apart)


def panel(*rows: Row, problem: str = "cosine", study: Study | None = None, rehearsal: bool = False) -> Panel:
    file = SpecFile(problem={"name": problem}, algorithms=[], rehearsal=rehearsal)
    seeds = tuple(sorted({each.seed for each in rows}))
    experiment = Experiment(
        algorithms=tuple(SETTINGS.values()), problem=Cosine(), clients=10, rounds=10, seeds=seeds, runtime="lockstep"
    )
    found = replace(results(*rows), problem=problem)
    nothing: Results = replace(found, rows=())
    return Panel(Spec(problem, file=file), experiment, results=found, study=study or Study(), varied=nothing)


def five(**changes: tuple[float, int]) -> list[Row]:
    """Runs of each of the five, for which every claim holds unless a regret and scalars are changed."""
    numbers = {
        "OneKernelUCB": (10.0, 1000),
        "DisKernelUCB": (11.0, 900),
        "ApproxDisKernelUCB": (12.0, 200),
        "NKernelUCB": (30.0, 0),
        "DisLinUCB": (40.0, 50),
    }
    return [each for k, (r, s) in (numbers | changes).items() for each in runs_of(SETTINGS[k], regret=r, scalars=s)]


def random_arms(*, regret: float, apart: float = 0.0) -> list[Row]:
    """Runs that learn nothing."""
    return runs_of(Random(), regret=regret, scalars=0, apart=apart)


def subject() -> Subject:
    return Subject(
        title="A <paper>",
        about="its authors, from /home/someone/papers/a.toml",
        profile="profile small",
        command="laconic run /home/someone/papers/a.toml",
        with_claims=True,
    )


def with_absent(outcome: Outcome) -> Outcome:
    """The same and a problem whose data is not here."""
    file = SpecFile(problem={"name": "magic"}, algorithms=[], title="MagicTelescope")
    why = f"magic: no magic04.data in {data_dir()}, nor in /home/someone/data/uci; try: laconic data fetch magic"
    missing = Absent(Spec("figure-2a-magic", file=file), why=why)
    return replace(outcome, absent=(missing,))
