"""What the service costs beside what it cannot avoid: the arithmetic of a choice, a commit, and the moving of bytes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from benchmarks.clock import timed
from benchmarks.result import Result, Target
from laconic import Agent, ApproxDisKernelUCB, Coordinator, Gaussian, Serving
from laconic.arrays import Floats
from laconic.protocol.records import Observed, encode_record

DIM, ARMS = 20, 20
GAMMA, LAM = 0.5, 0.1
#: Every point goes into the dictionary, and nothing but a flush brings about a sync.
ALGORITHM = ApproxDisKernelUCB(Gaussian(gamma=GAMMA), D=1e9, qbar=1e9, lam=LAM)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    dictionary: int = 200
    choices: int = 5000
    observations: int = 300
    agents: int = 8
    syncs: int = 5


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
            with _federation(Path(folder), sizes) as agents:
                return [*results, _syncing(agents, sizes)]


def _joined(address: str, folder: Path, name: str, **options: Any) -> Agent:
    state = folder / f"{name}.db"
    return Agent.join(address, name=name, state=state, insecure=True, algorithm=ALGORITHM, dim=DIM, seed=0, **options)


def _beside(folder: Path, sizes: Sizes, *, quick: bool) -> Iterator[Result]:
    """An agent in this process, and the rest of its federation in another, as it would be."""
    command = [sys.executable, "-m", "benchmarks.service", str(folder), "quick" if quick else "whole"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as others:
        assert others.stdout is not None
        assert others.stdin is not None
        with _joined(others.stdout.readline().strip(), folder, "one") as one:
            one.flush()
            yield from _choosing(one, others.stdin, sizes)
            yield from _observing(one, folder, sizes)
        others.stdin.close()


@contextmanager
def _federation(folder: Path, sizes: Sizes) -> Iterator[list[Agent]]:
    """A coordinator and agents that share a dictionary."""
    draw = np.random.default_rng(0)
    serving = Serving(bind="127.0.0.1:0", insecure=True)
    with ExitStack() as stack:
        there = stack.enter_context(Coordinator(ALGORITHM.plan(DIM), state=folder / "c.db", serving=serving))
        agents = [stack.enter_context(_joined(there.address, folder, f"{i}")) for i in range(sizes.agents)]
        agents[0].learn(draw.uniform(-0.25, 0.25, (sizes.dictionary, DIM)), draw.normal(size=sizes.dictionary))
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
    asked = [sets[i % len(sets)] for i in range(sizes.choices)]
    bare, alone = _times(_bare(one), asked), _times(one.choose, asked)
    print("go", file=others, flush=True)
    during = _times(one.choose, asked)
    print("rest", file=others, flush=True)
    yield _result("service-choose", "the bare computation, p50", alone, bare, most=3.0, percent=50)
    yield _result("service-choose-p99", "the same without syncs, p99", during, alone, most=3.0, percent=99)


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
    yield _result("service-observe", "an insert and a commit of the same bytes", durable, inserted, most=2.0)
    yield _result("service-group-commit", "observe without it", early, durable, most=0.1)


def _syncing(agents: list[Agent], sizes: Sizes) -> Result:
    """Syncs of all agents, beside moving as many bytes in as many messages over bare gRPC."""
    draw = np.random.default_rng(3)
    before = [agent.status() for agent in agents]
    whole = np.zeros(sizes.syncs)
    for place in range(sizes.syncs):
        agents[0].learn(draw.uniform(-0.25, 0.25, (1, DIM)), [0.1])
        cost, _ = timed(agents[0].flush)
        whole[place] = cost.seconds
    after = [agent.status() for agent in agents]
    up = sum(b.bytes_sent - a.bytes_sent for a, b in zip(before, after, strict=True)) // (sizes.syncs * len(agents))
    down = sum(b.bytes_received - a.bytes_received for a, b in zip(before, after, strict=True))
    moved = _moved(up=up, down=down // (sizes.syncs * len(agents)), links=len(agents), times=sizes.syncs)
    return _result("service-sync", "the same bytes over bare gRPC", whole, moved, most=3.0)


def _moved(*, up: int, down: int, links: int, times: int) -> Floats:
    """Seconds that it takes to send so many bytes up and get so many back, on so many links at a time, in two turns."""
    import grpc

    def answer(requests: Iterator[bytes], _: object) -> Iterator[bytes]:
        for _ in requests:
            yield bytes(down // 2)

    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(links), options=[("grpc.max_receive_message_length", -1)])
    handlers = {"Move": grpc.stream_stream_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}", options=options) for _ in range(links)]
    calls = [channel.stream_stream("/bare/Move") for channel in channels]

    def move(call: Any) -> None:
        for _ in call(iter([bytes(up // 2)] * 2)):
            pass

    with ThreadPoolExecutor(links) as pool:
        list(pool.map(move, calls))  # links are made
        seconds = _times(lambda _: list(pool.map(move, calls)), [None] * times)
    for channel in channels:
        channel.close()
    server.stop(None)
    return seconds


def _result(name: str, against: str, own: Floats, floor: Floats, *, most: float, percent: float = 50) -> Result:
    cost, least = float(np.percentile(own, percent)), float(np.percentile(floor, percent))
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


def host(folder: Path, sizes: Sizes) -> None:
    """Be a coordinator and another agent for whoever started this: it syncs between the words ``go`` and ``rest``."""
    serving = Serving(bind="127.0.0.1:0", insecure=True)
    draw = np.random.default_rng(0)
    with ExitStack() as stack:
        there = stack.enter_context(Coordinator(ALGORITHM.plan(DIM), state=folder / "host.db", serving=serving))
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


if __name__ == "__main__":
    host(Path(sys.argv[1]), QUICK if sys.argv[2] == "quick" else Sizes())
