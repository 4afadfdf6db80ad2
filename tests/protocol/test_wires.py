"""Raw points in fewer bits: what travels, what it counts, and that everybody talks of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laconic import Catalogue, Cosine, DisKernelUCB, Gaussian, OneKernelUCB, Run, run
from laconic.atoms.settings import POINT_ROUNDING
from laconic.beliefs import ExactBelief
from laconic.errors import InputError, RemoteProtocolError
from laconic.exploration import Fixed
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Payload
from laconic.protocol.phases import ShareData
from laconic.protocol.plan import Plan
from laconic.protocol.wire import FloatWire, Int8Wire, as_wire
from laconic.runtimes.network import Delivery, Network
from laconic.testing import check_algorithm, check_phase
from laconic.triggers import Every

#: Some points are beyond the range of the last, so that parcels have points in several forms.
WIRES: list[Any] = ["float64", "float32", "float16", "int8", Int8Wire(ranges=0.4)]
KERNEL = Gaussian(0.5)
EXACT = ExactBelief.empty(kernel=KERNEL, lam=0.1, dim=3)
ALGORITHMS = [
    algorithm
    for wire in WIRES
    for algorithm in (
        DisKernelUCB(KERNEL, D=3.0, lam=0.1, alpha=0.1, wire=wire),
        DisKernelUCB(KERNEL, D=3.0, lam=0.1, alpha=0.1, wire=wire, together=False),
        OneKernelUCB(KERNEL, lam=0.1, alpha=0.1, wire=wire),
    )
]


def played(algorithm: Any, problem: Any, runtime: str, *, clients: int = 3, rounds: int = 12) -> Run:
    return run(algorithm, problem, clients=clients, rounds=rounds, seed=3, runtime=runtime)


@pytest.mark.parametrize("problem", [Cosine(dim=3), Catalogue(items=10, dim=3, arms=5)], ids=["fresh", "catalogue"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_lockstep_chooses_and_counts_as_loopback_does(algorithm: Any, problem: Any) -> None:
    one, other = (played(algorithm, problem, runtime) for runtime in ("loopback", "lockstep"))
    assert np.array_equal(one.choices, other.choices)
    keys: Any = ("epoch", "phase", "direction", "client")
    assert one.ledger.by(*keys) == other.ledger.by(*keys)


@pytest.mark.parametrize("wire", WIRES, ids=repr)
def test_the_ledger_has_the_bytes_of_the_encoded_messages(wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded, record = 0, Ledger.record

    def counting(self: Ledger, message: Any, **more: Any) -> None:
        nonlocal encoded
        encoded += len(Codec(self.plan).encode(message))
        record(self, message, **more)

    monkeypatch.setattr(Ledger, "record", counting)
    algorithm = DisKernelUCB(KERNEL, D=3.0, lam=0.1, alpha=0.1, wire=wire)
    assert played(algorithm, Cosine(dim=3), "loopback").ledger.total.bytes == encoded > 0
    assert played(algorithm, Cosine(dim=3), "lockstep").ledger.total.bytes == encoded


def test_exact_numbers_are_the_default_and_cost_what_they_did() -> None:
    plain, named = DisKernelUCB(KERNEL, D=3.0, lam=0.1), DisKernelUCB(KERNEL, D=3.0, lam=0.1, wire="float64")
    assert plain == named
    X, y = np.random.default_rng(0).normal(size=(4, 3)), np.arange(4.0)
    merged = ShareData().finish(EXACT, {0: Payload(values={"points": X, "rewards": y})})
    down = ShareData().address(merged, 1)
    assert down.values["points"].tobytes() == X.tobytes()
    assert down.values["rewards"].tobytes() == y.tobytes()


@pytest.mark.parametrize(("wire", "least"), [("float32", 1.95), ("float16", 3.7), ("int8", 6.8)])
def test_narrower_numbers_take_as_many_fewer_bytes_and_the_same_scalars(wire: str, least: float) -> None:
    def counted(wire: str) -> Any:
        algorithm = DisKernelUCB(Gaussian(0.1), D=20.0, lam=0.1, alpha=0.1, wire=wire)
        return played(algorithm, Cosine(dim=20), "lockstep", clients=20, rounds=20).ledger

    wide, narrow = counted("float64"), counted(wire)
    per_scalar = [ledger.total.bytes / ledger.total.scalars for ledger in (wide, narrow)]
    assert per_scalar[0] / per_scalar[1] > least
    assert narrow.total.scalars % 21 == 0


@pytest.mark.parametrize("wire", WIRES, ids=repr)
def test_all_members_learn_the_rounded_points_and_rewards(wire: Any) -> None:
    plan = DisKernelUCB(KERNEL, D=0.5, lam=0.1, wire=wire).plan(3)
    network = Network(plan, clients=3, seed=0, share=False, delivery=Delivery(through_bytes=True))
    random = np.random.default_rng(0)
    for step in range(12):
        client = network.clients[step % 3]
        decision = client.choose(random.uniform(-0.6, 0.6, (4, 3)))
        network.settle(step % 3, client.observe(decision, random.normal()))
    beliefs = [client.learner.belief for client in network.clients.values()]
    assert len({client.mark for client in network.clients.values()}) == 1
    own = np.concatenate([client.learner.history.points for client in network.clients.values()])
    again, _ = plan.rounded(own, np.zeros(len(own)))
    assert np.array_equal(again, own)  # a history holds points as they travel
    for belief in beliefs:
        assert isinstance(belief, ExactBelief)
        assert all((own == x).all(axis=1).any() for x in belief.points)


@pytest.mark.parametrize("wire", [each for each in WIRES if isinstance(each, str)])
def test_rounding_moves_no_point_far_in_the_kernels_distance(wire: str) -> None:
    X = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    rounded, _ = as_wire(wire).rounded(X, np.zeros(50), kernel=KERNEL, lam=0.1)
    moved = [2.0 - 2.0 * float(KERNEL(x[None], z[None])[0, 0]) for x, z in zip(X, rounded, strict=True)]
    assert max(moved) <= POINT_ROUNDING * 0.1


@pytest.mark.parametrize("wire", [*WIRES, Int8Wire(ranges=(0.4, 3.0, 2.0))], ids=repr)
def test_share_data_is_a_phase_on_every_wire(wire: Any) -> None:
    check_phase(ShareData(wire), belief=EXACT)


@pytest.mark.parametrize(
    "algorithm", [DisKernelUCB(KERNEL, D=3.0, wire="int8"), OneKernelUCB(wire="float16")], ids=repr
)
def test_exact_algorithms_keep_their_promises_on_narrow_wires(algorithm: Any) -> None:
    check_algorithm(algorithm)


def test_a_part_in_other_numbers_is_refused() -> None:
    X, y = np.zeros((2, 3)), np.zeros(2)
    parts: dict[str, dict[str, np.ndarray]] = {
        "float64 points": {"points": X, "rewards": y.astype(np.float16)},
        "float64 rewards": {"points": X.astype(np.int8), "rewards": y},
        "no rewards": {"points": X.astype(np.int8)},
        "points twice, in no order": {
            "points": X.astype(np.int8),
            "wide": X.astype(np.int16),
            "rewards": np.zeros(4, dtype=np.float16),
        },
        "numbers of points": {"ids": np.zeros(2, dtype=np.uint8), "rewards": y.astype(np.float16)},
    }
    for values in parts.values():
        with pytest.raises(RemoteProtocolError):
            ShareData(Int8Wire()).check(EXACT, Payload(values=values))
    with pytest.raises(RemoteProtocolError, match="float32, where float64 is expected"):
        ShareData().check(EXACT, Payload(values={"points": X.astype(np.float32), "rewards": y}))


def test_a_plan_rounds_to_the_wire_of_its_phase() -> None:
    with pytest.raises(InputError, match="wire"):
        Plan(belief=EXACT, trigger=Every(3), phases=(ShareData(FloatWire("float16")),), confidence=Fixed(1.0))
    with pytest.raises(InputError, match="wire cannot be"):
        DisKernelUCB(wire="int4")


def test_minus_zero_travels_as_zero_as_both_are_one_point() -> None:
    wire = Int8Wire(ranges=1.0)
    points, _ = wire.rounded(np.array([[-0.0, 5.0]]), np.zeros(1), kernel=None, lam=1.0)
    assert wire.form_of(points).tolist() == [2]  # beyond its range it goes in 32 bits, which tell −0 from 0
    assert not np.signbit(points).any()
    assert not np.signbit(wire.unpacked(2, np.array([[-0.0, 5.0]], dtype=np.float32))).any()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_minus_zero_travels_as_zero_in_narrow_floats_too(dtype: str) -> None:
    wire, shown = FloatWire(dtype), np.array([[-0.0, 1.0], [-1e-60, 1.0]])  # the second is too small for either
    points, _ = wire.rounded(shown, np.zeros(2), kernel=None, lam=1.0)
    assert points.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert not np.signbit(points).any()
    assert not np.signbit(wire.unpacked(0, shown.astype(dtype))).any()
