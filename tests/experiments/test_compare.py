from __future__ import annotations

from dataclasses import replace
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
    ProblemError,
    Results,
    Theory,
    compare,
    grid,
    run,
)
from laconic.errors import OutputError, UnknownName
from laconic.experiments.compare import Incomplete, Interrupted, played, prepare
from laconic.experiments.runner import Advanced, Begun, Event, Finished, Started
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
    assert [type(event) for event in events if not isinstance(event, Advanced)] == [Begun, *[Started, Finished] * 2]
    assert max(event.steps for event in events if isinstance(event, Advanced)) == 12
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.row == compared.rows[-1]
    assert (last.done, last.total, last.task.label, last.run) == (2, 2, "NKernelUCB", None)


def test_a_traced_run_is_told_with_every_choice_though_it_was_there_already(tmp_path: Path) -> None:
    events: list[Event] = []
    experiment = prepare("DisLinUCB", seeds=1, runtime="lockstep", **SIZES)
    for _ in range(2):
        played(experiment, out=tmp_path, progress=events.append, traced=True)
    traces = [event.run for event in events if isinstance(event, Finished)]
    alone = run(DisLinUCB(), SMALL, clients=3, rounds=4)
    assert [trace.choices.tolist() for trace in traces if trace] == [alone.choices.tolist()] * 2


def test_a_problem_with_sizes_of_its_own_needs_none(tmp_path: Path) -> None:
    save_recorded(tmp_path / "log.npz", SMALL.instance(seed=0, clients=3, rounds=4), clients=3, rounds=4)
    compared = compare("DisLinUCB", problem=tmp_path / "log.npz", seeds=1)
    assert (compared.clients, compared.rounds, compared.problem) == (3, 4, "recorded")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clients": 0}, "clients"),
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
        "runs",
    ]
    assert len(list((folder / "runs").iterdir())) == 4
    assert Results.from_parquet(folder / "results.parquet") == compared
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "figure.svg").read_bytes()


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_kernel_without_a_name_leaves_results_but_no_configuration(tmp_path: Path) -> None:
    compare(DisKernelUCB(unnamed()), seeds=1, out=tmp_path, **SIZES)
    assert (tmp_path / "results.parquet").exists()
    assert not (tmp_path / "config.toml").exists()


def _stop_after(finished: int) -> Any:
    def progress(event: Event) -> None:
        if isinstance(event, Started) and event.number > finished:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_carries_the_finished_runs_and_leaves_them_saved(tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as stopped:
        compare(["DisLinUCB", "NKernelUCB"], seeds=2, progress=_stop_after(3), out=tmp_path, **SIZES)
    assert len(stopped.value.results.rows) == 3
    assert Results.from_parquet(tmp_path / "results.parquet") == stopped.value.results


def test_ctrl_c_while_figures_are_drawn_carries_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def plot(self: Results) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Results, "plot", plot)
    with pytest.raises(Interrupted) as stopped:
        compare("DisLinUCB", seeds=2, out=tmp_path, **SIZES)
    assert len(stopped.value.results.rows) == 2
    assert Results.from_parquet(tmp_path / "results.parquet") == stopped.value.results


def test_ctrl_c_is_still_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        compare("DisLinUCB", progress=_stop_after(0), **SIZES)


def test_stopped_by_ctrl_c_the_same_call_goes_on_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    whole = compare(["DisLinUCB", "NKernelUCB"], seeds=2, **SIZES)
    with pytest.raises(Interrupted):
        compare(["DisLinUCB", "NKernelUCB"], seeds=2, progress=_stop_after(3), out=tmp_path, **SIZES)
    events: list[Event] = []
    again = compare(["DisLinUCB", "NKernelUCB"], seeds=2, progress=events.append, out=tmp_path, **SIZES)
    assert [len(event.known) for event in events if isinstance(event, Begun)] == [3]
    assert sum(isinstance(event, Finished) for event in events) == 1
    assert timeless(again) == timeless(whole)
    assert timeless(Results.from_parquet(tmp_path / "results.parquet")) == timeless(whole)


def timeless(found: Results) -> Results:
    return replace(found, rows=tuple(replace(row, seconds=0.0) for row in found.rows))


def test_a_folder_with_another_comparison_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changes: list[dict[str, Any]] = [
        {"algorithms": "NKernelUCB"},
        {"algorithms": DisLinUCB(lam=0.5)},
        {"rounds": 5},
        {"problem": Catalogue(dim=3)},
        {"seeds": [1]},
    ]
    said = r"one is DisLinUCB on catalogue, 3 clients, 4 rounds, seed 0.* another out"
    for others in changes:
        with pytest.raises(InputError, match=said):
            compare(**SIZES | {"algorithms": "DisLinUCB", "seeds": 1, "out": tmp_path} | others)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_results_that_came_without_their_runs_are_not_replaced(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, **SIZES).to_parquet(tmp_path / "results.parquet")
    before = (tmp_path / "results.parquet").read_bytes()
    with pytest.raises(InputError, match=r"holds results\.parquet of another comparison.* try another out"):
        compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    assert (tmp_path / "results.parquet").read_bytes() == before


def test_seeds_and_algorithms_may_be_added_to_a_comparison(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    events: list[Event] = []
    more = compare(["DisLinUCB", "NKernelUCB"], seeds=2, out=tmp_path, progress=events.append, **SIZES)
    assert sum(isinstance(event, Finished) for event in events) == 3
    assert len(Results.from_parquet(tmp_path / "results.parquet").rows) == len(more.rows) == 4


def test_ctrl_c_leaves_no_figure_of_fewer_runs(tmp_path: Path) -> None:
    compare("DisLinUCB", seeds=1, out=tmp_path, **SIZES)
    with pytest.raises(Interrupted):
        compare("DisLinUCB", seeds=3, progress=_stop_after(2), out=tmp_path, **SIZES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "results.parquet", "runs"]


class Stubborn:
    """A problem that breaks in its second round on one seed."""

    def instance(self, *, seed: int, clients: int, rounds: int) -> Stubborn:
        self.seed, self.inner = seed, SMALL.instance(seed=seed, clients=clients, rounds=rounds)
        self.dim = self.inner.dim
        return self

    def round(self, index: int) -> Round:
        made = self.inner.round(index)
        return replace(made, means=made.means * np.nan) if (self.seed, index) == (1, 1) else made


def test_a_run_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match=r"1 of 3 runs failed, the first \(DisLinUCB, seed 1\) with: round 1: means"):
        compare("DisLinUCB", seeds=3, out=tmp_path, **SIZES | {"problem": Stubborn()})
    assert len(list((tmp_path / "runs").glob("*.parquet"))) == 2
    with pytest.raises(ProblemError, match="round 1: means"):  # where there is nothing to show, the error is its own
        compare("DisLinUCB", seeds=[1], **SIZES | {"problem": Stubborn()})


def test_a_log_in_memory_can_be_compared_on() -> None:
    log = Log(arms=np.eye(4)[None, :, :2].repeat(6, axis=0), means=np.zeros((6, 4)), noise=np.zeros(6))
    assert compare("DisLinUCB", problem=log, clients=2, seeds=1).rounds == 3


@pytest.mark.parametrize("out", ["", 5, ["results"]], ids=repr)
def test_an_out_that_names_no_folder_is_refused(out: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="out "):
        compare(DisKernelUCB(), **SIZES, seeds=1, out=out)
    assert not list(tmp_path.iterdir())
