"""What the service costs beside what it cannot avoid: the arithmetic of a choice, a commit, and the moving of bytes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from benchmarks.clock import timed
from benchmarks.result import Result, Target
from laconic import Agent, ApproxDisKernelUCB, Coordinator, Gaussian, Serving
from laconic.algorithms import Algorithm
from laconic.arrays import Floats
from laconic.protocol.client import Client
from laconic.protocol.codec import MOST_BYTES
from laconic.protocol.ledger import Count, Direction
from laconic.protocol.messages import Label
from laconic.protocol.records import Observed, encode_record
from laconic.runtimes.service import methods
from laconic.runtimes.service.background import background

DIM, ARMS = 20, 20
SETTLING, LONGEST = 0.4, 60.0  # seconds
TURNS = 10  # of choosing with syncs and without
GAMMA, LAM = 0.5, 0.1
SETTINGS = methods.settings(MOST_BYTES)
Counts = dict[tuple[Direction, str], Count]
#: Every point goes into the dictionary, and nothing but a flush brings about a sync.
ALGORITHM = ApproxDisKernelUCB(Gaussian(gamma=GAMMA), D=1e9, qbar=1e9, lam=LAM)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    dictionary: int = 200
    choices: int = 5000
    observations: int = 300
    agents: int = 8
    syncs: int = 15


QUICK = Sizes(dictionary=20, choices=30, observations=10, agents=2, syncs=1)


@dataclass(frozen=True)
class Service:
    """`choose`, `observe` and a sync over real sockets and disks."""

    name: str = "service"
    summary: str = "an agent's choose and observe, and a sync of 8 agents over gRPC"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        sizes = QUICK if quick else Sizes()
        with tempfile.TemporaryDirectory() as folder:
            results = [*_beside(Path(folder), sizes, quick=quick)]
            with _federation(Path(folder), sizes, quick=quick) as agents:
                return [*results, _syncing(agents, Path(folder), sizes)]


def _joined(address: str, folder: Path, name: str, **options: Any) -> Agent:
    state = folder / f"{name}.db"
    return Agent.join(address, name=name, state=state, insecure=True, algorithm=ALGORITHM, dim=DIM, seed=0, **options)


def _beside(folder: Path, sizes: Sizes, *, quick: bool) -> Iterator[Result]:
    """An agent in this process, and the rest of its federation in another, as it would be."""
    with (
        elsewhere("peer", folder, quick=quick) as there,
        _joined(there.address, folder, "one") as one,
    ):
        one.flush()
        yield from _choosing(one, there.words, sizes)
        yield from _observing(one, folder, sizes)


@dataclass(frozen=True)
class Elsewhere:
    """Another process of a measurement: where it listens, and where words go to it."""

    address: str
    words: IO[str]
    process: int

    def memory(self, what: str = "VmRSS") -> float:
        """The megabytes that it holds now, or another line of what Linux says of it."""
        lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(f"{what}:"))


@contextmanager
def elsewhere(role: str, folder: Path, *, quick: bool = False) -> Iterator[Elsewhere]:
    """Another process, which ends with this context."""
    command = [sys.executable, "-m", "benchmarks.service", role, str(folder), "quick" if quick else "whole"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        try:
            yield Elsewhere(other.stdout.readline().strip(), other.stdin, other.pid)
        finally:
            other.stdin.close()


@contextmanager
def _federation(folder: Path, sizes: Sizes, *, quick: bool) -> Iterator[list[Agent]]:
    """Agents that share a dictionary, of which each has its part; their coordinator is in a process of its own."""
    draw = np.random.default_rng(0)
    each = sizes.dictionary // sizes.agents
    with ExitStack() as stack:
        there = stack.enter_context(elsewhere("coordinator", folder, quick=quick))
        agents = [stack.enter_context(_joined(there.address, folder, f"{i}")) for i in range(sizes.agents)]
        for agent in agents:
            agent.learn(draw.uniform(-0.25, 0.25, (each, DIM)), draw.normal(size=each))
        for agent in agents:
            agent.flush()
        yield agents


def _sets() -> list[Floats]:
    draw = np.random.default_rng(1)
    return [draw.uniform(-0.25, 0.25, (ARMS, DIM)) for _ in range(50)]


def _times(call: Callable[[Any], object], inputs: list[Any]) -> Floats:
    """Seconds of each call."""
    seconds = np.zeros(len(inputs))
    for place, each in enumerate(inputs):
        begun = time.perf_counter()
        call(each)
        seconds[place] = time.perf_counter() - begun
    return seconds


def _bare(agent: Agent) -> Callable[[Floats], int]:
    """The arithmetic of a choice: kernel values, two triangular solves, the tail's rows, the largest index."""
    S = agent.look(lambda client: client.learner.belief).embedding.dictionary
    draw = np.random.default_rng(2)
    L = np.linalg.cholesky(np.eye(len(S)) + np.exp(-GAMMA * cdist(S, S, "sqeuclidean")))
    Q = draw.normal(size=(20, len(S)))
    beta, rho = draw.normal(size=len(S)), draw.normal(size=20)

    def choose(X: Floats) -> int:
        z = solve_triangular(L, np.exp(-GAMMA * cdist(S, X, "sqeuclidean")), lower=True, check_finite=False)
        v = solve_triangular(L, z, lower=True, check_finite=False).T
        c = v @ Q.T
        mean = v @ beta + c @ rho
        variance = 1.0 - np.einsum("ij,ij->j", z, z) + np.einsum("ij,ij->i", v, v) - np.einsum("ij,ij->i", c, c)
        return int(np.argmax(mean + np.sqrt(np.abs(variance))))

    return choose


def _choosing(one: Agent, others: IO[str], sizes: Sizes) -> Iterator[Result]:
    sets = _sets()
    for X in sets[:20]:
        one.observe(one.choose(X), 0.1)
    bare, parts = _bare(one), np.array_split(np.arange(sizes.choices) % len(sets), TURNS)
    computed, alone, during = [], [], []
    for part in parts:  # in turn, as the machine is not the same from one second to the next
        asked = [sets[i] for i in part]
        computed.append(_times(bare, asked))
        alone.append(_times(one.choose, asked))
        print("go", file=others, flush=True)
        during.append(_times(one.choose, asked))
        print("rest", file=others, flush=True)
        time.sleep(SETTLING)  # the sync under way ends
    least, quiet, busy = (np.concatenate(each) for each in (computed, alone, during))
    yield _result("service-choose", "the bare computation, p50", quiet, least, most=3.0, percent=50)
    yield _result("service-choose-p99", "the same without syncs, p99", busy, quiet, most=3.0, percent=99)


def _observing(agent: Agent, folder: Path, sizes: Sizes) -> Iterator[Result]:
    X = _sets()[0]
    data = encode_record(Observed(id="123456789a.1", point=X[:1], reward=0.1))
    with ExitStack() as stack:
        bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
        stack.callback(bare.close)
        for line in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE r (n INTEGER PRIMARY KEY, d)"):
            bare.execute(line)
        grouped = stack.enter_context(_joined("127.0.0.1:1", folder, "grouped", group_commit=0.05))

        def insert(_: object) -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO r (d) VALUES (?)", (data,))
            bare.execute("COMMIT")

        durable, inserted = np.zeros(sizes.observations), np.zeros(sizes.observations)
        for place in range(sizes.observations):  # in turn, as a disk is not the same from one second to the next
            inserted[place] = _times(insert, [None])[0]
            durable[place] = _times(lambda pick: agent.observe(pick, 0.1), [agent.choose(X)])[0]
        early = _times(lambda pick: grouped.observe(pick, 0.1), [grouped.choose(X) for _ in range(sizes.observations)])
    # By their means: the times of a commit come in steps of what the disk or the scheduler waits for.
    yield _result(
        "service-observe", "an insert and a commit of the same bytes", durable, inserted, most=2.0, percent=None
    )
    flushed = round(1e6 * _flush_seconds(folder), 1)
    result = _result("service-group-commit", "observe without it", early, durable, most=0.1, percent=None)
    yield replace(result, details={**result.details, "fdatasync_microseconds": flushed})


def _flush_seconds(folder: Path, *, times: int = 30) -> float:
    """What the disk takes by itself to make a page durable, the median: durable `observe` cannot be quicker."""
    with (folder / "flushed").open("wb", buffering=0) as file:

        def flush(_: object) -> None:
            file.write(bytes(4096))
            os.fdatasync(file.fileno())

        return float(np.median(_times(flush, [None] * times)))


def _syncing(agents: list[Agent], folder: Path, sizes: Sizes) -> Result:
    """Syncs of all agents, each beside moving the same messages over bare gRPC, in turn.

    A sync begins when one agent is told to flush and is over when every agent has installed the new belief; a move
    begins with the first message and is over when every link has its last. See `Moving` for what is the same.
    """
    draw = np.random.default_rng(3)

    def sync() -> float:
        time.sleep(SETTLING)  # one sync by itself: what agents write behind the last one is written
        agents[0].learn(draw.uniform(-0.25, 0.25, (1, DIM)), [0.1])
        cost, _ = timed(lambda: _installed_everywhere(agents))
        return cost.seconds

    before = [agent.traffic.by_phase() for agent in agents]
    sync()
    after = [agent.traffic.by_phase() for agent in agents]
    turns = _turns(before, after)
    with elsewhere("mover", folder) as there:
        run = background().run  # in the loop of the agents, as gRPC wants to have one of a process
        moving = Moving(there.address, turns=turns)
        run(moving.once())  # links are made
        whole, moved = np.zeros(sizes.syncs), np.zeros(sizes.syncs)
        for place in range(sizes.syncs):
            whole[place] = sync()
            cost, _ = timed(lambda: run(moving.once()))
            moved[place] = cost.seconds
        run(moving.close())
    return _result("service-sync", "the same messages over bare gRPC", whole, moved, most=3.0)


def _installed_everywhere(agents: list[Agent]) -> None:
    """One agent flushes, and all come to hold what that leads to."""
    agents[0].flush()
    newest, until = agents[0].look(_held), time.monotonic() + LONGEST
    for agent in agents:  # by waiting, as looking again and again would take time from those who work
        assert agent.comes(lambda client: _held(client) == newest, by=until)


def _held(client: Client) -> Label:
    return client.session.held


#: What of a sync is counted under which phase: a request and a question, then a part up and a result down, twice.
PHASES = ("control", *(phase.name for phase in ALGORITHM.plan(DIM).phases))


def _turns(before: list[Counts], after: list[Counts]) -> list[list[tuple[int, int]]]:
    """The bytes that went up and down in each turn of a sync, by link."""
    nothing = Count()

    def size(place: int, direction: Direction, phase: str) -> int:
        key = (direction, phase)
        return after[place].get(key, nothing).bytes - before[place].get(key, nothing).bytes

    return [[(size(i, "up", phase), size(i, "down", phase)) for i in range(len(after))] for phase in PHASES]


class Moving:
    """The messages of a sync over bare gRPC, with nothing done to them.

    What is the same as in the sync: all links are in one process, each on a channel of its own, and their other ends in
    a second process; channels are plaintext on loopback, with the same settings; one bidirectional stream a link stays
    open from one move to the next; every message has the length that it had in a sync, up and down; and the order is
    that of a sync. In the first turn one link sends a request, and every link is sent a question. In each of the
    following turns every link sends its part when it has what came down in the turn before, and the other side answers
    all of them once it has the parts of all. What is not there: reading and writing of what messages say, checks,
    arithmetic, records and disks, and threads other than those of gRPC and one loop in each process.
    """

    def __init__(self, address: str, *, turns: list[list[tuple[int, int]]]) -> None:
        self._address, self._turns = address, turns
        self._up = [[bytes(up) for up, _ in turn] for turn in turns]
        self._channels: list[Any] = []
        self._calls: list[Any] = []

    async def once(self) -> None:
        """Move them; links are made the first time."""
        import grpc

        if not self._calls:
            links = range(len(self._turns[0]))
            self._channels = [grpc.aio.insecure_channel(self._address, options=SETTINGS) for _ in links]
            self._calls = [self._link(channel, place) for place, channel in enumerate(self._channels)]
        await asyncio.gather(*(self._move(call, place) for place, call in enumerate(self._calls)))

    def _link(self, channel: Any, place: int) -> Any:
        down = ",".join(str(turn[place][1]) for turn in self._turns)
        asks = tuple(("asks", str(place)) for turn in self._turns[:1] if turn[place][0])
        told = (("down", down), ("links", str(len(self._turns[0]))), *asks)
        return channel.stream_stream("/bare/Move")(metadata=told, wait_for_ready=True)

    async def _move(self, call: Any, place: int) -> None:
        for turn in self._up:
            if turn[place]:
                await call.write(turn[place])
            await call.read()

    async def close(self) -> None:
        """End the links."""
        for channel in self._channels:
            await channel.close()


class _Others:
    """The links of a `Moving` at their other end: who waits for the parts of all goes on when the last one is in."""

    def __init__(self) -> None:
        self._came, self._full = 0, asyncio.Event()

    async def part(self, *, of: int) -> None:
        """One more part of a turn is in; wait for the others."""
        self._came += 1
        full = self._full
        if self._came < of:
            await full.wait()
            return
        self._came, self._full = 0, asyncio.Event()
        full.set()


async def _answer_moves() -> None:
    """Be the other end of `Moving`, until nobody waits for it."""
    import grpc

    others = _Others()

    async def answer(_: object, context: Any) -> None:
        told = dict(context.invocation_metadata())
        first, *rest = (bytes(int(size)) for size in told["down"].split(","))
        links = int(told["links"])
        while True:
            if "asks" in told and await context.read() is grpc.aio.EOF:
                return
            await others.part(of=links)  # the question goes to all when one has asked
            await context.write(first)
            for down in rest:
                if await context.read() is grpc.aio.EOF:
                    return
                await others.part(of=links)
                await context.write(down)

    server = grpc.aio.server(options=SETTINGS)
    handlers = {"Move": grpc.stream_stream_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


def _result(name: str, against: str, own: Floats, floor: Floats, *, most: float, percent: float | None = 50) -> Result:
    """A result by percentiles, or by means where none is given."""
    cost, least = (float(each.mean() if percent is None else np.percentile(each, percent)) for each in (own, floor))
    return Result(
        name,
        against,
        cpu=float(own.sum()),
        seconds=float(own.sum()),
        floor=float(floor.sum()),
        ratio=cost / least,
        interactions=len(own),
        targets=(Target("ratio", most),),
        details={"microseconds": round(1e6 * cost, 1), "floor_microseconds": round(1e6 * least, 1)},
    )


def _coordinator(folder: Path, name: str, algorithm: Algorithm = ALGORITHM) -> Coordinator:
    serving = Serving(bind="127.0.0.1:0", insecure=True)
    return Coordinator(algorithm.plan(DIM), state=folder / f"{name}.db", serving=serving)


def be_coordinator(folder: Path, algorithm: Algorithm = ALGORITHM) -> None:
    """Be a coordinator for whoever started this."""
    with _coordinator(folder, "c", algorithm) as there:
        print(there.address, flush=True)
        sys.stdin.read()


def be_peer(folder: Path, sizes: Sizes) -> None:
    """Be a coordinator and another agent for whoever started this: it syncs between the words ``go`` and ``rest``."""
    draw = np.random.default_rng(0)
    with ExitStack() as stack:
        there = stack.enter_context(_coordinator(folder, "host"))
        agent = stack.enter_context(_joined(there.address, folder, "host-agent"))
        agent.learn(draw.uniform(-0.25, 0.25, (sizes.dictionary, DIM)), draw.normal(size=sizes.dictionary))
        agent.flush()
        print(there.address, flush=True)
        going, over = threading.Event(), threading.Event()
        syncing = threading.Thread(target=_keep_syncing, args=(agent, going, over))
        syncing.start()
        for word in sys.stdin:
            going.set() if word.strip() == "go" else going.clear()
        over.set()
        going.set()
        syncing.join()


def _keep_syncing(agent: Agent, going: threading.Event, over: threading.Event) -> None:
    while going.wait() and not over.is_set():
        agent.learn(_sets()[0][:1], [0.1])
        agent.flush()


def main(role: str, folder: str, size: str) -> None:
    """Be another process of a measurement."""
    if role == "mover":
        asyncio.run(_answer_moves())
    elif role == "coordinator":
        be_coordinator(Path(folder))
    elif role in ("together", "alone"):
        from benchmarks.scale import ALGORITHMS

        be_coordinator(Path(folder), ALGORITHMS[role])
    else:
        be_peer(Path(folder), QUICK if size == "quick" else Sizes())


if __name__ == "__main__":
    main(*sys.argv[1:])
