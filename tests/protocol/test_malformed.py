"""Messages that decode but that no correct peer sends: refused, with nothing changed, and the right one still works."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from laconic import ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, NKernelUCB, Plan, Polynomial, ShareData
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, FiniteBelief
from laconic.errors import KernelError, ProtocolError
from laconic.exploration import Fixed
from laconic.protocol.client import Client
from laconic.protocol.messages import (
    BLANK,
    Ask,
    Digested,
    Install,
    Label,
    Leave,
    Merged,
    Newer,
    Part,
    Payload,
    Released,
    Request,
    Upload,
    payload_of,
)
from laconic.protocol.roster import Status
from laconic.protocol.server import Server, ServerState
from laconic.protocol.session import ClientState
from laconic.runtimes.network import Network
from laconic.triggers import Every
from tests.protocol.federation import APPROX, DIS, LIN, LOCAL, LONE, PARTS, Federation, name, snapshot
from tests.protocol.test_coverage import warm

Change = Callable[[Payload], Payload]


def values(**changed: Callable[[Floats], Floats]) -> Change:
    """The payload with some arrays changed."""
    return lambda payload: Payload(
        values={key: changed.get(key, np.asarray)(array) for key, array in payload.values.items()},
        control=payload.control,
    )


def fields(**control: float) -> Change:
    """The payload with some control fields changed."""
    return lambda payload: Payload(values=payload.values, control=payload.control | control)


def entry(value: float) -> Callable[[Floats], Floats]:
    """An array with its first entry replaced."""

    def changed(array: Floats) -> Floats:
        array = array.copy()
        array.flat[0] = value
        return array

    return changed


def without(key: str) -> Change:
    return lambda payload: Payload(
        values={each: array for each, array in payload.values.items() if each != key}, control=payload.control
    )


def more(payload: Payload) -> Payload:
    return Payload(values=payload.values | {"more": np.zeros(2)}, control=payload.control)


def skewed(gram: Floats) -> Floats:
    return gram + np.triu(np.full_like(gram, 0.5), 1)


POINTS: dict[str, Change] = {
    "no rewards": without("rewards"),
    "no points": without("points"),
    "something more": more,
    "a reward too few": values(rewards=lambda y: y[:-1]),
    "rewards of two axes": values(rewards=lambda y: y[:, None]),
    "points of one axis": values(points=np.ravel),
    "a feature too many": values(points=lambda X: np.hstack([X, X[:, :1]])),
    "a feature too few": values(points=lambda X: X[:, :1]),
    "a point that is not finite": values(points=entry(np.nan)),
    "a reward that is not finite": values(rewards=entry(-np.inf)),
    "a point whose square overflows": values(points=entry(1e200)),
    "a reward whose square overflows": values(rewards=entry(-1e300)),
}
STATISTICS: dict[str, Change] = {
    "nothing": lambda payload: Payload(),
    "no gram": without("gram"),
    "no moment": without("moment"),
    "something more": more,
    "a gram too large": values(gram=lambda G: np.eye(len(G) + 1)),
    "a gram of one axis": values(gram=np.ravel),
    "a gram that is not square": values(gram=lambda G: G[:, :-1]),
    "a moment too long": values(moment=lambda b: np.append(b, 0.0)),
    "a moment of two axes": values(moment=lambda b: b[:, None]),
    "both too large": lambda payload: Payload(values={"gram": np.eye(40), "moment": np.zeros(40)}),
    "a gram that is not symmetric": values(gram=skewed),
    "a negative diagonal": values(gram=lambda G: -np.eye(len(G))),
    "an entry above the diagonal's": values(gram=lambda G: np.where(np.eye(len(G)) > 0, 1.0, 3.0)),
    "a gram that is not a number": values(gram=entry(np.nan)),
    "a gram that is not finite": values(gram=entry(np.inf)),
    "a gram that overflows": values(gram=lambda G: np.eye(len(G)) * 1e300),
    "a moment that is not finite": values(moment=entry(np.inf)),
    "a moment that overflows": values(moment=entry(1e300)),
    "a negative count": fields(count=-1.0),
    "half a count": fields(count=0.5),
    "a count that is not finite": fields(count=float("nan")),
    "a negative prior": fields(prior=-1.0),
    "a prior that overflows": fields(prior=1e300),
    "a trace above the prior": fields(prior=1e-3),
    "a moment above what the squares allow": fields(squares=0.0),
    "squares that are not a number": fields(squares=float("nan")),
    "negative squares": fields(squares=-1.0),
    "a moment that is too large": values(moment=lambda b: b + 1e3),
    "an indefinite gram of small entries": values(gram=lambda G: 0.1 * (2.0 * np.eye(len(G)) - np.ones_like(G))),
    "a gram a little askew": values(gram=lambda G: G + 1e-3 * np.triu(np.ones_like(G), 1)),
}
#: Keeps every point for the dictionary, so that no part is empty.
KEEP = ApproxDisKernelUCB(**PARTS, D=2.5, qbar=1e9)


def cases(*kinds: tuple[Algorithm, int, dict[str, Change]]) -> pytest.MarkDecorator:
    """One case for each phase of an algorithm and each way to spoil its payload."""
    return pytest.mark.parametrize(
        ("algorithm", "phase", "change"),
        [
            pytest.param(algorithm, phase, change, id=f"{name(algorithm)}-{phase}-{what}")
            for algorithm, phase, changes in kinds
            for what, change in changes.items()
        ],
    )


def before(kind: type, algorithm: Algorithm, *, phase: int = 0) -> Federation:
    """A sync stopped where client 1's message of this kind is the next in its queue."""
    federation = warm(algorithm)
    federation.act_until_request(1)
    queue: Any = federation.up[1] if kind is Part else federation.down[1]
    while not (queue and isinstance(queue[0], kind) and getattr(queue[0], "phase", phase) == phase):
        federation.step(*federation.waiting()[0])
    return federation


def with_payload(message: Any, payload: Payload) -> Any:
    """The message with another payload."""
    return msgspec.structs.replace(message, payload=payload)


def refused(side: Client | Server, receive: Callable[[], object], error: type[Exception] = ProtocolError) -> None:
    """The call raises and changes nothing."""
    was = snapshot(side)
    with pytest.raises(error):
        receive()
    assert snapshot(side) == was


def finishes(federation: Federation) -> None:
    """Whoever is away greets anew, and all is well."""
    federation.rest()
    assert federation.present == list(federation.clients)


def set_aside(federation: Federation, bad: Any, why: str = "") -> None:
    """Who sends this is set aside with a reason, the others finish without it, and it is back when it greets anew."""
    epoch = federation.server.epoch
    federation.take("up", 1)
    outcome = federation.server.receive(federation.links[1], bad)
    assert outcome.dropped
    assert why in outcome.dropped
    assert federation.status(1) is Status.ASIDE
    federation.post_down(outcome)
    federation.drain()
    assert federation.server.epoch.number == epoch.number + 1
    assert federation.clients[1].state is ClientState.AWAY
    assert federation.present == [0, 2]
    federation.check_all()
    finishes(federation)


# A server and parts


@cases((DIS, 0, POINTS), (KEEP, 0, POINTS), (LIN, 0, STATISTICS), (KEEP, 1, STATISTICS))
def test_who_sends_a_malformed_part_is_set_aside_and_the_others_go_on(
    algorithm: Algorithm, phase: int, change: Change
) -> None:
    federation = before(Part, algorithm, phase=phase)
    part = federation.up[1][0]
    with np.errstate(all="ignore"):
        set_aside(federation, with_payload(part, change(payload_of(part))))


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize("phase", [2, 2**53 - 1])
def test_who_sends_a_part_of_a_phase_that_has_not_begun_is_set_aside(algorithm: Algorithm, phase: int) -> None:
    federation = before(Part, algorithm)
    set_aside(federation, msgspec.structs.replace(federation.up[1][0], phase=phase), f"is in phase {phase}")


@pytest.mark.parametrize("epoch", [Label(0, 3), Label(0, 2**53 - 1), Label(7, 2), BLANK], ids=str)
def test_a_part_of_an_epoch_that_is_not_under_way_is_dropped(epoch: Label) -> None:
    federation = before(Part, APPROX)
    was, bad = snapshot(federation.server), msgspec.structs.replace(federation.up[1][0], epoch=epoch)
    assert "not under way" in (federation.server.receive(1, bad).dropped or "")
    assert snapshot(federation.server) == was
    finishes(federation)


@pytest.mark.parametrize(("algorithm", "phase"), [(DIS, 0), (LIN, 0), (APPROX, 1)], ids=["dis", "lin", "approx"])
@pytest.mark.parametrize("by", [-2, -1, 1, 1000])
def test_who_sends_a_part_of_more_or_fewer_points_than_it_claims_is_set_aside(
    algorithm: Algorithm, phase: int, by: int
) -> None:
    federation = before(Part, algorithm, phase=phase)
    part = federation.up[1][0]
    assert isinstance(part, Part)
    set_aside(federation, msgspec.structs.replace(part, upto=part.upto + by))


def test_a_client_that_owns_a_few_points_cannot_propose_3000_of_them() -> None:
    federation = before(Part, KEEP)
    part = federation.up[1][0]
    assert isinstance(part, Part)
    many = np.random.default_rng(0).normal(size=(3000, 2))
    bad = with_payload(part, Payload(values={"points": many, "rewards": np.zeros(3000)}))
    set_aside(federation, bad, f"3000 points are proposed by a client that has {part.upto}")


@pytest.mark.parametrize("by", [-1, 1, 3000])
def test_who_has_other_observations_in_a_later_phase_than_in_the_first_is_set_aside(by: int) -> None:
    federation = before(Part, APPROX, phase=1)
    part = federation.up[1][0]
    assert isinstance(part, Part)
    payload = payload_of(part)
    control = {key: value + by for key, value in payload.control.items() if key in ("count", "prior")}
    bad = with_payload(part, msgspec.structs.replace(payload, control=payload.control | control))
    set_aside(federation, msgspec.structs.replace(bad, upto=part.upto + by), f"had {part.upto} in phase 0")


@pytest.mark.parametrize("dtype", ["u4", "f8"])
def test_hashes_that_are_not_those_of_the_new_observations_are_refused(dtype: str) -> None:
    federation = before(Part, LIN)
    part = federation.up[1][0]
    payload = msgspec.structs.replace(payload_of(part), records={"hashes": np.zeros(99, dtype)})
    set_aside(federation, with_payload(part, payload), "are new")


def test_a_request_from_the_future_is_dropped() -> None:
    federation = warm(DIS)
    assert federation.server.receive(0, Request(epoch=Label(0, 2))).dropped
    assert federation.server.receive(0, Request(epoch=Label(3, 1))).dropped
    finishes(federation)


def test_a_payload_of_nothing_proposes_no_point_for_a_dictionary() -> None:
    federation = Federation(APPROX, members=2)
    federation.sync()
    known, size = [len(federation.observed[number]) for number in (0, 1)], federation.server.belief.dictionary_size
    federation.to_server(0, Request(epoch=Label(0, 1)))
    for number in (0, 1):
        federation.to_server(number, Part(epoch=Label(0, 2), phase=0, upto=known[number], payload=Payload()))
    assert federation.phase == 1
    assert federation.server.hub.sync is not None
    assert federation.server.hub.sync.draft.dictionary_size == size


def test_a_plan_without_phases_refuses_syncs() -> None:
    plan = NKernelUCB().plan(2)
    server, client = Server(plan, members=[0]), Client(plan, number=0, seed=0, clients=1)
    refused(server, lambda: server.receive(0, Request(epoch=BLANK)))
    refused(server, lambda: server.receive(0, Upload(first=0, payload=Payload(), ask=True)))
    refused(client, lambda: client.receive(Ask(epoch=Label(0, 1), phase=0, fired=True)))


@dataclass(frozen=True)
class Fragile(ShareData):
    """Merging fails where two points are opposite, and of one point alone where it is 9."""

    name: ClassVar[str] = "fragile"

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        points = merged.values["points"]
        if len(points) > 1 and np.array_equal(points[0], -points[1]):
            raise KernelError("opposite points")
        if (points == 9.0).any():
            raise KernelError("nine")
        return super().absorb(draft, merged)


def one_point(x: float) -> Part:
    """A part of one point."""
    payload = Payload(values={"points": np.array([[x]]), "rewards": np.array([1.0])})
    return Part(epoch=Label(0, 1), phase=0, upto=1, payload=payload)


def fragile(*points: float) -> Network:
    """Parts of these points, which pass their checks alone, on the way into a merge."""
    belief = ExactBelief.empty(kernel=Gaussian(1.0), lam=1.0, dim=1)
    plan = Plan(belief=belief, trigger=Every(10**9), phases=(Fragile(),), confidence=Fixed(1.0))
    network = Network(plan, clients=len(points), seed=0)
    network.to_server(0, Request(epoch=BLANK))
    for number, point in enumerate(points):
        network.deliver("down", number)
        network.take("up", number)
        network.to_server(number, one_point(point))
    return network


def test_a_merge_that_fails_abandons_the_sync_and_everyone_is_told() -> None:
    network = fragile(1.0, -1.0, 0.0)
    assert network.server.state is ServerState.IDLE
    assert network.server.epoch == BLANK
    assert [type(network.down[number][0]) for number in range(3)] == [Released] * 3
    network.drain()
    assert {client.state for client in network.clients.values()} == {ClientState.IDLE}


def test_a_flush_that_a_failed_merge_ended_keeps_nobody_waiting() -> None:
    network = fragile(1.0, -1.0)
    client = network.clients[0]
    network.drain()
    network.post(0, client.flush())
    network.deliver("up", 0)
    for number, point in ((0, 1.0), (1, -1.0)):
        while network.down[number]:
            network.deliver("down", number)
        network.take("up", number)
        network.to_server(number, msgspec.structs.replace(one_point(point), epoch=Label(0, 2)))
    network.drain()
    assert client.state is ClientState.IDLE
    network.settle(0, client.flush())  # it may ask again
    assert network.server.epoch.number == 3


def test_whose_part_cannot_be_absorbed_even_alone_is_set_aside_after_a_failed_merge() -> None:
    network = fragile(1.0, 9.0, 0.0)
    network.drain()
    statuses = [network.server.members[number].status for number in range(3)]
    assert statuses == [Status.PRESENT, Status.ASIDE, Status.PRESENT]


def sums(gram: Floats) -> Payload:
    """Statistics with this Gram matrix, of one point."""
    control = {"prior": float(np.trace(gram)), "count": 1.0, "squares": 1.0}
    hashes = np.zeros(1, dtype=np.uint64)
    return Payload(values={"gram": gram, "moment": np.zeros(len(gram))}, control=control, records={"hashes": hashes})


#: Symmetric, no entry larger than the diagonal's, and yet of no points.
INDEFINITE = 50.0 * (2.0 * np.eye(3) - 1.0)


@pytest.mark.parametrize("last", [0, 1], ids=["first", "last"])
def test_one_indefinite_gram_is_found_out_whoever_sends_last_and_the_innocent_go_on(last: int) -> None:
    network = Network(DisLinUCB().plan(3), clients=3, seed=0)
    network.to_server(0, Request(epoch=BLANK))
    parts = {number: Part(epoch=Label(0, 1), phase=0, upto=1, payload=sums(np.eye(3))) for number in (0, 2)}
    bad = Part(epoch=Label(0, 1), phase=0, upto=1, payload=sums(INDEFINITE))
    for number in (0, 2, 1) if last else (1, 0, 2):
        network.to_server(number, bad if number == 1 else parts[number])
    assert network.server.members[1].status is Status.ASIDE
    assert isinstance(network.server.belief, FiniteBelief)
    np.testing.assert_array_equal(network.server.belief.statistics.gram, 2 * np.eye(3))
    assert network.to_server(2, Leave()).dropped is None
    assert network.server.members[2].status is Status.LEFT


def test_points_on_which_a_kernel_overflows_are_not_installed() -> None:
    network = Network(DisKernelUCB(Polynomial(degree=9)).plan(1), clients=2, seed=0)
    network.to_server(0, Request(epoch=BLANK))
    with np.errstate(all="ignore"):
        assert "overflows" in (network.to_server(0, one_point(1e100)).dropped or "")
    network.to_server(1, one_point(1.0))
    assert network.server.epoch == Label(0, 1)


# A client and what comes down


def survives(federation: Federation, bad: Any, who: int = 1) -> None:
    """A client refuses a message at once and nothing changes, or finds it out at work and begins anew."""
    client, was = federation.clients[who], snapshot(federation.clients[who])
    belief = client.learner.belief
    try:
        outcome = client.receive(bad)
    except ProtocolError:
        assert snapshot(client) == was
        finishes(federation)
        return
    assert outcome.compute
    with np.errstate(all="ignore"):
        federation.post(who, outcome)
    assert client.state is ClientState.AWAY
    assert client.learner.belief is belief
    federation.cut(who)
    finishes(federation)


@cases((KEEP, 0, POINTS))
def test_a_client_survives_a_malformed_dictionary(algorithm: Algorithm, phase: int, change: Change) -> None:
    federation = before(Merged, algorithm, phase=phase)
    merged = federation.down[1][0]
    survives(federation, with_payload(merged, change(payload_of(merged))))


@cases((DIS, 0, POINTS), (LIN, 0, STATISTICS), (KEEP, 1, STATISTICS))
def test_a_client_survives_a_malformed_install(algorithm: Algorithm, phase: int, change: Change) -> None:
    federation = before(Install, algorithm, phase=phase)
    install = federation.down[1][0]
    survives(federation, with_payload(install, change(payload_of(install))))


@pytest.mark.parametrize("offset", [-1.0, 0.5, 1e9, 1e300, float("nan"), float("inf")])
def test_a_client_survives_an_offset_where_there_is_no_place_for_its_points(offset: float) -> None:
    federation = before(Install, DIS)
    install = federation.down[1][0]
    survives(federation, with_payload(install, fields(offset=offset)(payload_of(install))))


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize("change", [{"covered": 0}, {"covered": 99}, {"covered": -1}, {"clients": 0}], ids=str)
def test_a_client_refuses_an_install_whose_numbers_are_wrong(algorithm: Algorithm, change: dict[str, int]) -> None:
    federation = before(Install, algorithm)
    client = federation.clients[1]
    bad = msgspec.structs.replace(federation.down[1][0], **change)
    refused(client, lambda: client.receive(bad))
    finishes(federation)


def test_a_client_refuses_an_install_that_would_lose_or_repeat_points() -> None:
    """Points came in while the sync ran: the belief has just those that were sent."""
    for wrong in (-1, 1):
        federation = before(Install, DIS)
        federation.act(1, times=2)
        client, install = federation.clients[1], federation.down[1][0]
        assert isinstance(install, Install)
        bad = msgspec.structs.replace(install, covered=install.covered + wrong)
        refused(client, lambda client=client, bad=bad: client.receive(bad))  # type: ignore[misc]
        finishes(federation)


@pytest.mark.parametrize("phase", [1, 2, 2**53 - 1, -1])
def test_a_client_refuses_the_result_of_another_phase(phase: int) -> None:
    federation = before(Merged, APPROX)
    client = federation.clients[1]
    bad = msgspec.structs.replace(federation.down[1][0], phase=phase)
    if phase < 0:  # of a phase that is over, so it is late
        assert client.receive(bad).dropped
    else:
        refused(client, lambda: client.receive(bad))
    finishes(federation)


@pytest.mark.parametrize("phase", [1, 7])
def test_a_client_refuses_to_begin_a_sync_in_its_middle(phase: int) -> None:
    federation = warm(APPROX)
    client = federation.clients[1]
    refused(client, lambda: client.receive(Ask(epoch=Label(0, 2), phase=phase, fired=False)))


def test_a_client_refuses_to_install_before_the_last_phase() -> None:
    federation = before(Merged, APPROX)
    client = federation.clients[1]
    early = Install(epoch=Label(0, 2), covered=client.count, clients=3, payload=Payload())
    refused(client, lambda: client.receive(early))
    finishes(federation)


def test_a_client_without_points_takes_part_when_it_is_told_that_it_fired() -> None:
    for algorithm in (APPROX, LOCAL):
        network = Network(algorithm.plan(2), clients=1, seed=0)
        network.to_client(0, Ask(epoch=Label(0, 1), phase=0, fired=True))
        assert payload_of(network.up[0][0]).scalars == 0


# Newer beliefs


def joining(algorithm: Algorithm) -> tuple[Federation, Newer]:
    """A newcomer, client 7, with points of its own was welcomed, and the belief is on its way."""
    federation = warm(algorithm)
    installed = replace(federation.server.hub.installed, increments=())  # so that the whole belief is sent
    federation.server.hub = replace(federation.server.hub, installed=installed)
    federation.add(7, member=False)
    federation.act(7, times=2)
    federation.greet(7)
    federation.deliver_up(7)
    federation.deliver_down(7)
    newer = federation.down[7][0]
    assert isinstance(newer, Newer)
    assert newer.whole
    return federation, newer


def spoilt(arrays: dict[str, Floats]) -> Iterator[dict[str, Floats]]:
    """All the ways in which arrays may be missing, misshapen or not finite."""
    yield arrays | {"more": np.zeros(1)}
    for key, array in arrays.items():
        yield {each: other for each, other in arrays.items() if each != key}
        yield arrays | {key: np.array(1.0)}
        yield arrays | {key: array[None]}
        yield arrays | {key: np.concatenate([array, np.ones((1, *array.shape[1:]))])}
        if array.size:
            for value in (np.nan, np.inf, -np.inf, 1e200):
                yield arrays | {key: entry(value)(array)}


SPOILT: dict[str, tuple[Algorithm, str, Callable[[Floats], Floats]]] = {
    "a point counted zero times": (DIS, "counts", entry(0.0)),
    "a point counted half a time": (DIS, "counts", entry(1.5)),
    "steps that are too few": (DIS, "growth", lambda growth: growth[:-1]),
    "a step of nothing": (DIS, "growth", lambda growth: np.append(growth, 0.0)),
    "a step of half a point": (DIS, "growth", lambda growth: np.append(growth[:-1], [growth[-1] - 0.5, 0.5])),
    "steps back": (DIS, "growth", lambda growth: np.append(growth, [-1.0, 1.0])),
    "a gram that is not symmetric": (LIN, "gram", skewed),
    "a gram with a negative diagonal": (LIN, "gram", lambda gram: -np.eye(2)),
    "a negative count": (LIN, "totals", lambda totals: -totals),
}


@pytest.mark.parametrize("algorithm", [DIS, LIN, KEEP, LOCAL], ids=name)
def test_a_client_survives_a_belief_whose_arrays_are_spoilt(algorithm: Algorithm) -> None:
    payload = joining(algorithm)[1].payload
    for arrays in spoilt(payload.values | payload.records):
        federation, newer = joining(algorithm)
        survives(federation, with_payload(newer, Payload(values=arrays)), who=7)


@pytest.mark.parametrize(("algorithm", "key", "change"), SPOILT.values(), ids=SPOILT)
def test_a_client_survives_a_belief_of_no_points(
    algorithm: Algorithm, key: str, change: Callable[[Floats], Floats]
) -> None:
    federation, newer = joining(algorithm)
    arrays = newer.payload.values | newer.payload.records
    survives(federation, with_payload(newer, Payload(values=arrays | {key: change(arrays[key])})), who=7)


def test_a_client_survives_the_belief_of_another_algorithm() -> None:
    three: list[Algorithm] = [DIS, LIN, KEEP]
    payloads = [joining(algorithm)[1].payload for algorithm in three]
    for own, algorithm in enumerate(three):
        for other, payload in enumerate(payloads):
            if other != own and not (algorithm is DIS and other == 2):  # an exact model may be a cold start
                federation, newer = joining(algorithm)
                survives(federation, with_payload(newer, payload), who=7)


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize("change", [{"covered": 30}, {"clients": 0}], ids=str)
def test_a_client_survives_a_newer_belief_whose_numbers_are_wrong(algorithm: Algorithm, change: dict[str, int]) -> None:
    federation, newer = joining(algorithm)
    survives(federation, msgspec.structs.replace(newer, **change), who=7)


@pytest.mark.parametrize("steps", [[1], [99], [], [2**31, 2**31]], ids=str)
def test_a_client_survives_increments_that_do_not_add_up(steps: list[int]) -> None:
    federation = warm(DIS)
    federation.cut(1)
    federation.sync(fired=0)
    federation.greet(1)
    federation.deliver_up(1)
    federation.deliver_down(1)
    newer = federation.down[1][0]
    assert isinstance(newer, Newer)
    assert not newer.whole
    payload = msgspec.structs.replace(newer.payload, records={"steps": np.array(steps, dtype=np.uint32)})
    survives(federation, with_payload(newer, payload))


# Alone


@pytest.mark.parametrize("change", POINTS.values(), ids=POINTS)
def test_who_uploads_nonsense_is_set_aside_and_nothing_of_it_is_logged(change: Change) -> None:
    federation = warm(LONE)
    federation.act_until_request(1)
    upload, length = federation.take("up", 1), len(federation.server.log)
    with np.errstate(all="ignore"):
        outcome = federation.server.receive(1, with_payload(upload, change(payload_of(upload))))
    assert outcome.dropped
    assert federation.status(1) is Status.ASIDE
    assert len(federation.server.log) == length
    federation.post_down(outcome)
    finishes(federation)
    assert federation.member(1).known == len(federation.observed[1])


def test_who_uploads_with_a_gap_is_set_aside() -> None:
    federation = warm(LONE)
    federation.act_until_request(1)
    upload = federation.take("up", 1)
    outcome = federation.server.receive(1, msgspec.structs.replace(upload, first=upload.first + 1))
    assert "are known" in (outcome.dropped or "")
    assert federation.status(1) is Status.ASIDE


@pytest.mark.parametrize("change", [*POINTS.values(), lambda p: msgspec.structs.replace(p, records={})])
def test_a_client_survives_a_malformed_digest(change: Change) -> None:
    federation = warm(LONE)
    for number in (0, 1):
        federation.flush(number)
        federation.deliver_up(number)
    (digested,) = (message for message in federation.down[1] if isinstance(message, Digested))
    bad = change(payload_of(digested))
    records = bad.records if "runs" in bad.records or not bad.values else digested.payload.records
    survives(federation, with_payload(digested, msgspec.structs.replace(bad, records=records if bad.records else {})))


@pytest.mark.parametrize("kind", [Part, Merged, Install])
def test_after_a_refusal_a_client_gets_on_by_a_new_link(kind: type) -> None:
    """The right message never comes."""
    federation = before(kind, KEEP)
    federation.reconnect(1)
    finishes(federation)
    assert federation.clients[1].state is ClientState.IDLE
