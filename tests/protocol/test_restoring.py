"""A state is the fold of its records, in every state and to the last bit; a snapshot stands for all of them."""

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
from laconic.errors import PlanMismatch, ProtocolError, UnknownDecision
from laconic.protocol.client import Client
from laconic.protocol.outcome import Outcome
from laconic.protocol.records import ClientSnapshot, Decided, Finished, Opened, Record, Started
from laconic.protocol.restoring import restore_client, restore_server, snapshot_client, snapshot_server
from laconic.protocol.session import ClientState
from laconic.runtimes.network import SERVER
from laconic.tail import COLLAPSE_FROM
from tests.protocol.federation import (
    APPROX,
    DIS,
    EVERY,
    EXCHANGING,
    LIN,
    LOCAL,
    LONE,
    PARTS,
    Federation,
    carried,
    every_interleaving,
    frozen,
    name,
    snapshot,
)
from tests.protocol.test_coverage import warm
from tests.protocol.test_transitions import client_in

#: Tails that are never cut short by a sync, so that they fold and collapse.
UNDISTURBED: list[Algorithm] = [
    DisLinUCB(D=1e9, lam=1.0, alpha=1.0),
    DisKernelUCB(**PARTS, D=1e9),
    DisKernelUCB(**{**PARTS, "alpha": Theory()}, D=1e9),
]


def restored(records: list[Record], federation: Federation, *, start: int = 0) -> Client:
    """The client of these records, through bytes."""
    return restore_client(carried(records), plan=federation.plan, start=start)[0]


def check_fold(federation: Federation, number: int) -> None:
    """Records and snapshot of a client lead to the same client, to the last bit."""
    client = federation.clients[number]
    start = client.learner.start
    assert snapshot(restored(federation.records[number], federation, start=start)) == snapshot(client)
    assert snapshot(restored([snapshot_client(client)], federation, start=start)) == snapshot(client)


# Clients


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
def test_a_client_is_the_fold_of_its_records_at_every_moment_of_an_exchange(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    for _ in every_interleaving(federation, fired=1):
        for number in federation.clients:
            check_fold(federation, number)


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
@pytest.mark.parametrize("slow", [0, 1])
def test_a_client_is_the_fold_of_its_records_while_work_is_under_way(algorithm: Algorithm, slow: int) -> None:
    federation = warm(algorithm)
    federation.slow.add(slow)
    for _ in every_interleaving(federation, fired=1):
        check_fold(federation, slow)
        federation.act(slow)
        check_fold(federation, slow)
        if federation.owed[slow]:
            federation.finish(slow)
        check_fold(federation, slow)
    federation.check_all()


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
def test_a_client_killed_at_any_moment_goes_on_and_owes_the_work_that_it_owed(algorithm: Algorithm) -> None:
    moments = sum(1 for _ in every_interleaving(warm(algorithm), fired=1))
    for stop in range(moments):
        federation = warm(algorithm)
        federation.slow.add(2)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                federation.slow.clear()
                federation.restart(2)
                assert federation.clients[2].session.owed is None  # it was done when it came back
                federation.check(2)
            elif moment < stop and federation.owed[2]:
                federation.finish(2)
        federation.slow.clear()
        federation.rest()


@pytest.mark.parametrize("algorithm", [*EVERY, *UNDISTURBED], ids=name)
@settings(max_examples=max(settings().max_examples // 3, 10))
@given(before=st.integers(0, 45), pending=st.integers(0, 3), seed=st.integers(0, 5), compact=st.booleans())
def test_a_restored_client_does_the_same_to_the_last_bit(
    algorithm: Algorithm, before: int, pending: int, seed: int, compact: bool
) -> None:
    federation = Federation(algorithm, members=2, seed=seed)
    opened = [federation.choose(0).id for _ in range(pending)]  # some outlive their belief
    for step in range(before):
        federation.act(step % 2)
        federation.drain()
    if compact:
        federation.records[0] = [snapshot_client(federation.clients[0])]
    check_fold(federation, 0)
    client, twin = federation.clients[0], restored(federation.records[0], federation)
    for decision in opened:
        arms = np.round(federation.random.uniform(-2, 2, (5, 2)), 0)
        one, two = client.choose(arms), twin.choose(arms)
        assert frozen(one.record) == frozen(two.record)
        assert (one.mean, one.width) == (two.mean, two.width)
        outcome, other = client.observe(decision, 0.5), twin.observe(decision, 0.5)
        assert frozen(outcome.send) == frozen(other.send)
    assert snapshot(client) == snapshot(twin)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_a_folded_tail_is_restored_to_the_last_bit(count: int) -> None:
    federation = Federation(DisLinUCB(D=1e9, lam=1.0, alpha=1.0), members=1)
    federation.act(0, times=count)
    assert (federation.clients[0].learner.tail.basis is not None) is (count > 2)
    check_fold(federation, 0)


def test_a_collapsed_tail_is_restored_to_the_last_bit() -> None:
    federation = Federation(DisKernelUCB(**PARTS, D=1e9), members=1)
    arms = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for _ in range(COLLAPSE_FROM + 1):
        federation.observe(0, federation.choose(0, arms).id)
    assert len(federation.clients[0].learner.tail.rows) <= 4
    check_fold(federation, 0)


@pytest.mark.parametrize("state", ClientState)
def test_a_client_is_saved_in_every_state(state: ClientState) -> None:
    federation, client = client_in(state)
    check_fold(federation, 1)
    assert restored([snapshot_client(client)], federation).state is state


def test_what_a_restored_client_does_is_recorded_after_what_it_did() -> None:
    federation = warm(DIS)
    client, outcome = restore_client(carried(federation.records[1]), plan=DIS.plan(2), start=77)
    assert isinstance(outcome, Outcome)
    assert [type(record) for record in outcome.keep] == [Started]
    assert client.choose(np.eye(2)).id.startswith(f"{77:x}.")


# Decisions across restarts


def test_a_reward_may_come_after_a_restart_by_the_id_of_its_decision() -> None:
    federation = warm(DIS)
    decision = federation.choose(1)
    federation.restart(1, start=9)
    federation.observe(1, decision.id)
    federation.check(1)
    with pytest.raises(UnknownDecision):
        federation.clients[1].observe(decision, 1.0)


def test_an_id_whose_record_was_lost_is_refused_with_advice_and_its_decision_works_once() -> None:
    federation = warm(DIS)
    decision = federation.choose(1)
    federation.records[1].pop()  # written behind choose, and lost
    client = federation.restart(1, start=9)
    before = snapshot(client)
    with pytest.raises(UnknownDecision, match=r"its record was lost .* with the decision itself"):
        client.observe(decision.id, 1.0)
    assert snapshot(client) == before
    federation.observe(1, decision)
    federation.check(1)
    for again in (decision, decision.id):
        with pytest.raises(UnknownDecision):
            client.observe(again, 1.0)
    federation.restart(1, start=10)
    for again in (decision, decision.id):
        with pytest.raises(UnknownDecision):
            federation.clients[1].observe(again, 1.0)


def test_of_several_lost_decisions_each_works_once_whatever_their_order() -> None:
    federation = warm(DIS)
    decisions = [federation.choose(1) for _ in range(4)]
    kept = federation.records[1]
    federation.records[1] = [each for each in kept if not (isinstance(each, Decided) and each.id == decisions[1].id)]
    federation.restart(1, start=9)
    for which in (3, 1, 0):
        federation.observe(1, decisions[which])
    for which in (0, 1, 3):
        with pytest.raises(UnknownDecision):
            federation.clients[1].observe(decisions[which], 1.0)
    federation.observe(1, decisions[2].id)
    federation.check(1)


def test_ids_of_two_starts_never_meet() -> None:
    federation = warm(DIS)
    first = {federation.choose(1).id for _ in range(5)}
    federation.restart(1, start=9)
    assert not first & {federation.choose(1).id for _ in range(5)}


def test_a_decision_of_another_client_is_refused_by_its_id() -> None:
    federation = warm(DIS)
    federation.restart(0, start=5)
    federation.restart(1, start=6)
    decision = federation.choose(0)
    with pytest.raises(UnknownDecision):
        federation.clients[1].observe(decision.id, 1.0)


# Servers


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
def test_a_server_is_the_fold_of_its_records_between_exchanges(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    federation.leave(0)
    federation.add(7, member=False)
    federation.greet(7)
    federation.drain()
    federation.sync(fired=1)
    by_records = restore_server(carried(federation.records[SERVER]), plan=federation.plan, term=0)[0]
    by_snapshot = restore_server(carried([snapshot_server(federation.server)]), plan=federation.plan, term=0)[0]
    saved = frozen(snapshot_server(federation.server))
    assert frozen(snapshot_server(by_records)) == saved
    assert frozen(snapshot_server(by_snapshot)) == saved


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
@pytest.mark.parametrize("compact", [False, True])
def test_a_server_killed_at_any_moment_goes_on(algorithm: Algorithm, compact: bool) -> None:
    moments = sum(1 for _ in every_interleaving(warm(algorithm), fired=1))
    for stop in range(moments):
        federation = warm(algorithm)
        for moment, _ in enumerate(every_interleaving(federation, fired=1)):
            if moment == stop:
                records: list[Record] | None = [snapshot_server(federation.server)] if compact else None
                federation.restart_server(term=5, records=records)
                federation.check_all()
                break
        federation.rest()
        federation.act_until_request(0)
        federation.rest()


# What is refused


def test_records_that_begin_in_the_middle_are_refused() -> None:
    federation = warm(DIS)
    for records in ([], federation.records[1][1:], [Finished()], federation.records[SERVER]):
        with pytest.raises(ProtocolError):
            restore_client(records, plan=DIS.plan(2), start=1)
    for records in ([], federation.records[SERVER][1:], federation.records[1]):
        with pytest.raises(ProtocolError):
            restore_server(records, plan=DIS.plan(2), term=1)


def test_work_that_was_finished_though_it_was_not_owed_is_refused() -> None:
    federation = warm(DIS)
    with pytest.raises(ProtocolError, match="not owed"):
        restore_client([*federation.records[1], Finished()], plan=DIS.plan(2), start=1)


@pytest.mark.parametrize("algorithm", EXCHANGING, ids=name)
def test_a_state_saved_for_another_plan_is_refused_and_the_parameter_is_named(algorithm: Algorithm) -> None:
    federation = warm(algorithm)
    other = DisKernelUCB(Gaussian(0.5), D=1.5) if algorithm is not LIN else DisLinUCB(D=9.0)
    clients: tuple[list[Record], ...] = (federation.records[0], [snapshot_client(federation.clients[0])])
    for records in clients:
        with pytest.raises(PlanMismatch, match=r"is .* here and .* there"):
            restore_client(carried(records), plan=other.plan(2), start=1)
    servers: tuple[list[Record], ...] = (federation.records[SERVER], [snapshot_server(federation.server)])
    for records in servers:
        with pytest.raises(PlanMismatch, match=r"is .* here and .* there"):
            restore_server(carried(records), plan=other.plan(2), term=1)


def test_a_save_is_never_restored_silently_under_another_kernel() -> None:
    federation = warm(DIS)
    with pytest.raises(PlanMismatch, match=r"kernel\.gamma is 2 here and 1 there"):
        restore_client(federation.records[0], plan=DisKernelUCB(Gaussian(2.0), D=1.5).plan(2), start=1)


# Damage that a checksum does not see


def saved(algorithm: Algorithm) -> ClientSnapshot:
    """A client with a belief, a tail, a history and open decisions, taken apart."""
    federation = Federation(algorithm, members=2)
    early = federation.choose(0).id
    federation.sync()
    federation.act(0)
    federation.choose(0)
    assert early in federation.clients[0].learner.pending
    record = carried([snapshot_client(federation.clients[0])])[0]
    assert isinstance(record, ClientSnapshot)
    return record


def without(arrays: dict[str, Floats], key: str) -> dict[str, Floats]:
    return {each: array for each, array in arrays.items() if each != key}


def longer(array: Floats) -> Floats:
    return np.concatenate([array, array[:1] if len(array) else np.zeros((1, *array.shape[1:]))])


def born(saved: ClientSnapshot, **changes: int) -> dict[str, Any]:
    return {"born": msgspec.structs.replace(saved.born, **changes)}


DAMAGES: dict[str, Callable[[ClientSnapshot], dict[str, Any]]] = {
    "number": lambda s: born(s, number=-1),
    "seed": lambda s: born(s, seed=-1),
    "clients": lambda s: born(s, clients=0),
    "state": lambda s: {"state": "DREAMING"},
    "wants": lambda s: {"wants": "MORE"},
    "covered below": lambda s: {"covered": -1},
    "covered beyond": lambda s: {"covered": len(s.rewards) + 1},
    "covered too few": lambda s: {"covered": s.covered - 1},
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
    "pending of another width": lambda s: {"pending": {key: np.zeros((1, 3)) for key in s.pending}},
}


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX, LOCAL, LONE], ids=name)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_save_that_does_not_fit_together_is_refused(
    algorithm: Algorithm, damage: Callable[[ClientSnapshot], dict[str, Any]]
) -> None:
    whole = saved(algorithm)
    restore_client([whole], plan=algorithm.plan(2), start=1)
    with pytest.raises(ProtocolError):
        restore_client(carried([msgspec.structs.replace(whole, **damage(whole))]), plan=algorithm.plan(2), start=1)


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
            restore_client([msgspec.structs.replace(whole, **{part: changed})], plan=algorithm.plan(2), start=1)


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
        client, _ = restore_client([msgspec.structs.replace(whole, **{part: arrays})], plan=algorithm.plan(2), start=1)
    except ProtocolError:
        return
    with np.errstate(all="ignore"):
        try:
            client.choose(np.eye(2))
        except ValueError as error:
            assert "overflow" in str(error)  # noqa: PT017


WHOLE: dict[Algorithm, ClientSnapshot] = {algorithm: saved(algorithm) for algorithm in (DIS, LIN, APPROX)}


def test_the_first_record_of_a_server_says_who_is_on_its_roster() -> None:
    federation = Federation(DIS, members=2)
    first = federation.records[SERVER][0]
    assert isinstance(first, Opened)
    assert first.members == ["0", "1"]
