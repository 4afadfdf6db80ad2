"""The pictures of docs/choosing.md, and its table of what suggestions are worth.

``python -m benchmarks.choosing docs`` draws the evidence by γ and λ, and regret by γ and α, with what is suggested.
``python -m benchmarks.choosing --table cosine movielens`` prints a row of the table for each problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import typer

from laconic import Cosine, DisKernelUCB, Gaussian, Random, Suggestion, defaults, run, suggest_for
from laconic.algorithms import Algorithm
from laconic.suggestion import evidence

app = typer.Typer(add_completion=False)
PROBLEM = Cosine(dim=10)
CLIENTS, ROUNDS, SEEDS = 20, 40, (100, 101)
GAMMAS, LAMS = np.geomspace(0.01, 10.0, 25), np.geomspace(1e-3, 3.0, 21)
#: Of the table: seeds that no setting was chosen on, sizes, and the values that the paper tries for γ and α.
JUDGED, JUDGED_ROUNDS, JUDGED_FRESH_ROUNDS, PAPERS = range(5), 150, 50, (0.1, 1.0, 4.0)
BUILT_IN = ("cosine", "polynomial", "catalogue", "magic", "mushroom", "shuttle", "movielens", "yelp")
TRIED, ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def likelihoods(found: Suggestion) -> Any:
    """ln p(y) below its best, by λ and γ."""
    sample = found.grounds.sample
    assert sample.rewards is not None
    logs = [[evidence(Gaussian(g), sample.points, sample.rewards, lam=lam).log for g in GAMMAS] for lam in LAMS]
    return np.max(logs) - np.array(logs)


def regrets(found: Suggestion) -> Any:
    """The regret of DisKernelUCB by α and γ, λ as suggested."""

    def regret(gamma: float, alpha: float) -> float:
        algorithm = DisKernelUCB(Gaussian(gamma), lam=found.lam, alpha=alpha)
        played = [run(algorithm, PROBLEM, clients=CLIENTS, rounds=ROUNDS, seed=seed).regret for seed in SEEDS]
        return float(np.mean(played))

    return np.array([[regret(gamma, alpha) for gamma in TRIED] for alpha in ALPHAS])


def draw(folder: Path) -> None:
    """Both pictures, into a folder."""
    from matplotlib.figure import Figure

    found = suggest_for(PROBLEM, sample=300, clients=CLIENTS, traffic=ROUNDS, seed=SEEDS[0])
    gamma = found.kernel.gamma  # type: ignore[attr-defined]
    median = found.grounds.median.gamma  # type: ignore[attr-defined]

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    shown = axes.contourf(GAMMAS, LAMS, likelihoods(found), levels=[0, 1, 2, 5, 10, 20, 50, 100, 400], cmap="viridis_r")
    axes.plot(gamma, found.lam, "o", color="white", markeredgecolor="black", label="suggested")
    axes.axvline(median, color="black", linestyle=":", label="median heuristic")
    axes.set(xscale="log", yscale="log", xlabel="γ", ylabel="λ", title="ln evidence below its best")
    axes.legend(loc="upper left")
    figure.colorbar(shown, ax=axes)
    figure.savefig(folder / "choosing-evidence.png", dpi=80)

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.subplots()
    table = regrets(found)
    for alpha, row in zip(ALPHAS, table, strict=True):
        axes.plot(TRIED, row, marker=".", label=f"α = {alpha:g}")
    axes.axvline(gamma, color="black", linestyle=":", label=f"suggested γ, α = {found.alpha:.2g}")
    axes.set(xscale="log", xlabel="γ", ylabel="regret", title=f"DisKernelUCB, λ = {found.lam:g}", ylim=(0, None))
    axes.legend(fontsize=7)
    figure.savefig(folder / "choosing-regret.png", dpi=80)


def mean_regret(algorithms: Sequence[Algorithm], problem: str) -> float:
    """The mean over judged seeds, an algorithm each."""
    rounds = JUDGED_ROUNDS if problem in defaults.RETURNING else JUDGED_FRESH_ROUNDS
    return fmean(
        run(algorithm, problem, clients=CLIENTS, rounds=rounds, seed=seed).regret
        for seed, algorithm in zip(JUDGED, algorithms, strict=True)
    )


def row(problem: str) -> str:
    """The best of the paper's grid in hindsight, and what a pilot on each seed suggests."""
    grid = [DisKernelUCB(Gaussian(gamma), D=20.0, lam=1.0, alpha=alpha) for gamma in PAPERS for alpha in PAPERS]
    best = min(mean_regret([each] * len(JUDGED), problem) for each in grid)
    found = [suggest_for(problem, sample=500, clients=CLIENTS, seed=seed) for seed in JUDGED]
    exact, lean = (
        mean_regret([each.algorithm(name) for each in found], problem) for name in ("DisKernelUCB", "LaconicUCB")
    )
    any_arm = mean_regret([Random()] * len(JUDGED), problem)
    return f"| {problem} | {any_arm:.1f} | {best:.1f} | {exact:.1f} | {exact / best:.2f} | {lean / best:.2f} |"


@app.command()
def main(
    what: Annotated[
        list[str] | None, typer.Argument(help="A folder for the pictures, or problems with --table.")
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Print rows of the table instead of drawing.")] = False,
) -> None:
    """The pictures of docs/choosing.md, or its table of what suggestions are worth."""
    if not table:
        draw(_folder(what or ["docs"]))
        return
    for name in what or BUILT_IN:
        if name not in BUILT_IN:
            raise typer.BadParameter(f"{name!r} is no problem of the table: try one of {', '.join(BUILT_IN)}")
    for name in what or BUILT_IN:
        print(row(name), flush=True)


def _folder(names: Sequence[str]) -> Path:
    folder = Path(names[0])
    if len(names) > 1 or not folder.is_dir():
        raise typer.BadParameter(f"pictures go to one folder that is there, not to {' '.join(names)!r}")
    return folder


if __name__ == "__main__":
    app()
