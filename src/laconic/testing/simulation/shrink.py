"""Shrinking: leave out events of a failing schedule as long as it still fails in the same way."""

from __future__ import annotations

import re

from laconic.algorithms import Algorithm
from laconic.testing.simulation.failure import SimulationFailure
from laconic.testing.simulation.running import simulate


def shrunk(algorithm: Algorithm, failure: SimulationFailure, *, most_runs: int = 400) -> SimulationFailure:
    """The failure of a shorter schedule, in larger steps first and then event by event."""
    best, size, runs = failure, max(1, len(failure.events) // 2), 0
    while size and runs < most_runs:
        start = 0
        while start < len(best.events) and runs < most_runs:
            fewer = best.events[:start] + best.events[start + size :]
            again = _failure(algorithm, best, fewer)
            runs += 1
            if again is None:
                start += size
            else:
                best = again
        size //= 2
    return best


def _failure(algorithm: Algorithm, known: SimulationFailure, events: tuple[int, ...]) -> SimulationFailure | None:
    try:
        simulate(algorithm, seed=known.seed, events=events)
    except SimulationFailure as failure:
        return failure if _sort(failure) == _sort(known) else None
    return None


def _sort(failure: SimulationFailure) -> str:
    """What is broken, whichever client and epoch it is about."""
    return re.sub(r"\d[\w.]*", "#", failure.broken)[:60]
