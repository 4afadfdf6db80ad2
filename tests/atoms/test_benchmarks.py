"""The benchmark of atoms and its simulation run at toy size."""

from dataclasses import replace

import numpy as np

from benchmarks.atoms import rebuilt, schedule
from benchmarks.lag import SETTINGS, Simulation
from laconic.atoms import Recipe

SMALL = replace(SETTINGS["d3"], clients=8, rounds=40)


def test_a_simulation_in_rounds_learns_and_repeats_itself() -> None:
    one, other = (Simulation(SMALL, seed=1, atoms=Recipe()).run() for _ in range(2))
    assert str(one).split("building")[0] == str(other).split("building")[0]
    assert one.atoms
    assert 0 < one.down
    assert one.regret < 0.15 * SMALL.clients * SMALL.rounds


def test_atoms_cost_little_regret_beside_all_points() -> None:
    atoms, everything = (
        np.mean([Simulation(SMALL, seed=seed, atoms=Recipe(share=share)).run().regret for seed in range(4)])
        for share in (0.5, 1e-9)
    )
    assert atoms < 1.5 * everything


def test_versions_of_a_schedule_are_timed_in_parts() -> None:
    assert "certificate" in rebuilt(SMALL, schedule(SMALL, seed=1))
