"""Digests: what comes down is the log's belief, once, for few bytes; what makes no sense is refused, and harms none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import AllPoints, Atoms, Client, DisKernelUCB, Gaussian, LaconicUCB, Linear, Matern, Polynomial
from laconic.arrays import Floats
from laconic.atoms import Recipe
from laconic.atoms.version import Reason
from laconic.beliefs import ExactBelief
from laconic.errors import InputError, RemoteProtocolError
from laconic.kernels import Kernel
from laconic.protocol import parcels
from laconic.protocol.codec import Codec
from laconic.protocol.digests import Held, Incoming
from laconic.protocol.digests.atoms import _facts
from laconic.protocol.ledger import Direction
from laconic.protocol.messages import Digested, Payload, Upload
from laconic.protocol.restoring import restore_client, restore_server, snapshot_client, snapshot_server
from laconic.protocol.roster import Status
from laconic.protocol.session import ClientState
from laconic.protocol.wire import FloatWire, Int8Wire, Wire
from laconic.runtimes.network import Network
from laconic.testing import check_digest
from laconic.uploads import Growth

LAM = 0.1
#: So fine a reference that its coordinates say all of every point.
FINE = Atoms(Recipe(tolerance=1e-7))
LEAN = LaconicUCB(Gaussian(0.5), lam=LAM, digest=FINE)
PROBES = np.random.default_rng(9).uniform(-1, 1, (12, 2))


class Traffic(Network):
    """A network that notes what passes; clients learn what they are told to."""

    def __init__(self, algorithm: LaconicUCB, *, clients: int, dim: int = 2) -> None:
        self.passed: list[tuple[Direction, int, Any]] = []
        super().__init__(algorithm.plan(dim), clients=clients, seed=0, share=False)

    def _put(self, direction: Direction, number: int, message: Any, travelling: Any) -> None:
        self.passed.append((direction, number, message))
        super()._put(direction, number, message, travelling)

    def learn(self, number: int, X: Floats, *, ask: bool = False) -> None:
        """Let a client observe a smooth function, a point at a time; with ``ask`` it is sent what others have."""
        for x in X:
            self.settle(number, self.clients[number].learn(x[None], [float(np.cos(3 * x.sum()))]))
        if ask:
            self.settle(number, self.clients[number].flush())

    def digests(self, number: int) -> list[Digested]:
        """The digests that a client was sent."""
        return [m for way, who, m in self.passed if (way, who) == ("down", number) and isinstance(m, Digested)]

    def held(self, number: int) -> Held:
        """What a client holds."""
        held = self.clients[number].held
        assert held is not None
        return held


def some_points(seed: int, count: int, *, dim: int = 2, distinct: int | None = None) -> Floats:
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (distinct or count, dim))
    return X if distinct is None else X[random.integers(distinct, size=count)]


def bytes_down(network: Network, number: int) -> int:
    return network.ledger.by("direction", "client")["down", number].bytes


# The contract


@pytest.mark.parametrize(
    ("kernel", "wire"),
    [
        (Gaussian(1.0), FloatWire()),
        (Matern(nu=1.5), FloatWire("float32")),
        (Polynomial(), Int8Wire()),
        (Linear(), Int8Wire()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("digest", [AllPoints(), Atoms(), Atoms(Recipe(share=0.0))], ids=["all", "atoms", "raw"])
def test_every_digest_of_ours_passes(digest: Any, wire: Wire, kernel: Kernel) -> None:
    check_digest(digest, belief=DisKernelUCB(kernel, lam=LAM).plan(2).belief, wire=wire)


@dataclass(frozen=True)
class Restless(AllPoints):
    def due(self, log: Any, edition: int, *, base: int) -> bool:
        return len(log) > 0


@dataclass(frozen=True)
class Idle(AllPoints):
    def due(self, log: Any, edition: int, *, base: int) -> bool:
        return False


@dataclass(frozen=True)
class Credulous(AllPoints):
    def known(self, log: Any, editions: Any, *, number: int, mark: int) -> int | None:
        return number


@dataclass(frozen=True)
class Forgetful(AllPoints):
    def known(self, log: Any, editions: Any, *, number: int, mark: int) -> int | None:
        return None


@dataclass(frozen=True)
class Mistaken(AllPoints):
    def address(self, log: Any, edition: int, reader: Any) -> Any:
        return replace(super().address(log, edition, reader), mark=1)


@dataclass(frozen=True)
class Careless(AllPoints):
    def absorb(self, incoming: Incoming) -> Held:
        incoming.message.payload.values["rewards"].sum()
        return super().absorb(incoming)


@dataclass(frozen=True)
class Lossy(AllPoints):
    def absorb(self, incoming: Incoming) -> Held:
        held = super().absorb(incoming)
        return replace(held, library=Held.blank(incoming.template).library)


@dataclass(frozen=True)
class Stuck(AllPoints):
    def number(self, edition: int) -> int:
        return min(edition, 1)


@dataclass(frozen=True)
class Nameless(AllPoints):
    name = ""


@pytest.mark.parametrize(
    ("digest", "why"),
    [
        (Restless(), "due right after it was built"),
        (Idle(), "nobody would learn anything"),
        (Credulous(), "another mark"),
        (Forgetful(), "does not know a version that it sent"),
        (Mistaken(), "different marks"),
        (Careless(), "KeyError"),
        (Lossy(), "disagree about the points that came down"),
        (Stuck(), "must grow"),
        (Nameless(), "needs a name"),
        (Gaussian(1.0), "derive from laconic.Digest"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_digest_is_told_what_is_wrong(digest: Any, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        check_digest(digest, belief=DisKernelUCB().plan(2).belief, wire=Int8Wire())


# What a client believes


def exact(network: Traffic, length: int) -> ExactBelief:
    """The exact belief of the beginning of the server's log."""
    log = network.server.hub.log
    return network.plan.belief.extended(log.points[:length], log.rewards[:length])  # type: ignore[return-value]


def check_belief_held(network: Traffic, number: int) -> None:
    """A client's belief is that of the log: bit for bit where it is raw, and else within its certificate."""
    held = network.held(number)
    X = np.concatenate([PROBES, network.server.hub.log.points[: held.built.length]])
    truth, seen = exact(network, held.built.length).view(X), held.built.belief.view(X)
    if held.atoms is None:
        np.testing.assert_allclose(seen.mean, truth.mean, atol=1e-9)
        np.testing.assert_allclose(seen.variance, truth.variance, atol=1e-9)
        return
    c, width = held.certificate, np.sqrt(seen.variance)
    assert (seen.variance * (1 + max(c.e_hi, 0)) >= truth.variance * 0.999 - 1e-6).all()
    assert (seen.variance * (1 + min(c.e_lo, 0)) <= truth.variance * 1.001 + 1e-6).all()
    step = 0.03 * np.sqrt(len(held.atoms)) / 2
    assert (np.abs(seen.mean - truth.mean) <= width * (step + np.sqrt(1 + max(c.e_hi, 0)) * c.beta) + 1e-3).all()


acts = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 30, 80]), st.booleans()), min_size=2, max_size=10)


@settings(max_examples=max(settings().max_examples // 4, 10), deadline=None)
@given(acts=acts, seed=st.integers(0, 99), repeats=st.booleans())
def test_after_any_sequence_of_downloads_a_belief_is_that_of_the_log(
    acts: list[tuple[int, int, bool]], seed: int, repeats: bool
) -> None:
    network = Traffic(LEAN, clients=3)
    for turn, (number, count, ask) in enumerate(acts):
        network.learn(number, some_points(seed + turn, count, distinct=5 if repeats else None), ask=ask)
        for each, client in network.clients.items():
            check_belief_held(network, each)
            assert client.learner.covered + client.learner.tail.news.count == client.count


def both_ways() -> Traffic:
    """A client that was sent raw points, then atoms, then raw points again."""
    network = Traffic(replace(LEAN, upload=Growth(1e-9)), clients=2)
    network.learn(0, some_points(0, 4), ask=True)
    network.learn(1, some_points(1, 8), ask=True)
    network.learn(0, some_points(2, 250), ask=True)
    network.learn(1, some_points(3, 1), ask=True)
    for turn in range(40):
        network.learn(0, some_points(10 + turn, 1))
        network.learn(1, some_points(500 + turn, 1), ask=True)
        check_belief_held(network, 1)
    return network


def test_a_client_may_go_from_raw_points_to_atoms_and_back() -> None:
    kinds = [message.raw for message in both_ways().digests(1)]
    turns = [kinds[0], *(b for a, b in pairwise(kinds) if a != b)]
    assert turns[:3] == [True, False, True]


def sent_points(network: Traffic, way: Direction, number: int) -> list[bytes]:
    """All points that travelled as such, in order."""
    wire, found = network.plan.wire, []
    for direction, who, message in network.passed:
        if (direction, who) == (way, number) and isinstance(message, Digested | Upload):
            for form, name in enumerate(parcels.FORMS):
                if name in message.payload.values:
                    found += [x.tobytes() for x in wire.unpacked(form, message.payload.values[name])]
    return found


def test_no_point_goes_down_or_up_twice() -> None:
    network = both_ways()
    for number in (0, 1):
        down, up = (sent_points(network, way, number) for way in ("down", "up"))
        assert len(set(down)) == len(down)
        assert len(set(up)) == len(up)
        assert not set(down) & set(up)


def test_points_that_return_are_sent_once_whoever_sees_them() -> None:
    network, pool = Traffic(LEAN, clients=3), some_points(0, 6)
    for turn in range(30):
        network.learn(turn % 3, pool[[turn % 6, (turn * 5) % 6]], ask=turn % 2 == 0)
    for number in range(3):
        assert len(sent_points(network, "up", number)) + len(sent_points(network, "down", number)) <= 6


def test_after_a_lost_link_only_what_was_lost_is_sent_again() -> None:
    network = Traffic(LEAN, clients=2)
    network.learn(0, some_points(0, 20), ask=True)
    network.learn(1, some_points(1, 5), ask=True)
    before = len(sent_points(network, "down", 1))
    network.learn(0, some_points(2, 7), ask=True)
    network.post(1, network.clients[1].flush())
    network.deliver("up", 1)  # what it is sent for that is lost
    lost = len(sent_points(network, "down", 1)) - before
    assert lost == 7
    network.cut(1)
    network.greet(1)
    network.drain()
    assert len(sent_points(network, "down", 1)) <= before + 2 * lost
    network.learn(0, some_points(3, 3), ask=True)
    network.learn(1, some_points(4, 1), ask=True)
    check_belief_held(network, 1)
    assert len(sent_points(network, "down", 1)) <= before + 2 * lost + 3


def test_messages_that_cross_name_the_same_points_to_both_sides() -> None:
    """An upload and a digest are on their way at once, and each has a point twice that is new on this link."""
    network, pool = Traffic(LEAN, clients=2), some_points(0, 6)
    network.learn(0, pool[[0, 1, 1, 0]], ask=True)
    network.post(1, network.clients[1].flush())
    network.deliver("up", 1)  # a digest is on its way down
    network.post(1, network.clients[1].learn(pool[[2, 2, 3]], [0.25, 0.5, 0.75]))
    network.drain()
    network.learn(0, pool[[4, 4]])
    network.post(1, network.clients[1].learn(pool[[5, 5]], [0.125, 1.5]))  # an upload is on its way up
    network.drain()
    network.learn(0, pool[[1]], ask=True)
    network.learn(1, pool[[0]], ask=True)
    for number in (0, 1):
        check_belief_held(network, number)
        client, member = network.clients[number], network.server.hub.members[number]
        own = member.lineage.places.values.astype(np.int64)
        np.testing.assert_array_equal(network.server.hub.log.points[own], client.learner.history.points)


def test_an_upload_that_comes_again_changes_nothing_even_if_its_numbers_mean_something_else_by_now() -> None:
    network, pool = Traffic(LEAN, clients=2), some_points(0, 5)
    network.post(1, network.clients[1].learn(pool[[0, 0, 1]], [0.25, 0.5, 0.75]))
    upload = network.take("up", 1)
    network.to_server(1, upload)
    network.learn(0, pool[[2, 3, 3]], ask=True)
    network.learn(1, pool[[4]], ask=True)
    before = network.server.hub.log
    network.to_server(1, upload)
    network.drain()
    assert network.server.hub.log is before
    assert network.server.hub.members[1].status is Status.PRESENT


def test_a_client_without_state_is_caught_up_from_nothing() -> None:
    network = Traffic(LEAN, clients=2)
    network.learn(0, some_points(0, 300), ask=True)
    network.learn(1, some_points(1, 3), ask=True)
    network.cut(1)
    network.clients[1] = Client(network.plan, number=1, seed=0, member=False)
    before = len(network.digests(1))
    network.greet(1)
    network.drain()
    network.learn(1, some_points(2, 1), ask=True)
    assert network.digests(1)[before].whole
    assert network.held(1).built.length >= 303
    check_belief_held(network, 1)


def test_points_are_named_anew_when_both_sides_remember_different_ones() -> None:
    """A client is restored from the one of two backups that the server has not dealt with last."""
    network = Traffic(LEAN, clients=2)
    network.learn(1, some_points(1, 2), ask=True)
    network.learn(0, some_points(0, 3), ask=True)
    network.learn(1, some_points(2, 1), ask=True)
    early = snapshot_client(network.clients[1])
    network.learn(0, some_points(3, 2), ask=True)
    network.post(1, network.clients[1].flush())
    network.drain()
    late = snapshot_client(network.clients[1])

    def restore(backup: Any, start: int) -> None:
        network.cut(1)
        network.clients[1], _ = restore_client([backup], plan=network.plan, start=start)
        network.post(1, network.clients[1].lose())
        network.greet(1)
        network.drain()

    restore(early, 7)
    network.learn(0, some_points(4, 2), ask=True)
    network.post(1, network.clients[1].flush())
    network.drain()
    restore(late, 8)  # it knows as many points by number as the server thinks, and others
    network.learn(1, network.server.hub.log.points[3:8])
    network.learn(1, some_points(6, 1), ask=True)
    own = network.server.hub.members[1].lineage.places.values.astype(np.int64)
    history = network.clients[1].learner.history
    np.testing.assert_array_equal(network.server.hub.log.points[own], history.points)
    check_belief_held(network, 1)


def test_rewards_too_large_for_the_mean_go_as_points_and_stop_nobody() -> None:
    network = Traffic(LEAN, clients=2)
    network.settle(0, network.clients[0].learn(np.zeros((200, 2)), np.full(200, 3e38)))
    network.learn(0, some_points(0, 3), ask=True)
    network.learn(1, some_points(1, 2), ask=True)
    assert network.server.hub.edition.outcome.reason is Reason.STEPS
    assert network.held(1).built.length >= 203
    assert network.server.state.name == "IDLE"


@dataclass(frozen=True)
class Failing(AllPoints):
    def build(self, log: Any, previous: int) -> int:
        if len(log) == 5:
            raise InputError("five are too many")
        return len(log)


def test_what_cannot_be_built_is_told_and_the_next_points_are_built_again() -> None:
    network = Traffic(replace(LEAN, digest=Failing()), clients=2)
    network.learn(0, some_points(0, 5))
    network.learn(1, np.empty((0, 2)), ask=True)
    assert network.server.state.name == "IDLE"
    assert network.clients[1].state is ClientState.IDLE
    twin, _ = restore_server([snapshot_server(network.server)], plan=network.plan, term=9)
    assert len(twin.log) == 5
    network.learn(0, some_points(1, 1))
    network.learn(1, np.empty((0, 2)), ask=True)
    assert network.held(1).built.length == 6


# What it costs


def late_and_restless(algorithm: LaconicUCB, *, dim: int, first: float) -> list[int]:
    """The bytes that go down to each client, of whom one sleeps for long and then asks after every point."""
    network = Traffic(replace(algorithm, upload=Growth(1e-9)), clients=3, dim=dim)
    network.learn(0, np.full((1, dim), first))
    for number in (0, 1):
        network.learn(number, some_points(number, 120, dim=dim), ask=True)
    for turn in range(40):
        network.learn(turn % 2, some_points(10 + turn, 3, dim=dim))
        network.learn(2, some_points(500 + turn, 1, dim=dim), ask=True)
    return [bytes_down(network, number) for number in range(3)]


@pytest.mark.parametrize("first", [0.0, 1.5])  # a point beyond its range takes more than the others
@pytest.mark.parametrize(("dim", "gamma", "lam"), [(2, 0.5, 0.1), (3, 0.2, 0.1), (5, 0.2, 0.1), (20, 1.0, 1.0)])
def test_no_client_is_sent_more_than_twice_what_raw_points_take(
    dim: int, gamma: float, lam: float, first: float
) -> None:
    lean = LaconicUCB(Gaussian(gamma), lam=lam)
    took = late_and_restless(lean, dim=dim, first=first)
    raw = late_and_restless(replace(lean, digest=AllPoints()), dim=dim, first=first)
    assert all(mine <= 2 * points for mine, points in zip(took, raw, strict=True)), (took, raw)


def test_where_points_are_nearly_orthogonal_everything_is_raw() -> None:
    network = Traffic(LaconicUCB(Gaussian(1.0), lam=1.0), clients=3, dim=10)
    for turn in range(12):
        network.learn(turn % 3, some_points(turn, 10, dim=10), ask=True)
    assert all(message.raw for number in range(3) for message in network.digests(number))


# What is refused


def late(network: Traffic | None = None) -> tuple[Traffic, Digested]:
    """A digest of atoms on its way to client 1, who has points of its own in it."""
    network = Traffic(LEAN, clients=3) if network is None else network
    network.learn(1, some_points(1, 10), ask=True)
    network.learn(0, some_points(0, 300), ask=True)
    network.post(1, network.clients[1].flush())
    network.deliver("up", 1)
    message = network.take("down", 1)
    assert isinstance(message, Digested)
    assert not message.raw
    return network, message


def with_facts(message: Digested, **facts: float) -> Digested:
    names = ("d_eff", "log_det", "missed", "e_lo", "e_hi", "kappa", "beta")
    said = message.payload.records["facts"].copy()
    for name, value in facts.items():
        said[names.index(name)] = value
    return with_arrays(message, facts=said)


def with_arrays(message: Digested, **arrays: Any) -> Digested:
    """The message with some arrays changed, None for one that is left out."""
    payload = message.payload
    values, records = ({**own} for own in (payload.values, payload.records))
    for name, array in arrays.items():
        home = values if name in values else records
        home.pop(name, None)
        if array is not None:
            home[name] = array
    return msgspec.structs.replace(message, payload=Payload(values=values, records=records))


def changed(message: Digested, **fields: Any) -> Digested:
    return msgspec.structs.replace(message, **fields)


BAD: dict[str, Callable[[Digested], Digested]] = {
    "no weights": lambda m: with_arrays(m, weights=None),
    "a weight too few": lambda m: with_arrays(m, weights=m.payload.values["weights"][1:]),
    "weights that are floats": lambda m: with_arrays(m, weights=m.payload.values["weights"].astype(np.float64)),
    "no mean": lambda m: with_arrays(m, mean=None),
    "a coefficient too many": lambda m: with_arrays(m, mean=np.append(m.payload.values["mean"], np.int8(1))),
    "a large coefficient that did not come": lambda m: with_arrays(
        m, mean=np.full_like(m.payload.values["mean"], -128)
    ),
    "no atoms": lambda m: with_arrays(m, points=None),
    "atoms of another dimension": lambda m: with_arrays(m, points=np.zeros((3, 3), np.int8)),
    "equal atoms": lambda m: with_arrays(m, points=np.zeros_like(m.payload.values["points"]), forms=None, ids=None),
    "numbers of unknown points": lambda m: with_arrays(m, ids=np.array([250], dtype=np.uint8)),
    "no certificate": lambda m: with_arrays(m, facts=None),
    "a certificate of other numbers": lambda m: with_arrays(m, facts=np.zeros(7, np.int16)),
    "e_lo of −1": lambda m: with_facts(m, e_lo=-1.0),
    "e_lo above e_hi": lambda m: with_facts(m, e_lo=0.5, e_hi=0.25),
    "e_hi without end": lambda m: with_facts(m, e_hi=np.inf),
    "no effective dimension": lambda m: with_facts(m, d_eff=np.nan),
    "an endless effective dimension": lambda m: with_facts(m, d_eff=np.inf),
    "a negative one": lambda m: with_facts(m, d_eff=-1.0),
    "a negative β": lambda m: with_facts(m, beta=-0.5),
    "weights of nothing": lambda m: with_arrays(m, weights=np.ones_like(m.payload.values["weights"])),
    "more own points than there are": lambda m: changed(m, covered=10_000, length=10_001),
    "atoms of no observations": lambda m: changed(m, covered=0, length=0),
    "more own points than points": lambda m: changed(m, length=3),
    "the wrong kind": lambda m: changed(m, raw=True),
    "no clients": lambda m: changed(m, clients=0),
}


@pytest.mark.parametrize("how", BAD)
def test_a_digest_that_makes_no_sense_is_refused_and_harms_nobody(how: str) -> None:
    network, message = late()
    client = network.clients[1]
    belief, count, held = client.learner.belief, client.count, network.held(1)
    try:
        network.to_client(1, BAD[how](message))
    except RemoteProtocolError:
        assert client.learner.belief is belief  # it is refused before any work
        network.cut(1)
    assert client.state is ClientState.AWAY
    assert client.learner.belief is belief
    assert client.held is held
    assert client.count == count
    network.learn(0, some_points(7, 2), ask=True)  # others go on
    network.greet(1)
    network.drain()
    network.learn(1, some_points(8, 1), ask=True)
    assert client.state.name == "IDLE"
    for number in (0, 1):
        check_belief_held(network, number)
    assert network.held(1).built.length >= message.length


def test_an_honest_digest_is_taken() -> None:
    network, message = late()
    network.to_client(1, message)
    network.drain()
    assert network.held(1).atoms is not None
    check_belief_held(network, 1)


RAW: dict[str, Callable[[Digested], Digested]] = {
    "a reward too few": lambda m: with_arrays(m, rewards=m.payload.values["rewards"][1:]),
    "no rewards": lambda m: with_arrays(m, rewards=None),
    "rewards that are no numbers": lambda m: with_arrays(m, rewards=np.full_like(m.payload.values["rewards"], np.nan)),
    "no runs": lambda m: with_arrays(m, runs=None),
    "endless runs": lambda m: changed(
        with_arrays(m, runs=np.array([2**32 - 1] * 2, dtype=np.uint32)), length=2 * (2**32 - 1)
    ),
    "signed runs": lambda m: with_arrays(m, runs=m.payload.records["runs"].astype(np.int16)),
    "no effective dimension": lambda m: with_facts(m, d_eff=np.nan),
    "another length": lambda m: changed(m, length=m.length + 1),
    "a shorter log": lambda m: changed(m, length=0, covered=0),
}


@pytest.mark.parametrize("how", RAW)
def test_raw_points_that_make_no_sense_are_refused_and_harm_nobody(how: str) -> None:
    network = Traffic(LEAN, clients=2)
    network.learn(1, some_points(1, 5))
    network.learn(0, some_points(0, 6), ask=True)
    network.post(1, network.clients[1].flush())
    network.deliver("up", 1)
    message, before = network.take("down", 1), network.held(1)
    assert message.raw
    network.to_client(1, RAW[how](message))
    assert network.clients[1].state is ClientState.AWAY
    assert network.held(1) is before
    network.greet(1)
    network.drain()
    network.learn(1, some_points(8, 1), ask=True)
    check_belief_held(network, 1)


UPLOADS: dict[str, Callable[[Payload], Payload]] = {
    "no rewards": lambda p: Payload(values={"points": p.values["points"]}),
    "a reward too many": lambda p: Payload(values=p.values | {"rewards": np.zeros(99, np.float16)}),
    "points of another dimension": lambda p: Payload(values=p.values | {"points": np.zeros((2, 5), np.int8)}),
    "points in floats": lambda p: Payload(values=p.values | {"points": np.zeros((2, 2))}),
    "numbers of unknown points": lambda p: Payload(
        values={"ids": np.array([98], np.uint8), "rewards": np.zeros(1, np.float16)}
    ),
    "a reward that is no number": lambda p: Payload(
        values=p.values | {"rewards": np.full_like(p.values["rewards"], np.nan)}
    ),
    "something else too": lambda p: Payload(values=p.values | {"weights": np.zeros(2, np.uint8)}),
}


@pytest.mark.parametrize("how", UPLOADS)
def test_who_uploads_what_makes_no_sense_is_set_aside_and_harms_nobody(how: str) -> None:
    network = Traffic(LEAN, clients=3)
    network.learn(0, some_points(0, 5), ask=True)
    network.post(1, network.clients[1].learn(some_points(1, 2), [0.5, 0.25]))
    upload = network.take("up", 1)
    assert isinstance(upload, Upload)
    length = len(network.server.hub.log)
    network.to_server(1, msgspec.structs.replace(upload, payload=UPLOADS[how](upload.payload)))
    network.drain()
    assert network.server.hub.members[1].status is Status.ASIDE
    assert len(network.server.hub.log) == length
    network.learn(2, some_points(2, 3), ask=True)
    check_belief_held(network, 2)
    network.greet(1)
    network.drain()
    network.learn(1, some_points(3, 1), ask=True)
    assert network.server.hub.members[1].status.name == "PRESENT"
    assert len(network.server.hub.log) == length + 2 + 3 + 1
    check_belief_held(network, 1)


# What a certificate says


@given(
    numbers=st.tuples(
        *[st.floats(0, 1e9)] * 3, st.floats(-1, 2, exclude_min=True), *[st.floats(2, 1e5)] * 2, st.floats(0, 9)
    )
)
def test_a_certificate_in_few_bits_still_says_the_truth(numbers: tuple[float, ...]) -> None:
    network, _ = HONEST
    version = network.server.hub.edition.outcome
    d_eff, log_det, missed, e_lo, e_hi, kappa, beta = numbers
    certificate = replace(
        version.certificate, d_eff=d_eff, log_det=log_det, missed=missed, e_lo=e_lo, e_hi=e_hi, kappa=kappa, beta=beta
    )
    said = _facts(replace(version, certificate=certificate), unit=1.0).astype(np.float64)
    exactly = np.array(numbers)
    above = np.arange(7) != 3
    assert (said[above] >= exactly[above]).all()
    assert said[3] <= exactly[3]


HONEST = late()


def test_what_a_digest_sends_survives_the_codec() -> None:
    network, message = HONEST
    codec = Codec(network.plan)
    again: Any = codec.decode(codec.encode(message))
    for name, array in {**message.payload.values, **message.payload.records}.items():
        got = {**again.payload.values, **again.payload.records}[name]
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)
