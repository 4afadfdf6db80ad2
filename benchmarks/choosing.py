"""The pictures of docs/choosing.md: the evidence by γ and λ, and regret by γ and α, with what is suggested.

Run it with ``python -m benchmarks.choosing docs``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from laconic import Cosine, DisKernelUCB, Gaussian, Suggestion, run, suggest_for
from laconic.suggestion import evidence

PROBLEM = Cosine(dim=10)
CLIENTS, ROUNDS, SEEDS = 20, 40, (100, 101)
GAMMAS, LAMS = np.geomspace(0.01, 10.0, 25), np.geomspace(1e-3, 3.0, 21)
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


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
