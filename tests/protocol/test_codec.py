"""Bytes and back: exact where they are a message, a `ProtocolError` where they are not, and never much memory."""

import math
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laconic.errors import InputError, LocalProtocolError, ProtocolError, RemoteProtocolError
from laconic.protocol import codec
from laconic.protocol.codec import MAGIC, VERSION, Codec, decode_state, encode_state
from laconic.protocol.messages import (
    CARRIED_IN,
    MESSAGES,
    NOTHING,
    Ask,
    Chain,
    Digested,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Message,
    Newer,
    NothingNew,
    Part,
    Payload,
    Refused,
    Released,
    Request,
    SetAside,
    Upload,
    Welcome,
    payload_of,
)
from laconic.protocol.packing import CODES, Pieces, in_pieces, pack, packed_size, width, widths
from laconic.protocol.phases import AgreeOnDictionary, ShareData, ShareStatistics
from laconic.protocol.records import ClientSnapshot, decode_record, encode_record
from laconic.protocol.restoring import snapshot_client
from laconic.protocol.shapes import MOST_FIELDS, Layout, solved
from tests.protocol.federation import APPROX, DIS, LIN, Federation, frozen
from tests.protocol.mutating import read_all

HEAD = MAGIC + bytes([VERSION])
DIM = 2
E1 = Label(0, 1)
#: Three phases, so that messages of any of their layouts are drawn for one plan.
PLAN = replace(DIS.plan(DIM), phases=(ShareData(), AgreeOnDictionary(0.5), ShareStatistics("tail")))
CODEC, PLANLESS = Codec(PLAN), Codec(None)
encode, decode, size = CODEC.encode, CODEC.decode, CODEC.size

numbers = st.integers(0, 2**53 - 1) | st.sampled_from([2**k + j for k in (7, 8, 16, 32) for j in (-1, 0)])
finite = st.floats(allow_nan=False, allow_infinity=False)
reals = finite | numbers.map(float) | st.just(-0.0)
dtypes = st.sampled_from(list(CODES))
lengths = st.integers(0, 5) | st.sampled_from([15, 16, 17, 31, 32, 127, 128, 8191, 8192, 10_000])


def filled(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this type and shape with different entries."""
    return np.arange(math.prod(shape)).astype(dtype).reshape(shape) % np.array(120, dtype)


entries = dtypes.flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else None,
    )
)
arrays = entries | st.builds(lambda dtype, n: filled(dtype, (n,)), dtypes, lengths)
strange = st.builds(
    Payload,
    values=st.dictionaries(st.text(max_size=40), arrays, max_size=4),
    control=st.dictionaries(st.text(max_size=5), reals, max_size=3),
    records=st.dictionaries(st.text(max_size=5), arrays, max_size=2),
)
of_points = st.builds(
    lambda dtype, n, control: Payload(
        values={"points": filled(dtype, (n, DIM)), "rewards": filled("f8", (n,))}, control=control
    ),
    dtypes,
    lengths,
    st.fixed_dictionaries({}, optional={"offset": reals}),
)
of_sums = st.builds(
    lambda dtype, r, control: Payload(
        values={"gram": filled(dtype, (r, r)), "moment": filled(dtype, (r,))}, control=control
    ),
    dtypes,
    st.integers(0, 20),
    # In the order of the layout, in which they come back whatever order they had.
    st.fixed_dictionaries({}, optional={"prior": reals, "count": reals}).map(
        lambda drawn: {name: drawn[name] for name in ("prior", "count") if name in drawn}
    ),
)
payloads = strange | of_points | of_sums | st.just(NOTHING)
phases = st.integers(0, 3) | numbers
labels = st.builds(Label, numbers, numbers)
hashes = st.integers(0, 2**64 - 1)
texts = st.text(max_size=9)
messages = st.one_of(
    st.builds(
        Hello,
        name=texts,
        plan=st.binary(max_size=9),
        incarnation=numbers,
        count=numbers,
        held=labels,
        mark=hashes,
        syncing=st.none() | st.tuples(labels, numbers),
    ),
    st.builds(Chain, payload=payloads),
    st.builds(Request, epoch=labels),
    st.builds(Part, epoch=labels, phase=phases, upto=numbers, payload=payloads),
    st.builds(Upload, first=numbers, payload=payloads, ask=st.booleans(), flush=st.booleans()),
    st.just(Leave()),
    st.builds(Newer, epoch=labels, base=labels, covered=numbers, clients=numbers, payload=payloads),
    st.builds(
        Welcome,
        number=numbers,
        clients=numbers,
        incarnation=numbers,
        known=numbers,
        tip=hashes,
        prove=st.booleans(),
        syncing=st.none() | labels,
    ),
    st.builds(Ask, epoch=labels, phase=phases, fired=st.booleans()),
    st.builds(Merged, epoch=labels, phase=phases, payload=payloads),
    st.builds(Install, epoch=labels, covered=numbers, clients=numbers, payload=payloads),
    st.builds(Released, epoch=labels, reason=texts, pending=st.booleans()),
    st.builds(
        Digested,
        base=numbers,
        version=numbers,
        covered=numbers,
        clients=numbers,
        length=numbers,
        raw=st.booleans(),
        payload=payloads,
        whole=st.booleans(),
    ),
    st.builds(NothingNew, known=numbers),
    st.builds(SetAside, reason=texts, final=st.booleans()),
    st.builds(Refused, reason=texts, plan=st.binary(max_size=9)),
)
codecs = st.sampled_from([CODEC, PLANLESS, *(Codec(algorithm.plan(DIM)) for algorithm in (DIS, APPROX, LIN))])


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


def part(payload: bytes, *, phase: int = 0) -> bytes:
    """An encoded part around raw msgpack of its payload."""
    return HEAD + b"\x95" + b"".join(map(packed, (4, E1, phase, 0))) + payload


def named(values: bytes = b"\x80", control: bytes = b"\x80") -> bytes:
    """A part whose payload says its own names, around raw msgpack of its values and control fields."""
    return part(b"\x82\xa1v" + values + b"\xa1c" + control)


def array_bytes(shape: tuple[int, ...], entries: bytes, *, axes: int | None = None, code: int = 1) -> bytes:
    """{"x": an array extension} that may lie about itself."""
    body = struct.pack(f"<B{len(shape)}I", len(shape) if axes is None else axes, *shape) + entries
    return b"\x81\xa1x" + packed(msgspec.msgpack.Ext(code, body))


def ext(length: int, *, code: int = 1) -> msgspec.msgpack.Ext:
    """So many bytes as an extension."""
    return msgspec.msgpack.Ext(code, b"\0" * length)


# Round trips


@given(codecs, messages)
def test_a_message_comes_back_bit_for_bit(codec: Codec, message: Message) -> None:
    assert frozen(codec.decode(codec.encode(message))) == frozen(message)


@given(codecs, messages)
def test_size_is_the_length_of_the_encoding(codec: Codec, message: Message) -> None:
    assert codec.size(message) == len(codec.encode(message))


@given(codecs, st.lists(messages, max_size=5), st.data())
def test_messages_encoded_together_are_those_encoded_alone(
    codec: Codec, several: list[Message], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(several * 2))
    assert list(codec.encode_many(shuffled)) == [codec.encode(message) for message in shuffled]


@pytest.mark.parametrize("entries", [0, 1, 2, 4, 8, 16, 29, 30, 31, 8189, 8190, 8191, 8192, 10_000])
@pytest.mark.parametrize("axes", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f8", "u1"])
def test_size_knows_every_length_of_msgpack_heads(entries: int, axes: int, dtype: str) -> None:
    array = np.zeros((*[1] * (axes - 1), entries), dtype) if axes else np.array(1, dtype)
    message = Part(epoch=E1, phase=0, upto=0, payload=Payload(values={"x": array, "y": array}))
    assert size(message) == len(encode(message))


def test_size_does_not_copy_the_arrays() -> None:
    for values in ({"x": np.zeros((1000, 1000))}, {"points": np.zeros((500_000, DIM)), "rewards": np.zeros(500_000)}):
        message = Part(epoch=E1, phase=0, upto=0, payload=Payload(values=values))
        tracemalloc.start()
        size(message)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000


@given(st.lists(numbers, min_size=1))
def test_the_width_of_a_number_is_the_length_of_its_encoding(several: list[int]) -> None:
    expected = [len(packed(number)) for number in several]
    assert widths(np.array(several)).tolist() == expected
    assert [width(number) for number in several] == expected


def test_a_payload_that_goes_to_many_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Payload] = []

    def counted(payload: Payload, layout: Layout | None, *, dim: int) -> Pieces:
        calls.append(payload)
        return in_pieces(payload, layout, dim=dim)

    monkeypatch.setattr(codec, "in_pieces", counted)
    payload = Payload(values={"gram": np.eye(9), "moment": np.ones(9)}, control={"count": 3.0})
    installs = [Install(epoch=E1, covered=client, clients=300, payload=payload) for client in range(300)]
    assert list(CODEC.encode_many(installs)) == [encode(install) for install in installs]
    assert len(calls) == 1 + 300


def test_a_payload_that_goes_to_every_second_is_packed_once_and_one_of_each_receivers_own_is_held_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Payload] = []

    def counted(payload: Payload, layout: Layout | None, *, dim: int) -> Pieces:
        calls.append(payload)
        return in_pieces(payload, layout, dim=dim)

    shared, own = (
        Payload(values={"gram": np.eye(300), "moment": np.ones(300)}, control={"count": 3.0}),
        [
            Payload(values={"gram": np.eye(300) * client, "moment": np.ones(300)}, control={"count": 3.0})
            for client in range(40)
        ],
    )
    installs = [
        Install(epoch=E1, covered=client, clients=80, payload=shared if client % 2 else own[client // 2])
        for client in range(80)
    ]
    expected = [encode(install) for install in installs]
    monkeypatch.setattr(codec, "in_pieces", counted)
    tracemalloc.start()
    for data, known in zip(CODEC.encode_many(installs), expected, strict=True):
        assert data == known
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(calls) == 1 + 40
    assert peak < 8 * own[0].values["gram"].nbytes


def test_clients_without_new_points_are_sent_one_payload() -> None:
    phase, belief = ShareData(), PLAN.belief
    new = Payload(values={"points": np.ones((1, DIM)), "rewards": np.ones(1)})
    none = Payload(values={"points": np.ones((0, DIM)), "rewards": np.ones(0)})
    merged = phase.finish(belief, {0: none, 1: new, 2: none})
    assert phase.address(merged, 0) is phase.address(merged, 2)


# What travels, and what does not


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (Part(E1, 0, 3, Payload(values={"points": np.ones((3, 2)), "rewards": np.ones(3)})), [4, [0, 1], 0, 3, 2]),
        (Merged(E1, 1, NOTHING), [19, [0, 1], 1, 0]),
        (Install(E1, 3, 9, Payload(values={"gram": np.eye(2), "moment": np.ones(2)}, control={"count": 7.0})),
         [20, [0, 1], 3, 9, 5]),
    ],
)  # fmt: skip
def test_a_payload_that_follows_its_layout_travels_without_names_and_shapes(message: Message, fields: Any) -> None:
    *head, payload = msgspec.msgpack.decode(encode(message)[3:])
    assert [*head, len(payload)] == fields
    octets = sum(array.nbytes for array in payload_of(message).values.values())
    assert sum(len(bytes(each.data)) for each in payload if isinstance(each, msgspec.msgpack.Ext)) == octets


def test_whole_numbers_take_as_few_bytes_as_they_need_and_real_ones_always_nine() -> None:
    def length(**control: float) -> int:
        values = {"gram": np.eye(2), "moment": np.ones(2)}
        return size(Install(E1, 0, 1, Payload(values=values, control=control)))

    assert length(prior=1.0, count=0.0) + 1 == length(prior=1.5, count=200.0)
    assert length(prior=1.0) == length(prior=1e300)
    assert length(count=1.0) == length() + 3  # nil stands for the hashes and for the prior


@pytest.mark.parametrize(
    "values",
    [
        {"points": np.ones((3, 2)), "rewards": np.ones((3, 1))},
        {"points": np.ones((2, 3)), "rewards": np.ones(3)},
        {"points": np.ones((3, 2)), "rewards": np.ones(4)},
        {"points": np.ones((3, 2)), "rewards": np.ones(3), "more": np.ones(1)},
        {"points": np.ones(6), "rewards": np.ones(3)},
        {"else": np.ones(3)},
    ],
)
def test_a_payload_that_does_not_follow_its_layout_says_its_own_names(values: dict[str, np.ndarray]) -> None:
    message = Part(E1, 0, 3, Payload(values=values))
    assert b"else" in encode(message) or b"rewards" in encode(message)
    assert frozen(decode(encode(message))) == frozen(message)


def test_every_message_that_carries_something_carries_one_payload() -> None:
    for kind in MESSAGES:
        carrying = [field.name for field in msgspec.structs.fields(kind) if field.type is Payload]
        assert carrying == ([CARRIED_IN[kind]] if kind in CARRIED_IN else [])


def test_sizes_are_solved_from_lengths() -> None:
    assert solved((("m", "n"), ("n",), ("m",)), (6, 2, 3), dim=7) == ((3, 2), (2,), (3,))
    assert solved((("r", "r"),), (16,), dim=7) == ((4, 4),)
    assert solved((("r", "r", "r"), (3, "k")), (27, 6), dim=7) == ((3, 3, 3), (3, 2))
    assert solved((("n", "d"), ("n",)), (0, 0), dim=7) == ((0, 7), (0,))


@pytest.mark.parametrize(
    ("shapes", "entries"),
    [
        ([("n", "d")], [13]),
        ([("n", "d"), ("n",)], [14, 3]),
        ([("r", "r")], [15]),
        ([("m", "n")], [6]),
        ([("m", "n"), ("n",)], [0, 0]),
        ([(3,)], [4]),
        ([()], [2]),
    ],
)
def test_lengths_that_fit_no_shape_are_refused(shapes: Any, entries: list[int]) -> None:
    with pytest.raises(ValueError, match="does not"):
        solved(tuple(shapes), tuple(entries), dim=7)


def test_a_layout_has_few_fields() -> None:
    with pytest.raises(InputError, match="at most 64"):
        Layout(control={str(number): int for number in range(MOST_FIELDS + 1)})


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 8, 15, 16, 17, 255, 256, 2**16 - 1, 2**16])
def test_an_array_by_place_has_the_head_that_msgpack_gives_it(length: int) -> None:
    array = np.ones(length, dtype=np.uint8)
    layout = Layout(records={"array": ("n",)}, control={"count": int})
    packed = pack(Payload(records={"array": array}, control={"count": 3}), layout, dim=DIM)
    assert packed == msgspec.msgpack.encode([msgspec.msgpack.Ext(CODES[array.dtype], array.tobytes()), 3])


@given(strange)
def test_a_phase_without_a_layout_sends_what_it_likes(payload: Payload) -> None:
    assert packed_size(payload, None, dim=DIM) == len(pack(payload, None, dim=DIM))


# Arrays


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.broadcast_to(0.0, (3, 2)),
        np.array([-0.0, 5e-324, np.finfo(np.float64).max]),
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.array([65504, -6e-8], dtype=np.float16),
    ],
    ids=["transposed", "strided", "fortran", "broadcast", "extremes", "uint64", "float16"],
)
def test_an_array_arrives_with_its_type_and_bits_in_c_order(array: np.ndarray) -> None:
    message = Merged(epoch=E1, phase=0, payload=Payload(values={"x": array}))
    assert size(message) == len(encode(message))
    came = payload_of(decode(encode(message))).values["x"]
    assert came.dtype == array.dtype
    assert came.flags.c_contiguous
    assert came.flags.writeable
    assert came.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [">f8", "i8", "bool", "c16", "O", "U3", "M8[s]", "g", [("a", "f8")]])
@pytest.mark.parametrize("name", ["rewards", "x"])
def test_an_array_of_another_type_is_refused_and_never_converted(dtype: Any, name: str) -> None:
    message = Part(E1, 0, 0, Payload(values={name: np.zeros(3, dtype=dtype)}))
    for refusing in (encode, size):
        with pytest.raises(LocalProtocolError, match="cannot travel; convert it to an array of float64, float32"):
            refusing(message)


def test_what_is_no_array_or_has_many_axes_is_refused() -> None:
    for value, why in (([1.0], "list cannot travel"), (np.zeros((1,) * 5), "at most 4 axes")):
        with pytest.raises(LocalProtocolError, match=why):
            encode(Newer(E1, E1, 0, 1, Payload(values={"x": value})))  # type: ignore[dict-item]


def test_an_array_that_came_does_not_hold_on_to_the_bytes() -> None:
    data = bytearray(encode(Merged(epoch=E1, phase=0, payload=Payload(values={"x": np.ones(3)}))))
    came = payload_of(decode(bytes(data))).values["x"]
    data[-8:] = b"\0" * 8
    np.testing.assert_array_equal(came, 1.0)


# Bounds


def test_a_message_that_is_too_long_is_refused_on_both_sides() -> None:
    message = Part(E1, 0, 3, Payload(values={"points": np.ones((3, 2)), "rewards": np.ones(3)}))
    data = encode(message)
    exactly, less = Codec(PLAN, most_bytes=len(data)), Codec(PLAN, most_bytes=len(data) - 1)
    assert frozen(exactly.decode(exactly.encode(message))) == frozen(message)
    with pytest.raises(LocalProtocolError, match="Part has 89 bytes, and 88 are allowed"):
        less.encode(message)
    with pytest.raises(RemoteProtocolError, match="89 bytes, where at most 88 are read"):
        less.decode(data)
    with pytest.raises(RemoteProtocolError, match="where at most 3 are read"):
        decode_state(encode_state(message), Part, most_bytes=3)


def test_changed_messages_are_messages_or_refused_within_little_memory() -> None:
    found = read_all(20_000, seed=1)
    assert found["messages"] > 500
    assert found["refused"] > 10_000


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


@pytest.mark.parametrize("head", [b"", b"l", b"lc", b"LC\x02", b"lc\x00", b"lc\x01", b"lc\xff", b"\0\0\0"])
def test_another_magic_or_version_is_refused(head: bytes) -> None:
    refused(head + packed([3, 1]))


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(ProtocolError, match="version 1; this side speaks 2"):
        decode(MAGIC + b"\x01" + packed([3, 1]))


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
        lambda lie: HEAD + b"\x92" + lie,
        lambda lie: HEAD + b"\x92\x03" + lie,
        lambda lie: HEAD + b"\x93\x03\x01" + lie,
        lambda lie: part(lie),
        lambda lie: part(b"\x91" + lie),
        lambda lie: part(b"\x93\xc0\xc0" + lie),
        lambda lie: part(b"\x81" + lie),
        lambda lie: named(lie),
        lambda lie: named(b"\x81\xa1x" + lie),
        lambda lie: named(b"\x81" + lie),
        lambda lie: named(control=lie),
        lambda lie: named(control=b"\x81\xa1x" + lie),
    ],
)
def test_a_container_that_claims_billions_of_entries_allocates_nothing(
    lie: bytes, place: Callable[[bytes], bytes]
) -> None:
    refused(place(lie))
    refused(place(lie + b"\0" * 5000))


@pytest.mark.parametrize(
    "values",
    [
        array_bytes((2**32 - 1,), b""),
        array_bytes((2**32 - 1, 2**32 - 1), b"\0" * 8),
        array_bytes((2**31, 2**31, 2**31, 2**31), b""),  # 2^124 entries
        array_bytes((2**16, 2**16, 2**16, 2**16), b""),  # 2^64, which is 0 in 64 bits
        array_bytes((0, 2**32 - 1), b""),
        array_bytes((2**32 - 1, 2**32 - 1, 2**32 - 1, 0), b""),
        array_bytes((2**10, 0, 2**10), b""),
        array_bytes((3,), b"\0" * 16),
        array_bytes((2,), b"\0" * 24),
        array_bytes((2,), b"\0" * 15),
        array_bytes((1,) * 5, b"\0" * 8),
        array_bytes((), b"\0" * 8, axes=255),
        array_bytes((), b"\0" * 8, axes=4),
        array_bytes((), b""),
        array_bytes((1,), b"\0" * 8, code=2),
        array_bytes((1,), b"\0" * 8, code=0),
        array_bytes((1,), b"\0" * 8, code=11),
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
    refused(named(values))


@pytest.mark.parametrize(
    ("phase", "fields"),
    [
        (0, [ext(15)]),
        (0, [ext(24)]),  # no whole number of points of two features
        (0, [ext(16), ext(16)]),
        (0, [ext(0), ext(8)]),
        (0, [ext(16, code=99), ext(8)]),
        (0, [ext(16), ext(8), ext(8)]),
        (0, [ext(16), ext(8), 0, 0]),
        (0, [1, ext(8)]),
        (0, [1.0]),
        (0, [None, None, math.nan]),
        (0, [None, None, math.inf]),
        (0, [None, None, 2**53]),
        (0, [None, None, -(2**63)]),
        (0, [None, None, True]),
        (0, [[ext(16)]]),
        (0, [None] * 65),
        (2, [ext(24)]),  # no square
        (2, [ext(32), ext(24)]),
        (3, [ext(16), ext(8)]),  # there is no such phase
    ],
)
def test_a_payload_by_place_that_does_not_fit_is_refused(phase: int, fields: list[Any]) -> None:
    refused(part(packed(fields), phase=phase))


def test_a_payload_by_place_needs_a_layout() -> None:
    data = encode(Part(E1, 0, 1, Payload(values={"points": np.ones((1, 2)), "rewards": np.ones(1)})))
    refused(data, read=PLANLESS.decode)
    refused(HEAD + packed([16, E1, E1, 0, 1, [ext(16)]]))


@pytest.mark.parametrize(("code", "form"), [(1, "<2d"), (2, "<2f"), (3, "<2e")])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(value: float, code: int, form: str) -> None:
    entries = struct.pack(form, 1.0, value)
    refused(named(array_bytes((2,), entries, code=code)))
    refused(part(packed([None, msgspec.msgpack.Ext(code, entries)])))
    refused(named(control=packed({"prior": value})))


@pytest.mark.parametrize("number", [-1, -(2**63), 2**53, 2**64 - 1, 1.0, 1.5, "1", None, True, [1]])
@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_number_that_counts_nothing_is_refused(number: Any, which: int) -> None:
    fields: list[Any] = [20, E1, 1, 1, {}]
    decode(HEAD + packed(fields))
    refused(HEAD + packed([20, [1, number], 1, 1, {}]))
    fields[which] = number
    refused(HEAD + packed(fields))


def test_a_count_beyond_64_bits_is_refused() -> None:
    refused(named(control=packed({"count": 1e308})[:-9] + b"\xcf" + b"\xff" * 9))
    refused(named(control=packed({"count": 2**64 - 1})))


@pytest.mark.parametrize("depth", [10, 1_000, 100_000])
@pytest.mark.parametrize("nest", [b"\x91", b"\x81\xa1a"], ids=["arrays", "maps"])
def test_deep_nesting_is_refused(depth: int, nest: bytes) -> None:
    refused(HEAD + nest * depth + b"\xc0")
    refused(part(nest * depth + b"\xc0"))
    refused(named(b"\x81\xa1x" + nest * depth + b"\xc0"))
    refused(HEAD + b"\x93\x03\x01" + nest * depth + b"\xc0")


@pytest.mark.parametrize("kept", range(5))
def test_a_message_that_lacks_a_field_or_has_one_more_is_refused(kept: int) -> None:
    fields = [4, [0, 1], 0, 0, []]
    decode(HEAD + packed(fields))
    refused(HEAD + packed(fields[:kept]))
    refused(HEAD + packed([*fields, *fields[: kept + 1]]))


def test_an_unknown_kind_of_message_is_refused() -> None:
    for tag in (0, 7, 26, -1, "part", None):
        refused(HEAD + packed([tag, E1, 0, 0, []]))
    with pytest.raises(LocalProtocolError, match="Message is no message"):
        encode(Message())


# Saved clients travel the same way


def saved_clients() -> list[bytes]:
    clients = []
    for algorithm in (DIS, APPROX):
        federation = Federation(algorithm, members=2)
        federation.sync()
        federation.act(1)
        federation.choose(1)
        clients.append(encode_record(snapshot_client(federation.clients[1])))
    return clients


SAVED = saved_clients()


@given(st.sampled_from([0, 1]), st.data())
def test_a_saved_client_with_any_byte_changed_is_refused(which: int, data: st.DataObject) -> None:
    mutated = bytearray(SAVED[which])
    at = data.draw(st.integers(0, len(mutated) - 1))
    mutated[at] ^= data.draw(st.integers(1, 255))
    refused(bytes(mutated), read=decode_record, memory=1_000_000)


@given(st.sampled_from([0, 1]), st.data())
def test_a_saved_client_that_was_cut_off_is_refused(which: int, data: st.DataObject) -> None:
    cut = SAVED[which][: data.draw(st.integers(0, len(SAVED[which]) - 1))]
    refused(cut, read=lambda bytes_: decode_state(bytes_, ClientSnapshot))


@given(st.binary(max_size=100), messages)
def test_what_is_no_saved_client_is_refused(data: bytes, message: Message) -> None:
    for read in (data, HEAD + data, encode(message)):
        refused(read, read=decode_record)


@given(entries)
def test_a_saved_array_comes_back_with_its_type(array: np.ndarray) -> None:
    state = Chain(Payload(values={"x": array}))
    assert frozen(decode_state(encode_state(state), Chain)) == frozen(state)


def test_a_saved_client_is_no_message() -> None:
    for data in SAVED:
        refused(data)
