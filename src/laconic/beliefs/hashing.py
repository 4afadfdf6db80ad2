"""Whether two beliefs are the same, told by a number."""

from __future__ import annotations

import hashlib

import numpy as np

from laconic.beliefs.contract import Belief


def belief_hash(belief: Belief) -> int:
    """An unsigned 64-bit hash of all that a belief has learnt: names, types, shapes and bits of its arrays."""
    digest = hashlib.blake2b(digest_size=8)
    arrays = belief.arrays()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        # ends of texts are marked, so that no two descriptions run into the same bytes
        digest.update(f"{name}\0{array.dtype.str}\0{arrays[name].shape}\0".encode())
        digest.update(array.data)
    return int.from_bytes(digest.digest(), "little")
