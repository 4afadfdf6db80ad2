"""The arithmetic of budgets: the least that a client may be given, and the least that uploads alone keep to."""

from __future__ import annotations

import math

from laconic.triggers import BURN_IN
from laconic.uploads import UploadRule

#: A reward goes up in so many bytes, and a point that is known already in one more at least.
REWARD_BYTES = 2
#: An upload takes so many beside what it carries.
FRAME_BYTES = 11
#: Bytes for 1,000 interactions, with a reward and the number of a known point in each.
LEAST_BUDGET = 1000 * (1 + REWARD_BYTES)


def least_budget(upload: UploadRule, *, dim: int) -> int:
    """The least budget that uploads of new points by themselves never exceed, in a client's first 1,000 interactions.

    Early uploads are of few points, and cost most beside these; but early interactions are also allowed more.
    """
    spent, unsent, least = 0, 0, 0.0
    for own in range(1, 1001):
        unsent += 1
        if upload.due(unsent=unsent, own=own):
            spent, unsent = spent + FRAME_BYTES + unsent * (dim + REWARD_BYTES), 0
            least = max(least, 1000 * spent / max(own, math.sqrt(BURN_IN * own)))
    return math.ceil(max(least, 1000 * (dim + REWARD_BYTES)))
