"""Seconds, CPU seconds and memory of a piece of work."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Cost:
    """CPU seconds of all threads, and seconds on the wall; the smaller cost is the one of less CPU."""

    cpu: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.seconds + other.seconds)

    def __mul__(self, times: float) -> Cost:
        return Cost(self.cpu * times, self.seconds * times)


def timed(work: Callable[[], T]) -> tuple[Cost, T]:
    """What a piece of work costs, and its result."""
    cpu, seconds = time.process_time(), time.perf_counter()
    result = work()
    return Cost(time.process_time() - cpu, time.perf_counter() - seconds), result


def peak_memory() -> int:
    """The most bytes that this process has held since it began.

    Linux also counts what the parent held when it started this process into ``ru_maxrss``, but not into VmHWM.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
