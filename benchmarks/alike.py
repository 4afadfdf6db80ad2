"""Whether two versions choose, sync and count alike: many small runs of the paper's algorithms on every problem."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from benchmarks.versions import HERE, answered, parts
from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    LaconicError,
    Magic,
    MovieLens,
    Mushroom,
    NKernelUCB,
    OneKernelUCB,
    PolynomialReward,
    Shuttle,
    Yelp,
)
from laconic.algorithms import Algorithm
from laconic.problems.base import Problem

#: Clients, rounds and seeds of a small run; and of a large one, in which exact beliefs have more than 1,000 points.
SMALL, SEEDS = (20, 20), (0, 1)
LARGE, LARGE_SEEDS = (30, 50), (2,)
#: Two regrets are equal up to the order in which they were summed.
EQUAL = 1e-9

PROBLEMS: tuple[Problem, ...] = (
    Cosine(),
    PolynomialReward(),
    Catalogue(),
    Magic(),
    Mushroom(),
    Shuttle(),
    MovieLens(),
    Yelp(),
)
EXACT: tuple[Algorithm, ...] = (
    DisKernelUCB(Gaussian(0.1), D=20.0, lam=0.1, alpha=0.1),
    DisKernelUCB(Gaussian(1.0), D=5.0, lam=1.0, alpha=1.0),
    DisKernelUCB(Gaussian(0.5), D=1.0, lam=0.5, alpha=0.3),
    OneKernelUCB(Gaussian(0.1), lam=0.1, alpha=0.1),
    OneKernelUCB(Gaussian(1.0), lam=1.0, alpha=1.0),
    NKernelUCB(Gaussian(0.1), lam=0.1, alpha=0.1),
    NKernelUCB(Gaussian(1.0), lam=1.0, alpha=1.0),
)
FINITE: tuple[Algorithm, ...] = (
    DisLinUCB(D=20.0, lam=0.1, alpha=0.1),
    DisLinUCB(D=5.0, lam=1.0, alpha=1.0),
    DisLinUCB(D=1.0, lam=0.5, alpha=0.3),
    ApproxDisKernelUCB(Gaussian(0.1), D=5.0, lam=0.1, alpha=0.1, qbar=0.3, cold_start="paper"),
    ApproxDisKernelUCB(Gaussian(1.0), D=2.0, lam=1.0, alpha=1.0, qbar=1.0, cold_start="paper"),
    ApproxDisKernelUCB(Gaussian(0.5), D=1.0, lam=0.5, alpha=0.3, qbar=0.5, cold_start="paper"),
    ApproxDisKernelUCB(Gaussian(0.1), D=5.0, lam=0.1, alpha=0.1, qbar=0.3, cold_start="local"),
    ApproxDisKernelUCB(Gaussian(1.0), D=2.0, lam=1.0, alpha=1.0, qbar=1.0, cold_start="local"),
)

#: Every run that is asked for, and a line for each.
SCRIPT = """
for case in given:
    one = run(made(case["algorithm"]), made(case["problem"]), clients=case["clients"], rounds=case["rounds"],
              seed=case["seed"])
    print(json.dumps({
        "choices": one.choices.tolist(), "syncs": one.sync_steps.tolist(), "scalars": one.scalars,
        "messages": one.messages, "regret": one.regret, "bytes": one.bytes,
    }))
"""


@dataclass(frozen=True)
class Twice:
    """A run in both versions."""

    case: dict[str, Any]
    then: dict[str, Any]
    now: dict[str, Any]

    @property
    def algorithm(self) -> str:
        """Which algorithm was run."""
        name = str(self.case["algorithm"]["name"])
        cold = self.case["algorithm"].get("cold_start")
        return f"{name}, {cold}" if cold else name

    @property
    def differences(self) -> list[str]:
        """In what the two differ."""
        found = [each for each in ("choices", "syncs", "scalars", "messages") if self.then[each] != self.now[each]]
        gap = abs(self.then["regret"] - self.now["regret"])
        return [*found, *(["regret"] if gap > EQUAL * max(1.0, abs(self.then["regret"])) else [])]

    @property
    def ratio(self) -> float | None:
        """Bytes of now by those of then; None where nothing was sent."""
        return self.now["bytes"] / self.then["bytes"] if self.then["bytes"] else None

    def __str__(self) -> str:
        pairs = zip(self.then["choices"], self.now["choices"], strict=True)
        step = next((at for at, (then, now) in enumerate(pairs) if then != now), None)
        where = "" if step is None else f", first at step {step}"
        case = {**self.case["algorithm"], "problem": self.case["problem"]["name"], "seed": self.case["seed"]}
        return f"{', '.join(self.differences)} differ{where}: {json.dumps(case)}"


def compared(earlier: Path, *, quick: bool) -> bool:
    """Run everything in both versions and print by algorithm how many differ; whether none does."""
    found = list(_runs(earlier, quick=quick))
    typer.echo(f"{'':28} {'runs':>5} {'differ':>7}   bytes now by then")
    for name in dict.fromkeys(each.algorithm for each in found):
        runs = [each for each in found if each.algorithm == name]
        ratios = [each.ratio for each in runs if each.ratio is not None]
        said = f"{min(ratios):.3f} … {max(ratios):.3f}" if ratios else "nothing is sent"
        typer.echo(f"{name:28} {len(runs):5} {sum(bool(each.differences) for each in runs):7}   {said}")
    different = [each for each in found if each.differences]
    for each in different:
        typer.echo(str(each))
    kinds = Counter(kind for each in different for kind in each.differences)
    said = ", ".join(f"{count} in {kind}" for kind, count in kinds.items()) or "none"
    typer.echo(f"{len(different)} of {len(found)} runs differ: {said}")
    return not different


def _runs(earlier: Path, *, quick: bool) -> Iterator[Twice]:
    """All runs of a problem by one process for each version, so that data are read once."""
    for problem in PROBLEMS:
        try:
            problem.instance(seed=0, clients=2, rounds=2)
        except LaconicError as error:
            typer.echo(f"{type(problem).__name__} is left out: {error}")
            continue
        cases = list(_cases(problem, quick=quick))
        then, now = (_outcomes(cases, checkout) for checkout in (earlier, HERE))
        yield from (Twice(*each) for each in zip(cases, then, now, strict=True))


def _cases(problem: Problem, *, quick: bool) -> Iterator[dict[str, Any]]:
    """The runs of a problem, as tables."""
    small, large = ((3, 4), (4, 5)) if quick else (SMALL, LARGE)
    wanted = [(each, small, seed) for each in (*EXACT, *FINITE) for seed in SEEDS]
    for algorithm, (clients, rounds), seed in [
        *wanted,
        *((each, large, seed) for each in EXACT for seed in LARGE_SEEDS),
    ]:
        sizes = {"clients": clients, "rounds": rounds, "seed": seed}
        yield {"algorithm": parts(algorithm), "problem": parts(problem), **sizes}


def _outcomes(cases: list[dict[str, Any]], checkout: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answered(SCRIPT, json.dumps(cases), checkout).splitlines()]
