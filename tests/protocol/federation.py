"""A network of which the test says what happens next; and a second opinion on who must know what.

`Federation` notes what every client observed and which parts and uploads the server took, from the traffic alone. From
that it says which points a client must know, and `check` compares the client's predictions with the naive formulas on
these points.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic import ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, NKernelUCB, OneKernelUCB, Random
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief, FiniteBelief, NystromEmbedding, belief_hash
from laconic.exploration import Choice
from laconic.growing import GrowingRows
from laconic.protocol.client import Client
from laconic.protocol.codec import Codec
from laconic.protocol.learner import Decision
from laconic.protocol.messages import BLANK, Down, Label, Part, Request, Up, Upload
from laconic.protocol.outcome import Outcome
from laconic.protocol.phases import ShareStatistics
from laconic.protocol.records import Record, decode_record, encode_record
from laconic.protocol.restoring import restore_client, restore_server, snapshot_client
from laconic.protocol.roster import Member, Patience, Status
from laconic.protocol.server import Server, ServerState
from laconic.protocol.session import TRANSITIONS, ClientState, Local
from laconic.runtimes.network import SERVER, Network
from tests import naive

GAMMA = 1.0
PROBES = np.array([[0.0, 0.0], [0.5, -1.0], [-1.5, 0.25], [1.0, 1.0]])

#: Small thresholds, and a λ at which they are met after a few points.
PARTS: dict[str, Any] = {"kernel": Gaussian(GAMMA), "lam": 1.0, "alpha": 1.0}
DIS = DisKernelUCB(**PARTS, D=1.5)
LIN = DisLinUCB(D=1.5, lam=1.0, alpha=1.0)
APPROX = ApproxDisKernelUCB(**PARTS, D=2.5, qbar=0.7)
LOCAL = ApproxDisKernelUCB(**PARTS, D=2.5, qbar=0.7, cold_start="local")
ONE = OneKernelUCB(**PARTS)
LONE = DisKernelUCB(**PARTS, D=1.5, together=False)
SYNCING: list[Algorithm] = [DIS, LIN, APPROX, LOCAL]
EXCHANGING: list[Algorithm] = [*SYNCING, LONE]
EVERY: list[Algorithm] = [*EXCHANGING, ONE, NKernelUCB(**PARTS), Random()]


def name(algorithm: Algorithm) -> str:
    """What to call an algorithm in a test's id."""
    return {id(LOCAL): "local", id(LONE): "alone"}.get(id(algorithm), type(algorithm).__name__)


def phases(algorithm: Algorithm) -> int:
    """How many phases a sync has."""
    return len(algorithm.plan(2).phases)


@dataclass(frozen=True, eq=False)
class Observation:
    """Something that one client saw once; told apart from all others by itself, not by what it holds."""

    point: Floats
    reward: float


class Federation(Network):
    """Clients 0 … N−1 are members from the start; others may greet."""

    def __init__(
        self, algorithm: Algorithm, *, members: int = 3, seed: int = 0, patience: Patience | None = None, **more: Any
    ) -> None:
        self.observed: dict[int, list[Observation]] = {}
        self.delivered: list[tuple[int, Up | Down]] = []
        #: label → what the belief that bears it has, by the parts that were taken
        self.knows: dict[Label, list[Observation]] = {BLANK: []}
        self._taken: dict[Label, dict[int, list[Observation]]] = {}
        self._log: list[Observation] = []
        self._latest = BLANK  # the epoch from which the server goes on
        self.members_at_first = members
        self.random = np.random.default_rng(seed)
        super().__init__(
            algorithm.plan(2), clients=members, seed=seed, keep=True, share=False, patience=patience, **more
        )
        self.codec = Codec(self.plan)

    def add(self, number: int, *, clients: int = 1, member: bool = True) -> Client:
        """One more client, with nothing observed."""
        self.observed[number] = []
        return super().add(number, clients=max(self.members_at_first, 1), member=member)

    @property
    def phase(self) -> int | None:
        """The phase of the sync under way; None between syncs."""
        return self.server.phase

    @property
    def present(self) -> list[int]:
        """The clients that the server counts as members who are here."""
        return [number for number in self.clients if self.status(number) is Status.PRESENT]

    def member(self, number: int) -> Member:
        """A client as the server sees it."""
        return self.server.hub.members[self.server.hub.numbers[self.clients[number].session.name]]

    def status(self, number: int) -> Status | None:
        """How a client stands to the server; None when it never greeted."""
        known = self.clients[number].session.name in self.server.hub.numbers
        return self.member(number).status if known else None

    # -- what clients do

    def choose(self, number: int, arms: Floats | None = None) -> Decision:
        """Choose among some arms; few different ones, so that points repeat."""
        arms = np.round(self.random.uniform(-2, 2, (4, 2)), 0) if arms is None else arms
        decision = self.clients[number].choose(arms)
        self.records[number].append(decision.record)
        return decision

    def observe(self, number: int, decision: Decision | str) -> None:
        """Learn a reward, and queue what follows."""
        client, reward = self.clients[number], float(self.random.normal())
        outcome = client.observe(decision, reward)
        self.observed[number].append(Observation(client.learner.history.points[-1].copy(), reward))
        self.post(number, outcome)

    def act(self, number: int, times: int = 1) -> None:
        """Choose and observe."""
        for _ in range(times):
            self.observe(number, self.choose(number).id)

    def act_until_request(self, number: int) -> None:
        """Act until the trigger fires."""
        if self.plan.digest is not None and self.clients[number].state is ClientState.WAITING:
            self.act(number)  # its ask is open, as nobody had anything: it asks by a flush alone
            self.flush(number)
        for _ in range(100):
            if any(isinstance(message, Request | Upload) for message in self.up[number]):
                return
            self.act(number)
        raise AssertionError(f"client {number} is {self.clients[number].state.value}, and asks for nothing")

    def leave(self, number: int) -> None:
        """Leave."""
        self.post(number, self.clients[number].leave())

    def reconnect(self, number: int, *, noticed: bool = True) -> None:
        """Lose what is on its way, and greet anew."""
        self.cut(number, noticed=noticed)
        self.greet(number)

    def flush(self, number: int) -> None:
        """Share everything now."""
        self.post(number, self.clients[number].flush())

    # -- who dies, and comes back from what was kept

    def restart(self, number: int, *, start: int = 1, records: list[Record] | None = None) -> Client:
        """A client dies and comes back from its records, or from older ones; it has yet to greet."""
        self.cut(number)
        kept = self.records[number] if records is None else records
        client, outcome = restore_client(carried(kept), plan=self.plan, start=start)
        self.records[number], self.clients[number] = list(kept), client
        self.owed[number].clear()
        self.observed[number] = self.observed[number][: client.count]
        self.post(number, outcome)
        if (client.state, Local.LOST) in TRANSITIONS:
            self.post(number, client.lose())
        return client

    def restart_server(self, *, term: int = 1, records: list[Record] | None = None) -> Server:
        """The server dies and comes back from its records, or from older ones; all links are down."""
        for number in self.clients:
            self.cut(number, noticed=False)
        self.owed[SERVER].clear()
        kept = self.records[SERVER] if records is None else records
        self.server, outcome = restore_server(
            carried(kept), plan=self.plan, term=term, patience=self.server.hub.patience
        )
        self.records[SERVER] = list(kept)
        self._log, self._latest = self._log[: len(self.server.log)], self.server.epoch
        self.post_down(outcome)
        return self.server

    # -- what the network does

    def step(self, way: Any, number: int) -> None:
        """Deliver the oldest message of a queue."""
        self.deliver(way, number)

    def deliver_up(self, number: int) -> Outcome[tuple[int, Down]]:
        """Hand the server the oldest message of a client."""
        return self.deliver("up", number)

    def deliver_down(self, number: int) -> Outcome[Up]:
        """Hand a client the oldest message for it."""
        return self.deliver("down", number)

    def to_server(self, number: int, message: Up) -> Outcome[tuple[int, Down]]:
        """Hand the server a message, now."""
        self.delivered.append((number, message))
        status = self.status(number)
        if isinstance(message, Part) and self._is_taken(number, message, status):
            self._taken.setdefault(message.epoch, {})[number] = self.observed[number][: message.upto]
        known = None if status is None else self.member(number).known
        outcome = super().to_server(number, message)
        if isinstance(message, Upload) and outcome.dropped is None and known is not None:
            self._log += self.observed[number][known : self.member(number).known]
        return outcome

    def _is_taken(self, number: int, part: Part, status: Status | None) -> bool:
        """Whether the server will take a part of the last phase, by what it said to whom so far."""
        sync = self.server.hub.sync
        mine = sync is not None and sync.epoch == part.epoch and self.member(number).number in sync.awaited
        return mine and part.phase == self._last_phase and self.server.hub.links.get(self.links[number]) is not None

    def post_down(self, outcome: Outcome[tuple[int, Down]]) -> None:
        """Queue what the server sends, and note what it installs."""
        if outcome.installed is not None:
            self._note_end()
        super().post_down(outcome)

    def to_client(self, number: int, message: Down) -> Outcome[Up]:
        """Hand a client a message, now."""
        self.delivered.append((number, message))
        return super().to_client(number, message)

    def sync(self, fired: int = 0) -> None:
        """Act until a sync, and finish it."""
        self.act_until_request(fired)
        self.drain()

    def rest(self) -> None:
        """Give everyone who is away a link, let time pass until nobody is waited for, and see that all is well."""
        self.drain()
        for number, client in self.clients.items():
            if client.state is ClientState.AWAY:
                self.greet(number)
            elif client.state is ClientState.OUTSIDE:  # its farewell may be lost, but not for ever its link's end
                self.post_down(self.server.lose(self.links[number]))
        self.drain()
        self.tick(self.server.hub.now + 1e6)
        self.drain()
        self.check_quiet()

    # -- who knows what, by the traffic alone

    @property
    def _last_phase(self) -> int:
        return len(self.plan.phases) - 1

    @property
    def _from_history(self) -> bool:
        last = self.plan.phases[-1]
        return isinstance(last, ShareStatistics) and last.source == "history"

    def _note_end(self) -> None:
        """A sync is over: a belief of whole histories has those of the members alone, others only grow."""
        epoch = self.server.epoch
        taken = [each for part in self._taken.get(epoch, {}).values() for each in part]
        old = [] if self._from_history else self.knows[self._latest]
        self.knows[epoch] = list(dict.fromkeys([*old, *taken]))
        self._latest = epoch

    def known(self, number: int) -> list[Observation]:
        """What a client must have learnt from: all of the belief's points, and its own others, each once."""
        held = self.clients[number].session.held
        shared = self.knows[held] if self.plan.digest is None else self._log[: held.number]
        return list(dict.fromkeys([*shared, *self.observed[number]]))

    # -- checks

    def check(self, number: int) -> None:
        """A client predicts as the naive formulas do on the points that it must know."""
        client, known = self.clients[number], self.known(number)
        belief, tail = client.learner.belief, client.learner.tail
        assert belief.observations + tail.news.count == len(known)  # type: ignore[attr-defined]
        assert client.learner.covered == client.session.covered
        mean, variance = tail.predict(belief.view(PROBES))
        expected = self._expected(client, known)
        assert np.abs(mean - expected[0]).max() < 1e-7
        assert np.abs(variance - expected[1]).max() < 1e-7

    def check_all(self) -> None:
        """Every client, member or not, knows what it must."""
        for number in self.clients:
            self.check(number)

    def check_quiet(self) -> None:
        """Nothing is on its way: the server is idle, and all who are present agree with it."""
        assert not self.waiting()
        assert self.server.state is ServerState.IDLE
        for number, client in self.clients.items():
            present = self.status(number) is Status.PRESENT
            waits = self.plan.digest is not None and client.state is ClientState.WAITING  # nobody has anything new
            assert waits or (client.state is ClientState.IDLE) is present
            assert client.session.owed is None
            assert not client.session.inbox
            if present and self.plan.phases:
                assert client.session.held == self.server.epoch
                same_arrays(client.learner.belief.arrays(), self.server.belief.arrays())
                assert not client.learner.fires
        self.check_all()

    def _expected(self, client: Client, known: list[Observation]) -> tuple[Floats, Floats]:
        X, y = np.array([each.point for each in known]).reshape(-1, 2), np.array([each.reward for each in known])
        kernel, belief = naive.gaussian(GAMMA), client.learner.belief
        if isinstance(belief, ExactBelief):
            return naive.posterior(kernel, X, y, PROBES, belief.lam)
        assert isinstance(belief, FiniteBelief)
        if isinstance(belief.embedding, NystromEmbedding):
            return naive.nystrom(kernel, belief.embedding.dictionary, X, y, PROBES, belief.lam)
        if belief.rank == 0:
            return np.zeros(len(PROBES)), np.zeros(len(PROBES))
        return naive.linear(X, y, PROBES, belief.lam)


# -- telling states apart


def carried(records: list[Record]) -> list[Record]:
    """Records as a store gives them back."""
    return [decode_record(encode_record(record)) for record in records]


def snapshot(side: Client | Server) -> Any:
    """All that a client or a server is, taken apart so that a copy from before can be compared with one from after."""
    if isinstance(side, Client):
        return encode_record(snapshot_client(side))
    return frozen(side.hub)


def frozen(value: Any) -> Any:
    """A value taken apart to its last bit."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, frozen(each)) for key, each in value.items()]
    if isinstance(value, list | tuple | deque):
        return [frozen(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "arrays"):
        return type(value), belief_hash(value)
    if isinstance(value, Choice):
        return value.arm, frozen(value.chance)  # the probabilities may be a function, which is like no other
    if isinstance(value, GrowingRows):
        return frozen(value.values)
    return _fields(value)


def _fields(value: Any) -> Any:
    for names in ("__struct_fields__", "__dataclass_fields__"):
        if hasattr(value, names) and not isinstance(value, type):
            kept = [each for each in getattr(value, names) if each not in ("plan", "_buffer")]
            return type(value), [frozen(getattr(value, each)) for each in kept]
    return value


def same_arrays(a: dict[str, Floats], b: dict[str, Floats]) -> None:
    """Bitwise the same arrays under the same names."""
    assert a.keys() == b.keys()
    assert all(a[key].shape == b[key].shape and a[key].tobytes() == b[key].tobytes() for key in a)


def every_interleaving(federation: Federation, fired: int = 0) -> Iterator[str]:
    """Deliver a sync message by message, with a stop after each."""
    federation.act_until_request(fired)
    yield "requested"
    while federation.waiting():
        way, number = federation.waiting()[0]
        federation.step(way, number)
        yield f"{way} {number}"
