"""Records: what a client or a server must remember. A state is the fold of its records; a snapshot stands for many.

An event of a client leaves at most one record, and those of a server mean something each by itself, so a store that has
some beginning of the records has a state that may be gone on from.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from laconic.protocol.codec import decode_state, encode_state
from laconic.protocol.messages import Down, Label, Payload


class Record(msgspec.Struct, frozen=True, eq=False, array_like=True, tag=0):
    """Base of all records."""


# -- a client's --------------------------------------------------------------------------------------------------------


class Born(Record, frozen=True, eq=False, array_like=True, tag=1):
    """The first record of a client: who it is and what it runs."""

    name: str
    plan: bytes
    seed: int
    number: int
    clients: int
    member: bool
    term: int = 0


class Started(Record, frozen=True, eq=False, array_like=True, tag=2):
    """A process began to run this client; ids of decisions carry ``start`` from here on."""

    start: int


class Odds(msgspec.Struct, frozen=True, array_like=True):
    """With which probability an arm was chosen; ``error`` is the standard error of an estimate, 0 where it is exact."""

    arm: int
    propensity: float
    error: float = 0.0
    arm_id: str | int | None = None  # as the application calls the arm, where it does


class Decided(Record, frozen=True, eq=False, array_like=True, tag=3):
    """A choice was made, and its reward may come."""

    id: str
    point: np.ndarray
    odds: Odds | None = None


class Observed(Record, frozen=True, eq=False, array_like=True, tag=4):
    """The reward of a decision."""

    id: str
    point: np.ndarray
    reward: float


class Learnt(Record, frozen=True, eq=False, array_like=True, tag=5):
    """Observations made elsewhere."""

    points: np.ndarray
    rewards: np.ndarray
    first: int = -1  # how many the client had before; −1 where it is not said


class Forgot(Record, frozen=True, eq=False, array_like=True, tag=6):
    """The reward of a decision is no longer waited for."""

    id: str


class Moved(Record, frozen=True, eq=False, array_like=True, tag=7):
    """The client greeted, lost its link, flushed or left."""

    how: str


class Received(Record, frozen=True, eq=False, array_like=True, tag=8):
    """A message from the server."""

    message: Down


class Finished(Record, frozen=True, eq=False, array_like=True, tag=9):
    """Work that was owed is done; it is pure, so that it need not be stored what it came to, but whether it failed."""

    failed: str = ""


class SavedSync(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """A client's sync under way, in a snapshot."""

    epoch: Label
    fired: bool
    upto: int
    phase: int
    draft: dict[str, np.ndarray] | None
    own: Payload | None


class SavedHeld(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """The version of a digest that a client holds, in a snapshot; its belief is the client's."""

    number: int
    mark: int
    length: int
    library: np.ndarray
    d_eff: float
    atoms: np.ndarray | None
    certificate: dict[str, float]
    downloads: int = 0


class ClientSnapshot(Record, frozen=True, eq=False, array_like=True, tag=10):
    """Everything that a client is."""

    born: Born
    start: int
    # the learner
    belief: dict[str, np.ndarray]
    tail: dict[str, np.ndarray]
    points: np.ndarray
    rewards: np.ndarray
    pending: dict[str, np.ndarray]
    starts: dict[int, int]
    lost: list[str]
    # the session
    state: str
    number: int
    clients: int
    incarnation: int
    term: int
    held: Label
    version: SavedHeld | None
    covered: int
    sent: int
    wants: str
    goal: int
    sync: SavedSync | None
    latest: Label
    owed: Down | None
    seen: int
    inbox: list[Down]
    bytes_sent: int = 0
    bytes_received: int = 0
    greetings: int = 0
    odds: dict[str, Odds] = {}  # of those that wait


# -- a server's --------------------------------------------------------------------------------------------------------


class Opened(Record, frozen=True, eq=False, array_like=True, tag=32):
    """A server began a term."""

    plan: bytes
    term: int
    members: list[str]  # who is on the roster from the start; empty but for the first term


class Joined(Record, frozen=True, eq=False, array_like=True, tag=33):
    """A name came, for the first time or after it had left."""

    name: str
    number: int


class Departed(Record, frozen=True, eq=False, array_like=True, tag=34):
    """A member left."""

    number: int


class Reborn(Record, frozen=True, eq=False, array_like=True, tag=35):
    """A member goes on from the first ``known`` of its observations, under a new incarnation."""

    number: int
    incarnation: int
    known: int
    of: int  # the incarnation that these observations are known under


class Begun(Record, frozen=True, eq=False, array_like=True, tag=36):
    """A sync towards this epoch began, so that no other may bear its name."""

    epoch: Label


class Contribution(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """What a sync has of one member: its first ``upto`` observations, and the hashes that are new among them."""

    incarnation: int
    upto: int
    hashes: np.ndarray


class Installed(Record, frozen=True, eq=False, array_like=True, tag=37):
    """A sync is over: the merged result of each phase, and whose observations the new belief has."""

    epoch: Label
    results: list[Payload]
    contributions: dict[int, Contribution]


class Uploaded(Record, frozen=True, eq=False, array_like=True, tag=38):
    """Observations of a member went into the log."""

    number: int
    points: np.ndarray
    rewards: np.ndarray
    first: int = -1  # how many of its observations were known before; −1 where it is not said


class SavedMember(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """A member in a snapshot."""

    name: str
    number: int
    left: bool
    incarnation: int
    chains: dict[int, np.ndarray]  # by incarnation
    places: dict[int, np.ndarray]


class ServerSnapshot(Record, frozen=True, eq=False, array_like=True, tag=39):
    """Everything that a server is between syncs."""

    plan: bytes
    term: int
    begun: int
    installed: Label
    belief: dict[str, np.ndarray]
    members: list[SavedMember]
    increments: list[tuple[Label, int, Payload]]
    points: np.ndarray
    rewards: np.ndarray


_KINDS: Any = (
    Born | Started | Decided | Observed | Learnt | Forgot | Moved | Received | Finished | ClientSnapshot
    | Opened | Joined | Departed | Reborn | Begun | Installed | Uploaded | ServerSnapshot
)  # fmt: skip


def encode_record(record: Record) -> bytes:
    """A record as a store keeps it, with a checksum.

    Args:
        record: Any record of an outcome's ``keep``, or a snapshot.
    """
    return encode_state(record)


def decode_record(data: bytes) -> Record:
    """The record in these bytes.

    Args:
        data: What `encode_record` gave.

    Raises:
        RemoteProtocolError: They are no record, or damaged.
    """
    record: Record = decode_state(data, _KINDS)
    return record
