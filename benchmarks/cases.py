"""Runs against their floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from benchmarks.clock import Cost, peak_memory, timed
from benchmarks.floor import Floor, Work, round_work, sync_work
from benchmarks.result import Result, Target
from benchmarks.schedule import Schedule, schedule_of
from laconic.algorithms import Algorithm
from laconic.problems.base import Instance, Problem
from laconic.runtimes import Run, run

T = TypeVar("T")

#: More syncs than this are sampled where rounds are.
MANY_SYNCS = 1000


@dataclass(frozen=True)
class RunCase:
    """A run, timed whole (making the arms included) and against its floor."""

    name: str
    algorithm: Algorithm
    problem: Problem
    clients: int = 100
    rounds: int = 100
    targets: tuple[Target, ...] = ()
    sampled: int = 1  # the floor does one round in so many, and counts it so often
    repeat: int = 3
    quick: tuple[int, int] = (10, 10)  # clients and rounds

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        limits = "; ".join(map(str, self.targets))
        sizes = f"{type(self.algorithm).__name__}, {type(self.problem).__name__}, N={self.clients}, T={self.rounds}"
        return f"{sizes}: {limits}" if limits else sizes

    def at(self, *, clients: int, rounds: int) -> RunCase:
        """The same at other sizes, without limits."""
        return replace(self, clients=clients, rounds=rounds, targets=(), sampled=1)

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Run and floor in turn, the least of each."""
        if quick:
            return self.at(clients=self.quick[0], rounds=self.quick[1]).measure(quick=False, repeat=repeat or 1)
        self._play(clients=2, rounds=2)  # imports
        cost, one = timed(self._play)
        peak = peak_memory()
        instance = self.problem.instance(seed=0, clients=self.clients, rounds=self.rounds)
        arms, _ = timed(partial(_make_arms, instance, self.rounds))
        schedule = schedule_of(one, instance)
        floor = ScheduleFloor(schedule, every=self.sampled)
        rounds, syncs = floor.cost()
        for _ in range((self.repeat if repeat is None else repeat) - 1):
            cost = min(cost, timed(self._play)[0])
            rounds, syncs = map(min, zip((rounds, syncs), floor.cost(), strict=True))
        details = {"arms": arms.cpu, "floor_rounds": rounds.cpu, "floor_syncs": syncs.cpu}
        return [self._result(one, cost=cost, floor=rounds + syncs, peak=peak, details=details)]

    def _play(self, clients: int | None = None, rounds: int | None = None) -> Run:
        clients, rounds = clients or self.clients, rounds or self.rounds
        return run(self.algorithm, self.problem, clients=clients, rounds=rounds, seed=0, runtime="lockstep")

    def _result(self, one: Run, *, cost: Cost, floor: Cost, peak: int, details: dict[str, Any]) -> Result:
        return Result(
            name=self.name,
            against="its floor",
            cpu=cost.cpu,
            seconds=cost.seconds,
            floor=floor.cpu,
            ratio=cost.cpu / floor.cpu if floor.cpu else None,
            peak=peak / 1e9,
            interactions=self.clients * self.rounds,
            targets=self.targets,
            details=details
            | {
                "clients": self.clients,
                "rounds": self.rounds,
                "syncs": one.syncs,
                "dictionary": one.dictionary,
                "regret": one.regret,
                "floor_sampled": self.sampled,
            },
        )


class ScheduleFloor:
    """The floor of a whole schedule, of which one round in ``every`` is done."""

    def __init__(self, schedule: Schedule, *, every: int) -> None:
        self.rounds = [(list(round_work(schedule, turn)), n) for turn, n in _sample(schedule.turns, every)]
        every_sync = every if len(schedule.syncs) > MANY_SYNCS else 1
        self.syncs = [(list(sync_work(schedule, sync)), n) for sync, n in _sample(schedule.syncs, every_sync)]
        all_work = [each for work, _ in self.rounds + self.syncs for each in work]
        self._floor = Floor(all_work, dim=schedule.dim)
        for each in {type(work): work for work in all_work}.values():
            self._floor.do(each)  # the first call of a routine sets it up

    def cost(self) -> tuple[Cost, Cost]:
        """What its rounds and its syncs cost now."""
        return self._cost(self.rounds), self._cost(self.syncs)

    def _cost(self, parts: list[tuple[list[Work], int]]) -> Cost:
        total = Cost()
        for work, times in parts:
            cost, _ = timed(partial(self._do, work))
            total += cost * times
        return total

    def _do(self, work: list[Work]) -> None:
        for each in work:
            self._floor.do(each)


def _make_arms(instance: Instance, rounds: int) -> None:
    for index in range(rounds):
        instance.round(index)


def _sample(items: Iterable[T], every: int) -> list[tuple[T, int]]:
    """The middle one of every so many items, and how many it stands for."""
    everything = list(items)
    groups = [everything[first : first + every] for first in range(0, len(everything), every)]
    return [(group[len(group) // 2], len(group)) for group in groups]
