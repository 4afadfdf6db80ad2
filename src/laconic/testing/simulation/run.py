"""Run a schedule: event by event, with the invariants after each."""

from __future__ import annotations

from dataclasses import replace

from laconic.algorithms import Algorithm
from laconic.testing.simulation.acts import EVENTS
from laconic.testing.simulation.ending import conclude
from laconic.testing.simulation.failure import Broken, SimulationFailure
from laconic.testing.simulation.schedule import Schedule, drawn
from laconic.testing.simulation.world import World

#: Predictions are compared with the formulas after every so many events.
NUMBERS_EVERY = 8


def simulate(algorithm: Algorithm, *, seed: int, events: tuple[int, ...] | None = None) -> list[str]:
    """Run the schedule of a seed and give its trace; `SimulationFailure` says which invariant does not hold.

    ``events`` leaves out all other events of the schedule.
    """
    schedule = drawn(seed)
    if events is not None:
        kept = set(events)
        schedule = replace(schedule, events=tuple(each for each in schedule.events if each.number in kept))
    world = World(algorithm, schedule)
    try:
        _run(world, schedule)
    except Exception as error:  # whatever is raised is a failure of the schedule
        broken = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
        numbers = tuple(each.number for each in schedule.events)
        raise SimulationFailure(broken, algorithm=algorithm, seed=seed, trace=world.trace, events=numbers) from error
    return world.trace


def _run(world: World, schedule: Schedule) -> None:
    for place, event in enumerate(schedule.events):
        world.event = event
        said = len(world.trace)
        EVENTS[event.kind](world, event)
        if len(world.trace) > said:
            world.check(numbers=place % NUMBERS_EVERY == 0)
    conclude(world)
