"""What a run would keep in memory, told before it starts: exact beliefs keep a factor of all points."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from laconic.algorithms import Algorithm
from laconic.beliefs import ExactBelief
from laconic.errors import InputError
from laconic.problems.base import Instance
from laconic.protocol.digests import AllPoints
from laconic.protocol.phases import ShareData
from laconic.protocol.plan import Plan
from laconic.runtimes.asking import stand_in

#: Runs that need less are not looked at.
LEAST = 500_000_000
#: The points of so many rounds tell whether points return.
LOOKED_AT = 3
CGROUP = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Need:
    """An algorithm that keeps so many points would take at least so many bytes."""

    name: str
    points: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} keeps up to {self.points:,} points, which take about {gigabytes(self.bytes)}"


def gigabytes(count: int) -> str:
    """So many bytes, in words."""
    return f"{count / 1e9:.3g} GB"


def memory_needed(algorithm: Algorithm, instance: Instance, *, clients: int, rounds: int) -> Need | None:
    """What a run would need; None where that is little, or no matter of how many points there are."""
    plan = stand_in(algorithm).plan(instance.dim)
    if not isinstance(plan.belief, ExactBelief) or _bytes(plan, clients * rounds, clients=clients) < LEAST:
        return None
    points = min(clients * rounds, _distinct(instance, rounds))
    need = Need(type(algorithm).__name__, points=points, bytes=_bytes(plan, points, clients=clients))
    return need if need.bytes >= LEAST else None


def _bytes(plan: Plan, points: int, *, clients: int) -> int:
    """A triangle for all where points are shared; else one for each client.

    One in double precision has another one in single precision beside it.
    """
    number = 4 if plan.belief.parameters.get("dtype") == "float32" else 8 + 4
    if isinstance(plan.digest, AllPoints) or any(isinstance(phase, ShareData) for phase in plan.phases):
        return points**2 * number // 2
    own = points // clients
    return clients * own**2 * 8 if not plan.exchanges else 0


def _distinct(instance: Instance, rounds: int) -> int:
    """How many points a run has to choose from, as its first rounds tell: ever new ones, or some that return."""
    seen: set[bytes] = set()
    share = 1.0
    for index in range(min(rounds, LOOKED_AT)):
        arms = np.ascontiguousarray(instance.round(index).arms)
        points = {point.tobytes() for point in arms.reshape(-1, arms.shape[2])}
        share = len(points - seen) / len(points)
        seen |= points
    return int(len(seen) / (1.0 - share)) if share < 0.5 else len(seen) * rounds


def machine_memory() -> int | None:
    """The bytes that this process may have; None where nobody says."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    limit = CGROUP.read_text().strip() if CGROUP.exists() else ""
    return min(found, int(limit)) if limit.isdigit() else found


def require_memory(needs: list[Need], *, slots: int = 1) -> None:
    """Refuse runs, so many at a time, that need more than the machine has."""
    have = machine_memory()
    largest = sorted(needs, key=lambda need: need.bytes, reverse=True)[:slots]
    total = sum(need.bytes for need in largest)
    if have is None or total <= have:
        return
    together = f", {len(largest)} runs at a time {gigabytes(total)}" if len(largest) > 1 else ""
    fewer = "one run at a time, " if len(largest) > 1 else ""
    raise InputError(
        f"{largest[0]}{together}, and this machine has {gigabytes(have)}; try {fewer}fewer clients or rounds, "
        "ApproxDisKernelUCB or LaconicUCB, or go on all the same with beyond_memory=True, --beyond-memory"
    )
