"""Messages: frozen, tagged, and silent about who sends them, which is the transport's to know.

Up: Request, Part, Join, Leave. Down: Ask, Merged, Install, Welcome.
"""

from __future__ import annotations

import msgspec
import numpy as np


class Payload(msgspec.Struct, frozen=True, eq=False, omit_defaults=True):
    """What travels: ``values`` are the scalars that the paper counts.

    ``control`` and ``records`` are numbers and arrays that the protocol adds to them, which count in bytes only.
    """

    values: dict[str, np.ndarray] = {}
    control: dict[str, float] = {}
    records: dict[str, np.ndarray] = {}

    @property
    def scalars(self) -> int:
        """How many scalars the paper would count."""
        return sum(array.size for array in self.values.values())


NOTHING = Payload()


class Message(msgspec.Struct, frozen=True, eq=False, tag=True):
    """Base of all messages."""


class Request(Message, frozen=True, eq=False, tag="request"):
    """Up: my trigger fired; ``epoch`` is the one I am in."""

    epoch: int


class Part(Message, frozen=True, eq=False, tag="part"):
    """Up: my contribution to a phase, from my first ``upto`` observations."""

    epoch: int
    phase: int
    upto: int
    payload: Payload


class Join(Message, frozen=True, eq=False, tag="join"):
    """Up: let me in; ``stay`` counts how often I asked, and tells one membership from the next."""

    stay: int


class Leave(Message, frozen=True, eq=False, tag="leave"):
    """Up: go on without me."""

    stay: int


class Ask(Message, frozen=True, eq=False, tag="ask"):
    """Down: a sync towards ``epoch`` begins, send your part of phase 0; ``fired`` if it was your trigger."""

    epoch: int
    fired: bool


class Merged(Message, frozen=True, eq=False, tag="merged"):
    """Down: the merged result of a phase that is not the last; send your part of the next."""

    epoch: int
    phase: int
    payload: Payload


class Install(Message, frozen=True, eq=False, tag="install"):
    """Down: the result of the last phase: install the new belief, which has your first ``covered`` observations."""

    epoch: int
    covered: int
    clients: int
    payload: Payload


class Welcome(Message, frozen=True, eq=False, tag="welcome"):
    """Down: you are in; this is the belief of ``epoch``, which has your first ``covered`` observations."""

    epoch: int
    covered: int
    clients: int
    belief: Payload
    stay: int = 0


Up = Request | Part | Join | Leave
Down = Ask | Merged | Install | Welcome


def payload_of(message: Message) -> Payload:
    """What a message carries; nothing for control messages."""
    if isinstance(message, Part | Merged | Install):
        return message.payload
    return message.belief if isinstance(message, Welcome) else NOTHING
