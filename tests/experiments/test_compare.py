from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import (
    ApproxDisKernelUCB,
    Catalogue,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    InputError,
    KernelError,
    Log,
    NKernelUCB,
    Results,
    Theory,
    compare,
    grid,
    run,
)
from laconic.errors import OutputError, UnknownName
from laconic.experiments.compare import Advanced, Event, Finished, Interrupted, Started
from laconic.problems import Round, save_recorded
from tests.experiments.making import unnamed

SMALL = Catalogue(dim=2, items=6, arms=3)
SIZES: dict[str, Any] = {"problem": SMALL, "clients": 3, "rounds": 4}


def test_values_classes_and_names_are_all_algorithms() -> None:
    compared = compare([DisLinUCB(D=1.0), NKernelUCB, "approxdiskernelucb"], seeds=1, **SIZES)
    assert [row.algorithm for row in compared.rows] == ["DisLinUCB", "NKernelUCB", "ApproxDisKernelUCB"]


def test_one_algorithm_needs_no_list() -> None:
    assert len(compare("DisLinUCB", seeds=1, **SIZES).rows) == 1
    assert len(compare(DisLinUCB(), seeds=1, **SIZES).rows) == 1


def test_a_row_is_what_the_run_measured() -> None:
    algorithm = ApproxDisKernelUCB(Gaussian(2.0), D=1.0, qbar=5.0)
    one = compare(algorithm, seeds=[7], **SIZES).rows[0]
    alone = run(algorithm, SMALL, clients=3, rounds=4, seed=7)
    assert (one.seed, one.regret, one.scalars, one.bytes) == (7, alone.regret, alone.scalars, alone.bytes)
    assert (one.messages, one.syncs, one.dictionary) == (alone.messages, alone.syncs, alone.dictionary)
    assert one.params["qbar"] == 5.0


def test_grids_and_seeds_multiply() -> None:
    compared = compare([DisKernelUCB(Gaussian(grid(0.1, 1.0)), D=grid(1.0, 5.0)), DisLinUCB()], seeds=range(3), **SIZES)
    assert len(compared.rows) == 15
    assert len(compared.groups) == 5


def test_all_algorithms_finish_a_seed_before_the_next_begins() -> None:
    compared = compare(["DisLinUCB", "NKernelUCB"], seeds=3, **SIZES)
    assert [row.seed for row in compared.rows] == [0, 0, 1, 1, 2, 2]


def test_an_algorithm_that_is_listed_twice_runs_once() -> None:
    assert len(compare(["DisLinUCB", DisLinUCB()], seeds=1, **SIZES).rows) == 1


def test_different_kernels_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="names that differ"):
        compare([DisKernelUCB(unnamed()), DisKernelUCB(unnamed(2.0))], seeds=1, **SIZES)


def test_progress_tells_of_every_run_from_start_to_finish() -> None:
    events: list[Event] = []
    compared = compare(["DisLinUCB", "NKernelUCB"], seeds=1, progress=events.append, **SIZES)
    assert [type(event) for event in events if not isinstance(event, Advanced)] == [Started, Finished] * 2
    assert max(event.steps for event in events if isinstance(event, Advanced)) == 12
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.results == compared
    assert last.run.choices.shape == (12,)
    assert (last.job.number, last.job.total, last.job.label) == (2, 2, "NKernelUCB")


def test_a_problem_with_sizes_of_its_own_needs_none(tmp_path: Path) -> None:
    save_recorded(tmp_path / "log.npz", SMALL.instance(seed=0, clients=3, rounds=4), clients=3, rounds=4)
    compared = compare("DisLinUCB", problem=tmp_path / "log.npz", seeds=1)
    assert (compared.clients, compared.rounds, compared.problem) == (3, 4, "recorded")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clients": 0}, "clients"),
        ({"clients": None}, "clients"),
        ({"rounds": 2.5}, "rounds"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seed"),
        ({"runtime": "teleport"}, "runtime"),
        ({"problem": 3}, "problem"),
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare("DisLinUCB", **({"seeds": 1} | SIZES | changed))


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="DisLinUCB"):
        compare("DisLinUBC", **SIZES)
    with pytest.raises(UnknownName, match="catalogue"):
        compare("DisLinUCB", **SIZES | {"problem": "catalog"})


def test_something_else_than_an_algorithm_is_refused() -> None:
    with pytest.raises(InputError, match="algorithm"):
        compare(3, **SIZES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no algorithm"):
        compare([], **SIZES)


class Counting:
    """A problem that knows how many rounds were asked of it."""

    dim = 2

    def __init__(self) -> None:
        self.asked: list[int] = []

    def instance(self, *, seed: int, clients: int, rounds: int) -> Counting:
        self.inner = SMALL.instance(seed=seed, clients=clients, rounds=rounds)
        return self

    def round(self, index: int) -> Round:
        self.asked.append(index)
        return self.inner.round(index)


def _one_column(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return (X @ Y.T)[:, :1]


one_column: Any = _one_column  # no kernel at all


@pytest.mark.parametrize(
    ("algorithm", "error"),
    [
        (DisKernelUCB(unnamed(-1.0)), KernelError),
        (ApproxDisKernelUCB(unnamed(np.nan)), KernelError),
        (DisKernelUCB(one_column), KernelError),
        ("Nobody", UnknownName),
    ],
)
def test_a_bad_algorithm_is_refused_before_a_good_one_has_run(algorithm: Any, error: type[Exception]) -> None:
    problem = Counting()
    with pytest.raises(error):
        compare(["DisLinUCB", algorithm], **SIZES | {"problem": problem})
    assert set(problem.asked) <= {0}


def test_a_grid_that_leaves_the_theory_is_refused_before_anything_runs() -> None:
    problem = Counting()
    with pytest.raises(InputError, match="theoretical alpha"):
        compare(ApproxDisKernelUCB(D=grid(2.0, 20.0), alpha=Theory()), **SIZES | {"problem": problem})
    assert set(problem.asked) <= {0}


def test_an_output_folder_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    problem = Counting()
    with pytest.raises(OutputError, match="file"):
        compare("DisLinUCB", out=tmp_path / "file", **SIZES | {"problem": problem})
    assert set(problem.asked) <= {0}


def test_the_folder_holds_results_configuration_and_figures(tmp_path: Path) -> None:
    compared = compare(["DisLinUCB", "NKernelUCB"], seeds=2, out=tmp_path / "new" / "folder", **SIZES)
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.toml",
        "figure.png",
        "figure.svg",
        "results.parquet",
    ]
    assert Results.from_parquet(folder / "results.parquet") == compared
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "figure.svg").read_bytes()


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_kernel_without_a_name_leaves_results_but_no_configuration(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    compare(DisKernelUCB(unnamed()), seeds=1, out=tmp_path, **SIZES)
    assert (tmp_path / "results.parquet").exists()
    assert not (tmp_path / "config.toml").exists()


def _stop_after(finished: int) -> Any:
    def progress(event: Event) -> None:
        if isinstance(event, Started) and event.job.number > finished:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_carries_the_finished_runs_and_leaves_them_saved(tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as stopped:
        compare(["DisLinUCB", "NKernelUCB"], seeds=2, progress=_stop_after(3), out=tmp_path, **SIZES)
    assert len(stopped.value.results.rows) == 3
    assert Results.from_parquet(tmp_path / "results.parquet") == stopped.value.results


def test_ctrl_c_is_still_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        compare("DisLinUCB", progress=_stop_after(0), **SIZES)


def test_ctrl_c_before_the_first_run_leaves_earlier_results_alone(tmp_path: Path) -> None:
    earlier = compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Interrupted):
        compare("NKernelUCB", progress=_stop_after(0), out=tmp_path, **SIZES)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert Results.from_parquet(tmp_path / "results.parquet") == earlier


def test_ctrl_c_later_leaves_no_figure_of_an_earlier_comparison(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    with pytest.raises(Interrupted):
        compare("NKernelUCB", seeds=2, progress=_stop_after(1), out=tmp_path, **SIZES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "results.parquet"]


def test_a_log_in_memory_can_be_compared_on() -> None:
    log = Log(arms=np.eye(4)[None, :, :2].repeat(6, axis=0), means=np.zeros((6, 4)), noise=np.zeros(6))
    assert compare("DisLinUCB", problem=log, clients=2, seeds=1).rounds == 3
