"""Bytes and back: two magic bytes, a version, then msgpack, with arrays as checked extensions.

An array is its number of axes, its shape as 32-bit numbers and its float64 entries, all little-endian; its length is
checked against its shape before an array is made, and nothing that is not finite passes.
"""

from __future__ import annotations

import math
import struct
from typing import Any, TypeVar
from zlib import crc32

import msgspec
import numpy as np

from laconic.errors import RemoteProtocolError
from laconic.protocol.messages import (
    Ask,
    Install,
    Join,
    Leave,
    Merged,
    Message,
    Part,
    Payload,
    Request,
    Welcome,
    payload_of,
)

MAGIC = b"lc"
VERSION = 1
_HEAD = MAGIC + bytes([VERSION])
_ARRAY = 1
_MOST_AXES = 4
_Wire = Request | Part | Join | Leave | Ask | Merged | Install | Welcome
_S = TypeVar("_S", bound=msgspec.Struct)


def _pack_array(value: Any) -> msgspec.msgpack.Ext:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"cannot encode {type(value).__name__}")
    shape = struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
    return msgspec.msgpack.Ext(_ARRAY, shape + np.ascontiguousarray(value, dtype="<f8").tobytes())


def _unpack_array(code: int, data: memoryview) -> np.ndarray[Any, np.dtype[np.float64]]:
    if code != _ARRAY or len(data) < 1 or data[0] > _MOST_AXES or len(data) < 1 + 4 * data[0]:
        raise ValueError("not an array")
    head = 1 + 4 * data[0]
    shape = struct.unpack(f"<{data[0]}I", data[1:head])
    if len(data) - head != 8 * math.prod(shape):
        raise ValueError(f"an array of shape {shape} does not have {len(data) - head} bytes")
    array = np.frombuffer(data[head:], dtype="<f8").astype(np.float64).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError("an array holds a value that is not finite")
    return array


_encoder = msgspec.msgpack.Encoder(enc_hook=_pack_array)
_decoder = msgspec.msgpack.Decoder(_Wire, ext_hook=_unpack_array)


def encode(message: Message) -> bytes:
    """The message as it crosses a wire."""
    return _HEAD + _encoder.encode(message)


def decode(data: bytes) -> Request | Part | Join | Leave | Ask | Merged | Install | Welcome:
    """The message in these bytes; anything else raises `RemoteProtocolError`."""
    message: _Wire = _decode(data, _decoder)
    _check_numbers(message)
    return message


def encode_state(state: msgspec.Struct) -> bytes:
    """A saved state as bytes: like a message, with a checksum, as nothing sends it again when it is damaged."""
    body = _encoder.encode(state)
    return _HEAD + struct.pack("<I", crc32(body)) + body


def decode_state(data: bytes, kind: type[_S]) -> _S:
    """The saved state in these bytes; anything else raises `RemoteProtocolError`."""
    head, check, body = data[:3], data[3:7], data[7:]
    if head == _HEAD and check != struct.pack("<I", crc32(body)):
        raise RemoteProtocolError("a saved state that is damaged or cut off")
    return _decode(head + body, msgspec.msgpack.Decoder(kind, ext_hook=_unpack_array))


def _decode(data: bytes, decoder: msgspec.msgpack.Decoder[_S]) -> _S:
    if data[:2] != MAGIC:
        raise RemoteProtocolError("these bytes are not a laconic message")
    if data[2:3] != bytes([VERSION]):
        raise RemoteProtocolError(
            f"a message of version {data[2] if len(data) > 2 else '?'}; this side speaks {VERSION}"
        )
    try:
        return decoder.decode(memoryview(data)[3:])
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RemoteProtocolError(f"a malformed message: {error}") from None


def _check_numbers(message: Message) -> None:
    for name in ("stay", "epoch", "phase", "upto", "covered", "clients"):
        number = getattr(message, name, 0)
        if not 0 <= number < 2**53:
            raise RemoteProtocolError(f"a malformed message: {name} is {number}")
    for name, value in payload_of(message).control.items():
        if not math.isfinite(value):
            raise RemoteProtocolError(f"a malformed message: {name} is {value}")


def size(message: Message) -> int:
    """len(encode(message)), without copying the arrays."""
    payload = payload_of(message)
    if not payload.values:
        return len(encode(message))
    values, records = _bare(payload.values), _bare(payload.records)
    field = "belief" if isinstance(message, Welcome) else "payload"
    bare = Payload(values=values, control=payload.control, records=records)
    skeleton = msgspec.structs.replace(message, **{field: bare})
    pairs = [(payload.values[name], values[name]) for name in values]
    pairs += [(payload.records[name], records[name]) for name in records]
    return len(encode(skeleton)) + sum(_extension(array) - _extension(empty) for array, empty in pairs)


def _bare(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the same number of axes, with nothing in them."""
    return {name: np.empty((0,) * max(array.ndim, 1)) for name, array in arrays.items()}


def _extension(array: np.ndarray) -> int:
    """Bytes that msgpack takes for an array, with its own head of 2, 3, 4 or 6 bytes."""
    length = 1 + 4 * array.ndim + 8 * array.size
    if length in (1, 2, 4, 8, 16):
        return length + 2
    return length + (3 if length < 2**8 else 4 if length < 2**16 else 6)
