"""A saved client comes back to the last bit: whatever happens next, it does the same as the one that went on."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import DisKernelUCB, DisLinUCB, Gaussian, Theory
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.errors import LocalProtocolError, ProtocolError
from laconic.protocol.client import Client, ClientState
from laconic.protocol.codec import decode_state, encode_state
from laconic.protocol.saving import SavedClient, restore, save
from laconic.tail import COLLAPSE_FROM
from tests.protocol.federation import APPROX, DIS, EVERY, LIN, LOCAL, Federation, frozen, name, snapshot
from tests.protocol.test_transitions import client_in

#: Tails that are never cut short by a sync, so that they fold and collapse.
ALONE: list[Algorithm] = [
    DisLinUCB(D=1e9),
    DisKernelUCB(Gaussian(), D=1e9),
    DisKernelUCB(Gaussian(), D=1e9, alpha=Theory()),
]


class Twins:
    """A client of a federation, and its twin from a save, to which everything happens as well."""

    def __init__(self, federation: Federation, number: int) -> None:
        self.federation, self.number = federation, number
        self.client = federation.clients[number]
        self.twin = restore(save(self.client), plan=federation.plan)
        self.same()

    def same(self) -> None:
        assert snapshot(self.client) == snapshot(self.twin)

    def choose(self, arms: Floats) -> int:
        decision, other = self.client.choose(arms), self.twin.choose(arms)
        assert decision == other  # the arm, and mean and width to the last bit
        self.same()
        return decision.id

    def observe(self, decision: int, reward: float) -> None:
        """The federation's client learns a reward and so does the twin, then both take part in what follows."""
        point = self.client.pending[decision].point[0]
        outcome, other = self.client.observe(decision, reward), self.twin.observe(decision, reward)
        self.federation.observed[self.number].append((point, reward))
        assert frozen(outcome.send) == frozen(other.send)
        self.same()
        self.federation._queue_up(outcome)
        self.drain()

    def drain(self) -> None:
        federation = self.federation
        while federation.waiting():
            way, number = federation.waiting()[0]
            if (way, number) == ("down", self.number):
                message = federation.down[number].popleft()
                outcome, other = federation.to_client(number, message), self.twin.receive(message)
                assert frozen(outcome.send) == frozen(other.send)
                self.same()
            else:
                federation.step(way, number)


@pytest.mark.parametrize("algorithm", [*EVERY, *ALONE], ids=name)
@settings(max_examples=max(settings().max_examples // 3, 10))
@given(before=st.integers(0, 45), pending=st.integers(0, 3), after=st.integers(1, 6), seed=st.integers(0, 5))
def test_a_restored_client_does_the_same_to_the_last_bit(
    algorithm: Algorithm, before: int, pending: int, after: int, seed: int
) -> None:
    federation = Federation(algorithm, members=2, seed=seed)
    opened = [federation.choose(0).id for _ in range(pending)]  # some outlive their belief
    for step in range(before):
        federation.act(step % 2)
        federation.drain()
    opened += [federation.choose(0).id for _ in range(pending)]
    twins = Twins(federation, 0)
    for _ in range(after):
        arms = np.round(federation.random.uniform(-2, 2, (5, 2)), 0)
        opened.append(twins.choose(arms))
        twins.observe(opened.pop(int(federation.random.integers(len(opened)))), float(federation.random.normal()))
    federation.check_quiet()


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_a_folded_tail_is_restored_to_the_last_bit(count: int) -> None:
    federation = Federation(DisLinUCB(D=1e9), members=1)
    federation.act(0, times=count)
    assert (federation.clients[0].tail.basis is not None) is (count > 2)
    twins = Twins(federation, 0)
    twins.observe(twins.choose(np.eye(2)), 1.0)
    federation.check(0)


def test_a_collapsed_tail_is_restored_to_the_last_bit() -> None:
    federation = Federation(DisKernelUCB(Gaussian(), D=1e9), members=1)
    arms = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for _ in range(COLLAPSE_FROM + 1):
        federation.observe(0, federation.choose(0, arms).id)
    assert len(federation.clients[0].tail.rows) <= 4
    twins = Twins(federation, 0)
    twins.observe(twins.choose(arms), 1.0)
    federation.check(0)


@pytest.mark.parametrize("state", ClientState)
def test_a_client_is_saved_between_syncs_only(state: ClientState) -> None:
    federation, client = client_in(state)
    before = snapshot(client)
    if state in (ClientState.IDLE, ClientState.OUTSIDE):
        assert restore(save(client), plan=federation.plan).state is state
    else:
        with pytest.raises(LocalProtocolError, match="between syncs"):
            save(client)
    assert snapshot(client) == before


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX, LOCAL], ids=name)
def test_a_client_saved_for_another_plan_is_refused(algorithm: Algorithm) -> None:
    federation = Federation(algorithm, members=2)
    federation.sync()
    data = save(federation.clients[0])
    others = [DIS.plan(3), LIN.plan(3), APPROX.plan(3), (LIN if algorithm is not LIN else DIS).plan(2)]
    for plan in others:
        with pytest.raises(ProtocolError):
            restore(data, plan=plan)


# Damage that a checksum does not see


def saved(algorithm: Algorithm) -> SavedClient:
    """A client with a belief, a tail, a history and open decisions, taken apart."""
    federation = Federation(algorithm, members=2)
    early = federation.choose(0).id
    federation.sync()
    federation.act(0)
    federation.choose(0)
    assert early in federation.clients[0].pending
    return decode_state(save(federation.clients[0]), SavedClient)


def without(arrays: dict[str, Floats], key: str) -> dict[str, Floats]:
    return {each: array for each, array in arrays.items() if each != key}


def longer(array: Floats) -> Floats:
    return np.concatenate([array, array[:1] if len(array) else np.zeros((1, *array.shape[1:]))])


DAMAGES: dict[str, Callable[[SavedClient], dict[str, Any]]] = {
    "number": lambda s: {"number": -1},
    "seed": lambda s: {"seed": -1},
    "clients": lambda s: {"clients": 0},
    "epoch": lambda s: {"epoch": -1},
    "stay": lambda s: {"stay": -1},
    "covered below": lambda s: {"covered": -1},
    "covered beyond": lambda s: {"covered": len(s.rewards) + 1},
    "covered too few": lambda s: {"covered": s.covered - 1},
    "fewer decisions": lambda s: {"decisions": max(s.pending)},
    "negative decision": lambda s: {"pending": {-1: next(iter(s.pending.values()))}},
    "no belief": lambda s: {"belief": {}},
    "no tail": lambda s: {"tail": {}},
    "points of no axes": lambda s: {"points": np.array(1.0)},
    "rewards of no axes": lambda s: {"rewards": np.array(1.0)},
    "rewards of two axes": lambda s: {"rewards": s.rewards[:, None]},
    "a reward too many": lambda s: {"rewards": longer(s.rewards)},
    "a point too many": lambda s: {"points": longer(s.points)},
    "an observation too many": lambda s: {"points": longer(s.points), "rewards": longer(s.rewards)},
    "another width": lambda s: {"points": np.hstack([s.points, s.points])},
    "tail of other news": lambda s: {"tail": s.tail | {"news": s.tail["news"] + 1}},
    "tail of negative news": lambda s: {"tail": s.tail | {"news": s.tail["news"] * [1, -1, 1, 1, 1]}},
    "pending of another width": lambda s: {
        "pending": {key: msgspec.structs.replace(each, point=np.zeros((1, 3))) for key, each in s.pending.items()}
    },
    "half a view": lambda s: {
        "pending": {key: msgspec.structs.replace(each, view={"mean": np.zeros(1)}) for key, each in s.pending.items()}
    },
    "a view too wide": lambda s: {
        "pending": {
            key: msgspec.structs.replace(each, view=each.view | {"features": np.zeros((99, 1))})
            for key, each in s.pending.items()
            if each.view
        }
    },
}


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX, LOCAL], ids=name)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_save_that_does_not_fit_together_is_refused(
    algorithm: Algorithm, damage: Callable[[SavedClient], dict[str, Any]]
) -> None:
    whole = saved(algorithm)
    restore(encode_state(whole), plan=algorithm.plan(2))
    with pytest.raises(ProtocolError):
        restore(encode_state(msgspec.structs.replace(whole, **damage(whole))), plan=algorithm.plan(2))


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize("part", ["belief", "tail"])
def test_arrays_that_are_missing_or_misshapen_are_refused(algorithm: Algorithm, part: str) -> None:
    whole = saved(algorithm)
    arrays = getattr(whole, part)
    bad = [without(arrays, key) for key in arrays] + [arrays | {"more": np.zeros(1)}]
    for key, array in arrays.items():
        bad += [arrays | {key: changed} for changed in (longer(array), array[None], np.array(1.0))]
    bad.append(arrays | {"root": np.eye(2)})
    bad.append(arrays | {"dictionary": np.zeros((1, 3))})
    for changed in bad:
        with pytest.raises(ProtocolError):
            restore(encode_state(msgspec.structs.replace(whole, **{part: changed})), plan=algorithm.plan(2))


@given(st.data())
def test_a_save_with_any_array_replaced_works_or_is_refused(data: st.DataObject) -> None:
    """Whatever the numbers are, either they are refused or the client that comes of them can choose."""
    algorithm = data.draw(st.sampled_from(list(WHOLE)))
    whole = WHOLE[algorithm]
    part = data.draw(st.sampled_from(["belief", "tail"]))
    arrays = dict(getattr(whole, part))
    key = data.draw(st.sampled_from(sorted(arrays)))
    if arrays[key].size == 0:
        return
    changed = arrays[key].copy()
    changed.flat[data.draw(st.integers(0, changed.size - 1))] = data.draw(
        st.sampled_from([0.0, -1.0, 0.5, 1e9, 1e200, -1e300, 5e-324]) | st.floats(-1e3, 1e3)
    )
    arrays[key] = changed
    try:
        client: Client = restore(encode_state(msgspec.structs.replace(whole, **{part: arrays})), plan=algorithm.plan(2))
    except ProtocolError:
        return
    with np.errstate(all="ignore"):
        try:
            client.choose(np.eye(2))
        except ValueError as error:
            assert "overflow" in str(error)  # noqa: PT017


WHOLE: dict[Algorithm, SavedClient] = {algorithm: saved(algorithm) for algorithm in (DIS, LIN, APPROX)}
