"""Bytes and back: exact where they are a message, a `ProtocolError` where they are not, and never much memory."""

import math
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laconic.errors import ProtocolError
from laconic.protocol.codec import MAGIC, VERSION, decode, decode_state, encode, size
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
from laconic.protocol.saving import SavedClient, restore, save
from tests.protocol.federation import APPROX, DIS, Federation, frozen

HEAD = MAGIC + bytes([VERSION])
numbers = st.integers(0, 2**53 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
arrays = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), elements=finite
) | hnp.arrays(np.float64, st.integers(0, 9000), elements=st.just(1.0))
payloads = st.builds(
    Payload,
    values=st.dictionaries(st.text(max_size=40), arrays, max_size=4),
    control=st.dictionaries(st.text(max_size=5), finite, max_size=3),
    records=st.dictionaries(st.text(max_size=5), arrays, max_size=2),
)
messages = st.one_of(
    st.builds(Request, epoch=numbers),
    st.builds(Part, epoch=numbers, phase=numbers, upto=numbers, payload=payloads),
    st.builds(Join, stay=numbers),
    st.builds(Leave, stay=numbers),
    st.builds(Ask, epoch=numbers, fired=st.booleans()),
    st.builds(Merged, epoch=numbers, phase=numbers, payload=payloads),
    st.builds(Install, epoch=numbers, covered=numbers, clients=numbers, payload=payloads),
    st.builds(Welcome, epoch=numbers, covered=numbers, clients=numbers, belief=payloads, stay=numbers),
)


def refused(data: bytes, *, read: Callable[[bytes], object] = decode, memory: int = 100_000) -> None:
    """These bytes raise a ProtocolError, and take no more memory than this on the way."""
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < memory + 20 * len(data)
    finally:
        tracemalloc.stop()


def tolerated(data: bytes) -> None:
    """These bytes are a message or raise a ProtocolError; nothing else happens, and nothing large."""
    tracemalloc.start()
    try:
        decode(data)
    except ProtocolError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 100_000 + 20 * len(data)


def packed(value: object) -> bytes:
    return msgspec.msgpack.encode(value)


def part(values: bytes, control: bytes = b"\x80") -> bytes:
    """An encoded part around raw msgpack of its values and control fields."""
    numbers = b"".join(packed(each) for each in ("epoch", 1, "phase", 0, "upto", 0))
    payload = b"\x82" + packed("values") + values + packed("control") + control
    return HEAD + b"\x85" + packed("type") + packed("part") + numbers + packed("payload") + payload


def array_bytes(shape: tuple[int, ...], entries: bytes, *, axes: int | None = None, code: int = 1) -> bytes:
    """{"x": an array extension} that may lie about itself."""
    body = struct.pack(f"<B{len(shape)}I", len(shape) if axes is None else axes, *shape) + entries
    return b"\x81\xa1x" + packed(msgspec.msgpack.Ext(code, body))


# Round trips


@given(messages)
def test_a_message_comes_back_bit_for_bit(message: Message) -> None:
    assert frozen(decode(encode(message))) == frozen(message)


@given(messages)
def test_size_is_the_length_of_the_encoding(message: Message) -> None:
    assert size(message) == len(encode(message))


@pytest.mark.parametrize("entries", [0, 1, 29, 30, 31, 8189, 8190, 8191, 8192, 10_000])
@pytest.mark.parametrize("axes", [0, 1, 2, 3, 4])
def test_size_knows_every_length_of_msgpack_heads(entries: int, axes: int) -> None:
    array = np.zeros((*[1] * (axes - 1), entries)) if axes else np.array(1.0)
    message = Part(epoch=1, phase=0, upto=0, payload=Payload(values={"x": array, "y": array}))
    assert size(message) == len(encode(message))


def test_size_does_not_copy_the_arrays() -> None:
    message = Part(epoch=1, phase=0, upto=0, payload=Payload(values={"x": np.zeros((1000, 1000))}))
    tracemalloc.start()
    size(message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(4, dtype=np.float32),
        np.arange(4, dtype=np.int64),
        np.arange(4, dtype=">f8"),
        np.broadcast_to(0.0, (3, 2)),
        np.array([-0.0, 5e-324, np.finfo(np.float64).max]),
    ],
    ids=["transposed", "strided", "fortran", "float32", "int64", "big-endian", "broadcast", "extremes"],
)
def test_any_real_array_arrives_as_float64_in_c_order(array: np.ndarray) -> None:
    message = Merged(epoch=1, phase=0, payload=Payload(values={"x": array}))
    assert size(message) == len(encode(message))
    came = payload_of(decode(encode(message))).values["x"]
    assert came.dtype == np.float64
    assert came.flags.c_contiguous
    assert came.flags.writeable
    assert came.tobytes() == np.ascontiguousarray(array, dtype=np.float64).tobytes()


def test_an_array_that_came_does_not_hold_on_to_the_bytes() -> None:
    data = bytearray(encode(Merged(epoch=1, phase=0, payload=Payload(values={"x": np.ones(3)}))))
    came = payload_of(decode(bytes(data))).values["x"]
    data[-8:] = b"\0" * 8
    np.testing.assert_array_equal(came, 1.0)


# Bytes that are no message


@given(st.binary(max_size=200))
@example(b"")
@example(b"l")
@example(HEAD)
def test_arbitrary_bytes_raise_a_protocol_error(data: bytes) -> None:
    refused(data)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_after_a_good_head_raise_a_protocol_error(data: bytes) -> None:
    tolerated(HEAD + data)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=3) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner),
    max_leaves=8,
))  # fmt: skip
def test_msgpack_of_anything_else_raises_a_protocol_error(value: object) -> None:
    refused(HEAD + packed(value))


@given(messages, st.data())
def test_a_truncated_message_raises_a_protocol_error(message: Message, data: st.DataObject) -> None:
    whole = encode(message)
    refused(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(messages, st.binary(min_size=1, max_size=20))
def test_a_message_with_something_after_it_raises_a_protocol_error(message: Message, more: bytes) -> None:
    refused(encode(message) + more)


@given(messages, st.data())
def test_a_mutated_message_is_a_message_or_a_protocol_error(message: Message, data: st.DataObject) -> None:
    mutated = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        match data.draw(st.sampled_from(["set", "insert", "delete"])):
            case "set":
                mutated[at] = data.draw(st.integers(0, 255))
            case "insert":
                mutated[at:at] = data.draw(st.binary(max_size=5))
            case _ if len(mutated) > 1:
                del mutated[at]
    tolerated(bytes(mutated))


@given(messages, messages, st.data())
def test_halves_of_two_messages_are_a_message_or_a_protocol_error(
    first: Message, second: Message, data: st.DataObject
) -> None:
    one, other = encode(first), encode(second)
    tolerated(one[: data.draw(st.integers(0, len(one)))] + other[data.draw(st.integers(0, len(other))) :])


@pytest.mark.parametrize("head", [b"", b"l", b"lc", b"LC\x01", b"lc\x00", b"lc\x02", b"lc\xff", b"\0\0\0"])
def test_another_magic_or_version_is_refused(head: bytes) -> None:
    refused(head + packed({"type": "join", "stay": 1}))


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(ProtocolError, match="version 2; this side speaks 1"):
        decode(MAGIC + b"\x02" + packed({"type": "join", "stay": 1}))


# Headers that lie

HUGE = {
    "array": b"\xdd\xff\xff\xff\xff",
    "map": b"\xdf\xff\xff\xff\xff",
    "text": b"\xdb\xff\xff\xff\xff",
    "bytes": b"\xc6\xff\xff\xff\xff",
    "extension": b"\xc9\xff\xff\xff\xff\x01",
    "large array": b"\xdd\x00\xff\xff\xff",
}


@pytest.mark.parametrize("lie", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize(
    "place",
    [
        lambda lie: HEAD + lie,
        lambda lie: part(lie),
        lambda lie: part(b"\x81\xa1x" + lie),
        lambda lie: part(b"\x81" + lie),
        lambda lie: part(b"\x80", control=lie),
        lambda lie: part(b"\x80", control=b"\x81\xa1x" + lie),
        lambda lie: HEAD + b"\x83" + b"".join(map(packed, ("type", "join", "stay", 1, "unknown"))) + lie,
        lambda lie: HEAD + b"\x82" + packed("type") + lie,
    ],
    ids=["message", "values", "value", "name", "control", "control value", "unknown field", "tag"],
)
def test_a_container_that_claims_billions_of_entries_allocates_nothing(
    lie: bytes, place: Callable[[bytes], bytes]
) -> None:
    refused(place(lie))


@pytest.mark.parametrize(
    "values",
    [
        array_bytes((2**32 - 1,), b""),
        array_bytes((2**32 - 1, 2**32 - 1), b"\0" * 8),
        array_bytes((2**31, 2**31, 2**31, 2**31), b""),  # 2^124 entries
        array_bytes((2**16, 2**16, 2**16, 2**16), b""),  # 2^64, which is 0 in 64 bits
        array_bytes((3,), b"\0" * 16),
        array_bytes((2,), b"\0" * 24),
        array_bytes((2,), b"\0" * 15),
        array_bytes((1,) * 5, b"\0" * 8),
        array_bytes((), b"\0" * 8, axes=255),
        array_bytes((), b"\0" * 8, axes=4),
        array_bytes((), b""),
        array_bytes((1,), b"\0" * 8, code=2),
        array_bytes((1,), b"\0" * 8, code=-1),
        b"\x81\xa1x" + packed(msgspec.msgpack.Ext(1, b"")),
        b"\x81\xa1x" + packed(msgspec.msgpack.Ext(1, b"\x01\x00")),
        b"\x81\xa1x\xc0",
        b"\x81\xa1x" + packed([1.0, 2.0]),
        b"\x81\xa1x" + packed(1.0),
        b"\x81\xa1x" + packed({"a": 1}),
        b"\x81\xa1x" + packed("text"),
        b"\x81\x01" + array_bytes((1,), b"\0" * 8)[3:],
        b"\x81\xc0" + array_bytes((1,), b"\0" * 8)[3:],
    ],
)
def test_an_array_that_lies_about_itself_is_refused(values: bytes) -> None:
    refused(part(values))


def test_an_empty_array_of_a_huge_shape_takes_no_memory() -> None:
    tolerated(part(array_bytes((0, 2**32 - 1), b"")))
    tolerated(part(array_bytes((2**32 - 1, 2**32 - 1, 2**32 - 1, 0), b"")))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    refused(part(array_bytes((2,), struct.pack("<2d", 1.0, value))))
    refused(part(b"\x80", control=packed({"prior": value})))


@pytest.mark.parametrize("number", [-1, -(2**63), 2**53, 2**64 - 1, 1.0, 1.5, "1", None, True, [1]])
@pytest.mark.parametrize("which", ["epoch", "covered", "clients", "stay"])
def test_a_number_that_counts_nothing_is_refused(number: Any, which: str) -> None:
    fields = {"type": "welcome", "epoch": 1, "covered": 1, "clients": 1, "belief": {}, "stay": 1}
    refused(HEAD + packed(fields | {which: number}))


def test_a_count_beyond_64_bits_is_refused() -> None:
    refused(part(b"\x80", control=packed({"count": 1e308})[:-9] + b"\xcf" + b"\xff" * 9))


@pytest.mark.parametrize("depth", [10, 1_000, 100_000])
@pytest.mark.parametrize("nest", [b"\x91", b"\x81\xa1a"], ids=["arrays", "maps"])
def test_deep_nesting_is_refused(depth: int, nest: bytes) -> None:
    refused(HEAD + nest * depth + b"\xc0")
    refused(part(b"\x81\xa1x" + nest * depth + b"\xc0"))
    tolerated(HEAD + b"\x83" + b"".join(map(packed, ("type", "join", "stay", 1, "unknown"))) + nest * depth + b"\xc0")


@pytest.mark.parametrize("missing", ["epoch", "phase", "upto", "payload", "type"])
def test_a_message_that_lacks_a_field_is_refused(missing: str) -> None:
    fields = {"type": "part", "epoch": 1, "phase": 0, "upto": 0, "payload": {}}
    decode(HEAD + packed(fields))
    refused(HEAD + packed({name: value for name, value in fields.items() if name != missing}))


def test_an_unknown_kind_of_message_is_refused() -> None:
    refused(HEAD + packed({"type": "client"}))
    refused(HEAD + packed({"type": "Message"}))


# Saved clients travel the same way


def saved_clients() -> list[bytes]:
    clients = []
    for algorithm in (DIS, APPROX):
        federation = Federation(algorithm, members=2)
        federation.sync()
        federation.act(1)
        federation.choose(1)
        clients.append(save(federation.clients[1]))
    return clients


SAVED = saved_clients()


@given(st.sampled_from([0, 1]), st.data())
def test_a_saved_client_with_any_byte_changed_is_refused(which: int, data: st.DataObject) -> None:
    mutated = bytearray(SAVED[which])
    at = data.draw(st.integers(0, len(mutated) - 1))
    mutated[at] ^= data.draw(st.integers(1, 255))
    plan = (DIS, APPROX)[which].plan(2)
    refused(bytes(mutated), read=lambda bytes_: restore(bytes_, plan=plan), memory=1_000_000)


@given(st.sampled_from([0, 1]), st.data())
def test_a_saved_client_that_was_cut_off_is_refused(which: int, data: st.DataObject) -> None:
    cut = SAVED[which][: data.draw(st.integers(0, len(SAVED[which]) - 1))]
    refused(cut, read=lambda bytes_: decode_state(bytes_, SavedClient))


@given(st.binary(max_size=100), messages)
def test_what_is_no_saved_client_is_refused(data: bytes, message: Message) -> None:
    for read in (data, HEAD + data, encode(message)):
        refused(read, read=lambda bytes_: restore(bytes_, plan=DIS.plan(2)))


def test_a_saved_client_is_no_message() -> None:
    for data in SAVED:
        refused(data)
