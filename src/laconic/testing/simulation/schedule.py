"""Schedules: all events are drawn before anything runs, so that some can be left out and the rest stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.randomness import Role, generator

#: How often each kind of event is drawn; what a kind does is in `laconic.testing.simulation.acts.EVENTS`.
WEIGHTS = {
    "deliver": 70,
    "work": 20,
    "perform": 16,
    "act": 30,
    "choose": 6,
    "observe": 8,
    "learn": 2,
    "forget": 1,
    "flush": 4,
    "connect": 14,
    "leave": 1,
    "break": 5,
    "notice": 5,
    "repeat": 8,
    "tick": 5,
    "crash client": 5,
    "restart client": 12,
    "crash server": 2,
    "restart server": 10,
    "compact": 2,
    "back up": 3,
    "die": 0.3,
    "lie": 4,
}


@dataclass(frozen=True)
class Event:
    """Something that happens; ``draws`` decide to whom and how, and ``number`` addresses what it draws besides."""

    number: int
    kind: str
    draws: tuple[int, int, int]

    def pick(self, place: int, count: int) -> int:
        """One of ``count`` things, by one of the draws."""
        return self.draws[place] % count

    def chance(self, place: int, probability: float) -> bool:
        """True with about this probability."""
        return self.draws[place] % 1000 < 1000 * probability


@dataclass(frozen=True)
class Schedule:
    """A federation and all that happens to it."""

    seed: int
    dim: int
    clients: int
    hostile: bool  # whether the last client is
    roster: bool  # whether clients are members from the start
    seconds: float
    quorum: int
    shared: bool  # whether one process hosts all, which builds once what they have in common
    events: tuple[Event, ...]

    def generator(self, *address: int) -> np.random.Generator:
        """The draws at an address within this schedule."""
        return generator(self.seed, Role.DELIVERY, *address)


def drawn(seed: int) -> Schedule:
    """The schedule of a seed."""
    draw = generator(seed, Role.DELIVERY)
    clients = int(draw.integers(1, 6))
    length = int(draw.integers(40, 260))
    kinds, weights = list(WEIGHTS), np.array(list(WEIGHTS.values()))
    calm = draw.random(len(kinds)) < 0.25  # some schedules go without some kinds, so that others come to their end
    weights *= np.exp(0.7 * draw.standard_normal(len(kinds)))
    weights = np.where(calm & np.array([kind not in ("deliver", "work", "act") for kind in kinds]), 0.0, weights)
    chosen = draw.choice(len(kinds), size=length, p=weights / weights.sum())
    draws = draw.integers(0, 2**30, (length, 3))
    events = tuple(
        Event(number, kinds[kind], (int(a), int(b), int(c)))
        for number, (kind, (a, b, c)) in enumerate(zip(chosen, draws, strict=True))
    )
    return Schedule(
        seed=seed,
        dim=int(draw.integers(1, 4)),
        clients=clients,
        hostile=clients > 1 and bool(draw.random() < 0.3),
        roster=bool(draw.random() < 0.5),
        seconds=float(draw.choice([5.0, 30.0])),
        quorum=int(draw.choice([1, 1, 1, 2])) if clients > 2 else 1,
        shared=bool(draw.random() < 0.3),
        events=events,
    )
