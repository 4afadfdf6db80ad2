"""What a phase sees of who contributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief


@dataclass(frozen=True, eq=False)
class Member:
    """What a phase sees of the client that contributes."""

    installed: Belief
    draft: Belief
    points: Floats  # its own history, up to the sync
    rewards: Floats
    covered: int  # how many of them, from the first on, the installed belief contains
    fired: bool
    random: Callable[[], np.random.Generator]  # addressed by (seed, client, epoch)
