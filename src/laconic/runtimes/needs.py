"""What a run would keep in memory, told before it starts: exact beliefs keep a factor of all points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from laconic.algorithms import Algorithm, LaconicUCB
from laconic.arrays import Floats
from laconic.atoms.settings import Recipe
from laconic.beliefs import ExactBelief
from laconic.beliefs.exact import SLACK
from laconic.errors import InputError
from laconic.exploration import UCB, Greedy
from laconic.problems.base import Instance
from laconic.protocol.digests import AllPoints, Atoms
from laconic.protocol.phases import ShareData
from laconic.protocol.plan import Plan
from laconic.runtimes.asking import stand_in
from laconic.runtimes.lockstep.lazy import MOST_VALUES
from laconic.runtimes.lockstep.scores import BATCH_ENTRIES
from laconic.runtimes.memory_limits import machine_memory
from laconic.runtimes.returning import points_to_choose_from
from laconic.tail import News

#: Runs that need less are not looked at.
LEAST = 500_000_000
#: So few points never need as much, whatever else is kept.
FEW_POINTS = 1_000
#: Bytes of a kernel value of an arm that is scored lazily: the value with room beside it, as much again while it is
#: solved, and in double precision what is finished, an arm in ten.
LAZY_VALUE = 11
#: Bytes of one that is scored whole: solved where it lies, beside what a kernel takes to compute it.
WHOLE_VALUE = 12
#: Bytes of a feature of a tail's point when it is learnt: in the tail, turned in single precision and stacked, and
#: twice more among the new rows of the factor.
TAIL_FEATURE = 28
#: A client by itself has H⁻¹ of its points, for which there is room for up to twice as many.
LONE_ENTRY = 12
#: A client that exchanges alone has a solution of its own, which is also put beside those of others.
SOLUTION_ENTRY = 2 * 8
#: A build of atoms takes some ten matrices of as many rows as its reference dictionary has, all points while these are
#: fewer.
BUILD_ENTRY = 10 * 8
#: What any run takes beside that: buffers of BLAS, arms, histories and messages.
BASE = 10_000_000


@dataclass(frozen=True)
class Need:
    """An algorithm that keeps so many points takes about so many bytes.

    Where that is not ``certain``, it takes as much only if few points cannot sum up all.
    """

    name: str
    points: int
    bytes: int
    certain: bool = True

    def __str__(self) -> str:
        if self.certain:
            return f"{self.name} keeps up to {self.points:,} points, which take about {gigabytes(self.bytes)}"
        many = f"its {self.points:,} points cannot be summed up by few"
        return f"{self.name} takes up to about {gigabytes(self.bytes)}, where {many}"


def gigabytes(count: int) -> str:
    """So many bytes, in words."""
    return f"{count / 1e9:.3g} GB"


def memory_needed(algorithm: Algorithm, instance: Instance, *, clients: int, rounds: int) -> Need | None:
    """What a run would need; None where that is little, or no matter of how many points there are.

    Raises:
        ProblemError: One of the first rounds is none.
    """
    return next(iter(memory_of([algorithm], instance, clients=clients, rounds=rounds)), None)


def memory_of(algorithms: Iterable[Algorithm], instance: Instance, *, clients: int, rounds: int) -> list[Need]:
    """What runs of them would need, those left out that need little or the same however many points there are."""
    if clients * rounds < FEW_POINTS:
        return []
    plans = [(type(algorithm).__name__, _planned(algorithm, instance.dim)) for algorithm in algorithms]
    exact = [(name, plan, plan.belief) for name, plan in plans if isinstance(plan.belief, ExactBelief)]
    if not exact:
        return []
    there = points_to_choose_from(instance, clients=clients, rounds=rounds)
    points = min(clients * rounds, there.distinct)
    rows = min(clients * rounds, math.ceil(SLACK * points))  # repeats are rows too, up to that
    needs = []
    for name, plan, belief in exact:
        count = _bytes(plan, belief, rows, clients=clients, rounds=rounds, arms=there.first)
        needs.append(Need(name, points=points, bytes=count, certain=not _may_sum_up(plan)))
    return [need for need in needs if need.bytes >= LEAST]


def _planned(algorithm: Algorithm, dim: int) -> Plan:
    """The plan that is played, but for a budget: that changes no belief, and one too small is said by who plays it."""
    played = stand_in(algorithm)
    if isinstance(played, LaconicUCB) and played.budget is not None:
        return replace(played, budget=None).plan(dim)
    return played.plan(dim)


def _may_sum_up(plan: Plan) -> bool:
    """Whether clients are sent few points that stand for all, as long as there are such."""
    if isinstance(plan.digest, Atoms):
        return not isinstance(plan.digest.recipe, Recipe) or plan.digest.recipe.share > 0
    return plan.digest is not None and not isinstance(plan.digest, AllPoints)


def _bytes(plan: Plan, belief: ExactBelief, points: int, *, clients: int, rounds: int, arms: Floats) -> int:
    """What a run takes when it has learnt so many points, which is when it takes most."""
    if not plan.exchanges:
        return BASE + clients * min(points, rounds) ** 2 * LONE_ENTRY
    if plan.digest is None and not any(isinstance(phase, ShareData) for phase in plan.phases):
        return 0  # what is shared is made of few points, or of none
    tails = min(clients * _tail_length(plan, belief, arms, most=rounds), points) * points * TAIL_FEATURE
    alone = clients * points * SOLUTION_ENTRY + _build(plan, points) if plan.digest is not None else 0
    return BASE + _factor(plan, points) + _scores(plan, points, clients * arms.shape[1]) + tails + alone


def _build(plan: Plan, points: int) -> int:
    """What a build of atoms takes, whether few are found or not."""
    if not isinstance(plan.digest, Atoms) or not isinstance(plan.digest.recipe, Recipe):
        return 0
    return min(points, plan.digest.recipe.cap) ** 2 * BUILD_ENTRY


def _is_single(plan: Plan) -> bool:
    return plan.belief.parameters.get("dtype") == "float32"


def _factor(plan: Plan, points: int) -> int:
    """A triangle; one in double precision has another one in single precision beside it."""
    return points**2 * (4 if _is_single(plan) else 8 + 4) // 2


def _scores(plan: Plan, points: int, columns: int) -> int:
    """Kernel values of so many arms and their solves, of as many arms at a time as lockstep has."""
    if _is_single(plan) or type(plan.exploration) not in (UCB, Greedy):
        return min(points * columns, BATCH_ENTRIES) * WHOLE_VALUE
    return min(points * columns, MOST_VALUES) * LAZY_VALUE


def _tail_length(plan: Plan, belief: ExactBelief, arms: Floats, *, most: int) -> int:
    """How many points a client has at least before it asks, as each tells at most what the first one does."""
    first = float(belief.prior(arms[0]).max()) / belief.lam
    for count in range(1, most):
        news = News(count, log_det=count * math.log1p(first), variance=count * first, residual=0.0, own=count)
        if plan.trigger.fires(news):
            return count
    return most


def require_memory(needs: list[Need], *, slots: int = 1) -> None:
    """Refuse runs, so many at a time, that need more than the machine has; warn of those that may."""
    have = machine_memory()
    if have is None:
        return
    _require([need for need in needs if need.certain], have=have, slots=slots)
    may, together = _largest(needs, slots=slots)
    if together > have:
        beside = f", {len(may)} runs at a time {gigabytes(together)}" if len(may) > 1 else ""
        first = next(need for need in may if not need.certain)
        warnings.warn(f"{first}{beside}, and this machine has {gigabytes(have)}", stacklevel=3)


def _require(needs: list[Need], *, have: int, slots: int) -> None:
    largest, total = _largest(needs, slots=slots)
    if total <= have:
        return
    together = f", {len(largest)} runs at a time {gigabytes(total)}" if len(largest) > 1 else ""
    fewer = "one run at a time, " if len(largest) > 1 else ""
    raise InputError(
        f"{largest[0]}{together}, and this machine has {gigabytes(have)}; try {fewer}fewer clients or rounds, "
        "ApproxDisKernelUCB, LaconicUCB where few points can stand for all (arms that return, a small gamma), "
        "or go on all the same with beyond_memory=True, --beyond-memory"
    )


def _largest(needs: list[Need], *, slots: int) -> tuple[list[Need], int]:
    """The largest of them that may run at a time, and what these take together."""
    largest = sorted(needs, key=lambda need: need.bytes, reverse=True)[:slots]
    return largest, sum(need.bytes for need in largest)
