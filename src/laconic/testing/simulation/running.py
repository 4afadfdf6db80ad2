"""Run a schedule: event by event, with the invariants after each."""

from __future__ import annotations

from dataclasses import replace

from laconic.algorithms import Algorithm
from laconic.checks import require_number, seen
from laconic.errors import InputError
from laconic.testing.simulation.acts import EVENTS
from laconic.testing.simulation.ending import conclude
from laconic.testing.simulation.failure import Broken, SimulationFailure
from laconic.testing.simulation.schedule import Schedule, drawn
from laconic.testing.simulation.world import World

#: Predictions are compared with the formulas after every so many events.
NUMBERS_EVERY = 8


def simulate(algorithm: Algorithm, *, seed: int, events: tuple[int, ...] | None = None) -> list[str]:
    """Play an algorithm through faults that a seed draws, look at what must hold after each, and give the trace.

    Clients and the server crash, restart and go back to backups, links break, messages come twice, and peers lie.

    Every few events, what clients predict is compared with what must follow from the points that they know: by formulas
    for our own beliefs and any embedding of one's own, within what the certificate of a version of atoms states, and
    as exactly as the precision of the belief allows. A belief of another kind is compared with one that learnt the same
    points at once, by ``extended`` or ``with_statistics``. Where it has neither, or where a digest of another kind is
    not made of all points, these numbers are left out, and everything else is checked.

    Args:
        algorithm: A value with a method plan(dim), and neither its name nor its class.
        seed: Seed of the schedule, a whole number from 0 to 2⁶⁴ − 1; the same one gives the same events.
        events: Numbers of the events to play, as a failure names them, all others left out; None: all of them.

    Raises:
        SimulationFailure: Something that must hold does not.
    """
    _require_value(algorithm)
    require_number("seed", seed, bits=64)
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


def _require_value(algorithm: object) -> None:
    """An algorithm, and neither its name nor its class."""
    if isinstance(algorithm, type) or not callable(getattr(algorithm, "plan", None)):
        raise InputError(f"algorithm must be a value, such as DisKernelUCB(D=1.0), not {seen(algorithm)}")


def _run(world: World, schedule: Schedule) -> None:
    for place, event in enumerate(schedule.events):
        world.event = event
        said = len(world.trace)
        EVENTS[event.kind](world, event)
        if len(world.trace) > said:
            world.check(numbers=place % NUMBERS_EVERY == 0)
    conclude(world)
