"""``python -m benchmarks.budgets``: what a fixed δ and what a budget of bytes cost in regret, on one small problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from laconic import Cosine, Gaussian, LaconicUCB, run
from laconic.report.table import Table

app = typer.Typer(add_completion=False)
CLIENTS, ROUNDS = 20, 250
DELTAS = (0.125, 0.25, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 128.0)
#: Budgets as multiples of what the default δ spends.
MULTIPLES = (2.0, 1.0, 0.5, 0.25)


@dataclass(frozen=True)
class Spent:
    """Means over seeds."""

    regret: float
    bytes: float
    up: float  # bytes of uploads and asks

    @property
    def rate(self) -> float:
        """Bytes for 1,000 interactions of a client."""
        return 1000 * self.bytes / (CLIENTS * ROUNDS)


@app.command()
def main(seeds: Annotated[int, typer.Option(min=1, help="How many, from 0 on.")] = 4) -> None:
    """Play all fixed δ, then all budgets, and print both tables."""
    fixed = {delta: played(seeds, delta=delta) for delta in DELTAS}
    rows = [(f"{delta:g}", f"{each.regret:.1f}", *_kilobytes(each.bytes, each.up)) for delta, each in fixed.items()]
    typer.echo(Table(("δ", "regret", "kB", "of it up"), rows=tuple(rows)).text())
    usual = fixed[LaconicUCB().delta].rate
    typer.echo(
        Table(HEADERS, rows=tuple(_row(each, usual * each, seeds, list(fixed.values())) for each in MULTIPLES)).text()
    )


HEADERS = ("budget", "bytes for 1,000", "kB spent", "of the budget", "regret", "fixed δ, as many bytes")


def _row(multiple: float, budget: float, seeds: int, fixed: list[Spent]) -> tuple[str, ...]:
    found = played(seeds, budget=budget)
    cells = (f"{multiple:g} ×", f"{budget:,.0f}", *_kilobytes(found.bytes), f"{found.rate / budget:.2f}")
    return (*cells, f"{found.regret:.1f}", f"{between(fixed, found.bytes):.1f}")


def _kilobytes(*numbers: float) -> tuple[str, ...]:
    return tuple(f"{number / 1e3:.3g}" for number in numbers)


def played(seeds: int, **setting: Any) -> Spent:
    """Means of runs with a δ or a budget."""
    algorithm = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, **setting)
    runs = [run(algorithm, Cosine(dim=5), clients=CLIENTS, rounds=ROUNDS, seed=seed) for seed in range(seeds)]
    means = [(each.regret, each.bytes, each.ledger.by("direction")[("up",)].bytes) for each in runs]
    return Spent(*np.mean(means, axis=0).tolist())


def between(fixed: list[Spent], size: float) -> float:
    """The regret that a fixed δ has for so many bytes, between those that were played."""
    known = sorted((each.bytes, each.regret) for each in fixed)
    return float(np.interp(np.log(size), np.log([one for one, _ in known]), [regret for _, regret in known]))


if __name__ == "__main__":
    app()
