"""How long runs take on this machine, learnt from those that have finished, small ones included."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from laconic.experiments.tasks import Task

LONG = 5000  # steps N·T of a run from which on a sweep is timed on smaller runs before it starts
SMALLER = (0.4, 0.7)  # of N and of T, for those runs; below 0.4 exact algorithms do not yet save any solves
DEARER = 1.5  # a step of the larger of two runs takes so much longer when its cost grows with the steps


class Pace:
    """Seconds by problem, algorithm and number of steps; the nearest knowledge answers."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._begun = time.monotonic()
        self._busy = 0.0

    def note(self, task: Task, seconds: float, *, now: bool = True) -> None:
        """A run has taken so long; ``now`` says that it was made in this session and not in an earlier one."""
        for key in _keys(task):
            self._seen[key][_steps(task)].append(seconds)
        self._busy += seconds if now else 0.0

    def begin(self) -> None:
        """From here on the clock runs."""
        self._begun, self._busy = time.monotonic(), 0.0

    def predict(self, task: Task) -> float | None:
        """Seconds that a run will take: those of the like, or else as runs grow; None where nothing is known."""
        for key in _keys(task):
            seen = self._seen.get(key, {})
            if _steps(task) in seen:
                return fmean(seen[_steps(task)])
            if len(seen) > 1:
                return _grown({steps: fmean(took) for steps, took in seen.items()}, to=_steps(task))
        return None

    def left(self, tasks: Iterable[Task], *, slots: int) -> float | None:
        """Seconds until these are done, so many at a time; None as long as one cannot be told."""
        each = [self.predict(task) for task in tasks]
        if None in each:
            return None
        total = sum(seconds for seconds in each if seconds is not None)
        return total * self._overhead(slots) / slots

    def _overhead(self, slots: int) -> float:
        """What a second of running costs: arms are made, results saved, processes wait for each other."""
        if self._busy < 1.0:
            return 1.0
        return min(max((time.monotonic() - self._begun) * slots / self._busy, 1.0), 5.0)


def smaller(tasks: Sequence[Task]) -> list[Task]:
    """Runs that tell how long these will take: of each problem and setting, α included, but only one seed."""
    kept: dict[tuple[Any, ...], Task] = {}
    for task in tasks:
        if _steps(task) >= LONG:
            kept.setdefault(_keys(task)[0], task)
    return [_scaled(task, by) for by in SMALLER for task in kept.values()]


def telling_first(tasks: Sequence[Task]) -> list[Task]:
    """These runs, but first one of every problem and algorithm, from the middle of its settings.

    The time left is foretold by what has finished. In the order of the grid that is for long the slowest algorithm of
    the first problem alone, which stands for all others until they have their turn.
    """
    alike: dict[tuple[Any, ...], list[Task]] = defaultdict(list)
    for task in tasks:
        alike[task.problem["name"], task.algorithm["name"], _steps(task)].append(task)
    first = [_middle([task for task in group if task.seed == group[0].seed]) for group in alike.values()]
    told = {task.id for task in first}
    return [*first, *(task for task in tasks if task.id not in told)]


def _middle(tasks: Sequence[Task]) -> Task:
    return tasks[len(tasks) // 2]


def _scaled(task: Task, by: float) -> Task:
    return replace(task, clients=max(1, round(task.clients * by)), rounds=max(1, round(task.rounds * by)))


def _keys(task: Task) -> list[tuple[Any, ...]]:
    """Whom a run's time tells about, the nearest first; by α an exact algorithm solves more arms or fewer."""
    problem, name = task.problem["name"], task.algorithm["name"]
    setting = sorted((key, str(value)) for key, value in task.algorithm.items() if key != "alpha")
    return [(problem, *setting, str(task.algorithm.get("alpha"))), (problem, *setting), (problem, name), (name,), ()]


def _steps(task: Task) -> int:
    return task.clients * task.rounds


def _grown(seconds: dict[int, float], *, to: int) -> float:
    """From two sizes to a third: a part that grows with the steps and one with their cube, as triangular solves do."""
    small, large = sorted(seconds)[-2:]
    first, second = seconds[small] / small, seconds[large] / large
    if second < DEARER * first:  # so small a difference may be chance, and its cube would be taken for an hour
        return second * to
    cube = (second - first) / (large**2 - small**2)
    return max(second - cube * large**2, 0.0) * to + cube * to**3
