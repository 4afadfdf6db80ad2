"""The ledger: every message is counted once, however its entries are run together."""

from itertools import chain, combinations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.errors import InputError
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import LABELS, Count, Direction, Ledger, Sizes
from laconic.protocol.messages import (
    BLANK,
    MESSAGES,
    NOTHING,
    Ask,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Message,
    Newer,
    Part,
    Payload,
    Request,
    Upload,
    Welcome,
)
from tests.protocol.federation import APPROX, DIS, LIN, Federation, name

PLAN = DIS.plan(2)
encode = Codec(PLAN).encode
Key = Literal["epoch", "phase", "direction", "client"]
KEYS: tuple[Key, ...] = ("epoch", "phase", "direction", "client")
SUBSETS = list(chain.from_iterable(combinations(KEYS, count) for count in range(5)))

runs = st.builds(
    lambda epoch, phase, direction, first, more, scalars, size: {
        "epoch": epoch,
        "phase": phase,
        "direction": direction,
        "first": first,
        "last": first + more,
        "scalars": scalars,
        "bytes": size,
    },
    st.integers(0, 2),
    st.sampled_from(["control", "share data"]),
    st.sampled_from(["up", "down"]),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(1, 2),
)


def mail(ledger: Ledger, *, epoch: int, phase: str, direction: Direction, **sizes: int) -> None:
    """One message of this size for each client from ``first`` to ``last``."""
    like: Message = Ask(Label(0, epoch), 0, fired=False) if phase == "control" else Part(Label(0, epoch), 0, 0, NOTHING)
    run = (sizes["first"], sizes["last"], sizes["scalars"], sizes["bytes"])
    ledger.record_mailing(Sizes.of([run]), like=like, direction=direction)


def total(counts: dict[tuple[int | str, ...], Count]) -> Count:
    return sum(counts.values(), Count())


@given(st.lists(runs, max_size=12))
def test_every_grouping_sums_to_the_total(recorded: list[dict]) -> None:
    ledger = Ledger(PLAN)
    for each in recorded:
        mail(ledger, **each)
    for keys in SUBSETS:
        assert total(ledger.by(*keys)) == ledger.total


@given(st.lists(runs, max_size=12))
def test_groups_are_those_of_a_list_of_single_messages(recorded: list[dict]) -> None:
    ledger, plain = Ledger(PLAN), []
    for each in recorded:
        mail(ledger, **each)
        plain += [{**each, "client": client} for client in range(each["first"], each["last"] + 1)]
    for keys in SUBSETS:
        expected: dict[tuple[int | str, ...], Count] = {}
        for message in plain:
            address = tuple(message[key] for key in keys)
            expected[address] = expected.get(address, Count()) + Count(1, message["scalars"], message["bytes"])
        assert ledger.by(*keys) == expected


@given(st.lists(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=4), max_size=4))
def test_a_mailing_counts_what_its_messages_count_one_by_one(mailings: list[list[tuple[int, int, int]]]) -> None:
    together, apart = Ledger(PLAN), Ledger(PLAN)
    for epoch, mailing in enumerate(mailings):
        runs = []
        for first, more, scalars in mailing:
            part = Part(epoch=Label(0, epoch), phase=0, upto=0, payload=Payload(values={"x": np.zeros(scalars)}))
            runs.append((first, first + more, scalars, len(encode(part))))
            for client in range(first, first + more + 1):
                apart.record(part, direction="up", client=client)
        together.record_mailing(Sizes.of(runs), like=Part(Label(0, epoch), 0, 0, NOTHING), direction="up")
    assert together.total == apart.total
    for keys in SUBSETS:
        assert together.by(*keys) == apart.by(*keys)


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["up", "down"]), st.integers(0, 1)), max_size=30))
def test_messages_that_alternate_or_jump_are_not_run_together(sent: list[tuple[int, Direction, int]]) -> None:
    ledger = Ledger(PLAN)
    for client, direction, scalars in sent:
        payload = Payload(values={"x": np.zeros(scalars)})
        message = Part(epoch=Label(0, 1), phase=0, upto=0, payload=payload)
        ledger.record(message, direction=direction, client=client)
    assert ledger.total.messages == len(sent)
    for client in range(9):
        for direction in ("up", "down"):
            mine = [scalars for number, way, scalars in sent if (number, way) == (client, direction)]
            counted = ledger.by("client", "direction").get((client, direction), Count())
            assert (counted.messages, counted.scalars) == (len(mine), sum(mine))


def test_a_run_of_clients_that_send_alike_takes_one_entry() -> None:
    ledger = Ledger(PLAN)
    for client in range(1000):
        ledger.record(Ask(epoch=Label(0, 1), phase=0, fired=False), direction="down", client=client)
    assert len(ledger.entries) == 1
    assert ledger.total == Count(1000, 0, 1000 * len(encode(Ask(epoch=Label(0, 1), phase=0, fired=False))))
    assert len(ledger.by("client")) == 1000


def test_clients_that_are_not_neighbours_take_an_entry_each() -> None:
    ledger = Ledger(PLAN)
    for client in (0, 1, 3, 4, 5, 2, 2, 9):
        ledger.record(Ask(epoch=Label(0, 1), phase=0, fired=False), direction="down", client=client)
    assert [(entry.first, entry.last) for entry in ledger.entries] == [(0, 1), (3, 5), (2, 2), (2, 2), (9, 9)]
    assert {client: count.messages for (client,), count in ledger.by("client").items()} == {
        0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1, 9: 1,
    }  # fmt: skip


def test_control_messages_and_fields_are_bytes_but_no_scalars() -> None:
    ledger = Ledger(PLAN)
    for message in (Request(epoch=Label(0, 3)), Leave(), Ask(epoch=Label(0, 1), phase=0, fired=True)):
        ledger.record(message, direction="up", client=0)
    assert ledger.total.scalars == 0
    payload = Payload(values={"x": np.zeros((2, 3)), "y": np.zeros(4)}, control={"count": 4.0, "prior": 1.0})
    part = Part(epoch=Label(0, 1), phase=0, upto=4, payload=payload)
    before = ledger.total.bytes
    ledger.record(part, direction="up", client=0)
    assert ledger.total.scalars == 10
    assert ledger.total.bytes == before + len(encode(part))


def test_an_empty_ledger_has_no_groups() -> None:
    assert Ledger(PLAN).by("client") == {}
    assert Ledger(PLAN).by() == {}
    assert Ledger(PLAN).total == Count()


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
def test_a_run_is_grouped_consistently(algorithm: object) -> None:
    federation = Federation(algorithm, members=3)  # type: ignore[arg-type]
    for _ in range(3):
        federation.sync()
    for keys in SUBSETS:
        assert total(federation.ledger.by(*keys)) == federation.ledger.total


def test_every_kind_of_message_has_a_label() -> None:
    assert set(LABELS) == set(MESSAGES)


@pytest.mark.parametrize(
    ("message", "label"),
    [
        (Request(epoch=Label(0, 4)), (5, "control")),
        (Ask(epoch=Label(0, 5), phase=0, fired=True), (5, "control")),
        (Part(Label(0, 5), 0, 0, NOTHING), (5, "agree on dictionary")),
        (Part(Label(0, 5), 1, 0, NOTHING), (5, "share statistics")),
        (Part(Label(0, 5), 2, 0, NOTHING), (5, "control")),
        (Merged(Label(0, 5), 0, NOTHING), (5, "agree on dictionary")),
        (Install(Label(0, 5), 0, 1, NOTHING), (5, "share statistics")),
        (Newer(Label(0, 5), BLANK, 0, 1, NOTHING), (5, "membership")),
        (Hello("a", b"", 0, 0, Label(0, 9), 0), (3, "greeting")),
        (Leave(), (3, "greeting")),
        (Welcome(0, 1, 1, 0, 0), (3, "greeting")),
        (Upload(0, NOTHING, ask=True), (3, "upload")),
    ],
)
def test_a_message_counts_towards_its_epoch_or_the_latest_one(message: Message, label: tuple[int, str]) -> None:
    ledger = Ledger(APPROX.plan(2))
    ledger.record(Ask(epoch=Label(0, 3), phase=0, fired=False), direction="down", client=1)
    ledger.record(message, direction="up", client=7)
    assert (ledger.entries[-1].epoch, ledger.entries[-1].phase) == label


def test_counts_are_grouped_by_what_there_is_alone() -> None:
    with pytest.raises(InputError, match="a key cannot be 'phases'; try one of epoch, phase, direction, client"):
        Ledger(APPROX.plan(2)).by("phases")  # type: ignore[arg-type]
