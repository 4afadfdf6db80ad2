"""What it costs to start: a fresh interpreter that does one thing, beside one that imports numpy."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.clock import Cost
from benchmarks.result import Result, Target

NUMPY = ("-c", "import numpy")


@dataclass(frozen=True)
class StartUp:
    """An interpreter with these arguments."""

    name: str
    arguments: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    repeat: int = 15

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        return f"python {' '.join(self.arguments)!r}, against import numpy: {'; '.join(map(str, self.targets))}"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Both in turn, the median of each."""
        times = 1 if quick else repeat or self.repeat
        pairs = [(_child(self.arguments), _child(NUMPY)) for _ in range(times + 1)][1:]  # the first fills caches
        mine, numpy = (sorted(costs)[len(costs) // 2] for costs in zip(*pairs, strict=True))
        result = Result(
            name=self.name,
            against="import numpy",
            cpu=mine.cpu,
            seconds=mine.seconds,
            floor=numpy.cpu,
            ratio=mine.cpu / numpy.cpu,
            targets=() if quick else self.targets,
        )
        return [result]


def _child(arguments: tuple[str, ...]) -> Cost:
    before, begun = _cpu_of_children(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return Cost(_cpu_of_children() - before, time.perf_counter() - begun)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
