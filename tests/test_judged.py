"""What is required of LaconicUCB, judged on runs at toy size."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import atoms, whole
from benchmarks.atoms import PARTS, require_prototype
from benchmarks.contests import CONTESTS, Contest, Rival
from benchmarks.judged import Judge, table
from benchmarks.lag import SETTINGS
from benchmarks.ratios import ratio_of_means
from benchmarks.whole import played
from laconic import DisKernelUCB, Gaussian, InputError, grid
from laconic.experiments.runner import Event, Finished, Sweep
from laconic.experiments.tasks import Store
from laconic.runtimes.jobs import engine

SMALL = replace(CONTESTS["d3"], clients=4, rounds=12)


def sweep(folder: Path, heard: list[Event] | None = None) -> Sweep:
    heard = [] if heard is None else heard
    return Sweep(Store(folder), engine=engine(jobs=1), watch=heard.append)


def judge(contest: Contest, folder: Path, heard: list[Event] | None = None) -> Judge:
    return Judge(contest, sweep=sweep(folder, heard), seeds=(0, 1, 2))


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        shared = random.normal(size=8)
        x, y = 4 + shared + 0.3 * random.normal(size=8), 5 + shared + 0.3 * random.normal(size=8)
        ratio = ratio_of_means(list(x), list(y))
        covered += ratio.low <= 0.8 <= ratio.high
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_fiellers_interval_is_near_that_of_resampled_pairs() -> None:
    random = np.random.default_rng(1)
    y = 10 + random.normal(size=200)
    x = 0.7 * y + 0.5 * random.normal(size=200)
    picks = random.integers(200, size=(4000, 200))
    resampled = np.quantile(x[picks].mean(axis=1) / y[picks].mean(axis=1), [0.025, 0.975])
    found = ratio_of_means(list(x), list(y))
    assert [found.low, found.high] == pytest.approx(list(resampled), abs=0.002)
    assert found.value == pytest.approx(x.mean() / y.mean())


def test_a_ratio_to_what_may_be_zero_has_no_bounds() -> None:
    assert ratio_of_means([1.0, 1.1], [-1.0, 1.2]).high == np.inf
    assert ratio_of_means([1.0], [2.0]).low == -np.inf


def test_each_rival_is_judged_on_the_same_seeds(tmp_path: Path) -> None:
    verdicts = judge(SMALL, tmp_path).verdicts()
    assert [each.rival.name for each in verdicts] == ["paper", "raw", "points"]
    mine = verdicts[0].mine
    for each in verdicts:
        assert [row.seed for row in each.its.rows] == [row.seed for row in mine.rows] == [0, 1, 2]
        assert each.bytes.value == pytest.approx(np.mean(mine.values("bytes")) / np.mean(each.its.values("bytes")))
    assert [row[0] for row in table(verdicts).rows] == ["d3"] * 3


def test_what_has_run_is_not_run_again_unless_it_is_asked_for(tmp_path: Path) -> None:
    contest, heard = SMALL.among(["paper"]), list[Event]()
    first = judge(contest, tmp_path).verdicts()
    again = judge(contest, tmp_path, heard).verdicts()
    assert not [event for event in heard if isinstance(event, Finished)]
    assert table(again).rows == table(first).rows
    judge(contest, tmp_path, heard).verdicts(anew=True)
    assert {event.row.algorithm for event in heard if isinstance(event, Finished)} == {"LaconicUCB"}


def test_the_best_setting_of_a_grid_counts(tmp_path: Path) -> None:
    rival = Rival("grid", DisKernelUCB(Gaussian(grid(0.5, 500.0)), lam=0.1, alpha=0.1), regret=9.0)
    (verdict,) = judge(replace(SMALL, rivals=(rival,), rounds=30), tmp_path).verdicts()
    assert verdict.its.params["gamma"] == 0.5
    assert verdict.is_met
    assert not replace(verdict, rival=replace(rival, regret=1e-9)).is_met
    assert not replace(verdict, rival=replace(rival, megabytes=1e-9)).is_met
    assert not replace(verdict, rival=replace(rival, saving=1e9)).is_met


def test_runs_that_are_there_can_be_judged_without_running_the_others(tmp_path: Path) -> None:
    contest = SMALL.among(["paper"])
    judge(contest, tmp_path).verdicts()
    shown = replace(judge(SMALL, tmp_path), seeds=(0, 1, 2, 3), show=True).verdicts()
    assert [each.rival.name for each in shown] == ["paper"]
    assert len(shown[0].mine.rows) == 3


def test_a_whole_run_is_timed_in_parts() -> None:
    found = played(replace(SETTINGS["d3"], clients=8, rounds=40), seed=1)
    assert 0 < found.certificate < found.building < found.cpu
    assert found.peak > 0


def test_what_is_missing_of_another_implementation_is_named(tmp_path: Path) -> None:
    (tmp_path / "core.py").touch()
    with pytest.raises(InputError, match=r"no batched\.py, simlag\.py"):
        require_prototype(tmp_path)


@pytest.mark.parametrize("benchmark", [atoms, whole])
def test_the_help_says_what_another_implementation_must_have(benchmark: ModuleType) -> None:
    said = CliRunner().invoke(benchmark.app, ["--help"], env={"COLUMNS": "1000"}).output
    assert "another implementation of the same algorithm" in said
    assert all(part in said for part in (*PARTS, "Env", "Reference.add", "build_atoms", "run"))


def test_a_folder_that_lacks_another_implementation_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    done = CliRunner().invoke(atoms.app, ["d3", "--prototype", str(tmp_path)])
    assert isinstance(done.exception, InputError)
