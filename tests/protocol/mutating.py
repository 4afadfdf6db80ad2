"""Messages that were changed on the way, many of them: each is a message or a `ProtocolError`, and takes little memory.

`python -m tests.protocol.mutating 1000000` tries a million, and says how long it took and how much memory.
"""

import resource
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np

from laconic import Gaussian, LaconicUCB
from laconic.algorithms import Algorithm
from laconic.errors import ProtocolError
from laconic.protocol.codec import Codec
from laconic.protocol.digests import AllPoints, Atoms
from laconic.protocol.messages import (
    MESSAGES,
    Ask,
    Chain,
    Digested,
    Down,
    Hello,
    Install,
    Label,
    Leave,
    Merged,
    Message,
    Newer,
    NothingNew,
    Part,
    Payload,
    Refused,
    Released,
    Request,
    SetAside,
    Up,
    Upload,
    Welcome,
    payload_of,
)
from laconic.protocol.outcome import Outcome
from laconic.protocol.packing import CODES
from laconic.protocol.plan import Plan
from laconic.runtimes.network import Network
from tests.protocol.federation import APPROX, DIS, LIN, LONE

#: Digests of atoms, and of points as they are, over the wire of few bits.
LEAN = LaconicUCB(Gaussian(0.5), lam=0.3, digest=Atoms())
LEAN_POINTS = LaconicUCB(Gaussian(0.5), lam=0.3, digest=AllPoints())

#: Bytes that decoding may take in any case, and for each byte that it is given.
AT_LEAST, A_BYTE = 100_000, 20
#: Bytes that mean much in msgpack: heads of containers and extensions, their widest lengths, ends of ranges.
TELLING = bytes.fromhex("00017f8081828f90919293949fa0c0c1c2c4c6c7c8c9cacbcccfd3d4d5d8d9dbdcdddedfe0ff")


def originals() -> list[tuple[Codec, bytes]]:
    """Encoded messages of every kind, by place and by name, of every type of array."""
    random = np.random.default_rng(0)
    points = Payload(values={"points": random.normal(size=(5, 2)), "rewards": random.normal(size=5)})
    placed = Payload(values=points.values, control={"offset": 300.0})
    sums = Payload(values={"gram": np.eye(3), "moment": np.ones(3)}, control={"prior": 2.5, "count": 7.0})
    typed = Payload(
        values={str(dtype): np.ones((2, 1), dtype) for dtype in CODES}, records={"ids": np.arange(3, dtype="u8")}
    )
    epoch, hashes = Label(2**52, 9), Payload(records={"hashes": np.arange(4, dtype=np.uint64)})
    bare: list[Message] = [
        Request(Label(1, 3)),
        Leave(),
        Ask(Label(0, 70_000), 0, fired=True),
        Hello("edge", b"{}", 1, 5, epoch, 2**64 - 1, syncing=(epoch, 1)),
        Welcome(3, 4, 1, 5, 2**63, syncing=epoch),
        Released(epoch, "too late"),
        Chain(hashes),
        Upload(3, points, ask=True),
        NothingNew(70_000),
        SetAside("points that cannot be", final=True),
        Refused("another plan", b"{}"),
    ]
    carrying: list[tuple[object, Message]] = [
        (DIS, Part(epoch, 0, 5, points)),
        (DIS, Install(epoch, 5, 3, placed)),
        (APPROX, Merged(epoch, 0, Payload())),
        (APPROX, Part(epoch, 1, 7, sums)),
        (LIN, Install(epoch, 7, 3, sums)),
        (LIN, Part(epoch, 0, 7, typed)),
        (DIS, Newer(epoch, epoch, 0, 3, typed)),
    ]
    codecs = {id(algorithm): Codec(algorithm.plan(2)) for algorithm in (DIS, APPROX, LIN)}
    pairs = [(codecs[id(DIS)], message) for message in bare] + [(codecs[id(a)], message) for a, message in carrying]
    pairs += [pair for algorithm in (LEAN, LEAN_POINTS, LONE) for pair in overheard(algorithm)]
    assert {type(message) for _, message in pairs} == set(MESSAGES)
    assert {each.raw for _, each in pairs if isinstance(each, Digested)} == {False, True}
    return [(codec, codec.encode(message)) for codec, message in pairs]


def overheard(algorithm: Algorithm, *, each: int = 3) -> list[tuple[Codec, Message]]:
    """Messages of a real run without syncs, a few of each kind and of each set of arrays that it carries."""
    plan, random = algorithm.plan(2), np.random.default_rng(1)
    network = Overheard(plan, clients=2, seed=0)
    for turn in range(12):
        client, many = network.clients[turn % 2], (1, 3, 120)[turn % 3]
        near = 0.25 * random.integers(-4, 5, (many, 2))  # points come again, by their numbers
        points = np.where(random.random((many, 1)) < 0.02, 2.0 * random.normal(size=(many, 2)), near)
        rewards = random.normal(size=many) * np.where(random.random(many) < 0.05, 1e5, 1.0)
        network.settle(turn % 2, client.learn(points, rewards))
        network.settle(turn % 2, client.flush())
    network.cut(0)
    network.greet(0)
    network.drain()
    network.settle(0, network.clients[0].flush())
    found: dict[tuple[object, ...], list[Message]] = {}
    for message in network.heard:
        payload = payload_of(message)
        kind = type(message), getattr(message, "raw", None), *payload.values, *payload.records
        found.setdefault(kind, []).append(message)
    codec = Codec(plan)
    return [(codec, message) for messages in found.values() for message in messages[-each:]]


class Overheard(Network):
    """A network that notes all that passes."""

    def __init__(self, plan: Plan, **more: Any) -> None:
        self.heard: list[Message] = []
        super().__init__(plan, **more)

    def to_server(self, number: int, message: Up) -> Outcome[tuple[int, Down]]:
        self.heard.append(message)
        return super().to_server(number, message)

    def to_client(self, number: int, message: Down) -> Outcome[Up]:
        self.heard.append(message)
        return super().to_client(number, message)


def mutated(count: int, *, seed: int = 0) -> Iterator[tuple[Codec, bytes]]:
    """So many changed messages: bytes set, inserted, left out or doubled, ends cut off, halves joined."""
    random, sources = np.random.default_rng(seed), originals()
    for _ in range(count):
        draws = random.integers(0, 2**31, size=12).tolist()
        codec, data = sources[draws[0] % len(sources)]
        changed = bytearray(data)
        for at, how, value in (draws[1:4], draws[4:7], draws[7:10])[: 1 + draws[10] % 3]:
            _change(changed, 3 + at % max(len(changed) - 3, 1), how % 7, value)
        if draws[11] % 10 == 0:
            other = sources[draws[10] % len(sources)][1]
            changed[draws[1] % (len(changed) + 1) :] = other[draws[2] % len(other) :]
        yield codec, bytes(changed)


def _change(data: bytearray, at: int, how: int, value: int) -> None:
    if how == 0:
        data[at : at + 1] = bytes([value % 256])
    elif how <= 2:
        data[at : at + 1] = TELLING[value % len(TELLING) :][:1]
    elif how == 3:
        data[at:at] = TELLING[value % len(TELLING) :][: 1 + value % 5]
    elif how == 4:
        del data[at : at + 1 + value % 4]
    elif how == 5:
        data[at:at] = data[at : at + value % 30]
    else:
        del data[at:]


def read_all(count: int, *, seed: int = 0) -> dict[str, int]:
    """Decode so many changed messages; how many were messages all the same, how many refused, and the most memory."""
    found = {"messages": 0, "refused": 0, "peak": 0}
    tracemalloc.start()
    try:
        for codec, data in mutated(count, seed=seed):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            try:
                codec.decode(data)
                found["messages"] += 1
            except ProtocolError:
                found["refused"] += 1
            taken = tracemalloc.get_traced_memory()[1] - before
            found["peak"] = max(found["peak"], taken)
            assert taken < AT_LEAST + A_BYTE * len(data), data.hex()
    finally:
        tracemalloc.stop()
    return found


if __name__ == "__main__":
    begun = time.perf_counter()
    print(read_all(int(sys.argv[1])))
    print(f"{time.perf_counter() - begun:.0f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
