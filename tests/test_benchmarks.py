"""The benchmarks run, and their floors have the sizes of the runs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import against, alike
from benchmarks.__main__ import app
from benchmarks.blas import factor, gaussian, solve
from benchmarks.cases import ScheduleFloor
from benchmarks.figures import HEADERS, SETS, Played, beside, played, rows
from benchmarks.floor import Product, Solve, round_work, sync_work
from benchmarks.result import Result, Target
from benchmarks.schedule import schedule_of
from benchmarks.suite import suite
from benchmarks.versions import HERE
from laconic import (
    Algorithm,
    ApproxDisKernelUCB,
    Catalogue,
    Cosine,
    DisKernelUCB,
    Gaussian,
    NKernelUCB,
    OneKernelUCB,
    Problem,
    run,
)
from laconic.report.table import NOTHING
from tests.datasets.samples import REAL, needs_real_data

ALGORITHMS = [DisKernelUCB(), OneKernelUCB(), NKernelUCB(), ApproxDisKernelUCB(D=1.0)]


@pytest.mark.parametrize("name", suite())
def test_every_benchmark_runs_at_toy_size_and_finds_a_ratio(name: str) -> None:
    results = suite()[name].measure(quick=True, repeat=1)
    assert results
    for result in results:
        assert result.ratio is not None
        assert result.ratio > 0
        assert result.cpu > 0


def test_the_command_prints_what_each_child_found() -> None:
    answer = CliRunner().invoke(app, ["--only", "dislin", "--quick", "--json"])
    content = json.loads(answer.stdout)
    assert [result["name"] for result in content["results"]] == ["dislin"]
    assert content["machine"]["cores"] >= 1


def test_the_table_names_the_ratio_and_the_file_holds_the_results(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["--only", "fixed-n", "--quick", "--out", str(tmp_path / "found.json")])
    assert "ratio" in answer.stdout
    assert "fixed-nkernel" in answer.stdout
    assert json.loads((tmp_path / "found.json").read_text())["quick"] is True


def test_an_unknown_benchmark_is_refused_with_advice() -> None:
    answer = CliRunner().invoke(app, ["--only", "nonsense"])
    assert answer.exit_code == 2
    assert "--list" in answer.output


def test_the_list_tells_every_name() -> None:
    answer = CliRunner().invoke(app, ["--list"])
    assert all(name in answer.stdout for name in suite())


def test_a_target_is_met_up_to_its_limit_and_no_further() -> None:
    result = Result(name="", against="", cpu=3.0, seconds=1.0, targets=(Target("cpu", 3.0),))
    assert result.met
    assert not Result(name="", against="", cpu=3.1, seconds=1.0, targets=result.targets).met
    assert Result.from_dict(json.loads(json.dumps(result.as_dict()))) == result


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("problem", [Cosine(dim=3, arms=4), Catalogue(dim=3, items=4, arms=4)], ids=["fresh", "fixed"])
def test_the_schedule_counts_every_interaction_once(algorithm: Algorithm, problem: Problem) -> None:
    one = run(algorithm, problem, clients=5, rounds=7)
    schedule = schedule_of(one, problem.instance(seed=0, clients=5, rounds=7))
    assert [sum(segment.clients for segment in turn.segments) for turn in schedule.turns] == [5] * 7
    assert [sync.points for sync in schedule.syncs] == one.sync_steps.tolist()


def test_an_exact_belief_on_fresh_arms_has_a_row_for_every_shared_point() -> None:
    one = run(OneKernelUCB(), Cosine(dim=3, arms=4), clients=5, rounds=3)
    schedule = schedule_of(one, Cosine(dim=3, arms=4).instance(seed=0, clients=5, rounds=3))
    assert [segment.belief for turn in schedule.turns for segment in turn.segments] == list(range(15))
    assert all(segment.tail == 0 for turn in schedule.turns for segment in turn.segments)


def test_fixed_arms_stay_as_small_as_they_are_many() -> None:
    problem = Catalogue(dim=3, items=4, arms=4)
    one = run(NKernelUCB(), problem, clients=3, rounds=30)
    schedule = schedule_of(one, problem.instance(seed=0, clients=3, rounds=30))
    assert max(segment.tail for turn in schedule.turns for segment in turn.segments) <= 4
    assert all(turn.columns == 4 for turn in schedule.turns)


def test_a_nystrom_floor_has_the_dictionaries_of_the_run() -> None:
    algorithm, problem = ApproxDisKernelUCB(Gaussian(gamma=0.1), D=2.0, lam=0.1), Cosine(dim=3, arms=4)
    one = run(algorithm, problem, clients=6, rounds=6)
    schedule = schedule_of(one, problem.instance(seed=0, clients=6, rounds=6))
    assert [sync.new for sync in schedule.syncs] == one.dictionary_sizes.tolist()
    assert all(sync.union >= sync.new or sync.union == 0 for sync in schedule.syncs)
    solved = {work.rows for sync in schedule.syncs for work in sync_work(schedule, sync) if isinstance(work, Solve)}
    assert solved <= set(one.dictionary_sizes.tolist())


def test_a_sync_within_a_round_appends_rows_rather_than_score_the_round_again() -> None:
    one = run(OneKernelUCB(), Cosine(dim=3, arms=4), clients=5, rounds=2)
    schedule = schedule_of(one, Cosine(dim=3, arms=4).instance(seed=0, clients=5, rounds=2))
    work = list(round_work(schedule, schedule.turns[1]))
    assert [each.columns for each in work if isinstance(each, Solve) and each.rows == 5] == [20]
    assert Product(1, 4, 5, 4) in work  # the last client lacks the four points of those before it


def test_a_sampled_floor_costs_about_what_the_whole_one_counts() -> None:
    one = run(NKernelUCB(), Cosine(dim=3, arms=4), clients=3, rounds=10)
    schedule = schedule_of(one, Cosine(dim=3, arms=4).instance(seed=0, clients=3, rounds=10))
    assert sum(times for _, times in ScheduleFloor(schedule, every=4).rounds) == 10


def test_bare_routines_compute_what_their_names_say() -> None:
    random = np.random.default_rng(0)
    large = np.tril(random.uniform(0.1, 1.0, (6, 6))) + np.eye(6)
    L, V = large[:4, :4], random.standard_normal((4, 3))
    solved = V.copy()
    solve(large, solved)
    np.testing.assert_allclose(L @ solved, V)

    A = L @ L.T
    found = A.copy()
    factor(found)
    np.testing.assert_allclose(np.tril(found), L)

    K = np.empty((4, 4))
    gaussian(L, L, out=K)
    np.testing.assert_allclose(K, np.exp(A))


with_history = pytest.mark.skipif(
    not (HERE / ".git").exists(), reason="an earlier commit comes from the repository's history"
)


@with_history
def test_a_commit_is_compared_with_an_earlier_one_on_the_same_settings() -> None:
    answer = CliRunner().invoke(against.app, ["HEAD", "--only", "dislin", "--quick", "--repeat", "1", "--limit", "1e9"])
    assert answer.exit_code == 0
    heading, line = answer.stdout.splitlines()
    then, now, ratio = map(float, line.split()[1:])
    assert "HEAD" in heading
    assert ratio == pytest.approx(now / then, rel=0.1)


@with_history
def test_what_runs_come_to_is_compared_with_an_earlier_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "PROBLEMS", (Catalogue(),))
    answer = CliRunner().invoke(against.app, ["HEAD", "--results", "--quick"])
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[-1] == "0 of 37 runs differ: none"
    assert "DisKernelUCB                     9       0   1.000 … 1.000" in answer.stdout


def test_runs_that_come_to_something_else_are_told_with_the_first_step_at_which_they_do() -> None:
    then = {"choices": [0, 1, 2], "syncs": [2], "scalars": 8, "messages": 4, "regret": 1.0, "bytes": 100}
    case = {"algorithm": {"name": "DisLinUCB", "D": 5.0}, "problem": {"name": "Cosine"}, "seed": 1}
    assert alike.Twice(case, then, {**then, "regret": 1.0 + 1e-12, "bytes": 50}).differences == []
    other = alike.Twice(case, then, {**then, "choices": [0, 2, 2], "syncs": [], "regret": 1.5})
    assert other.differences == ["choices", "syncs", "regret"]
    assert str(other).startswith("choices, syncs, regret differ, first at step 1: ")


def test_a_commit_that_git_does_not_have_is_refused() -> None:
    answer = CliRunner().invoke(against.app, ["nonsense", "--quick"])
    assert answer.exit_code == 2
    assert "nonsense" in answer.output


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_real_data if name == "approx" else ()) for name in SETS]
)
def test_the_runs_behind_a_figure_of_the_documentation_play_at_toy_size(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if REAL is not None:
        monkeypatch.setenv("LACONIC_DATA", str(REAL))
    lines = [replace(line, clients=2, rounds=3, seeds=range(2)) for line in SETS[name]()]
    found = [played(line) for line in lines]
    assert len({line.name for line in lines}) == len(lines)
    for each, row in zip(found, rows(found), strict=True):
        assert len(row) == len(HEADERS)
        assert len(each.regret) == 2


def test_a_line_is_compared_with_the_first_of_its_own_problem_and_sizes() -> None:
    first, other, large = (
        Played(replace(line, clients=clients), np.array([regret]), np.array([100]), cpu=1.0)
        for line, clients, regret in zip(SETS["float32"](), (2, 2, 9), (10.0, 20.0, 30.0), strict=False)
    )
    assert [row[2] for row in rows([first, other, large])] == [NOTHING, "2.000", NOTHING]


def test_a_ratio_of_paired_seeds_has_the_error_of_its_differences() -> None:
    assert beside(np.array([2.0, 4.0]), np.array([1.0, 2.0])) == "2.000 ± 0.000"
    assert beside(np.array([1.0, 3.0]), np.array([2.0, 2.0])) == "1.000 ± 0.500"
    assert beside(np.array([3.0]), np.array([2.0])) == "1.500"


def test_entries_of_one_byte_each_take_more_bytes_and_change_no_choice() -> None:
    few, whole = (replace(line, clients=4, rounds=40) for line in list(SETS["few-bits"]())[:2])
    assert played(whole).bytes > played(few).bytes
    assert played(whole).regret == played(few).regret


def test_every_benchmark_that_the_documentation_names_is_there() -> None:
    texts = [*(HERE / "docs").glob("*.md"), HERE / "README.md", HERE / "benchmarks" / "peers.md"]
    named = {name for page in texts for name in re.findall(r"python -m benchmarks\.(\w+)", page.read_text())}
    assert named
    assert {name for name in named if not (HERE / "benchmarks" / f"{name}.py").exists()} == set()
    figures = {name for page in texts for name in re.findall(r"benchmarks\.figures ([\w-]+)", page.read_text())}
    assert figures == SETS.keys()
