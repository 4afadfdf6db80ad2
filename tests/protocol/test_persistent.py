"""Maps and sets of which every version stays valid."""

from dataclasses import dataclass

import numpy as np
import pytest

from laconic import Client, DisKernelUCB, Gaussian, Server
from laconic.protocol.messages import BLANK, Hello, Part, Request
from laconic.protocol.persistent import Group, Map, changed
from laconic.protocol.phases import ShareData


@dataclass(frozen=True)
class Pair:
    first: int
    second: int


def test_a_value_with_a_field_changed_is_another_and_the_old_one_stays() -> None:
    old = Pair(1, 2)
    assert changed(old, second=5) == Pair(1, 5)
    assert old == Pair(1, 2)
    with pytest.raises(TypeError, match="Pair has no third"):
        changed(old, third=3)


class Clash(int):
    """A key whose hash is that of all others."""

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize("kind", [int, Clash, str])
def test_a_map_is_what_a_dict_is_after_any_changes_and_older_versions_stay(kind: type) -> None:
    draw = np.random.default_rng(0)
    versions: list[tuple[Map[object, int], dict[object, int]]] = [(Map.of({}), {})]
    for step in range(600):
        found, expected = versions[-1]
        key = kind(int(draw.integers(-80, 80)))
        if draw.random() < 0.6:
            versions.append((found.put(key, step), {**expected, key: step}))
        else:
            versions.append((found.without(key), {k: v for k, v in expected.items() if k != key}))
    for found, expected in versions:
        assert list(found.items()) == list(expected.items())
        assert len(found) == len(expected)
        assert dict(Map.of(expected)) == expected
    assert "nobody" not in versions[-1][0]
    with pytest.raises(KeyError, match="nobody"):
        versions[-1][0]["nobody"]


def test_a_group_is_a_set_in_the_order_of_coming() -> None:
    group = Group.of(range(100, 0, -1)).without(50).put(50).put(50)
    assert list(group) == [*range(100, 50, -1), *range(49, 0, -1), 50]
    assert set(group) == set(range(1, 101))
    assert sorted(group - {1, 2}) == list(range(3, 101))


def test_a_change_shares_nearly_all_with_the_version_before() -> None:
    many = Map.of({number: number for number in range(10_000)})
    one = many.put(4321, 0)
    assert isinstance(many._root, tuple)
    assert sum(a is not b for a, b in zip(many._root, one._root, strict=True)) == 1


def test_no_event_within_a_phase_goes_through_all_members(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = DisKernelUCB(Gaussian(1.0), D=1e9).plan(2)
    server, clients = Server(plan, members=range(40)), [Client(plan, number=number, clients=40) for number in range(40)]
    asks = [message for _, message in server.receive(0, Request(epoch=BLANK)).send]

    def refuse(_: object) -> None:
        raise AssertionError("an event went through everybody")

    monkeypatch.setattr(Map, "__iter__", refuse)
    assert isinstance(plan.phases[0], ShareData)
    for number in range(20):
        (work,) = clients[number].receive(asks[number]).compute
        (part,) = clients[number].done(work, work.result()).send
        assert isinstance(part, Part)
        server.receive(number, part)
    server.tick(1.0)
    server.lose(30)
    (hello,) = clients[30].greet().send
    assert isinstance(hello, Hello)
    assert len(server.receive(99, hello).send) == 2  # a welcome, and the question again
    server.receive(100, Client(plan, number=40, name="new", member=False).greet().send[0])
    assert server.hub.clients == 41
    assert server.hub.sync is not None
    assert server.hub.sync.missing == 20
