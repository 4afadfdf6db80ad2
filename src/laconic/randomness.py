"""Addressed randomness: every draw is named by what it is for, and nothing random is stored."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Role(IntEnum):
    """What a stream of random numbers is for."""

    THETA = 1
    ROUND = 2
    CATALOGUE = 3
    TIES = 4
    LEVERAGE = 5
    DELIVERY = 6
    RATINGS = 7


def generator(seed: int, role: Role, *address: int) -> np.random.Generator:
    """The generator at an address: the same address gives the same draws on any machine."""
    return np.random.default_rng([seed, int(role), *address])
