"""``python -m benchmarks.further``: what LaconicUCB does on other kernels and features, and what else could be saved.

Three tables. *Reach*: many features, one-hot features and other kernels, beside raw sharing. *Ids*: how many fresh
points lie so close to an atom that its number could stand for them. *Alike*: how many downloads go from one version to
the same other, so that a network that sends one message to many would carry them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from laconic import Catalogue, Cosine, DisKernelUCB, Gaussian, LaconicUCB, Matern, Polynomial, run
from laconic.kernels import Kernel
from laconic.problems.base import Instance, Problem
from laconic.problems.clustered import Mushroom
from laconic.report.table import Table, amount, number
from laconic.runtimes import Run

app = typer.Typer(add_completion=False)
#: A point within this squared distance of an atom, as the kernel sees it and as a part of λ, is that atom for all
#: practical purposes (10⁻³ is what rounding to a byte may do), or nearly so.
NEAR = (1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Case:
    """A problem, a kernel and sizes."""

    name: str
    problem: Problem
    kernel: Kernel
    lam: float = 0.1
    alpha: float = 0.1
    clients: int = 20
    rounds: int = 100

    def lean(self, *, seed: int) -> Run:
        """A run of LaconicUCB."""
        algorithm = LaconicUCB(self.kernel, lam=self.lam, alpha=self.alpha)
        return run(algorithm, self.problem, clients=self.clients, rounds=self.rounds, seed=seed)

    def raw(self, *, seed: int) -> Run:
        """A run of the algorithm that sends all points as float64."""
        algorithm = DisKernelUCB(self.kernel, D=20.0, lam=self.lam, alpha=self.alpha)
        return run(algorithm, self.problem, clients=self.clients, rounds=self.rounds, seed=seed)


def reach() -> list[Case]:
    """What is tried beyond the Gaussian kernel on a few features."""
    return [
        Case("d=50", Cosine(dim=50), Gaussian(0.1)),
        Case("d=100", Cosine(dim=100), Gaussian(0.1)),
        Case("d=200", Cosine(dim=200), Gaussian(0.1)),
        Case("d=200, items return", Catalogue(dim=200, items=60, arms=10), Gaussian(0.1)),
        Case("one-hot (mushroom)", Mushroom(), Gaussian(0.2)),
        Case("Matérn 5/2, d=5", Cosine(dim=5), Matern(nu=2.5, length=1.0)),
        Case("Matérn 1/2, d=5", Cosine(dim=5), Matern(nu=0.5, length=1.0)),
        Case("polynomial of degree 3, d=5", Cosine(dim=5), Polynomial(degree=3, offset=1.0)),
    ]


@app.command()
def main(seeds: Annotated[int, typer.Option(min=1)] = 2, first: Annotated[int, typer.Option(min=0)] = 0) -> None:
    """Print the three tables."""
    chosen = range(first, first + seeds)
    headers = ("case", "regret", "raw", "ratio", "bytes", "raw", "1/ratio", "last digest")
    typer.echo(Table(headers, rows=tuple(_reached(case, chosen) for case in reach())).text(width=120))
    smooth = [Case(f"d={dim}", Cosine(dim=dim), Gaussian(0.5), clients=20, rounds=250) for dim in (2, 3, 5)]
    near = ("case", *(f"within {part:g} λ" for part in NEAR))
    typer.echo(Table(near, rows=tuple(_close(case, seed=first) for case in smooth)).text(width=120))
    alike = ("case", "downloads", "pairs of versions", "downloads a pair")
    typer.echo(Table(alike, rows=tuple(_alike(case, seed=first) for case in smooth)).text(width=120))


def _reached(case: Case, seeds: range) -> tuple[str, ...]:
    lean, raw = [case.lean(seed=seed) for seed in seeds], [case.raw(seed=seed) for seed in seeds]
    regret, theirs = (float(np.mean([each.regret for each in runs])) for runs in (lean, raw))
    sent, cost = (float(np.mean([each.bytes for each in runs])) for runs in (lean, raw))
    last = lean[-1].versions[-1]
    what = f"raw: {last.why}" if last.raw else f"{last.atoms} atoms, d_eff {last.d_eff:.0f}, κ {last.kappa:.2f}"
    ratios = f"{regret / theirs:.2f}", f"{cost / sent:.1f}"
    return (
        *(case.name, number(regret), number(theirs), ratios[0]),
        *(amount(sent, unit="B"), amount(cost, unit="B"), ratios[1], what),
    )


def _close(case: Case, *, seed: int) -> tuple[str, ...]:
    """The part of a run's last points that lie this close to one of as many atoms as there are then."""
    played, instance = case.lean(seed=seed), case.problem.instance(seed=seed, clients=case.clients, rounds=case.rounds)
    chosen = np.array(list(_points(played, instance, case)))
    atoms = played.versions[-1].atoms
    library, fresh = chosen[-2000:-500], chosen[-500:]
    library = library[np.random.default_rng(0).choice(len(library), size=atoms, replace=False)]
    apart = 2.0 - 2.0 * case.kernel(fresh, library).max(axis=1)  # ‖φ(x) − φ(s)‖² of the nearest
    return (f"{case.name}, {atoms} atoms", *(f"{float(np.mean(apart <= part * case.lam)):.1%}" for part in NEAR))


def _points(played: Run, instance: Instance, case: Case) -> Iterator[np.ndarray]:
    for index in range(case.rounds):
        arms = instance.round(index).arms
        yield from arms[np.arange(case.clients), played.choices[index]]


def _alike(case: Case, *, seed: int) -> tuple[str, ...]:
    held: dict[int, int] = {}
    pairs: Counter[tuple[int, int]] = Counter()
    for each in case.lean(seed=seed).versions:
        pairs[held.get(each.client, 0), each.version] += 1
        held[each.client] = each.version
    return case.name, str(pairs.total()), str(len(pairs)), f"{pairs.total() / len(pairs):.2f}"


if __name__ == "__main__":
    app()
