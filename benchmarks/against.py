"""``python -m benchmarks.against REVISION``: the runs of the suite here and as of an earlier commit, in turn.

Each run is a process of its own with one BLAS thread. The two versions alternate, so that whatever else the machine
does meets both alike, and the least CPU of each counts. A child makes algorithm and problem from tables of what the
suite states, as the defaults of the two versions may differ.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.alike import compared
from benchmarks.beside import BesideSmall, Sweep
from benchmarks.cases import RunCase
from benchmarks.suite import Benchmark, suite
from benchmarks.versions import HERE, answered, parts, unpacked

app = typer.Typer(add_completion=False)

#: A run that is timed.
SCRIPT = """
algorithm, problem = made(given["algorithm"]), made(given["problem"])
run(algorithm, problem, clients=2, rounds=2, seed=0)  # imports
begun = time.process_time()
run(algorithm, problem, clients=given["clients"], rounds=given["rounds"], seed=0)
print(time.process_time() - begun)
"""


@dataclass(frozen=True)
class Pair:
    """A case with its CPU seconds in both versions, a figure for each time that it was run."""

    name: str
    then: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The least of now by the least of then."""
        return min(self.now) / min(self.then)


@app.command()
def main(
    revision: Annotated[str, typer.Argument(help="A commit, a branch or a tag of this repository.")],
    only: Annotated[list[str] | None, typer.Option(help="Runs, by name or how it begins.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often each version runs; the least counts.")] = 5,
    limit: Annotated[float, typer.Option(help="Exit with 1 where a ratio is above this.")] = 1.10,
    quick: Annotated[bool, typer.Option("--quick", help="Toy sizes: does everything run?")] = False,
    results: Annotated[
        bool, typer.Option("--results", help="Compare what many small runs come to instead; exit with 1 if any differ.")
    ] = False,
) -> None:
    """Print the CPU seconds of every run of the suite, then and now, and their ratio."""
    chosen = _chosen(only or [""])
    with unpacked(revision) as folder:
        if results:
            raise typer.Exit(int(not compared(folder, quick=quick)))
        typer.echo(f"{'':28} {'then s':>9} {'now s':>9} {'ratio':>6}   CPU, least of {repeat}, against {revision}")
        worst = max(_shown(_paired(case, folder, repeat=repeat, quick=quick)) for case in chosen)
    raise typer.Exit(int(worst > limit))


def _chosen(names: list[str]) -> list[RunCase]:
    """The runs whose name is, or else begins with, one of these."""
    every = [case for each in suite().values() for case in _cases(each)]
    found: list[RunCase] = []
    for name in names:
        exact = [case for case in every if case.name == name]
        begun = exact or [case for case in every if case.name.startswith(name)]
        if not begun:
            raise typer.BadParameter(f"no run begins with {name!r}; `make bench BENCH=--list` says what there is")
        found += begun
    return found


def _shown(pair: Pair) -> float:
    typer.echo(f"{pair.name:28} {min(pair.then):9.3f} {min(pair.now):9.3f} {pair.ratio:6.3f}")
    return pair.ratio


def _cases(benchmark: Benchmark) -> Iterator[RunCase]:
    """The plain runs of a benchmark; what is compared with something else already is left out."""
    match benchmark:
        case RunCase():
            yield benchmark
        case BesideSmall(large=large, small=small):
            yield from (large, small)
        case Sweep(name=name, cases=cases):
            yield from (dataclasses.replace(case, name=f"{name} {case.name}") for case in cases)


def _paired(case: RunCase, earlier: Path, *, repeat: int, quick: bool) -> Pair:
    table = json.dumps(_table(case, quick=quick))
    both = [tuple(float(answered(SCRIPT, table, each)) for each in (earlier, HERE)) for _ in range(repeat)]
    then, now = zip(*both, strict=True)
    return Pair(case.name, then, now)


def _table(case: RunCase, *, quick: bool) -> dict[str, Any]:
    clients, rounds = case.quick if quick else (case.clients, case.rounds)
    return {"algorithm": parts(case.algorithm), "problem": parts(case.problem), "clients": clients, "rounds": rounds}


if __name__ == "__main__":
    app()
