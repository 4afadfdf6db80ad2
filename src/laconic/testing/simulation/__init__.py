"""Deterministic simulation: a seeded scheduler over real clients, a real server, their records and their bytes."""

from laconic.testing.simulation.failure import SimulationFailure
from laconic.testing.simulation.running import simulate

__all__ = ["SimulationFailure", "simulate"]
