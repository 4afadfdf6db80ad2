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
    ATOMS = 8
    SAMPLE = 9
    PROPENSITY = 10


def generator(seed: int, role: Role, *address: int) -> np.random.Generator:
    """The generator at an address: the same address gives the same draws on any machine."""
    entropy = [seed, int(role), *address]
    if max(entropy) < 2**32:  # the same draws, in half the time
        return np.random.default_rng(np.array(entropy, dtype=np.uint32))
    return np.random.default_rng(entropy)
