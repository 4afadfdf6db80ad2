"""Whether the points of a problem return, as its first rounds tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from laconic.arrays import Floats
from laconic.problems.base import Instance
from laconic.problems.rounds import check_round

#: So many rounds are looked at, and more until so many points were seen, as few points tell little.
LEAST_ROUNDS, MOST_ROUNDS, ENOUGH_POINTS = 3, 100, 4_000
#: After so many rounds in a row that showed all there is so far and nothing else, a fixed set, no more are looked at.
FIXED = 5
#: Where the later half of what was looked at tells of so many times as many points as the earlier half does, new ones
#: keep coming in beside those that return.
STEADY = 2.0


@dataclass(frozen=True)
class Points:
    """The arms of the first round, and how many distinct points a run has to choose from."""

    first: Floats
    distinct: int


class Look(NamedTuple):
    """A round: how many points were seen before it, how many it has, and how many of these are among them."""

    before: int
    points: int
    met: int


def points_to_choose_from(instance: Instance, *, clients: int, rounds: int) -> Points:
    """Count the points of a run: ever new ones, or some that return.

    Raises:
        ProblemError: A round that was looked at is none.
    """
    seen: set[bytes] = set()
    looks: list[Look] = []
    first, same = _arms(instance, 0, clients=clients), 0
    for index in range(min(rounds, MOST_ROUNDS)):
        arms = first if index == 0 else _arms(instance, index, clients=clients)
        points = {point.tobytes() for point in arms.reshape(-1, arms.shape[2])}
        looks.append(Look(before=len(seen), points=len(points), met=len(points & seen)))
        same = same + 1 if points == seen else 0
        if same == FIXED:
            break
        seen |= points
        if len(looks) >= LEAST_ROUNDS and sum(look.points for look in looks) >= ENOUGH_POINTS:
            break
    half = len(looks) // 2 + 1
    if _in_all(looks[half:]) > STEADY * _in_all(looks[:half]) or math.isinf(_in_all(looks[:half])):
        return Points(first, len(seen) * rounds // len(looks))
    return Points(first, max(len(seen), round(_in_all(looks))))


def _in_all(looks: list[Look]) -> float:
    """How many points there are, if none is new: of those of a round, as many were met before as were seen of all.

    It is how animals are counted by catching and marking them.
    """
    met = sum(look.met for look in looks)
    return sum(look.before * look.points for look in looks) / met if met else math.inf


def _arms(instance: Instance, index: int, *, clients: int) -> Floats:
    met = check_round(instance.round(index), index=index, clients=clients, dim=instance.dim)
    return np.ascontiguousarray(met.arms)
