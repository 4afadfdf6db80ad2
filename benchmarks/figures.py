"""``python -m benchmarks.figures NAME``: the runs behind single figures of the documentation, a line each.

Regret and bytes are means over seeds, also as a ratio to the first line of the same problem and sizes, with the
standard error of the ratio of regrets over paired seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.clock import timed
from laconic import (
    AllPoints,
    ApproxDisKernelUCB,
    Atoms,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    FromFunctions,
    Gaussian,
    Kernel,
    LaconicUCB,
    Linear,
    NKernelUCB,
    OneKernelUCB,
    Polynomial,
    PolynomialReward,
    Theory,
    defaults,
    run,
)
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.atoms import Recipe
from laconic.problems.base import Problem
from laconic.problems.clustered import Magic, Mushroom, Shuttle
from laconic.protocol import rice
from laconic.report.table import NOTHING, Table, amount, number

app = typer.Typer(add_completion=False)
HEADERS = ("setting", "regret", "ratio", "bytes", "ratio", "for 1,000", "/√t", "CPU s")
#: No figure that is compared with others rests on these seeds.
TUNING = range(100, 140)
#: Features, clients and rounds of a problem, by what is special about it.
SIZES = (
    ("as elsewhere", 5, 20, 250),
    ("short", 5, 20, 60),
    ("long", 5, 20, 1000),
    ("d=2", 2, 20, 250),
    ("d=10", 10, 20, 250),
    ("N=5", 5, 5, 250),
    ("N=80", 5, 80, 250),
)
#: What δ = 0.3 spends on the problem of the budgets, by `python -m benchmarks.budgets`; half of it is given.
HALF = 28_330 / 2
STATISTICS: tuple[Literal["paper", "compact"], ...] = ("paper", "compact")


@dataclass(frozen=True)
class Line:
    """A setting that is played."""

    name: str
    algorithm: Algorithm
    problem: Problem
    clients: int
    rounds: int
    seeds: range = range(1)
    whole_bytes: bool = False  # entries of one byte each go as they are


@dataclass(frozen=True)
class Played:
    """What came of a line, by seed, and the CPU seconds of one run."""

    line: Line
    regret: np.ndarray
    bytes: np.ndarray
    cpu: float

    def cells(self, first: Played | None) -> tuple[str, ...]:
        """The line of the table, beside the first one that it may be compared with."""
        mean, line = float(self.bytes.mean()), self.line
        of_client, regret, sent = mean / line.clients, NOTHING, NOTHING
        if first is not None:
            regret = beside(self.regret, first.regret)
            sent = f"{mean / first.bytes.mean():.3f}" if first.bytes.any() else NOTHING
        return (
            *(line.name, number(float(self.regret.mean())), regret, amount(mean, unit="B"), sent),
            *(f"{1000 * of_client / line.rounds:,.0f}", f"{of_client / line.rounds**0.5:.0f}", f"{self.cpu:.2f}"),
        )


def rows(found: list[Played]) -> tuple[tuple[str, ...], ...]:
    """The table: each line beside the first of the same problem and sizes, which itself is beside none."""
    first: dict[object, Played] = {}
    cells = []
    for each in found:
        line = each.line
        earlier = first.setdefault((line.problem, line.clients, line.rounds), each)
        cells.append(each.cells(None if earlier is each else earlier))
    return tuple(cells)


def beside(mine: np.ndarray, other: np.ndarray) -> str:
    """The ratio of two means, with its standard error where seeds are paired."""
    ratio = float(mine.mean() / other.mean())
    if len(mine) != len(other) or len(mine) < 2:
        return f"{ratio:.3f}"
    error = float(np.std(mine - ratio * other, ddof=1) / np.sqrt(len(mine)) / other.mean())
    return f"{ratio:.3f} ± {error:.3f}"


def played(line: Line) -> Played:
    """Play a line with all its seeds."""
    with _whole_bytes() if line.whole_bytes else nullcontext():
        runs = [timed(partial(_run, line, seed)) for seed in line.seeds]
    regret, sent = (np.array([getattr(each, name) for _, each in runs]) for name in ("regret", "bytes"))
    return Played(line, regret, sent, min(cost.cpu for cost, _ in runs))


def _run(line: Line, seed: int) -> Any:
    return run(line.algorithm, line.problem, clients=line.clients, rounds=line.rounds, seed=seed)


@contextmanager
def _whole_bytes() -> Iterator[None]:
    """Nothing is written in few bits."""
    with patch.object(rice, "best", lambda entries: None):
        yield


# -- what there is ---------------------------------------------------------------------------------------------------


def lean(gamma: float, **setting: Any) -> LaconicUCB:
    """LaconicUCB with λ = α = 0.1 unless another α is given."""
    return lean_on(Gaussian(gamma), **setting)


def lean_on(kernel: Kernel, **setting: Any) -> LaconicUCB:
    """The same with any kernel."""
    return LaconicUCB(kernel, **{"lam": 0.1, "alpha": 0.1, **setting})


def shared(kind: Callable[..., Algorithm], *, gamma: float = 0.1, size: float = 0.1, **setting: Any) -> Algorithm:
    """One of the paper's algorithms, with λ = α of this size."""
    return kind(Gaussian(gamma), lam=size, alpha=size, **setting)


def few_bits() -> Iterator[Line]:
    """Entries in few bits and in one byte each."""
    for whole in (False, True):
        how = "one byte each" if whole else "few bits"
        yield Line(f"d=5, {how}", lean(0.5), Cosine(dim=5), 20, 250, whole_bytes=whole)
    for whole in (False, True):
        how = "one byte each" if whole else "few bits"
        yield Line(f"d=20, {how}", lean(0.1), Cosine(dim=20), 60, 60, whole_bytes=whole)


def delta() -> Iterator[Line]:
    """δ = 0.5 and the default at d = 5."""
    for each in (0.5, 0.3):
        yield Line(f"δ={each:g}", lean(0.5, delta=each), Cosine(dim=5), 20, 250, seeds=TUNING)


def delta_wide() -> Iterator[Line]:
    """δ = 0.5 and the default at d = 20."""
    for each in (0.5, 0.3):
        yield Line(f"δ={each:g}", lean(0.1, delta=each), Cosine(dim=20), 100, 100, seeds=TUNING[:5])


def delta_sizes() -> Iterator[Line]:
    """Regret and bytes by δ: one of horizon, features and clients at a time is another than d=5, N=20, T=250."""
    for name, dim, clients, rounds in SIZES:
        for each in (0.1, 0.3, 1.0, 3.0):
            algorithm = lean(0.5 if dim <= 5 else 0.2, delta=each)
            yield Line(f"{name}, δ={each:g}", algorithm, Cosine(dim=dim), clients, rounds, seeds=TUNING[:3])


def theory() -> Iterator[Line]:
    """A fixed α and that of the theory."""
    for name, alpha in (("α=0.1", 0.1), ("theory", Theory())):
        yield Line(name, lean(0.5, alpha=alpha), Cosine(dim=5), 20, 250, seeds=range(2))


def root() -> Iterator[Line]:
    """Bytes by the number of interactions."""
    for each in (0.3, 8.0):
        for rounds in (25, 250):
            yield Line(f"δ={each:g}, T={rounds}", lean(0.5, delta=each), Cosine(dim=5), 20, rounds)


def budget() -> Iterator[Line]:
    """One budget over longer and longer runs."""
    for rounds in (250, 500, 750, 1000):
        yield Line(f"{HALF:,.0f}, T={rounds}", lean(0.5, budget=HALF), Cosine(dim=5), 20, rounds)


def wires() -> Iterator[Line]:
    """The paper's algorithms on each wire."""
    problem = Cosine(dim=20)
    for size in (30, 100):
        for wire in STATISTICS:
            statistics = shared(ApproxDisKernelUCB, D=2.0, qbar=1.0, wire=wire)
            yield Line(f"Approx, {wire}, N=T={size}", statistics, problem, size, size)
        for wire in STATISTICS:
            linear = DisLinUCB(D=2.0, lam=0.1, alpha=0.1, wire=wire)
            yield Line(f"DisLin, {wire}, N=T={size}", linear, problem, size, size)
    for numbers in ("float64", "float32", "float16", "int8"):
        raw = shared(DisKernelUCB, D=20.0, wire=numbers)
        yield Line(f"Dis, {numbers}, N=T=30", raw, problem, 30, 30)
    for numbers in ("float64", "int8"):
        alone = shared(DisKernelUCB, D=20.0, wire=numbers, together=False)
        yield Line(f"Dis alone, {numbers}, N=T=30", alone, problem, 30, 30)
    for numbers in ("float64", "int8"):
        yield Line(f"One, {numbers}, N=T=30", shared(OneKernelUCB, wire=numbers), problem, 30, 30)


def atoms() -> Iterator[Line]:
    """Fewer atoms, or a looser aim."""
    for name, recipe in (("usual", Recipe()), ("most=2.5", Recipe(most=2.5)), ("kappa=1.3", Recipe(kappa=1.3))):
        yield Line(name, lean(0.1, digest=Atoms(recipe)), Cosine(dim=20), 100, 100, seeds=TUNING[:5])


def atoms_short() -> Iterator[Line]:
    """Fewer atoms in short runs."""
    for name, recipe in (("usual", Recipe()), ("most=2.5", Recipe(most=2.5))):
        yield Line(name, lean(0.2, digest=Atoms(recipe)), Cosine(dim=20), 50, 40, seeds=TUNING[:5])


def float32() -> Iterator[Line]:
    """Both precisions."""
    for name, kind in (("Dis", DisKernelUCB), ("One", OneKernelUCB)):
        for dtype in ("float64", "float32"):
            exact = shared(kind, gamma=1.0, size=1.0, dtype=dtype)
            yield Line(f"{name}, {dtype}", exact, Cosine(dim=20), 100, 40)


def approx() -> Iterator[Line]:
    """D and q̄ of ApproxDisKernelUCB on five problems, beside sharing points and learning alone."""
    problems: dict[str, Problem] = {
        "catalogue": Catalogue(),
        "magic": Magic(),
        "mushroom": Mushroom(),
        "shuttle": Shuttle(),
        "cosine": Cosine(),
    }
    for name, problem in problems.items():
        rounds, seeds = defaults.rounds(name), TUNING[: 2 if name == "cosine" else 3]
        for D in (2.0, 10.0):
            for qbar in (1.0, 3.0):
                algorithm = ApproxDisKernelUCB(D=D, qbar=qbar)
                yield Line(f"{name}, D={D:g}, q̄={qbar:g}", algorithm, problem, 50, rounds, seeds=seeds)
        yield Line(f"{name}, DisKernelUCB", DisKernelUCB(), problem, 50, rounds, seeds=seeds)
        yield Line(f"{name}, NKernelUCB", NKernelUCB(), problem, 50, rounds, seeds=seeds)


def ridge() -> Iterator[Line]:
    """LaconicUCB with a smaller λ than is suggested."""
    rounds = defaults.rounds("polynomial")
    for lam in (0.1, 0.01):
        yield Line(f"λ={lam:g}", LaconicUCB(lam=lam), PolynomialReward(), 50, rounds, seeds=TUNING[:5])


def _drawn(*, high: float = 1.0, beside: float | None = None) -> FromFunctions:
    """Arms in a cube, with a feature that never changes where one is given, and rewards that grow with the others."""

    def arms(random: np.random.Generator, count: int) -> np.ndarray:
        drawn = random.uniform(-high, high, (count, 10, 3))
        return drawn if beside is None else np.concatenate([drawn, np.full((count, 10, 1), beside)], axis=2)

    return FromFunctions(mean=lambda x: x[:, :3].sum(axis=1) / high, arms=arms, noise=0.1)


def constants() -> Iterator[Line]:
    """Kernels with a large constant in them: all points on the same schedule, and atoms."""
    cases: dict[str, tuple[LaconicUCB, Problem]] = {
        "features within 0.02": (LaconicUCB(), _drawn(high=0.02)),
        "γ=0.001": (lean(0.001), _drawn()),
        "γ=0.003": (lean(0.003), _drawn()),
        "γ=0.02": (lean(0.02), _drawn()),
        "linear, a feature is 20": (lean_on(Linear(), ranges=20.0), _drawn(beside=20.0)),
        "cubic, a feature is 3": (lean_on(Polynomial(degree=3), ranges=4.0), _drawn(beside=3.0)),
        "cubic, a feature is 7": (lean_on(Polynomial(degree=3), ranges=8.0), _drawn(beside=7.0)),
        "100 + Gaussian": (lean_on(100.0 * Gaussian(1e-9) + Gaussian(0.5)), Cosine(dim=3)),
    }
    for name, (algorithm, problem) in cases.items():
        for what, digest in (("all points", AllPoints()), ("atoms", algorithm.digest)):
            yield Line(f"{name}, {what}", replace(algorithm, digest=digest), problem, 10, 100, seeds=TUNING[:4])


def _kinds(random: np.random.Generator, count: int) -> Floats:
    """Arms of one kind of five in each step, which differ in six fine features."""
    which = np.repeat(np.eye(5)[random.integers(5, size=count)][:, None], 10, axis=1)
    return np.concatenate([which, random.uniform(-0.06, 0.06, (count, 10, 6))], axis=2)


def _marked(random: np.random.Generator, count: int) -> Floats:
    """Arms that differ in ten fine features, beside a mark of 1 or −1 that all of a step have."""
    mark = np.repeat(random.choice([-1.0, 1.0], size=(count, 1, 1)), 10, axis=1)
    return np.concatenate([mark, random.uniform(-0.03, 0.03, (count, 10, 10))], axis=2)


def _groups(random: np.random.Generator, count: int) -> Floats:
    """Arms of one group of eight in each step, which lie close to each other."""
    middles = np.random.default_rng(5).uniform(-3, 3, (8, 4))
    near: Floats = random.uniform(-0.15, 0.15, (count, 10, 4))
    return middles[random.integers(8, size=count)][:, None] + near


def coarse() -> Iterator[Line]:
    """A coarse feature, or far groups, beside fine differences that decide: all points, and atoms."""
    weights = np.array([0.5, -0.4, 0.4, -0.4, 0.4, -0.3, 0.2, -0.3, 0.4, 0.1])
    kinds = FromFunctions(mean=lambda x: 10.0 * x[:, -6:] @ weights[:6], arms=_kinds)
    marked = FromFunctions(mean=lambda x: 10.0 * x[:, -10:] @ weights, arms=_marked)
    groups = FromFunctions(mean=lambda x: 0.5 * np.sin(8.0 * x).sum(axis=1), arms=_groups)
    cases: dict[str, tuple[LaconicUCB, Problem]] = {
        "five kinds, defaults": (LaconicUCB(), kinds),
        "a mark, linear, λ=0.01": (LaconicUCB(Linear(), lam=0.01, alpha=0.2), marked),
        "a mark, linear, λ=0.1": (LaconicUCB(Linear(), lam=0.1, alpha=0.2), marked),
        "a mark, γ=0.5, λ=0.01": (LaconicUCB(Gaussian(0.5), lam=0.01, alpha=0.2), marked),
        "eight groups, γ=1, λ=0.01": (LaconicUCB(Gaussian(1.0), lam=0.01, alpha=0.2), groups),
    }
    for name, (algorithm, problem) in cases.items():
        for what, digest in (("all points", AllPoints()), ("atoms", algorithm.digest)):
            yield Line(f"{name}, {what}", replace(algorithm, digest=digest), problem, 20, 60, seeds=TUNING[:4])


def few_clients() -> Iterator[Line]:
    """A handful of clients, of whom each has most points itself: DisKernelUCB with points in int8, and LaconicUCB."""
    for clients, rounds, dim in ((2, 100, 3), (3, 100, 5), (5, 60, 2), (5, 100, 5), (10, 100, 5), (20, 100, 5)):
        shared: dict[str, Any] = {"kernel": Gaussian(0.5), "lam": 0.1, "alpha": 0.2}
        for algorithm in (
            DisKernelUCB(D=20.0, wire="int8", **shared),
            DisKernelUCB(D=20.0, wire="int8", together=False, **shared),
            LaconicUCB(**shared),
        ):
            alone = " alone" if isinstance(algorithm, DisKernelUCB) and not algorithm.together else ""
            name = f"N = {clients}, T = {rounds}, d = {dim}, {type(algorithm).__name__}{alone}"
            yield Line(name, algorithm, Cosine(dim=dim), clients, rounds, seeds=TUNING[:4])


SETS: dict[str, Callable[[], Iterator[Line]]] = {
    name.__name__.replace("_", "-"): name
    for name in (
        few_bits,
        delta,
        delta_wide,
        delta_sizes,
        theory,
        root,
        budget,
        wires,
        atoms,
        atoms_short,
        float32,
        approx,
        ridge,
        constants,
        coarse,
        few_clients,
    )
}


@app.command()
def main(name: Annotated[str, typer.Argument(help=f"One of {', '.join(SETS)}.")]) -> None:
    """Print the table of one set of runs."""
    if name not in SETS:
        raise typer.BadParameter(f"nothing is called {name!r}; there are {', '.join(SETS)}")
    found = [played(line) for line in SETS[name]()]
    typer.echo(Table(HEADERS, rows=rows(found)).text(width=120))


if __name__ == "__main__":
    app()
