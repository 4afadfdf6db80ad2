"""The paper's wire made compact: the same choices for a fifth of the bytes."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import pytest

from laconic import ApproxDisKernelUCB, Catalogue, Cosine, DisLinUCB, Gaussian, Run, run
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding, Statistics
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Ledger
from laconic.protocol.messages import Payload
from laconic.protocol.phases import AgreeOnDictionary, ShareStatistics, references, triangles
from laconic.testing import check_algorithm, check_phase

KERNEL = Gaussian(0.5)
RANDOM = np.random.default_rng(0)
KEYS: Any = ("epoch", "phase", "direction", "client")


def approx(wire: Any, **more: Any) -> ApproxDisKernelUCB:
    return ApproxDisKernelUCB(KERNEL, D=2.0, lam=0.1, alpha=0.1, qbar=1.0, wire=wire, **more)


def linear(wire: Any) -> DisLinUCB:
    return DisLinUCB(D=2.0, lam=0.1, alpha=0.1, wire=wire)


MADE: dict[str, Any] = {"approx": approx, "local": lambda wire: approx(wire, cold_start="local"), "linear": linear}
PROBLEMS = {"fresh": Cosine(dim=4), "catalogue": Catalogue(items=12, dim=4, arms=6)}


def played(algorithm: Any, problem: Any, runtime: str = "lockstep", *, clients: int = 4, rounds: int = 25) -> Run:
    return run(algorithm, problem, clients=clients, rounds=rounds, seed=1, runtime=runtime)


def points_of_dictionary(size: int) -> Floats:
    return references.single(np.random.default_rng(5).uniform(-1, 1, (size, 3)))


def dictionary(size: int) -> FiniteBelief:
    return FiniteBelief.nystrom(kernel=KERNEL, dictionary=points_of_dictionary(size), lam=0.1)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("made", MADE)
def test_lockstep_chooses_and_counts_as_loopback_does(made: str, problem: str) -> None:
    one, other = (played(MADE[made]("compact"), PROBLEMS[problem], runtime) for runtime in ("loopback", "lockstep"))
    assert np.array_equal(one.choices, other.choices)
    assert one.ledger.by(*KEYS) == other.ledger.by(*KEYS)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("made", MADE)
def test_choices_are_those_of_the_papers_wire(made: str, problem: str) -> None:
    paper, compact = (played(MADE[made](wire), PROBLEMS[problem]) for wire in ("paper", "compact"))
    assert np.array_equal(paper.choices, compact.choices)
    assert compact.ledger.total.messages == paper.ledger.total.messages
    assert compact.ledger.total.bytes < paper.ledger.total.bytes


@pytest.mark.parametrize("made", MADE)
def test_the_ledger_has_the_bytes_and_scalars_of_the_messages(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_, scalars, record = 0, 0, Ledger.record

    def counting(self: Ledger, message: Any, **more: Any) -> None:
        nonlocal bytes_, scalars
        bytes_ += len(Codec(self.plan).encode(message))
        payload = getattr(message, "payload", Payload())
        scalars += sum(array.size for array in payload.values.values())
        record(self, message, **more)

    monkeypatch.setattr(Ledger, "record", counting)
    total = played(MADE[made]("compact"), PROBLEMS["fresh"], "loopback").ledger.total
    assert (total.bytes, total.scalars) == (bytes_, scalars)
    assert played(MADE[made]("compact"), PROBLEMS["fresh"]).ledger.total == total


def test_a_fifth_of_the_bytes_is_enough_on_fresh_arms() -> None:
    def total(wire: Any) -> int:
        algorithm = ApproxDisKernelUCB(Gaussian(0.1), D=2.0, lam=0.1, alpha=0.1, qbar=1.0, wire=wire)
        return played(algorithm, Cosine(dim=20), clients=30, rounds=30).ledger.total.bytes

    assert total("paper") > 5 * total("compact")


# -- statistics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 4, 6, 7, 30])
def test_a_factor_and_a_triangle_are_the_sums_but_for_single_precision(count: int) -> None:
    belief = dictionary(6)
    X, y = RANDOM.uniform(-1, 1, (count, 3)), RANDOM.normal(size=count)
    expected = Statistics.of(belief.embedding, X, y)
    up = triangles.contribution(belief.embedding, X, y)
    rows = min(count, 6)
    assert up.values["factor"].size == rows * 6 - rows * (rows - 1) // 2
    for payload in (up, triangles.result(expected)):
        assert all(array.dtype == np.float32 for array in payload.values.values())
        read = triangles.unpacked(payload)
        scale = float(np.trace(expected.gram)) or 1.0
        assert np.abs(read.gram - expected.gram).max() <= 2.0**-22 * scale
        assert np.abs(read.moment - expected.moment).max() <= 2.0**-22 * (np.abs(expected.moment).max() or 1.0)
        assert (read.count, read.squares) == (expected.count, expected.squares)
        belief.check_statistics(read)


def part_of(belief: FiniteBelief, count: int, scale: float = 1.0) -> Payload:
    X, y = RANDOM.uniform(-1, 1, (count, 3)), scale * RANDOM.normal(size=count)
    return triangles.contribution(belief.embedding, X, y)


@pytest.mark.parametrize("count", [3, 300, 1000])
def test_a_history_in_several_chunks_has_the_factor_of_the_whole(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    belief = dictionary(6)
    X, y = RANDOM.uniform(-1, 1, (count, 3)), RANDOM.normal(size=count)
    Z = belief.embedding.embed(X)
    whole = triangles.contribution(belief.embedding, X, y)
    factor = np.asarray(np.linalg.qr(Z.T, mode="r"))
    assert np.array_equal(whole.values["factor"], factor[np.triu_indices(len(factor), m=6)].astype(np.float32))
    monkeypatch.setattr("laconic.beliefs.contract.CHUNK_ENTRIES", 4)
    monkeypatch.setattr("laconic.beliefs.contract.CHUNK_LEAST", 4)  # fewer points than coordinates
    chunked = triangles.contribution(belief.embedding, X, y)
    assert chunked.values["factor"].shape == whole.values["factor"].shape
    one, other = triangles.unpacked(whole), triangles.unpacked(chunked)
    assert np.abs(one.gram - other.gram).max() <= 2.0**-21 * np.trace(one.gram)
    assert np.abs(one.moment - other.moment).max() <= 2.0**-22 * np.abs(one.moment).max()
    assert one.count == other.count == count
    assert (one.prior, one.squares) == pytest.approx((other.prior, other.squares), rel=1e-12)


def test_a_sum_of_parts_is_that_of_their_sums_rounded_once_in_any_order() -> None:
    belief, phase = dictionary(5), ShareStatistics(wire="compact")
    parts = [part_of(belief, count % 9, scale=10.0 ** (count % 7 - 3)) for count in range(40)]
    each = [triangles.unpacked(part) for part in parts]
    moment = [fsum(sums.moment[k] for sums in each) for k in range(5)]
    gram = [[fsum(sums.gram[j, k] for sums in each) for k in range(5)] for j in range(5)]
    for seed in range(5):
        state = phase.empty()
        for client in np.random.default_rng(seed).permutation(40).tolist():
            state = phase.add(state, client, parts[client])
        total = state.rounded(5)
        assert np.array_equal(total.gram, gram)
        assert np.array_equal(total.moment, moment)
        assert total.count == sum(sums.count for sums in each)
        assert total.prior == fsum(sums.prior for sums in each)
        assert total.squares == fsum(sums.squares for sums in each)
        down = phase.finish(belief, state)
        assert np.array_equal(down.values["moment"], np.asarray(moment, dtype=np.float32))
        assert np.array_equal(triangles.unpacked(down).gram, np.asarray(gram, dtype=np.float32))


def test_a_coordinate_that_no_point_is_near_is_left_out() -> None:
    far = FiniteBelief.nystrom(kernel=Gaussian(1.0), dictionary=np.array([[0.0, 0.0], [9.0, 0.0]]), lam=0.1)
    X, y = np.array([[0.5, 0.0]]), np.array([1.0])
    assert 0.0 < Statistics.of(far.embedding, X, y).gram[1, 1] < triangles.LOST
    read = triangles.unpacked(triangles.contribution(far.embedding, X, y))
    assert read.gram[1, 1] == read.moment[1] == 0.0
    far.check_statistics(read)
    far.check_statistics(triangles.unpacked(triangles.result(read)))


def test_sums_beyond_single_precision_are_refused_where_they_arise() -> None:
    with pytest.raises(InputError, match="32 bits"):
        triangles.contribution(LinearEmbedding(2), np.array([[1e30, 0.0]]), np.array([1e30]))


def test_a_part_of_statistics_that_makes_no_sense_is_refused() -> None:
    belief, phase = dictionary(4), ShareStatistics(wire="compact")
    part = triangles.contribution(belief.embedding, np.zeros((2, 3)), np.zeros(2))
    values = part.values
    wrong = [
        {"factor": values["factor"]},
        {"moment": values["moment"]},
        values | {"gram": values["factor"]},
        values | {"factor": values["factor"][:-1]},
        values | {"factor": values["factor"].astype(np.float64)},
        values | {"factor": values["factor"][None]},
        {"gram": np.zeros(9, dtype=np.float32), "moment": values["moment"]},
        values | {"moment": np.zeros(5, dtype=np.float32)},
    ]
    for each in wrong:
        with pytest.raises(RemoteProtocolError):
            phase.check(belief, Payload(values=each, control=part.control))
    result = triangles.result(Statistics.zeros(4))
    assert not phase.speaks_for(result, covered=0, upto=0)  # a triangle is what comes down


# -- dictionaries ------------------------------------------------------------------------------------------------------


def test_points_go_by_number_where_they_are_known_and_come_back_as_they_were() -> None:
    old, own = points_of_dictionary(4), references.single(RANDOM.uniform(-1, 1, (3, 3)))
    new = references.single(RANDOM.uniform(-1, 1, (2, 3)))
    points = np.concatenate([new[:1], old[2:3], own[1:2], new[1:], old[:1]])
    known = references.numbers(own, references.OWN) | references.numbers(old, references.DICTIONARY)
    payload = references.packed(points, known)
    assert payload.values["ids"].tolist() == [4, 3, 0]
    assert len(payload.values["points"]) == 2
    written = references.resolved(payload, own, references.OWN)
    assert written.values["ids"].tolist() == [4, 0]
    assert np.array_equal(references.points_of(written, old), points)
    with pytest.raises(RemoteProtocolError, match="only their sender knows"):
        references.points_of(payload, old)


def test_a_dictionary_has_the_same_bits_for_who_proposed_zero_and_who_proposed_minus_zero() -> None:
    draft, phase = dictionary(2), AgreeOnDictionary(1.0, wire="compact")
    parts = [Payload(values={"points": np.array([[zero, 0.5, 0.5]], dtype=np.float32)}) for zero in (-0.0, 0.0)]
    merged = phase.finish(draft, phase.add(phase.add(phase.empty(), 0, parts[0]), 1, parts[1]))
    sent = [*(phase.complete(phase.address(merged, client), parts[client]) for client in (0, 1)), phase.whole(merged)]
    beliefs = [phase.absorb(draft, each) for each in sent]
    assert len({belief.arrays()["dictionary"].tobytes() for belief in beliefs}) == 1


def test_an_unchanged_dictionary_sends_nothing_down() -> None:
    belief, phase = dictionary(4), AgreeOnDictionary(1.0, wire="compact")
    old = points_of_dictionary(4)
    part = references.packed(old, references.numbers(old, references.DICTIONARY))
    assert set(part.values) == {"ids"}
    merged = phase.finish(belief, {0: part, 1: Payload()})
    agreed = merged.points
    again = phase.finish(belief.on_dictionary(agreed), {0: references.packed(agreed, {}), 1: Payload()})
    assert not phase.address(again, 0).values
    assert not phase.address(again, 1).values
    assert not phase.address(phase.finish(belief, {0: Payload()}), 0).values


def test_dictionary_points_have_no_rewards_and_are_the_papers_rounded() -> None:
    runs = {wire: played(approx(wire), Cosine(dim=4)) for wire in ("paper", "compact")}
    paper, compact = (runs[wire].ledger.by("phase", "direction") for wire in ("paper", "compact"))
    where = ("agree on dictionary", "up")
    assert compact[where].scalars <= paper[where].scalars * 4 / 5


def test_a_part_of_a_dictionary_that_makes_no_sense_is_refused() -> None:
    belief, phase = dictionary(4), AgreeOnDictionary(1.0, wire="compact")
    rows, ids = np.zeros((2, 3), dtype=np.float32), np.array([0, 2], dtype=np.uint16)
    wrong: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = [
        ({"points": rows.astype(np.float64)}, {}),
        ({"points": rows[:, :2]}, {}),
        ({"points": rows, "rewards": np.zeros(2)}, {}),
        ({"ids": np.array([8], dtype=np.uint16)}, {}),
        ({"ids": ids.astype(np.float32)}, {}),
        ({"points": rows, "ids": ids}, {}),
        ({"points": rows, "ids": ids}, {"known": np.array([255], dtype=np.uint8)}),
        ({"points": rows, "ids": ids}, {"known": np.zeros(2, dtype=np.uint8)}),
    ]
    for values, records in wrong:
        with pytest.raises(RemoteProtocolError):
            phase.check(belief, Payload(values=values, records=records))
    with pytest.raises(RemoteProtocolError, match="means nothing to the server"):
        phase.speaks_for(Payload(values={"ids": np.array([1], dtype=np.uint16)}), covered=0, upto=5)
    with pytest.raises(RemoteProtocolError, match="3 points are proposed"):
        phase.speaks_for(Payload(values={"points": np.zeros((3, 3), dtype=np.float32)}), covered=0, upto=2)


# -- contracts ---------------------------------------------------------------------------------------------------------


def test_compact_phases_are_phases() -> None:
    nystrom = FiniteBelief.empty(embedding=NystromEmbedding(kernel=KERNEL, dictionary=np.empty((0, 2))), lam=0.5)
    agree, share = AgreeOnDictionary(1.0, wire="compact"), ShareStatistics(wire="compact")
    check_phase(agree, belief=nystrom)
    check_phase(share, belief=nystrom, after=[agree])
    check_phase(share, belief=ExactBelief.empty(kernel=KERNEL, lam=0.5, dim=2), after=[agree])
    linear = FiniteBelief.empty(embedding=LinearEmbedding(2), lam=0.5)
    check_phase(ShareStatistics(source="tail", wire="compact"), belief=linear)


@pytest.mark.parametrize("made", MADE)
def test_algorithms_keep_their_promises_on_the_compact_wire(made: str) -> None:
    check_algorithm(MADE[made]("compact"))


def test_a_wire_that_there_is_not_is_refused() -> None:
    for made in (approx, linear):
        with pytest.raises(InputError, match="wire"):
            made("tight")
