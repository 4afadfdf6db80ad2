"""Messages that decode but that no correct peer sends: refused, with nothing changed, and the right one still works."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from laconic import (
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    LaconicError,
    NKernelUCB,
    Plan,
    Polynomial,
    ShareData,
)
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, FiniteBelief
from laconic.errors import KernelError, ProtocolError
from laconic.exploration import Fixed
from laconic.protocol.client import Client, ClientState
from laconic.protocol.messages import Ask, Install, Leave, Merged, Part, Payload, Request, Welcome, payload_of
from laconic.protocol.outcome import Absorb, AbsorbTogether, absorb_alone
from laconic.protocol.server import Server, ServerState
from laconic.triggers import Always
from tests.protocol.federation import APPROX, DIS, LIN, LOCAL, Federation, name, snapshot
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
}
#: Keeps every point for the dictionary, so that no part is empty.
KEEP = ApproxDisKernelUCB(Gaussian(), D=2.5, qbar=1e9)


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
    return msgspec.structs.replace(message, **{"belief" if isinstance(message, Welcome) else "payload": payload})


def refused(side: Client | Server, receive: Callable[[], object], error: type[Exception] = ProtocolError) -> None:
    """The call raises and changes nothing."""
    was = snapshot(side)
    with pytest.raises(error):
        receive()
    assert snapshot(side) == was


def finishes(federation: Federation) -> None:
    """The right message still works."""
    federation.drain()
    federation.check_quiet()


# A server and parts


@cases((DIS, 0, POINTS), (KEEP, 0, POINTS), (LIN, 0, STATISTICS), (KEEP, 1, STATISTICS))
def test_a_server_refuses_a_malformed_part(algorithm: Algorithm, phase: int, change: Change) -> None:
    federation = before(Part, algorithm, phase=phase)
    part = federation.up[1][0]
    bad = with_payload(part, change(payload_of(part)))
    refused(federation.server, lambda: federation.server.receive(1, bad))
    finishes(federation)


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize(
    "change",
    [{"epoch": 3}, {"epoch": 2**53 - 1}, {"phase": 2}, {"phase": 2**53 - 1}, {"upto": -1}],
    ids=str,
)
def test_a_server_refuses_a_part_from_the_future(algorithm: Algorithm, change: dict[str, int]) -> None:
    federation = before(Part, algorithm)
    bad = msgspec.structs.replace(federation.up[1][0], **change)
    refused(federation.server, lambda: federation.server.receive(1, bad))
    finishes(federation)


@pytest.mark.parametrize(("algorithm", "phase"), [(DIS, 0), (LIN, 0), (APPROX, 1)], ids=["dis", "lin", "approx"])
@pytest.mark.parametrize("by", [-2, -1, 1, 1000])
def test_a_server_refuses_a_part_of_more_or_fewer_points_than_it_claims(
    algorithm: Algorithm, phase: int, by: int
) -> None:
    federation = before(Part, algorithm, phase=phase)
    part = federation.up[1][0]
    assert isinstance(part, Part)
    bad = msgspec.structs.replace(part, upto=part.upto + by)
    refused(federation.server, lambda: federation.server.receive(1, bad))
    finishes(federation)


def test_a_server_refuses_a_client_that_has_lost_points() -> None:
    federation = before(Part, APPROX)
    federation.server.covered[1] = 99
    part = federation.up[1][0]
    with pytest.raises(ProtocolError, match="was its history lost"):
        federation.server.receive(1, part)


def test_a_server_refuses_a_request_from_the_future() -> None:
    federation = warm(DIS)
    refused(federation.server, lambda: federation.server.receive(0, Request(epoch=2)))


def test_a_payload_of_nothing_proposes_no_point_for_a_dictionary() -> None:
    federation = Federation(APPROX, members=2)
    federation.sync()
    known, size = [len(federation.observed[number]) for number in (0, 1)], federation.server.belief.dictionary_size
    federation.server.receive(0, Request(epoch=1))
    for number in (0, 1):
        federation.server.receive(number, Part(epoch=2, phase=0, upto=known[number], payload=Payload()))
    assert federation.phase == 1
    assert federation.server._draft.dictionary_size == size


def test_a_plan_without_phases_refuses_syncs() -> None:
    plan = NKernelUCB().plan(2)
    server, client = Server(plan, members=[0]), Client(plan, number=0, seed=0, clients=1)
    refused(server, lambda: server.receive(0, Request(epoch=0)))
    refused(client, lambda: client.receive(Ask(epoch=1, fired=True)))


@dataclass(frozen=True)
class Fragile(ShareData):
    """Merging fails where two points are opposite."""

    name: ClassVar[str] = "fragile"

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        points = merged.values["points"]
        if len(points) > 1 and np.array_equal(points[0], -points[1]):
            raise KernelError("opposite points")
        return super().absorb(draft, merged)


def one_point(x: float) -> Part:
    """A part of one point."""
    payload = Payload(values={"points": np.array([[x]]), "rewards": np.array([1.0])})
    return Part(epoch=1, phase=0, upto=1, payload=payload)


@pytest.mark.parametrize("absorb", [absorb_alone, AbsorbTogether()], ids=["alone", "together"])
def test_a_merge_that_fails_leaves_the_server_as_it_was(absorb: Absorb) -> None:
    belief = ExactBelief.empty(kernel=Gaussian(), lam=1.0, dim=1)
    plan = Plan(belief=belief, trigger=Always(), phases=(Fragile(),), exploration=Fixed(1.0))
    server = Server(plan, members=range(3), absorb=absorb)
    server.receive(0, Request(epoch=0))
    server.receive(0, one_point(1.0))
    server.receive(1, one_point(-1.0))
    refused(server, lambda: server.receive(2, one_point(0.0)), KernelError)
    assert server.state is ServerState.GATHERING
    refused(server, lambda: server.receive(2, Leave(stay=0)), KernelError)


def sums(gram: Floats) -> Payload:
    """Statistics with this Gram matrix."""
    return Payload(values={"gram": gram, "moment": np.zeros(len(gram))})


#: Symmetric, no entry larger than the diagonal's, and yet of no points.
INDEFINITE = 50.0 * (2.0 * np.eye(3) - 1.0)


@pytest.mark.parametrize("absorb", [absorb_alone, AbsorbTogether()], ids=["alone", "together"])
def test_sums_that_cannot_be_factored_are_not_installed(absorb: Absorb) -> None:
    server = Server(DisLinUCB().plan(3), members=range(2), absorb=absorb)
    server.receive(0, Request(epoch=0))
    server.receive(0, Part(epoch=1, phase=0, upto=0, payload=sums(np.zeros((3, 3)))))
    bad = Part(epoch=1, phase=0, upto=0, payload=sums(INDEFINITE))
    refused(server, lambda: server.receive(1, bad))
    good = Part(epoch=1, phase=0, upto=0, payload=sums(np.eye(3)))
    assert server.receive(1, good).installed == 1
    assert isinstance(server.belief, FiniteBelief)
    np.testing.assert_array_equal(server.belief.statistics.gram, np.eye(3))


def test_points_on_which_a_kernel_overflows_are_not_installed() -> None:
    server = Server(DisKernelUCB(Polynomial(degree=9)).plan(1), members=[0])
    server.receive(0, Request(epoch=0))
    with np.errstate(all="ignore"):
        refused(server, lambda: server.receive(0, one_point(1e100)), LaconicError)
    assert server.receive(0, one_point(1.0)).installed == 1


# A client and what comes down


@cases((KEEP, 0, POINTS))
def test_a_client_refuses_a_malformed_dictionary(algorithm: Algorithm, phase: int, change: Change) -> None:
    federation = before(Merged, algorithm, phase=phase)
    client, merged = federation.clients[1], federation.down[1][0]
    bad = with_payload(merged, change(payload_of(merged)))
    refused(client, lambda: client.receive(bad))
    finishes(federation)


@cases((DIS, 0, POINTS), (LIN, 0, STATISTICS), (KEEP, 1, STATISTICS))
def test_a_client_refuses_a_malformed_install(algorithm: Algorithm, phase: int, change: Change) -> None:
    federation = before(Install, algorithm, phase=phase)
    client, install = federation.clients[1], federation.down[1][0]
    bad = with_payload(install, change(payload_of(install)))
    refused(client, lambda: client.receive(bad))
    finishes(federation)


@pytest.mark.parametrize("offset", [-1.0, 0.5, 1e9, 1e300, float("nan"), float("inf")])
def test_a_client_refuses_to_put_its_points_where_there_is_no_place(offset: float) -> None:
    federation = before(Install, DIS)
    client, install = federation.clients[1], federation.down[1][0]
    bad = with_payload(install, fields(offset=offset)(payload_of(install)))
    refused(client, lambda: client.receive(bad))
    finishes(federation)


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize(
    "change",
    [{"covered": 0}, {"covered": 99}, {"covered": -1}, {"clients": 0}, {"epoch": 3}, {"epoch": 2**53}],
    ids=str,
)
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


@pytest.mark.parametrize("epoch", [3, 4, 2**53 - 1])
def test_a_client_refuses_to_skip_an_epoch(epoch: int) -> None:
    federation = warm(DIS)
    client = federation.clients[1]
    refused(client, lambda: client.receive(Ask(epoch=epoch, fired=False)))


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


def test_a_client_refuses_to_install_before_the_last_phase() -> None:
    federation = before(Merged, APPROX)
    client = federation.clients[1]
    early = Install(epoch=2, covered=len(client.history), clients=3, payload=Payload())
    refused(client, lambda: client.receive(early))
    finishes(federation)


def test_a_client_refuses_a_gram_that_is_of_no_points() -> None:
    client = Client(DisLinUCB().plan(3), number=0, seed=0, clients=1)
    client.receive(Ask(epoch=1, fired=False))
    bad = Install(epoch=1, covered=0, clients=1, payload=sums(INDEFINITE))
    refused(client, lambda: client.receive(bad))
    assert client.receive(Install(epoch=1, covered=0, clients=1, payload=sums(np.eye(3)))).installed == 1


def test_a_client_without_points_takes_part_when_it_is_told_that_it_fired() -> None:
    for algorithm in (APPROX, LOCAL):
        client = Client(algorithm.plan(2), number=0, seed=0, clients=1)
        (_, part), *_ = client.receive(Ask(epoch=1, fired=True)).send
        assert payload_of(part).scalars == 0


# Welcomes


def joining(algorithm: Algorithm) -> tuple[Federation, Client, Welcome]:
    """A client with points of its own that asked to be let in, and the answer."""
    federation = warm(algorithm)
    client = federation.add(7, member=False)
    federation.act(7, times=2)
    federation.join(7)
    federation.deliver_up(7)
    welcome = federation.down[7][0]
    assert isinstance(welcome, Welcome)
    return federation, client, welcome


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
def test_a_client_refuses_a_belief_whose_arrays_are_spoilt(algorithm: Algorithm) -> None:
    federation, client, welcome = joining(algorithm)
    for arrays in spoilt(welcome.belief.values | welcome.belief.records):
        bad = with_payload(welcome, Payload(values=arrays))
        refused(client, lambda bad=bad: client.receive(bad))  # type: ignore[misc]
    finishes(federation)
    assert client.state is ClientState.IDLE


@pytest.mark.parametrize(("algorithm", "key", "change"), SPOILT.values(), ids=SPOILT)
def test_a_client_refuses_a_belief_of_no_points(
    algorithm: Algorithm, key: str, change: Callable[[Floats], Floats]
) -> None:
    federation, client, welcome = joining(algorithm)
    arrays = welcome.belief.values | welcome.belief.records
    bad = with_payload(welcome, Payload(values=arrays | {key: change(arrays[key])}))
    refused(client, lambda: client.receive(bad))
    finishes(federation)


def test_a_client_refuses_a_belief_that_cannot_be_factored() -> None:
    client = Client(DisLinUCB().plan(3), number=0, seed=0, clients=1, member=False)
    client.join()
    arrays = {"gram": INDEFINITE, "moment": np.zeros(3), "totals": np.zeros(2)}
    welcome = Welcome(epoch=1, covered=0, clients=1, belief=Payload(values=arrays), stay=1)
    refused(client, lambda: client.receive(welcome))
    assert client.receive(with_payload(welcome, Payload(values=arrays | {"gram": np.eye(3)}))).installed == 1


def test_a_client_refuses_the_belief_of_another_algorithm() -> None:
    three: list[Algorithm] = [DIS, LIN, KEEP]
    welcomes = [joining(algorithm)[2] for algorithm in three]
    for own, algorithm in enumerate(three):
        federation, client, _ = joining(algorithm)
        for other, welcome in enumerate(welcomes):
            if other != own and not (algorithm is DIS and other == 2):  # an exact model may be a cold start
                refused(client, lambda client=client, welcome=welcome: client.receive(welcome))  # type: ignore[misc]
        finishes(federation)


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX], ids=name)
@pytest.mark.parametrize("change", [{"covered": 3}, {"covered": -1}, {"clients": 0}], ids=str)
def test_a_client_refuses_a_welcome_whose_numbers_are_wrong(algorithm: Algorithm, change: dict[str, int]) -> None:
    federation, client, welcome = joining(algorithm)
    refused(client, lambda: client.receive(msgspec.structs.replace(welcome, **change)))
    finishes(federation)


@pytest.mark.parametrize("kind", [Part, Merged, Install])
def test_after_a_refusal_a_client_gets_on_by_leaving_and_joining_again(kind: type) -> None:
    """The right message never comes."""
    federation = before(kind, KEEP)
    (federation.up[1] if kind is Part else federation.down[1]).popleft()
    federation.leave(1)
    federation.join(1)
    finishes(federation)
    assert federation.clients[1].state is ClientState.IDLE
