"""What a phase sees of who contributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief


@dataclass(frozen=True, eq=False)
class Member:
    """What a phase sees of the client that contributes.

    Attributes:
        installed: The belief of the last sync.
        draft: The belief that this sync has come to: that of the last one, with what earlier phases absorbed.
        points: Points of its own history, up to the sync, (n, d).
        rewards: Their rewards, (n,).
        covered: How many of them, from the first on, the installed belief has, from 0 to n.
        fired: Whether it was its trigger that asked for this sync.
        random: Function that gives a generator addressed by seed, client and epoch, the same whenever it is called.
    """

    installed: Belief
    draft: Belief
    points: Floats
    rewards: Floats
    covered: int
    fired: bool
    random: Callable[[], np.random.Generator]
