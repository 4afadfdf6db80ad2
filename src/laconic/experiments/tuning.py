"""Tuning: each algorithm at its best setting, as papers do it, and on seeds that had no say in the choice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from laconic.experiments.results import Group, Results


@dataclass(frozen=True)
class HeldOut:
    """Each algorithm's setting chosen on some seeds, and what came of it on the others."""

    results: Results
    chosen_on: tuple[int, ...]
    reported_on: tuple[int, ...]


def held_out(results: Results) -> HeldOut | None:
    """The honest companion of ``results.tuned()``: chosen on the first half of the seeds, reported on the rest.

    None where there is only one seed, or no algorithm with more than one setting to choose from.
    """
    if len(results.groups) == len({group.algorithm for group in results.groups}):
        return None
    seeds = sorted({row.seed for row in results.rows})
    half = len(seeds) // 2
    if half == 0:
        return None
    chosen_on, reported_on = tuple(seeds[:half]), tuple(seeds[half:])
    best = {(group.algorithm, *group.params.items()) for group in _on(results, chosen_on).tuned("regret").groups}
    others = _on(results, reported_on)
    rows = tuple(row for row in others.rows if (row.algorithm, *row.params.items()) in best)
    return HeldOut(replace(results, rows=rows), chosen_on=chosen_on, reported_on=reported_on)


def best_of(results: Results) -> dict[str, Group]:
    """Each algorithm at the setting with the smallest mean regret."""
    return {group.algorithm: group for group in results.tuned("regret").groups}


def complete_only(results: Results, *, seeds: Collection[int]) -> Results:
    """Only the settings that have run on every seed: a mean over fewer would be another quantity."""
    whole = {
        id(row) for group in results.groups if {row.seed for row in group.rows} >= set(seeds) for row in group.rows
    }
    return replace(results, rows=tuple(row for row in results.rows if id(row) in whole))


def _on(results: Results, seeds: Collection[int]) -> Results:
    return replace(results, rows=tuple(row for row in results.rows if row.seed in seeds))
