"""Messages: frozen, tagged, and silent about who sends them: the receiver knows that from the link they came on.

Up: Hello, Chain, Request, Part, Upload, Leave. Down: Welcome, Newer, Ask, Merged, Install, Released, Digested,
NothingNew, SetAside, Refused. They travel as arrays of their fields in order, after a number that says which message it
is; a number once given is never given again. A new message is a class here and a name in `Up` or `Down`, a line in
`laconic.protocol.codec` if its payload has a layout, and one in `laconic.protocol.ledger`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, get_args

import msgspec
import numpy as np

#: Counts something; checked when it is decoded.
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
#: A hash of 64 bits.
Hash = Annotated[int, msgspec.Meta(ge=0)]
#: A name or a reason has so many letters at most.
MOST_TEXT = 4096
Text = Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]


class Label(NamedTuple):
    """Which belief: the term of the server that made it, and its number (an epoch, or a version of a digest)."""

    term: Number
    number: Number


#: The belief of a plan before any data, which every server and every client starts from.
BLANK = Label(0, 0)


class Payload(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """What travels: ``Payload(values, control, records)``, each of them by name, and each empty unless given.

    ``values`` are arrays whose entries are the scalars that the paper counts. ``control`` are numbers, and ``records``
    arrays, that the protocol adds to them; both count in bytes only.
    """

    values: dict[str, np.ndarray] = {}
    control: dict[str, float] = {}
    records: dict[str, np.ndarray] = {}

    @property
    def scalars(self) -> int:
        """How many scalars the paper would count."""
        return sum(array.size for array in self.values.values())


NOTHING = Payload()


class Message(msgspec.Struct, frozen=True, eq=False, array_like=True, forbid_unknown_fields=True):
    """Base of all messages."""


# -- up ----------------------------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, eq=False, tag=1):
    """Up: a link is new; this is who I am, what I run, what I hold and how many observations I have."""

    name: Text
    plan: bytes  # the canonical table of the sender's plan
    incarnation: Number  # 0 before the server has issued one
    count: Number
    held: Label
    mark: Hash  # a hash of the belief held
    syncing: tuple[Label, Number] | None = None  # the sync that I take part in, and its phase
    library: Number = 0  # how many points that came down I know by number
    shelf: Hash = 0  # a hash of these, which are my shelf (see `laconic.protocol.parcels`)
    greeting: Number = 0  # which of my greetings this is, so that one that comes twice is answered once; 0: not counted


class Chain(Message, frozen=True, eq=False, tag=2):
    """Up: the chained hashes of all my observations, for the server to find how many of them it has."""

    payload: Payload


class Request(Message, frozen=True, eq=False, tag=3):
    """Up: my trigger fired, or somebody called `flush`; ``epoch`` is the one I am in."""

    epoch: Label
    flush: bool = False


class Part(Message, frozen=True, eq=False, tag=4):
    """Up: my contribution to a phase, from my first ``upto`` observations.

    With the last phase go the hashes of the observations that the belief lacked, where the payload does not show them.
    """

    epoch: Label
    phase: Number
    upto: Number
    payload: Payload


class Upload(Message, frozen=True, eq=False, tag=5):
    """Up: my observations from number ``first`` on; with ``ask``, send me what others have learnt.

    An ask stays open until there is something to send; a ``flush`` is answered at once, by what there is to send and by
    NothingNew after that.
    """

    first: Number
    payload: Payload
    ask: bool
    flush: bool = False


class Leave(Message, frozen=True, eq=False, tag=6):
    """Up: go on without me; ``reason`` says why, where nobody here wished it."""

    reason: Text = ""


# -- down --------------------------------------------------------------------------------------------------------------


class Newer(Message, frozen=True, eq=False, tag=16):
    """Down: the belief of ``epoch``, which has your first ``covered`` observations.

    It takes the place of ``base``, which you hold. The payload has what came after that, or the ``whole`` belief; that
    may be an earlier one, where a server that was restored from an older backup does not know yours.
    """

    epoch: Label
    base: Label
    covered: Number
    clients: Number
    payload: Payload
    whole: bool = False


class Welcome(Message, frozen=True, eq=False, tag=17):
    """Down: you are in; I have your first ``known`` observations, the last of which has the hash ``tip``.

    ``prove`` asks for the chain of all your hashes, as what I have cannot be a beginning of what you have.
    """

    number: Number
    clients: Number
    incarnation: Number
    known: Number
    tip: Hash
    prove: bool = False
    syncing: Label | None = None  # the sync under way, if you are still part of it
    term: Number = 0  # of what is sent on this link
    library: Number = 0  # how many points that came down are still known by number


class Ask(Message, frozen=True, eq=False, tag=18):
    """Down: send your part of this phase of the sync towards ``epoch``; ``fired`` if it was your trigger."""

    epoch: Label
    phase: Number
    fired: bool


class Merged(Message, frozen=True, eq=False, tag=19):
    """Down: the merged result of a phase that is not the last; send your part of the next."""

    epoch: Label
    phase: Number
    payload: Payload


class Install(Message, frozen=True, eq=False, tag=20):
    """Down: the result of the last phase: install the new belief, which has your first ``covered`` observations."""

    epoch: Label
    covered: Number
    clients: Number
    payload: Payload


class Released(Message, frozen=True, eq=False, tag=21):
    """Down: the sync towards ``epoch`` goes on without you, or is abandoned; ``pending`` if it will be tried again."""

    epoch: Label
    reason: Text
    pending: bool = False


class Digested(Message, frozen=True, eq=False, tag=22):
    """Down: what takes you from the version ``base`` to ``version``, which has your first ``covered`` observations.

    With ``whole`` it is what takes you there from nothing, and still takes the place of ``base``. Both are numbers of
    this term's, or of one that was greeted with.
    """

    base: Number
    version: Number
    covered: Number
    clients: Number
    length: Number  # how many observations of all clients the version has
    raw: bool  # True when it is made of points as they are
    payload: Payload
    whole: bool = False


class NothingNew(Message, frozen=True, eq=False, tag=23):
    """Down: your flush arrived: I have your first ``known`` observations, and sent before this what I had for you."""

    known: Number


class SetAside(Message, frozen=True, eq=False, tag=24):
    """Down: you are not asked and not heard until you greet anew; ``final`` if another link took your place."""

    reason: Text
    final: bool = False


class Refused(Message, frozen=True, eq=False, tag=25):
    """Down: your greeting is refused; ``plan`` is the server's table where the two plans differ."""

    reason: Text
    plan: bytes = b""


Up = Hello | Chain | Request | Part | Upload | Leave
Down = Newer | Welcome | Ask | Merged | Install | Released | Digested | NothingNew | SetAside | Refused

#: Every message, and the field of those that carry something.
MESSAGES: tuple[type[Message], ...] = (*get_args(Up), *get_args(Down))
CARRIED_IN = {kind: field.name for kind in MESSAGES for field in msgspec.structs.fields(kind) if field.type is Payload}


def payload_of(message: Message) -> Payload:
    """What a message carries; nothing for control messages."""
    field = CARRIED_IN.get(type(message))
    return NOTHING if field is None else getattr(message, field)
