"""Digests: what a client that learns alone is sent of everybody's points."""

from laconic.protocol.digests.all_points import AllPoints
from laconic.protocol.digests.atoms import Atoms
from laconic.protocol.digests.digest import Addressed, Built, Digest, Held, Incoming, Reader

__all__ = ["Addressed", "AllPoints", "Atoms", "Built", "Digest", "Held", "Incoming", "Reader"]
