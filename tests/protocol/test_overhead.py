"""What travels beside points, rewards and the belief itself: a few bytes a message, in every run."""

from typing import Any

import numpy as np
import pytest

from laconic import Catalogue, Cosine, FromFunctions, Gaussian, LaconicUCB, Linear, Problem
from laconic.protocol import tight
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Direction
from laconic.protocol.messages import Digested, Payload, Upload
from laconic.protocol.shapes import Layout
from laconic.protocol.tight import chosen, head
from laconic.runtimes import loopback
from laconic.runtimes.network import Network
from laconic.suggestion.costs import DOWNLOAD, UPLOAD

#: Bytes of a message beside what it is about, at most.
MOST_UP, MOST_DOWN = 24, 40
#: Bytes that a download of raw points saves beside one of atoms, which says how much the server knows of each client.
RAW_SAVES = 3
#: Bytes of bitmaps for a raw point, at most, over all downloads of a run.
MOST_MARKED = 0.5
#: The forms of points; and what a message is about: points in any form, rewards, and the weights and the mean of atoms.
FORMS = ("points", "wide", "exact", "ids")
MATTER = (*FORMS, "rewards", "weights", "mean", "large")
#: Bitmaps: a mark for each of so many points, which says its form, whose it is, or whether it stays.
BITMAPS = ("forms", "runs", "dropped", "spanning")


def _in_a_cube(random: np.random.Generator, count: int) -> np.ndarray:
    return random.uniform(-0.5, 0.5, (count, 8, 4))


LEAN = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1, delta=0.5)
RUNS: dict[str, tuple[LaconicUCB, Problem, int, int]] = {
    "fresh arms": (LEAN, Cosine(dim=3), 8, 60),
    "few items": (LEAN, Catalogue(dim=3, items=12, arms=5), 8, 60),
    "a long run": (LEAN, Cosine(dim=2), 3, 300),
    "many features, all raw": (LaconicUCB(Gaussian(1.0), lam=1.0, alpha=1.0, delta=0.5), Cosine(dim=20), 10, 20),
    "rewards of a million": (
        LaconicUCB(Gaussian(0.5), lam=0.1, alpha=2e5, delta=0.5, reward=1e6),
        FromFunctions(mean=lambda x: 1e6 * np.cos(3.0 * x.sum(axis=1)), arms=_in_a_cube, noise=1e5),
        6,
        40,
    ),
    "a linear kernel": (LaconicUCB(Linear(), lam=0.1, alpha=0.1, delta=0.5), Cosine(dim=5), 6, 40),
}


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All messages of a run."""
    found: list[Any] = []
    put = Network._put

    def noted(self: Network, direction: Direction, number: int, message: Any, travelling: Any) -> None:
        found.append(message)
        put(self, direction, number, message, travelling)

    monkeypatch.setattr(Network, "_put", noted)
    return found


def beside(codec: Codec, message: Any, *names: str) -> int:
    """The bytes of an encoded message without some of its arrays."""
    layout = codec.layout(message)
    assert layout is not None
    arrays = chosen(message.payload, layout, dim=codec.plan.belief.dim if codec.plan is not None else 0)
    assert arrays is not None
    return len(codec.encode(message)) - sum(each.size for each in arrays if each.name in names)


@pytest.mark.parametrize("what", RUNS)
def test_messages_say_little_beside_what_they_are_about(what: str, passed: list[Any]) -> None:
    algorithm, problem, clients, rounds = RUNS[what]
    instance = problem.instance(clients=clients, rounds=rounds, seed=0)
    played = loopback.play(algorithm, instance, clients=clients, rounds=rounds, seed=0)
    codec = Codec(algorithm.plan(instance.dim))
    assert played.bytes == sum(len(codec.encode(message)) for message in passed)
    ups = [message for message in passed if isinstance(message, Upload)]
    downs = [message for message in passed if isinstance(message, Digested)]
    assert ups
    assert downs
    for messages, most, names in ((ups, MOST_UP, MATTER), (downs, MOST_DOWN, (*MATTER, *BITMAPS))):
        worst = max(messages, key=lambda message: beside(codec, message, *names))
        assert beside(codec, worst, *names) <= most, f"{len(codec.encode(worst))} bytes: {worst}"
    atoms, raw = ([message for message in downs if message.raw is told] for told in (False, True))
    for messages, estimate in ((ups, UPLOAD), (atoms, DOWNLOAD), (raw, DOWNLOAD - RAW_SAVES)):
        if messages:
            found = [beside(codec, message, *MATTER, *BITMAPS) for message in messages]
            assert np.mean(found) == pytest.approx(estimate, abs=1.5)
    marked = sum(beside(codec, message, *MATTER) - beside(codec, message, *MATTER, *BITMAPS) for message in raw)
    assert marked <= MOST_MARKED * sum(len(message.payload.values.get(name, ())) for message in raw for name in FORMS)


def test_a_digest_counts_its_points_weights_and_coefficients_as_scalars(passed: list[Any]) -> None:
    algorithm = LaconicUCB(Gaussian(0.5), lam=0.01, alpha=0.1, reward=0.05)  # small steps make large coefficients
    instance = Cosine(dim=2).instance(clients=4, rounds=60, seed=0)
    loopback.play(algorithm, instance, clients=4, rounds=60, seed=0)
    downs = [message for message in passed if isinstance(message, Digested) and not message.raw]
    assert any("large" in message.payload.records for message in downs)
    for message in downs:
        values = message.payload.values
        assert len(values["mean"]) <= len(values["weights"])
        points = sum(values[name].size for name in ("points", "wide", "exact", "ids") if name in values)
        assert message.payload.scalars == points + len(values["weights"]) + len(values["mean"])


# Arrays in one run of bytes

LAYOUT = Layout(
    values={"points": ("n", "d"), "weights": ("m",), "mean": ("m",)},
    records={"facts": (2,), "rest": ("r",)},
    types={
        "points": ("int8", "int16", "float64"),
        "weights": ("uint8",),
        "mean": ("int8",),
        "facts": ("float16", "float32"),
        "rest": ("uint8", "float64"),
    },
    always=("rest",),
    rest="rest",
)
ROW = np.arange(3, dtype=np.uint8)


def tightly(payload: Payload, dim: int = 2) -> bytes | None:
    arrays = chosen(payload, LAYOUT, dim=dim)
    return None if arrays is None else head(arrays, LAYOUT) + b"".join(each.entries() for each in arrays)


def payload(points: Any, weights: Any = None, **records: Any) -> Payload:
    values = {"points": points, "weights": weights, "mean": None if weights is None else weights.astype(np.int8)}
    there = {name: array for name, array in values.items() if array is not None}
    return Payload(values=there, records={"rest": ROW, **records})


@pytest.mark.parametrize("dtype", ["int8", "int16", "float64"])
@pytest.mark.parametrize("count", [0, 1, 127, 128, 20_000])
def test_arrays_are_found_where_they_were_put(dtype: str, count: int) -> None:
    sent = payload(np.zeros((count, 2), dtype), np.ones(count, np.uint8), facts=np.zeros(2, np.float32))
    data = tightly(sent)
    assert data is not None
    found = {each.name: each for each in tight.found(data, LAYOUT, dim=2)}
    for name, array in {**sent.values, **sent.records}.items():
        each = found[name]
        assert (each.dtype, each.shape) == (array.dtype, array.shape)
        assert each.entries == array.tobytes()
    entries = sum(array.nbytes for array in {**sent.values, **sent.records}.values())
    sizes = 2 * (
        1 if count < 2**7 else 2 if count < 2**14 else 3
    )  # of points and of weights; that of the mean follows, and the rest's
    assert len(data) == 1 + sizes + entries


@pytest.mark.parametrize(
    "sent",
    [
        payload(np.zeros((3, 1), np.int8)),
        payload(np.zeros(3, np.int8)),
        payload(np.zeros((3, 2), np.float32)),
        payload(np.zeros((3, 2), np.int8), facts=np.zeros(3, np.float16)),
        payload(np.zeros((3, 2), np.int8), other=ROW),
        Payload(values={"points": np.zeros((3, 2), np.int8)}),
        Payload(values={"weights": ROW, "mean": np.zeros(2, np.int8)}, records={"rest": ROW}),
        Payload(records={"rest": ROW}, control={"n": 1.0}),
    ],
    ids=["narrow", "flat", "type", "facts", "another", "no rest", "sizes", "control"],
)
def test_a_payload_of_other_arrays_is_not_tight(sent: Payload) -> None:
    assert tightly(sent) is None


def test_no_run_of_bytes_claims_more_than_it_has() -> None:
    data = tightly(payload(np.zeros((3, 2), np.int8), np.ones(5, np.uint8)))
    assert data is not None
    for end in range(len(data) - len(ROW)):
        with pytest.raises(ValueError, match=r"bytes|size"):
            tight.found(data[:end], LAYOUT, dim=2)
    for endless in (b"\x81", b"\x81" + b"\xff" * 20, b"\x81\xff\xff\xff\xff\x7f"):
        with pytest.raises(ValueError, match=r"bytes|size"):
            tight.found(endless, LAYOUT, dim=2)
