"""Agents of one process that are sent the same check it once, and hold one copy of it."""

import numpy as np

from laconic import DisLinUCB
from laconic.protocol.messages import Down, Install, Label, Payload
from laconic.protocol.vetting import Vetted, tried
from laconic.runtimes.service.sharing import Shared, Sharing

PLAN = DisLinUCB(D=1.0).plan(2)


def install(number: float, *, covered: int = 1) -> Install:
    payload = Payload(values={"gram": np.full((2, 2), number), "moment": np.zeros(2)}, control={"count": 1.0})
    return Install(epoch=Label(1, 2), covered=covered, clients=2, payload=payload)


def checks(shared: Shared, *messages: Install) -> tuple[list[Down], int]:
    """The messages as agents go on with them, and how many were checked."""
    seen: list[Payload] = []

    def check(_: object, payload: Payload) -> None:
        seen.append(payload)

    def vet(message: Down, known: Vetted | None) -> Vetted | None:
        assert isinstance(message, Install)
        is_known = known is not None and known.is_of(check, PLAN.belief, message.payload)
        return known if is_known else tried(check, PLAN.belief, message.payload)

    return [shared.read(shared.codec.encode(message), vet)[0] for message in messages], len(seen)


def test_what_is_the_same_to_the_last_bit_is_checked_once_and_held_once() -> None:
    (one, other), checked = checks(Shared(PLAN), install(1.0), install(1.0, covered=7))
    assert isinstance(one, Install)
    assert isinstance(other, Install)
    assert other.payload is one.payload
    assert (other.covered, checked) == (7, 1)


def test_what_differs_in_one_bit_is_checked_by_itself() -> None:
    for number in (np.nextafter(1.0, 2.0), -1.0):
        assert checks(Shared(PLAN), install(1.0), install(number))[1] == 2
    assert checks(Shared(PLAN), install(0.0), install(-0.0))[1] == 2


def test_agents_of_one_federation_share_while_there_is_one_of_them() -> None:
    sharing = Sharing()
    one = sharing.of("here:1", PLAN)
    assert sharing.of("here:1", DisLinUCB(D=1.0).plan(2)) is one
    assert sharing.of("here:2", PLAN) is not one
    assert sharing.of("here:1", DisLinUCB(D=2.0).plan(2)) is not one


def test_work_counts_as_long_for_all_who_share_it_and_not_for_the_one_who_did_it_alone() -> None:
    shared = Shared(PLAN)

    def build(_: object) -> set[int]:
        return {sum(range(3_000_000))}

    asked = []
    for _ in range(2):
        before = shared.charged
        held = shared("topic", Label(1, 1), build)
        asked.append(shared.charged - before)
        assert len(held) == 1
    assert asked[0] == asked[1] > 0.001
