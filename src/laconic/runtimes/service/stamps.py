"""Stamps of agents: ids of decisions begin with one, so that an agent knows those that another one made.

A start, with which the ids of decisions begin, has 52 bits: the stamp, of 20, and a random number of 32. The first bit
of a stamp is 1; starts of state files from before there were stamps have 40 bits, and so none that bears one.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

from laconic.checks import seen
from laconic.errors import UnknownDecision
from laconic.protocol.learner import Decision, Learner, parsed_id

_STAMP_BITS, _RANDOM_BITS = 20, 32


def stamp_of(name: str) -> int:
    """The stamp of an agent's name; that of another name is the same once in 524,288."""
    digest = int.from_bytes(blake2b(name.encode(errors="surrogatepass"), digest_size=4).digest(), "big")
    return 1 << (_STAMP_BITS - 1) | digest % (1 << (_STAMP_BITS - 1))


def new_start(name: str) -> int:
    """A start of an agent, other than all before it."""
    return stamp_of(name) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)


def require_own(decision: object, learner: Learner, *, name: str) -> None:
    """Refuse a decision that this agent cannot have made: the learner takes any of a start that it does not know.

    One of an unknown start may be this agent's own, where its state file went back to a backup.
    """
    if not isinstance(decision, Decision):
        return  # an id alone must be known to the learner
    start, _ = parsed_id(decision.id)
    # A client is born with the start 0, under which no agent ever chooses.
    if start >> _RANDOM_BITS != stamp_of(name) and (start == 0 or start not in learner.starts):
        raise UnknownDecision(
            f"decision {seen(decision.id)} was not made by agent {name!r}; report its reward to the agent that made it"
        )
