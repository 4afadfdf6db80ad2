"""A run beside another: lockstep beside loopback, many interactions beside few, one size after another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from benchmarks.cases import RunCase
from benchmarks.clock import timed
from benchmarks.result import Result, Target
from laconic.runtimes import run


@dataclass(frozen=True)
class BesideLoopback:
    """The same run event by event."""

    name: str
    case: RunCase
    repeat: int = 3

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        return f"lockstep against loopback: {self.case.summary}"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Both in turn, the least of each."""
        case, times = self.case, 1 if quick else repeat or self.repeat
        clients, rounds = case.quick if quick else (case.clients, case.rounds)
        play = partial(run, case.algorithm, case.problem, clients=clients, rounds=rounds)
        play(clients=2, rounds=2)  # imports
        both = [[timed(partial(play, runtime=name))[0] for name in ("lockstep", "loopback")] for _ in range(times)]
        fast, slow = map(min, zip(*both, strict=True))
        result = Result(
            name=self.name,
            against="loopback",
            cpu=fast.cpu,
            seconds=fast.seconds,
            floor=slow.cpu,
            ratio=fast.cpu / slow.cpu,
            interactions=clients * rounds,
            details={"speed_up": slow.cpu / fast.cpu, "clients": clients, "rounds": rounds},
        )
        return [result]


@dataclass(frozen=True)
class BesideSmall:
    """A large run against its floor, and the CPU of an interaction against that of a small run."""

    name: str
    large: RunCase
    small: RunCase
    target: Target

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        return f"{self.large.summary}; an interaction against one of {self.small.summary}: {self.target}"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """The large run first, as memory that was once held counts for all that follows."""
        (large,) = self.large.measure(quick=quick, repeat=repeat)
        (small,) = self.small.measure(quick=quick, repeat=repeat)
        each, other = (result.cpu / (result.interactions or 1) for result in (large, small))
        both = replace(
            large,
            name=f"{self.name}, an interaction",
            against=f"one of {self.small.name}",
            cpu=each,
            floor=other,
            seconds=large.seconds / (large.interactions or 1),
            ratio=each / other,
            peak=None,
            interactions=1,
            targets=() if quick else (self.target,),
            details={},
        )
        return [large, replace(small, peak=None), both]


@dataclass(frozen=True)
class Sweep:
    """One run after another, of which one size grows."""

    name: str
    cases: tuple[RunCase, ...]

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        return f"how cost grows: {', '.join(case.name for case in self.cases)}"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Each against its floor; memory is not told apart here."""
        found: list[Result] = []
        for case in self.cases[:2] if quick else self.cases:
            found += case.measure(quick=quick, repeat=repeat)
        return [replace(result, name=f"{self.name}: {result.name}", peak=None) for result in found]
