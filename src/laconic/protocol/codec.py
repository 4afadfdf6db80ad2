"""Bytes and back: two magic bytes, a version, then msgpack.

Structs are arrays without names of fields. A payload that follows the layout of its phase is one too: its arrays and
numbers in order, as both sides know their names and shapes from the plan. Any other says its own names and shapes.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeVar
from zlib import crc32

import msgspec

from laconic.errors import LocalProtocolError, RemoteProtocolError
from laconic.protocol.messages import (
    CARRIED_IN,
    MESSAGES,
    Chain,
    Digested,
    Install,
    Merged,
    Message,
    Part,
    Payload,
    Upload,
    payload_of,
)
from laconic.protocol.packing import Pieces, described, extension, in_pieces, is_made_of, packed_size, unpack
from laconic.protocol.parcels import TYPES as PARCEL_TYPES
from laconic.protocol.plan import Plan
from laconic.protocol.shapes import Layout

MAGIC = b"lc"
VERSION = 2
#: No message is longer than this, nor a saved state than the other, unless one asks for more.
MOST_BYTES, MOST_STATE_BYTES = 2**26, 2**32
_HEAD = MAGIC + bytes([VERSION])
_S = TypeVar("_S", bound=msgspec.Struct)
_R = TypeVar("_R")

#: What an upload and a chain hold, whatever the plan.
UPLOADED = Layout(
    values={"points": ("n", "d"), "rewards": ("y",), "wide": ("w", "d"), "exact": ("e", "d"), "ids": ("i",)},
    records={"forms": ("f",)},
    types={**PARCEL_TYPES, "forms": ("uint8",)},
    always=("rewards",),
    rest="rewards",
    small=("points",),
)
CHAINED = Layout(records={"hashes": ("n",)})
#: Which layout the payload of a message has; that of others, such as a whole belief, says its own names.
LAYOUTS: Mapping[type[Message], Callable[[Plan, Any], Layout | None]] = {
    Part: lambda plan, part: _of_phase(plan, part.phase),
    Merged: lambda plan, merged: _of_phase(plan, merged.phase),
    Install: lambda plan, _: _of_phase(plan, len(plan.phases) - 1),
    Upload: lambda plan, _: UPLOADED,
    Digested: lambda plan, digested: None if plan.digest is None else plan.digest.layout(digested),
    Chain: lambda plan, _: CHAINED,
}


def _of_phase(plan: Plan, number: int) -> Layout | None:
    return plan.phases[number].layout if 0 <= number < len(plan.phases) else None


def _as_sent(kind: type[Message]) -> Any:
    """A message with its payload still as bytes, of which only the whole message tells the layout."""
    fields = [
        (field.name, msgspec.Raw if field.name == CARRIED_IN.get(kind) else field.type)
        for field in msgspec.structs.fields(kind)
    ]
    config = kind.__struct_config__
    return msgspec.defstruct(
        kind.__name__, fields, frozen=True, array_like=True, forbid_unknown_fields=True, tag=config.tag
    )


_SENT: dict[type[Message], Any] = {kind: _as_sent(kind) for kind in MESSAGES}
#: The fields that follow what a message carries.
_AFTER = {kind: kind.__struct_fields__[kind.__struct_fields__.index(place) + 1 :] for kind, place in CARRIED_IN.items()}
_EMPTY = msgspec.Raw(b"")
_KIND_OF: dict[Any, type[Message]] = {sent: kind for kind, sent in _SENT.items()}
_encoder = msgspec.msgpack.Encoder(enc_hook=extension)
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(reduce(or_, _SENT.values()))


@dataclass(frozen=True, eq=False)
class Carried:
    """What a message carried, and the bytes of it, most of which are those of its arrays.

    Attributes:
        payload: What it carried.
        layout: The layout by which it was read; None where it said its own names.
        pieces: Its bytes.
    """

    payload: Payload
    layout: Layout | None
    pieces: Pieces


@dataclass(frozen=True, eq=False)
class Codec:
    """Messages as bytes, between sides that follow the same plan; without a plan every payload says its own names.

    Args:
        plan: The plan that both sides follow, which tells what a payload holds; None: every payload says its own names.
        most_bytes: Bytes of the largest message that is encoded or decoded. A larger one is refused; raising it lets
            larger messages through.
    """

    plan: Plan | None
    most_bytes: int = MOST_BYTES

    def encode(self, message: Message) -> bytes:
        """The message as it crosses a wire.

        Args:
            message: Any message of the protocol.

        Raises:
            LocalProtocolError: It has more bytes than are allowed, or is no message.
        """
        return next(self.encode_many([message]))

    def encode_many(self, messages: Iterable[Message]) -> Iterator[bytes]:
        """Messages one after the other; a payload that several share is encoded once.

        Args:
            messages: Messages of the protocol, in order.
        """
        return map(b"".join, self.in_pieces(messages))

    def in_pieces(self, messages: Iterable[Message]) -> Iterator[Pieces]:
        """What makes up each of the messages when it is joined; those that share a payload share its pieces.

        Args:
            messages: Messages of the protocol, in order.
        """
        several = list(messages)  # as long as these live, no other payload has the identity of one of theirs
        left = Counter(id(payload_of(each)) for each in several if type(each) in CARRIED_IN)
        packed: dict[int, tuple[Layout | None, Pieces]] = {}
        for message in several:
            before, after = _around(message)
            pieces: Pieces = (_HEAD, before)
            if type(message) in CARRIED_IN:
                payload, layout = payload_of(message), self.layout(message)
                place = id(payload)
                if place not in packed or packed[place][0] is not layout:
                    packed[place] = (layout, in_pieces(payload, layout, dim=self._dim))
                pieces = (_HEAD, before, *packed[place][1], after)
                left[place] -= 1
                if not left[place]:  # where every receiver is sent its own, only one of them is held at a time
                    del packed[place]
            length = sum(map(len, pieces))
            if length > self.most_bytes:
                raise LocalProtocolError(
                    f"{type(message).__name__} has {length:,} bytes, and {self.most_bytes:,} are allowed"
                )
            yield pieces

    def decode(self, data: bytes, known: Carried | None = None) -> Any:
        """The message in these bytes.

        Args:
            data: Bytes that came, whole.
            known: What an earlier message carried; where this one carries the same bytes it has the same arrays. None:
                all is read.

        Raises:
            RemoteProtocolError: They are no message, of another version, malformed, or more than are allowed.
        """
        return _read(data, lambda rest: self._opened(rest, known), most_bytes=self.most_bytes)

    def carried(self, message: Message) -> Carried:
        """What a message carries, to be known when it comes again.

        Args:
            message: A message of the protocol that carries a payload.
        """
        payload, layout = payload_of(message), self.layout(message)
        return Carried(payload, layout, in_pieces(payload, layout, dim=self._dim))

    def size(self, message: Message) -> int:
        """len(encode(message)), without copying the arrays.

        Args:
            message: Any message of the protocol.
        """
        rest = len(_HEAD) + len(_encoder.encode(_sent(message)))
        if type(message) not in CARRIED_IN:
            return rest
        return rest + packed_size(payload_of(message), self.layout(message), dim=self._dim)

    def layout(self, message: Any) -> Layout | None:
        """The layout of what a message carries, as far as the plan knows one.

        Args:
            message: Any message of the protocol.
        """
        find = LAYOUTS.get(_KIND_OF.get(type(message), type(message)))
        return None if find is None or self.plan is None else find(self.plan, message)

    @property
    def _dim(self) -> int:
        return 0 if self.plan is None else self.plan.belief.dim

    def _opened(self, data: memoryview, known: Carried | None) -> Message:
        sent = _decoder.decode(data)
        kind = _KIND_OF[type(sent)]
        fields = {name: getattr(sent, name) for name in kind.__struct_fields__}
        if kind in CARRIED_IN:
            place, layout = CARRIED_IN[kind], self.layout(sent)
            if known is not None and known.layout is layout and is_made_of(fields[place], known.pieces):
                fields[place] = known.payload
            else:
                fields[place] = unpack(fields[place], layout, dim=self._dim)
        return kind(**fields)


def encode_state(state: msgspec.Struct) -> bytes:
    """A saved state as bytes, its arrays with their shapes, and a checksum, as nothing sends it again when damaged.

    Args:
        state: Any struct of msgspec whose fields are plain values and arrays, such as a snapshot.
    """
    body = _encoder.encode(state)
    return _HEAD + struct.pack("<I", crc32(body)) + body


def decode_state(data: bytes, kind: type[_S], *, most_bytes: int = MOST_STATE_BYTES) -> _S:
    """The saved state in these bytes.

    Args:
        data: What `encode_state` gave.
        kind: Class of the struct that was saved.
        most_bytes: Bytes that are read at most; more are refused.

    Raises:
        RemoteProtocolError: They are no saved state of that class, damaged, or more than are allowed.
    """
    decoder = msgspec.msgpack.Decoder(kind, ext_hook=described)

    def read(rest: memoryview) -> _S:
        if rest[:4] != struct.pack("<I", crc32(rest[4:])):
            raise ValueError("a saved state that is damaged or cut off")
        return decoder.decode(rest[4:])

    return _read(data, read, most_bytes=most_bytes)


def _read(data: bytes, read: Callable[[memoryview], _R], *, most_bytes: int) -> _R:
    """What ``read`` finds after the head."""
    if len(data) > most_bytes:
        raise RemoteProtocolError(f"{len(data):,} bytes, where at most {most_bytes:,} are read")
    if data[:2] != MAGIC:
        raise RemoteProtocolError("these bytes are not a laconic message")
    if data[2:3] != bytes([VERSION]):
        raise RemoteProtocolError(
            f"a message of version {data[2] if len(data) > 2 else '?'}; this side speaks {VERSION}"
        )
    try:
        return read(memoryview(data)[3:])
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RemoteProtocolError(f"a malformed message: {error}") from None


def _around(message: Message) -> tuple[bytes, bytes]:
    """A message as msgpack before and after what it carries."""
    whole, kind = _encoder.encode(_sent(message)), type(message)
    after = b"".join(_encoder.encode(getattr(message, name)) for name in _AFTER.get(kind, ()))
    return whole[: len(whole) - len(after)], after


def _sent(message: Message) -> Any:
    """A message with nothing in the place of what it carries."""
    kind = type(message)
    if kind not in _SENT:
        raise LocalProtocolError(f"{kind.__name__} is no message")
    place = CARRIED_IN.get(kind)
    return _SENT[kind](*(_EMPTY if name == place else getattr(message, name) for name in kind.__struct_fields__))
