"""A server and clients joined by queues, each message delivered when the test says so; and a second opinion.

`Federation` notes what every client observed and which parts the server took, from the traffic alone. From that it says
which points a client must know, and `check` compares the client's predictions with the naive formulas on these points.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic import ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, Gaussian, NKernelUCB, OneKernelUCB, Random
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief, FiniteBelief, NystromEmbedding
from laconic.protocol.client import Client, ClientState, Decision
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Down, Part, Request, Up
from laconic.protocol.outcome import Outcome
from laconic.protocol.phases import ShareStatistics
from laconic.protocol.server import Server, ServerState
from tests import naive

GAMMA = 1.0
PROBES = np.array([[0.0, 0.0], [0.5, -1.0], [-1.5, 0.25], [1.0, 1.0]])

#: Small thresholds, so that syncs come after a few points.
DIS = DisKernelUCB(Gaussian(GAMMA), D=1.5)
LIN = DisLinUCB(D=1.5)
APPROX = ApproxDisKernelUCB(Gaussian(GAMMA), D=2.5, qbar=0.7)
LOCAL = ApproxDisKernelUCB(Gaussian(GAMMA), D=2.5, qbar=0.7, cold_start="local")
ONE = OneKernelUCB(Gaussian(GAMMA))
SYNCING: list[Algorithm] = [DIS, LIN, APPROX, LOCAL]
EVERY: list[Algorithm] = [*SYNCING, ONE, NKernelUCB(Gaussian(GAMMA)), Random()]


def name(algorithm: Algorithm) -> str:
    """What to call an algorithm in a test's id."""
    return "local" if algorithm is LOCAL else type(algorithm).__name__


def phases(algorithm: Algorithm) -> int:
    """How many phases a sync has."""
    return len(algorithm.plan(2).phases)


@dataclass
class Federation:
    """Clients 0 … N−1 are members from the start; others may join."""

    algorithm: Algorithm
    members: int = 3
    seed: int = 0
    up: dict[int, deque[Up]] = field(default_factory=dict)
    down: dict[int, deque[Down]] = field(default_factory=dict)
    observed: dict[int, list[tuple[Floats, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = self.algorithm.plan(2)
        self.server = Server(self.plan, members=range(self.members))
        self.clients: dict[int, Client] = {}
        self.ledger = Ledger()
        self.random = np.random.default_rng(self.seed)
        #: epoch → client → how many of its points the belief of that epoch has, by the parts that were taken
        self.knows: dict[int, dict[int, int]] = {0: {}}
        self._taken: dict[int, int] = {}
        self.delivered: list[tuple[int, Up | Down]] = []
        for number in range(self.members):
            self.add(number)

    def add(self, number: int, *, member: bool = True) -> Client:
        """One more client, with nothing observed."""
        self.clients[number] = Client(
            self.plan, number=number, seed=self.seed, clients=max(self.members, 1), member=member
        )
        self.up[number], self.down[number], self.observed[number] = deque(), deque(), []
        return self.clients[number]

    @property
    def phase(self) -> int | None:
        """The phase of the sync under way; None between syncs."""
        return self.server._phase if self.server.state is ServerState.GATHERING else None

    # -- what clients do

    def choose(self, number: int, arms: Floats | None = None) -> Decision:
        """Choose among some arms; few different ones, so that points repeat."""
        arms = np.round(self.random.uniform(-2, 2, (4, 2)), 0) if arms is None else arms
        return self.clients[number].choose(arms)

    def observe(self, number: int, decision: int) -> None:
        """Learn a reward, and queue what follows."""
        client = self.clients[number]
        point, reward = client.pending[decision].point[0].copy(), float(self.random.normal())
        outcome = client.observe(decision, reward)
        self.observed[number].append((point, reward))
        self._queue_up(outcome)

    def act(self, number: int, times: int = 1) -> None:
        """Choose and observe."""
        for _ in range(times):
            self.observe(number, self.choose(number).id)

    def act_until_request(self, number: int) -> None:
        """Act until the trigger fires."""
        while not any(isinstance(message, Request) for message in self.up[number]):
            self.act(number)

    def join(self, number: int) -> None:
        """Ask to be let in."""
        self._queue_up(self.clients[number].join())

    def leave(self, number: int) -> None:
        """Leave."""
        self._queue_up(self.clients[number].leave())

    # -- what the network does

    def deliver_up(self, number: int) -> Outcome[Down]:
        """Hand the server the oldest message of a client."""
        return self.to_server(number, self.up[number].popleft())

    def deliver_down(self, number: int) -> Outcome[Up]:
        """Hand a client the oldest message for it."""
        return self.to_client(number, self.down[number].popleft())

    def to_server(self, number: int, message: Up) -> Outcome[Down]:
        """Hand the server a message, now."""
        before = self.server.epoch if self.server.state is ServerState.GATHERING else None
        outcome = self.server.receive(number, message)
        if outcome.dropped is None:
            self._note(number, message, begun=before is None and self.server.epoch not in self.knows)
        if self.server.state is ServerState.IDLE and self.server.epoch not in self.knows:
            self._note_end(installed=outcome.installed is not None)
        self.delivered.append((number, message))
        for receiver, down in outcome.send:
            self.ledger.record(down, epoch=self.server.epoch, phase="", direction="down", client=receiver)
            self.down[receiver].append(down)
        return outcome

    def to_client(self, number: int, message: Down) -> Outcome[Up]:
        """Hand a client a message, now."""
        outcome = self.clients[number].receive(message)
        self.delivered.append((number, message))
        self._queue_up(outcome)
        return outcome

    def repeat(self, number: int, message: Up | Down) -> Outcome[Any]:
        """Deliver a message that was delivered before once more."""
        return self.to_server(number, message) if isinstance(message, Up) else self.to_client(number, message)

    def waiting(self) -> list[tuple[str, int]]:
        """The queues that are not empty."""
        queues = (("up", self.up), ("down", self.down))
        return [(way, number) for way, all_of_it in queues for number, queue in all_of_it.items() if queue]

    def step(self, way: str, number: int) -> None:
        """Deliver the oldest message of a queue."""
        if way == "up":
            self.deliver_up(number)
        else:
            self.deliver_down(number)

    def drain(self) -> None:
        """Deliver everything, and all that follows from it."""
        while self.waiting():
            for way, number in self.waiting():
                self.step(way, number)

    def sync(self, fired: int = 0) -> None:
        """Act until a sync, and finish it."""
        self.act_until_request(fired)
        self.drain()

    def _queue_up(self, outcome: Outcome[Up]) -> None:
        for number, message in outcome.send:
            self.ledger.record(message, epoch=self.server.epoch, phase="", direction="up", client=number)
            self.up[number].append(message)

    # -- who knows what, by the traffic alone

    @property
    def _last_phase(self) -> int:
        return len(self.plan.phases) - 1

    @property
    def _from_history(self) -> bool:
        last = self.plan.phases[-1]
        return isinstance(last, ShareStatistics) and last.source == "history"

    def _note(self, number: int, message: Up, *, begun: bool) -> None:
        if begun:
            self._taken = {}
        if isinstance(message, Part) and message.phase == self._last_phase:
            self._taken[number] = message.upto

    def _note_end(self, *, installed: bool) -> None:
        """A sync is over: a belief of whole histories has those of the members alone, others only grow."""
        old = self.knows[max(self.knows)]
        new = self._taken if self._from_history else {**old, **self._taken}
        self.knows[self.server.epoch] = dict(new) if installed else dict(old)

    def known(self, number: int) -> list[tuple[Floats, float]]:
        """What a client must have learnt from: all of the belief's points, and its own others, each once."""
        counts = self.knows[self.clients[number].epoch]
        shared = [each for other, count in counts.items() for each in self.observed[other][:count]]
        return shared + self.observed[number][counts.get(number, 0) :]

    # -- checks

    def check(self, number: int) -> None:
        """A client predicts as the naive formulas do on the points that it must know."""
        client, known = self.clients[number], self.known(number)
        assert client.belief.observations + client.tail.news.count == len(known)  # type: ignore[attr-defined]
        mean, variance = client.tail.predict(client.belief.view(PROBES))
        expected = self._expected(client, known)
        assert np.abs(mean - expected[0]).max() < 1e-7
        assert np.abs(variance - expected[1]).max() < 1e-7

    def check_all(self) -> None:
        """Every client, member or not, knows what it must."""
        for number in self.clients:
            self.check(number)

    def check_quiet(self) -> None:
        """Nothing is on its way: the server is idle, and all members agree with it."""
        assert not self.waiting()
        assert self.server.state is ServerState.IDLE
        for number, client in self.clients.items():
            assert client.state is (ClientState.IDLE if number in self.server.members else ClientState.OUTSIDE)
            if number in self.server.members:
                assert client.epoch == self.server.epoch
                same_arrays(client.belief.arrays(), self.server.belief.arrays())
                assert not self.plan.trigger.fires(client.tail.news)
        self.check_all()

    def _expected(self, client: Client, known: list[tuple[Floats, float]]) -> tuple[Floats, Floats]:
        X, y = np.array([x for x, _ in known]).reshape(-1, 2), np.array([reward for _, reward in known])
        kernel, belief = naive.gaussian(GAMMA), client.belief
        if isinstance(belief, ExactBelief):
            return naive.posterior(kernel, X, y, PROBES, belief.lam)
        assert isinstance(belief, FiniteBelief)
        if isinstance(belief.embedding, NystromEmbedding):
            return naive.nystrom(kernel, belief.embedding.dictionary, X, y, PROBES, belief.lam)
        if belief.rank == 0:
            return np.zeros(len(PROBES)), np.zeros(len(PROBES))
        return naive.linear(X, y, PROBES, belief.lam)


# -- telling states apart


def frozen(value: Any) -> Any:
    """A value taken apart to its last bit, so that a copy from before can be compared with one from after."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(key, frozen(each)) for key, each in value.items()]
    if isinstance(value, list | tuple | deque):
        return [frozen(each) for each in value]
    if isinstance(value, set):
        return sorted(value)
    if hasattr(value, "arrays"):
        return type(value), frozen(value.arrays())
    if hasattr(value, "points") and hasattr(value, "rewards"):
        return frozen([value.points, value.rewards])
    return _fields(value)


def _fields(value: Any) -> Any:
    if hasattr(value, "__struct_fields__"):
        return type(value), [frozen(getattr(value, each)) for each in value.__struct_fields__]
    if hasattr(value, "__dataclass_fields__"):
        return type(value), [frozen(getattr(value, each)) for each in value.__dataclass_fields__]
    return value


def snapshot(side: Client | Server) -> Any:
    """All that a client or a server is."""
    return {key: frozen(value) for key, value in vars(side).items() if key not in ("plan", "_absorb")}


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
