"""What trying to break the protocol found: each was once wrong, and is named for what happens now."""

import dataclasses
from typing import Any

import msgspec
import numpy as np
import pytest

from laconic import (
    Client,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    LaconicUCB,
    Linear,
    NKernelUCB,
    Patience,
    Polynomial,
    Server,
    restore_client,
    restore_server,
    snapshot_client,
    snapshot_server,
)
from laconic.errors import InputError, KernelError, MergeFailed, RemoteProtocolError, UnknownDecision
from laconic.experiments.grid import Grid
from laconic.growing import GrowingPoints
from laconic.protocol import session
from laconic.protocol.learner import Decision, Learner
from laconic.protocol.messages import BLANK, Ask, Label, Leave, Payload, Request, Upload
from laconic.protocol.phases import ShareData
from laconic.protocol.phases.references import rows_of
from laconic.protocol.records import (
    Begun,
    Born,
    ClientSnapshot,
    Departed,
    Finished,
    Forgot,
    Installed,
    Joined,
    Learnt,
    Observed,
    Opened,
    Reborn,
    Received,
    Uploaded,
    decode_record,
    encode_record,
)
from laconic.protocol.roster import Status
from laconic.protocol.session import ClientState, Session
from laconic.protocol.wire import Int8Wire
from laconic.runtimes.network import SERVER, Network
from laconic.triggers import BudgetedVariance

DIS = DisKernelUCB(Gaussian(1.0), D=1e9)
LONE = DisKernelUCB(Gaussian(1.0), D=1e9, together=False)


def learnt(network: Network, number: int, count: int, *, seed: int = 0) -> None:
    draw = np.random.default_rng(seed)
    network.settle(number, network.clients[number].learn(draw.normal(size=(count, 2)), draw.normal(size=count)))


def flush(network: Network, number: int) -> None:
    network.settle(number, network.clients[number].flush())


@pytest.mark.parametrize("algorithm", [DIS, LONE], ids=["together", "alone"])
def test_a_client_that_was_once_started_without_its_state_is_still_counted_once(algorithm: DisKernelUCB) -> None:
    network = Network(algorithm.plan(2), clients=2, seed=0)
    learnt(network, 0, 5)
    flush(network, 0)
    real, blank = network.clients[0], Client(network.plan, number=0, name="0", member=False)
    for client in (blank, real):
        network.cut(0)
        network.clients[0] = client
        network.greet(0)
        network.drain()
    learnt(network, 1, 1, seed=1)
    for number in (1, 0, 1):
        flush(network, number)
    belief: Any = network.clients[1].learner.belief
    assert belief.observations == 6
    assert network.clients[0].learner.covered == 5


def test_a_flush_while_a_digest_is_absorbed_goes_up_afterwards() -> None:
    network = Network(LONE.plan(2), clients=2, seed=0)
    learnt(network, 1, 1)
    flush(network, 1)
    network.slow.add(0)
    flush(network, 0)
    learnt(network, 0, 3, seed=1)
    flush(network, 0)
    network.slow.clear()
    while network.owed[0]:
        network.finish(0)
    network.drain()
    assert len(network.server.log) == 4
    assert network.clients[0].state is ClientState.IDLE


def test_an_ask_of_a_sync_that_was_abandoned_is_dropped_when_it_comes_again() -> None:
    client = Client(DIS.plan(2), clients=2)
    for number in (1, 2):
        outcome = client.receive(Ask(epoch=Label(0, number), phase=0, fired=False))
        client.done(outcome.compute[0], outcome.compute[0].result())
    assert "over, or was abandoned" in (client.receive(Ask(epoch=Label(0, 1), phase=0, fired=False)).dropped or "")
    assert client.session.sync is not None
    assert client.session.sync.epoch == Label(0, 2)


def test_a_request_that_waits_outlasts_the_one_who_made_it() -> None:
    network = Network(DIS.plan(2), clients=3, seed=0, patience=Patience(seconds=10.0, quorum=3))
    network.post(0, network.clients[0].flush())
    network.deliver("up", 0)
    network.deliver("down", 1)
    network.deliver("up", 1)
    network.tick(11.0)  # only client 1 has answered
    network.server.receive(0, Leave())
    assert list(network.server.hub.requests) == [1]


def test_a_sync_that_falls_below_the_quorum_is_abandoned_at_once() -> None:
    server = Server(DIS.plan(2), members=[0, 1, 2], patience=Patience(quorum=3))
    server.receive(0, Request(epoch=BLANK))
    server.receive(1, Leave())
    assert server.hub.sync is None
    assert server.hub.requests


def test_a_request_made_while_others_sync_is_served_when_their_sync_fails() -> None:
    network = Network(DIS.plan(2), clients=2, seed=0, patience=Patience(seconds=10.0))
    server = network.server
    network.post(0, network.clients[0].flush())
    network.deliver("up", 0)
    network.deliver("down", 0)
    server.receive(0, network.take("up", 0))
    server.tick(11.0)  # client 1 has not answered, and the sync goes on without it
    assert not server.receive(1, Request(epoch=BLANK)).dropped
    server.done(server.owed[0], MemoryError())
    assert server.hub.sync is not None
    assert (server.hub.sync.epoch, server.hub.sync.fired) == (Label(0, 2), 1)


def test_patience_begins_when_somebody_tells_the_time() -> None:
    server = Server(DIS.plan(2), members=[0, 1], patience=Patience(seconds=10.0))
    server.receive(0, Request(epoch=BLANK))
    assert not server.tick(1.7e9).send
    assert server.tick(1.7e9 + 11.0).send
    with pytest.raises(InputError, match="finite"):
        server.tick(float("inf"))


def test_a_member_that_asks_again_and_again_is_noted_once() -> None:
    server = Server(DIS.plan(2), members=[0, 1], patience=Patience(quorum=3))
    for _ in range(5):
        server.receive(0, Request(epoch=BLANK))
    assert list(server.hub.requests) == [0]


def test_work_that_failed_fails_again_when_a_client_is_restored() -> None:
    network = Network(DIS.plan(2), clients=2, seed=0, keep=True)
    client = network.clients[1]
    network.post(0, network.clients[0].flush())
    network.deliver("up", 0)
    outcome = client.receive(network.take("down", 1))
    records = [client.born, *outcome.keep, *client.done(outcome.compute[0], MemoryError()).keep]
    twin, _ = restore_client(records, plan=network.plan, start=1)
    assert twin.state is client.state is ClientState.AWAY


class Fragile(Gaussian):
    """A kernel that fails once it is told to."""

    def __call__(self, X: Any, Y: Any) -> Any:
        if len(X) > FAILS_FROM[0]:
            raise KernelError("no more")
        return super().__call__(X, Y)


FAILS_FROM = [10**9]


def test_a_reward_that_cannot_be_learnt_leaves_everything_as_it_was() -> None:
    client = Client(NKernelUCB(Fragile()).plan(2))
    arms = np.eye(2)
    for _ in range(31):
        client.observe(client.choose(arms), 1.0)
    decision = client.choose(arms)
    FAILS_FROM[0] = 1
    try:
        with pytest.raises(KernelError):
            client.observe(decision, 1.0)
    finally:
        FAILS_FROM[0] = 10**9
    client.observe(decision, 1.0)
    assert client.learner.tail.rows.counts.sum() == client.count == 32


def test_a_decision_of_another_client_is_refused() -> None:
    mine, other = Client(DIS.plan(2), number=0), Client(DIS.plan(2), number=1)
    decision = other.choose([[1.0, 0.0]])
    with pytest.raises(UnknownDecision):
        mine.observe(decision, 1.0)
    mine.choose([[0.0, 1.0]])
    with pytest.raises(UnknownDecision, match="another"):
        mine.observe(decision, 1.0)
    with pytest.raises(UnknownDecision):
        mine.observe(Decision("7.ffffff", arm=0, mean=0.0, deviation=0.0, width=0.0, point=np.array([[1.0, 0.0]])), 1.0)
    with pytest.raises(UnknownDecision, match="Decision or its id"):
        mine.observe(5, 1.0)  # type: ignore[arg-type]


def test_numbers_that_no_message_could_carry_are_refused_at_the_start() -> None:
    with pytest.raises(InputError, match="term"):
        Server(DIS.plan(2), term=2**60)
    with pytest.raises(InputError, match="start"):
        restore_client([Client(DIS.plan(2)).born], plan=DIS.plan(2), start=2**60)


@pytest.mark.parametrize("reason", ["x" * 4097, 5, None])
def test_a_reason_to_leave_that_no_message_could_carry_is_refused(reason: Any) -> None:
    client = Network(DisKernelUCB(D=1.0).plan(2), clients=2, seed=0).clients[0]
    with pytest.raises(InputError, match="reason must be a text of up to 4096 letters"):
        client.leave(reason)
    assert client.state is ClientState.IDLE
    assert client.leave("x" * 4096).send


def test_a_restored_client_needs_a_state_of_its_own_kind() -> None:
    with pytest.raises(RemoteProtocolError, match="no records"):
        restore_client([], plan=DIS.plan(2), start=0)


# -- what a merge that fails leads to ----------------------------------------------------------------------------------


def test_who_spoils_a_merge_is_found_by_the_work_and_not_by_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(DIS.plan(2), clients=2, seed=0)
    network.slow.add(SERVER)  # the server's work waits
    network.settle(1, network.clients[1].learn([[0.5, 0.5]], [13.0]))
    flush(network, 0)
    (work,) = network.server.owed
    absorb = ShareData.absorb

    def fragile(self: ShareData, draft: Any, merged: Any) -> Any:
        if 13.0 in merged.values["rewards"]:
            raise KernelError("not this reward")
        return absorb(self, draft, merged)

    monkeypatch.setattr(ShareData, "absorb", fragile)
    with pytest.raises(MergeFailed, match="not this reward") as failed:
        work.result()
    assert failed.value.culprits == (1,)
    monkeypatch.setattr(ShareData, "culprits", None)  # an event that looked for them would fail
    network.server.done(work, failed.value)
    assert network.server.hub.sync is None
    assert [network.server.members[number].status for number in (0, 1)] == [Status.PRESENT, Status.ASIDE]


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": 7},
        {"name": "x" * 2000},
        {"name": "\ud800"},
        {"number": -1},
        {"number": 2**60},
        {"number": "0"},
        {"number": Grid((0, 1))},
        {"seed": -1},
        {"seed": 2**64},
        {"seed": 1.5},
        {"clients": 0},
        {"member": "yes"},
        {"start": True},
        {"term": None},
    ],
    ids=str,
)
def test_a_client_says_which_argument_it_cannot_take(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"^{next(iter(wrong))} "):
        Client(DIS.plan(2), **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": 3},
        {"members": "01"},
        {"members": [0, 0]},
        {"members": [0, -1]},
        {"members": ["a", 1]},
        {"members": [[0]]},
        {"patience": 30.0},
        {"term": -1},
        {"most_members": 0},
        {"most_members": "many"},
    ],
    ids=str,
)
def test_a_server_says_which_argument_it_cannot_take(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Server(DIS.plan(2), **wrong)


@pytest.mark.parametrize("side", [Client, Server])
def test_an_algorithm_is_not_taken_for_its_plan(side: Any) -> None:
    with pytest.raises(InputError, match=r"try DisKernelUCB\(…\)\.plan\(dim\)"):
        side(DIS)


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [2, 30, 50, 60, 64, 66, 76, 100, 140])
@pytest.mark.parametrize(
    "algorithm",
    [DIS, DisLinUCB(D=1e9), DisKernelUCB(Linear(), D=1e9), DisKernelUCB(Polynomial(degree=2), D=1e9)],
    ids=str,
)
@pytest.mark.parametrize(("features", "rewards"), [(1, 0), (0, 1), (1, 1)])
def test_what_a_client_learns_can_be_exchanged_and_restored(
    algorithm: Any, power: int, features: int, rewards: int
) -> None:
    network = Network(algorithm.plan(2), clients=2, seed=0)
    client, draw = network.clients[0], np.random.default_rng(0)
    X, y = draw.normal(size=(3, 2)) * 10.0 ** (power * features), draw.normal(size=3) * 10.0 ** (power * rewards)
    if rewards * power > 64 or (algorithm is not DIS and features * power > 2):  # λ is lost beside larger k(x, x)
        with pytest.raises(InputError, match="rescale"):
            client.learn(X, y)
        return
    outcome = client.learn(X, y)
    restore_client([decode_record(encode_record(snapshot_client(client)))], plan=network.plan, start=1)
    network.settle(0, outcome)
    flush(network, 0)
    assert client.learner.covered == 3
    for each in network.clients.values():
        restore_client([decode_record(encode_record(snapshot_client(each)))], plan=network.plan, start=1)


# -- interrupts --------------------------------------------------------------------------------------------------------


#: Where an event of a client changes something; each must come there, and is interrupted after it.
PLACES = {
    "choose": ("choose",),
    "observe": ("observed", "settle", "noted", "follow"),
    "learn": ("learnt", "follow"),
    "forget": ("settle", "noted"),
    "flush": ("stepped",),
    "receive": ("stepped",),
    "done": ("adopt", "stepped", "_drained"),
}


@pytest.mark.parametrize(("event", "place"), [(event, place) for event, places in PLACES.items() for place in places])
def test_an_interrupt_within_an_event_leaves_a_client_as_it_was(
    event: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(DIS.plan(2), clients=2, seed=0)
    network.slow.add(0)
    client = network.clients[0]
    decision = client.choose([[0.0, 1.0], [1.0, 0.0]])
    if event in ("receive", "done"):
        network.settle(1, network.clients[1].learn([[1.0, 1.0]], [1.0]))
        network.post(1, network.clients[1].flush())
        network.deliver("up", 1)
    if event == "done":
        network.drain()
        network.finish(0)
        network.drain()
    happens = {
        "choose": lambda: client.choose([[0.0, 1.0]]),
        "observe": lambda: client.observe(decision, 1.0),
        "learn": lambda: client.learn([[1.0, 2.0]], [0.5]),
        "forget": lambda: client.forget(decision.id),
        "flush": client.flush,
        "receive": lambda: client.receive(network.take("down", 0)),
        "done": lambda: client.done(network.owed[0][0], network.owed[0][0].result()),
    }
    before = encode_record(snapshot_client(client))
    owner: Any = next((each for each in (Learner, Client, session) if hasattr(each, place)), None)
    with monkeypatch.context() as patched:
        real = getattr(owner, place)

        def interrupted(*given: Any, **named: Any) -> Any:
            real(*given, **named)
            raise KeyboardInterrupt

        patched.setattr(owner, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            happens[event]()
    assert encode_record(snapshot_client(client)) == before


def test_points_whose_appending_was_interrupted_are_found_nowhere() -> None:
    points = GrowingPoints.empty(1).appended(np.array([[0.0]]))

    class Interrupting(dict[bytes, int]):
        def setdefault(self, key: bytes, row: int = 0) -> int:
            super().setdefault(key, row)
            raise KeyboardInterrupt

    interrupted = GrowingPoints(rows=points.rows, known=Interrupting(points.known))
    with pytest.raises(KeyboardInterrupt):
        interrupted.appended(np.array([[1.0], [2.0]]))
    after = GrowingPoints(rows=points.rows, known=dict(interrupted.known)).appended(np.array([[3.0], [1.0]]))
    assert [after.row_of(np.array([x])) for x in (0.0, 3.0, 1.0, 2.0)] == [0, 1, 2, -1]


# -- records that are repeated or missing ------------------------------------------------------------------------------


def lived(algorithm: DisKernelUCB) -> Network:
    """A network in which something of every kind has happened."""
    network = Network(algorithm.plan(2), clients=2, seed=0, keep=True)
    client = network.clients[0]
    for _ in range(2):
        pick, other = client.choose([[0.0, 1.0], [1.0, 0.0]]), client.choose([[0.5, 0.5]])
        network.records[0] += [pick.record, other.record]
        network.settle(0, client.observe(pick, 1.0))
        network.settle(0, client.forget(other.id))
        learnt(network, 1, 2)
        flush(network, 0)
        flush(network, 1)
    twin, outcome = restore_client(network.records[1], plan=network.plan, start=5)  # and once from an older backup
    network.add(2, member=False)
    network.cut(1)
    network.clients[1] = twin
    network.records[1] += outcome.keep
    for number in (1, 2):
        network.greet(number)
        network.drain()
    blank, kept = Client(network.plan, number=1, name="1", member=False), network.records[1]
    network.cut(1)
    network.records[1] = []
    network.clients[1] = blank
    network.greet(1)
    network.drain()
    network.records[1] = kept
    network.settle(2, network.clients[2].leave())
    return network


#: What comes twice is noticed; a message that comes twice is also no error where a network brings it.
ONCE = (Born, Observed, Learnt, Forgot, Finished, Opened, Joined, Departed, Reborn, Begun, Installed, Uploaded)


@pytest.mark.parametrize("algorithm", [DIS, LONE], ids=["together", "alone"])
def test_a_record_that_comes_twice_is_noticed(algorithm: DisKernelUCB) -> None:
    network = lived(algorithm)
    for who in (0, 1, SERVER):
        records = network.records[who]
        for place, record in enumerate(records):
            if isinstance(record, ONCE):
                with pytest.raises(RemoteProtocolError, match=rf"record {place + 1}, .* each once and in order"):
                    restored(network, who, [*records[: place + 1], record])
    kept = {type(record) for records in network.records.values() for record in records}
    assert kept >= set(ONCE) - ({Begun, Installed} if algorithm is LONE else {Uploaded})


def test_a_message_that_was_taken_is_not_taken_again_from_its_record() -> None:
    network = lived(DIS)
    records = network.records[0]
    message = next(record for record in records if isinstance(record, Received))
    with pytest.raises(RemoteProtocolError, match="would have been dropped"):
        restored(network, 0, [*records, message])


@pytest.mark.parametrize("algorithm", [DIS, LONE], ids=["together", "alone"])
def test_an_observation_that_is_missing_is_noticed_by_what_follows_it(algorithm: DisKernelUCB) -> None:
    network = lived(algorithm)
    for who in (0, 1, SERVER):
        records = network.records[who]
        restored(network, who, records)
        kinds: tuple[type, ...] = (Born, Opened, Joined, Observed, Learnt, Uploaded, Begun)
        last = {number: place for place, number in enumerate(map(_whose, records))}
        for place, record in enumerate(records):
            if isinstance(record, kinds) and place < last[_whose(record)]:
                with pytest.raises(RemoteProtocolError, match="each once and in order"):
                    restored(network, who, [*records[:place], *records[place + 1 :]])


def _whose(record: Any) -> int:
    """The member whose observations a record of a server brings; −1 for others."""
    return record.number if isinstance(record, Uploaded) else -1


def test_a_snapshot_of_another_time_is_noticed_among_records() -> None:
    network = lived(DIS)
    early = restored(network, 0, network.records[0][:5])
    with pytest.raises(RemoteProtocolError, match="a snapshot of"):
        restored(network, 0, [*network.records[0], snapshot_client(early)])
    with pytest.raises(RemoteProtocolError, match="a snapshot of another state"):
        restored(network, SERVER, [*network.records[SERVER], snapshot_server(Server(network.plan))])
    restored(network, 0, [*network.records[0], snapshot_client(network.clients[0])])
    restored(network, SERVER, [*network.records[SERVER], snapshot_server(network.server)])


def restored(network: Network, who: int, records: list[Any]) -> Any:
    if who == SERVER:
        return restore_server(records, plan=network.plan, term=77)[0]
    return restore_client(records, plan=network.plan, start=77)[0]


# -- greetings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [DIS, LONE], ids=["together", "alone"])
def test_a_greeting_that_comes_twice_on_one_link_is_answered_once(algorithm: DisKernelUCB) -> None:
    network = Network(algorithm.plan(2), clients=2, seed=0)
    network.cut(0)
    network.greet(0)
    hello = network.up[0][0]
    network.drain()
    learnt(network, 0, 3)
    flush(network, 0)
    again = network.server.receive(network.links[0], hello)  # it says that there are no observations
    assert "repeated greeting" in (again.dropped or "")
    assert not again.send
    learnt(network, 0, 2, seed=1)
    flush(network, 0)
    assert network.server.members[0].known == 5
    assert network.clients[0].state is ClientState.IDLE


def test_a_greeting_that_comes_twice_does_not_take_a_client_out_of_its_sync() -> None:
    network = Network(DIS.plan(2), clients=2, seed=0, patience=Patience(seconds=10.0, quorum=2))
    network.cut(0)
    network.greet(0)
    hello = network.up[0][0]
    network.drain()
    network.slow.add(1)
    flush(network, 0)  # its part is in; that of client 1 is not
    network.server.receive(network.links[0], hello)
    network.tick(20.0)
    network.drain()
    assert network.clients[0].state is ClientState.WAITING  # the sync was abandoned, and is tried again
    assert 0 in network.server.hub.requests


def test_a_client_that_greets_again_on_one_link_is_answered_again() -> None:
    network = Network(DIS.plan(2), clients=1, seed=0)
    client = network.clients[0]
    for _ in range(3):
        network.settle(0, client.greet())
        assert client.state is ClientState.IDLE


def test_a_snapshot_has_every_field_of_a_session() -> None:
    kept = {field.name for field in msgspec.structs.fields(ClientSnapshot)}
    of_the_client = {"name", "alone"}  # in the record of its birth, and in its plan
    assert {field.name for field in dataclasses.fields(Session)} <= kept | of_the_client
    client = Client(DIS.plan(2), member=False)
    client.greet()
    twin, _ = restore_client([snapshot_client(client)], plan=client.plan, start=1)
    assert twin.session.greetings == 1


def test_a_trigger_that_looks_at_bytes_is_refused_where_all_sync() -> None:
    plan = DIS.plan(2)
    with pytest.raises(InputError, match="needs a digest"):
        dataclasses.replace(plan, trigger=BudgetedVariance(0.5, budget=1e4))


# -- hostile or extreme payloads ---------------------------------------------------------------------------------------

WHOLE = np.array([2**64 - 1], dtype=np.uint64)
HALF = np.zeros(1, dtype=np.float16)


@pytest.mark.parametrize(
    "values",
    [
        {"rewards": np.array(0.0, np.float16)},
        {"ids": WHOLE, "rewards": HALF},
        {"points": np.zeros((1, 2), np.int8), "ids": WHOLE, "rewards": np.zeros(2, np.float16)},
    ],
    ids=["rewards without an axis", "a number that turns negative", "a number that turns into the last point"],
)
def test_an_upload_that_no_client_makes_sets_its_sender_aside(values: dict[str, Any]) -> None:
    server = Server(LaconicUCB(Gaussian(1.0)).plan(2), members=[0, 1])
    outcome = server.receive(0, Upload(first=0, payload=Payload(values=values), ask=True))
    assert outcome.dropped
    assert server.hub.members[0].status is Status.ASIDE
    assert len(server.log) == 0


def test_numbers_of_dictionary_points_are_of_the_types_that_clients_send() -> None:
    with pytest.raises(RemoteProtocolError, match="uint64"):
        rows_of(Payload(values={"ids": WHOLE}), 2)


def test_points_as_they_are_come_with_no_certificate_that_could_be_refused() -> None:
    algorithm = LaconicUCB(Polynomial(degree=2), lam=0.1, alpha=0.1, ranges=300.0)
    draw = np.random.default_rng(0)
    network = Network(algorithm.plan(2), clients=4, seed=0, strict=True)
    points = draw.normal(size=(5, 2)) * 300.0
    for _ in range(25):
        for number, client in network.clients.items():
            network.settle(number, client.learn(points[draw.integers(5, size=4)], draw.normal(size=4)))
    assert all(client.state is not ClientState.AWAY for client in network.clients.values())


@pytest.mark.parametrize(("form", "dtype"), [(0, np.int8), (1, np.int16)])
def test_a_coordinate_that_no_rounding_gives_is_refused(form: int, dtype: Any) -> None:
    low = np.iinfo(dtype).min
    assert Int8Wire().unpacked(form, np.array([[low + 1]], dtype)) == -1.0
    with pytest.raises(RemoteProtocolError, match="no rounding gives"):
        Int8Wire().unpacked(form, np.array([[low]], dtype))
