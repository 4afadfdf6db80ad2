"""Runs that memory does not suffice for say so before they start."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    InputError,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
    ProblemError,
    Round,
    compare,
    frontier,
    run,
)
from laconic.experiments.compare import Room, try_out
from laconic.experiments.config import Experiment
from laconic.experiments.runner import Memory
from laconic.protocol.digests import AllPoints
from laconic.runtimes import needs
from laconic.runtimes.jobs import Here
from laconic.runtimes.needs import Need, memory_needed, require_memory
from laconic.runtimes.returning import points_to_choose_from

LONG: Any = {"clients": 100, "rounds": 1000}
SHORT: Any = {"clients": 4, "rounds": 3}


def needed(algorithm: Any, problem: Any, **sizes: Any) -> Need | None:
    return memory_needed(algorithm, problem.instance(seed=0, **sizes), **sizes)


def bytes_of(algorithm: Any, **sizes: Any) -> int:
    need = needed(algorithm, Cosine(), **sizes)
    assert need is not None
    return need.bytes


def test_an_exact_belief_of_all_points_needs_a_factor_of_them_and_one_in_single_precision() -> None:
    need = needed(DisKernelUCB(), Cosine(), **LONG)
    assert need is not None
    assert (need.name, need.points) == ("DisKernelUCB", 100_000)
    assert need.certain
    assert 6 * 100_000**2 < need.bytes < 1.1 * 6 * 100_000**2
    single = bytes_of(OneKernelUCB(dtype="float32"), **LONG)
    assert 2 * 100_000**2 < single < 1.1 * 2 * 100_000**2  # which has no other beside it


def test_clients_by_themselves_need_a_factor_each() -> None:
    assert 100 * 8 * 1000**2 < bytes_of(NKernelUCB(), **LONG) < 2.1 * 100 * 8 * 1000**2


@pytest.mark.parametrize("algorithm", [ApproxDisKernelUCB(), DisLinUCB()], ids=lambda each: type(each).__name__)
def test_beliefs_on_a_dictionary_do_not_grow_with_the_points(algorithm: Any) -> None:
    assert needed(algorithm, Cosine(), **LONG) is None


def test_what_is_sent_atoms_may_need_what_all_points_take_and_says_when() -> None:
    need = needed(LaconicUCB(), Cosine(), **LONG)
    assert need is not None
    assert not need.certain
    assert str(need) == ("LaconicUCB takes up to about 60.9 GB, where its 100,000 points cannot be summed up by few")
    whole = needed(LaconicUCB(digest=AllPoints()), Cosine(), **LONG)
    assert whole is not None
    assert whole.certain


def test_a_longer_tail_makes_larger_syncs_that_need_more() -> None:
    sizes: Any = {"clients": 50, "rounds": 200}
    assert bytes_of(DisKernelUCB(D=20.0), **sizes) > bytes_of(DisKernelUCB(D=1.0), **sizes)


def test_what_is_foretold_is_about_what_a_run_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 1)
    sizes: Any = {"clients": 20, "rounds": 100}
    foretold = bytes_of(DisKernelUCB(Gaussian(1.0), lam=1.0, alpha=1.0), **sizes)
    assert foretold / 1.5 < peak_of(**sizes) < foretold * 1.5


#: A run in a process of its own says by how much its memory grew; a small one before has loaded what any run needs.
MEASURED = """
from pathlib import Path
from laconic import Cosine, DisKernelUCB, Gaussian, run

def said(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

algorithm = DisKernelUCB(Gaussian(1.0), lam=1.0, alpha=1.0)
run(algorithm, Cosine(), clients=4, rounds=3)
before = said("VmRSS")
run(algorithm, Cosine(), clients={clients}, rounds={rounds})
print(said("VmHWM") - before)
"""


def peak_of(*, clients: int, rounds: int) -> int:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say how much memory a process took")
    code = MEASURED.format(clients=clients, rounds=rounds)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_points_that_return_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert needed(DisKernelUCB(), Catalogue(items=20), **LONG) is None
    monkeypatch.setattr(needs, "LEAST", 1_000_000)
    need = needed(DisKernelUCB(), Catalogue(items=1500, arms=20), clients=200, rounds=100)
    assert need is not None
    assert 1400 <= need.points <= 1800


def test_a_long_run_of_few_clients_on_a_catalogue_keeps_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 1_000_000)
    for items in (300, 3000):
        need = needed(DisKernelUCB(), Catalogue(dim=5, items=items, arms=20), clients=5, rounds=20_000)
        assert need is not None
        assert 0.9 * items <= need.points <= 1.1 * items


def test_who_shares_nothing_may_have_all_items_of_a_catalogue_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 1_000_000)
    need = needed(NKernelUCB(), Catalogue(items=300, arms=20), clients=20, rounds=300)
    assert need is not None
    assert 20 * 8 * 300**2 < need.bytes < 20 * 8 * 512**2 + 3e7


def test_points_that_return_beside_ever_new_ones_are_as_many_as_the_run_is_long() -> None:
    fixed = np.arange(10.0)[:, None]

    class Half:
        dim = 1

        def round(self, index: int) -> Round:
            new = 1000.0 + 10.0 * index + np.arange(10.0)[:, None]
            arms = np.concatenate([fixed, new])[None]
            return Round(arms, means=np.zeros((1, 20)), rewards=np.zeros((1, 20)))

    there = points_to_choose_from(Half(), clients=1, rounds=2000)
    assert there.distinct >= 10 * 2000


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("arms", [None, np.zeros((20, 3)), np.zeros((20, 0, 3)), np.zeros((20, 4, 2))])
def test_a_malformed_round_is_refused_with_its_number_at_any_size(bad: int, arms: Any) -> None:
    class Malformed:
        def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
            inner = Cosine(dim=3, arms=4).instance(seed=seed, clients=clients, rounds=rounds)

            class One:
                dim = 3

                def round(self, index: int) -> Any:
                    met = inner.round(index)
                    return met if index != bad else None if arms is None else replace(met, arms=arms)

            return One()

    for rounds in (4, 60):
        with pytest.raises(ProblemError, match=f"round {bad}: "):
            run(DisKernelUCB(), Malformed(), clients=20, rounds=rounds)
        with pytest.raises(ProblemError, match=f"round {bad}: "):
            compare(["DisKernelUCB"], problem=Malformed(), clients=20, rounds=rounds, seeds=1, jobs=1)


@pytest.fixture
def a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 100)
    monkeypatch.setattr(needs, "FEW_POINTS", 0)
    monkeypatch.setattr(needs, "machine_memory", lambda: 800)


@pytest.mark.usefixtures("a_small_machine")
def test_a_run_beyond_the_memory_is_refused_unless_told_to_go_on() -> None:
    algorithm, problem = DisKernelUCB(Gaussian(1.0)), Cosine(dim=2, arms=3)
    for asked in (run, lambda *what, **how: compare(what[0], problem=what[1], seeds=1, **how)):
        with pytest.raises(InputError, match=r"12 points.*0.01 GB.*has 8e-07 GB.*beyond_memory=True"):
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
    assert str(told[0].need) == "DisKernelUCB keeps up to 12 points, which take about 0.01 GB"


@pytest.mark.usefixtures("a_small_machine")
def test_what_may_need_more_than_there_is_is_made_and_warned_of() -> None:
    algorithm, problem = LaconicUCB(Gaussian(1.0)), Cosine(dim=2, arms=3)
    with pytest.warns(
        UserWarning, match=r"LaconicUCB takes up to about .* GB, where .*, and this machine has 8e-07 GB"
    ):
        assert run(algorithm, problem, **SHORT) is not None
    with pytest.warns(UserWarning, match="LaconicUCB takes up to about"):
        compare([algorithm], problem=problem, seeds=1, **SHORT)
    run(algorithm, problem, beyond_memory=True, **SHORT)  # warnings are errors here


def test_certain_needs_are_refused_and_uncertain_ones_beside_them_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "machine_memory", lambda: 10**9)
    exact = Need("DisKernelUCB", points=10_000, bytes=9 * 10**8)
    lean = replace(exact, name="LaconicUCB", certain=False)
    require_memory([exact, lean])
    with pytest.warns(UserWarning, match=r"LaconicUCB takes .*, 2 runs at a time 1.8 GB"):
        require_memory([exact, lean], slots=2)


def test_the_refusal_says_when_laconic_ucb_needs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "machine_memory", lambda: 10**9)
    with pytest.raises(InputError, match=r"LaconicUCB where few points can stand for all \(arms that return, a small"):
        require_memory([Need("DisKernelUCB", points=100_000, bytes=6 * 10**10)])


@pytest.mark.usefixtures("a_small_machine")
def test_on_a_cluster_the_need_is_said_and_nothing_refused_as_its_nodes_are_others() -> None:
    told: list[Any] = []
    made = Experiment(
        (DisKernelUCB(Gaussian(1.0)),),
        problem=Cosine(dim=2, arms=3),
        seeds=(0,),
        clients=4,
        rounds=3,
        runtime="lockstep",
    )
    away = Room.of(Elsewhere(), beyond_memory=False, watch=told.append)
    try_out(made, room=away)
    assert [event.need.name for event in told] == ["DisKernelUCB"]
    with pytest.raises(InputError, match="beyond_memory=True"):
        try_out(made, room=Room.of(Here(), beyond_memory=False, watch=told.append))


class Elsewhere:
    """Jobs on other machines."""

    slots, is_here, is_local, shares_memory = 64, False, False, False

    def session(self) -> Any:
        return nullcontext()

    def results(self, task: Any, items: Any) -> Any:
        return iter(())
