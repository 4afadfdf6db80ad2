"""Runs that memory does not suffice for say so before they start."""

from __future__ import annotations

from typing import Any

import pytest

from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    Gaussian,
    InputError,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
    compare,
    frontier,
    run,
)
from laconic.experiments.runner import Memory
from laconic.runtimes import needs
from laconic.runtimes.needs import Need, machine_memory, memory_needed, require_memory

LONG: Any = {"clients": 100, "rounds": 1000}
SHORT: Any = {"clients": 4, "rounds": 3}


def needed(algorithm: Any, problem: Any, **sizes: Any) -> Need | None:
    return memory_needed(algorithm, problem.instance(seed=0, **sizes), **sizes)


def test_an_exact_belief_of_all_points_needs_a_factor_of_them_and_one_in_single_precision() -> None:
    need = needed(DisKernelUCB(), Cosine(), **LONG)
    assert need is not None
    assert (need.name, need.points) == ("DisKernelUCB", 100_000)
    assert need.bytes == 6 * 100_000**2
    single = needed(OneKernelUCB(dtype="float32"), Cosine(), **LONG)
    assert single is not None
    assert single.bytes == 2 * 100_000**2  # which has no other beside it


def test_clients_by_themselves_need_a_factor_each() -> None:
    need = needed(NKernelUCB(), Cosine(), **LONG)
    assert need is not None
    assert need.bytes == 100 * 8 * 1000**2


@pytest.mark.parametrize("algorithm", [ApproxDisKernelUCB(), LaconicUCB()], ids=lambda each: type(each).__name__)
def test_beliefs_on_a_dictionary_do_not_grow_with_the_points(algorithm: Any) -> None:
    assert needed(algorithm, Cosine(), **LONG) is None


def test_points_that_return_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert needed(DisKernelUCB(), Catalogue(items=20), **LONG) is None
    monkeypatch.setattr(needs, "LEAST", 1_000_000)
    need = needed(DisKernelUCB(), Catalogue(items=1500, arms=20), clients=200, rounds=100)
    assert need is not None
    assert 1400 <= need.points <= 1800


@pytest.fixture
def a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 100)
    monkeypatch.setattr(needs, "machine_memory", lambda: 800)


@pytest.mark.usefixtures("a_small_machine")
def test_a_run_beyond_the_memory_is_refused_unless_told_to_go_on() -> None:
    algorithm, problem = DisKernelUCB(Gaussian(1.0)), Cosine(dim=2, arms=3)
    for asked in (run, lambda *what, **how: compare(what[0], problem=what[1], seeds=1, **how)):
        with pytest.raises(InputError, match=r"12 points.*8.64e-07 GB.*has 8e-07 GB.*beyond_memory=True"):
            asked(algorithm, problem, **SHORT)
        assert asked(algorithm, problem, beyond_memory=True, **SHORT) is not None
    with pytest.raises(InputError, match="beyond_memory"):
        frontier(problem, algorithms=[algorithm], seeds=1, jobs=1, **SHORT)
    with pytest.raises(InputError, match="beyond_memory must be"):
        run(algorithm, problem, beyond_memory="yes", **SHORT)  # type: ignore[arg-type]


def test_several_runs_at_a_time_need_room_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "machine_memory", lambda: 10**9)
    each = Need("DisKernelUCB", points=10_000, bytes=6 * 10**8)
    require_memory([each, each])
    with pytest.raises(InputError, match=r"2 runs at a time 1.2 GB.*one run at a time"):
        require_memory([each, each], slots=2)
    monkeypatch.setattr(needs, "machine_memory", lambda: None)
    require_memory([each, each], slots=2)


@pytest.mark.usefixtures("a_small_machine")
def test_whoever_watches_is_told_what_is_needed() -> None:
    told: list[Any] = []
    how: Any = {"problem": Cosine(dim=2, arms=3), "seeds": 2, "progress": told.append, **SHORT}
    compare([DisKernelUCB(), ApproxDisKernelUCB()], beyond_memory=True, **how)
    assert [event.need.name for event in told if isinstance(event, Memory)] == ["DisKernelUCB"]
    assert str(told[0].need) == "DisKernelUCB keeps up to 12 points, which take about 8.64e-07 GB"


def test_the_machine_has_memory_and_a_limit_of_its_group_counts(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "CGROUP", tmp_path / "none")
    whole = machine_memory()
    assert whole is not None
    assert whole > 10**8
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(needs, "CGROUP", limit)
    limit.write_text("max\n")
    assert machine_memory() == whole
    limit.write_text("1000\n")
    assert machine_memory() == 1000
