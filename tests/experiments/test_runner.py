from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic.cli.progress import ManyProblems, describe, stage
from laconic.experiments.compare import try_out
from laconic.experiments.conduct import conduct
from laconic.experiments.config import Experiment
from laconic.experiments.results import Results, Row
from laconic.experiments.runner import Begun, Failed, Finished, Sweep, play
from laconic.experiments.spec import read_spec
from laconic.experiments.tasks import Store, Task, tasks_of
from laconic.runtimes.jobs import Here, Processes
from tests.pages.making import SMALL, write_small


@dataclass
class Lasting:
    """Works backwards and stops after so many jobs, as a machine that is switched off does."""

    jobs: int
    slots: int = 1
    is_here: bool = True
    is_local: bool = True
    shares_memory: bool = True
    made: list[Any] = field(default_factory=list)

    def session(self) -> Any:
        return nullcontext()

    def results(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        for place in reversed(range(len(items))):
            if len(self.made) == self.jobs:
                raise KeyboardInterrupt
            self.made.append(items[place])
            yield place, task(items[place])


def experiment(tmp_path: Path, *, text: str = SMALL) -> Experiment:
    return read_spec(write_small(tmp_path / "small.toml", text=text)).experiment()


def swept(sweep: Sweep, tasks: list[Task], about: Results) -> list[Row]:
    sweep.complete(tasks, about={"small": about})
    return [replace(each, seconds=0.0) for each in sweep.results(tasks, about=about).rows]


def test_a_sweep_that_was_stopped_goes_on_and_ends_with_the_same_results(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small"), try_out(made)
    undisturbed = swept(Sweep(Store(tmp_path / "whole"), engine=Here()), tasks, about)
    stopped = Lasting(jobs=7)
    with pytest.raises(KeyboardInterrupt):
        Sweep(Store(tmp_path / "runs"), engine=stopped).complete(tasks, about={"small": about})
    rest = Lasting(jobs=len(tasks))
    assert swept(Sweep(Store(tmp_path / "runs"), engine=rest), tasks, about) == undisturbed
    assert len(rest.made) == len(tasks) - 7
    assert not {task.id for task in rest.made} & {task.id for task in stopped.made}


def test_several_processes_give_the_same_results_as_one(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small"), try_out(made)
    alone = swept(Sweep(Store(tmp_path / "one"), engine=Here()), tasks, about)
    assert swept(Sweep(Store(tmp_path / "two"), engine=Processes(2)), tasks, about) == alone


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small")[:2], try_out(made)
    store = Store(tmp_path / "runs")
    before = swept(Sweep(store, engine=Here()), tasks, about)
    path = store.path(tasks[0])
    path.write_bytes(path.read_bytes()[:100])
    again = Lasting(jobs=2)
    assert swept(Sweep(store, engine=again), tasks, about) == before
    assert again.made == [tasks[0]]


def test_whatever_a_flipped_bit_makes_of_a_run_it_is_read_as_it_was_or_not_at_all(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small")[:1], try_out(made)
    store = Store(tmp_path / "runs")
    (before,) = swept(Sweep(store, engine=Here()), tasks, about)
    path = store.path(tasks[0])
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for place in random.integers(len(whole) // 4, size=60).tolist():  # the columns come first
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << int(random.integers(8))]) + whole[place + 1 :])
        found = store.load(tasks[0])
        assert found is None or replace(found, seconds=0.0) == replace(before, seconds=0.0)


def test_a_run_under_the_name_of_another_is_made_again(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small"), try_out(made)
    other = next(each for each in tasks if each.seed != tasks[0].seed)
    store = Store(tmp_path / "runs")
    swept(Sweep(store, engine=Here()), [tasks[0]], about)
    store.path(other).write_bytes(store.path(tasks[0]).read_bytes())
    assert store.load(tasks[0]) is not None
    assert store.load(other) is None


def test_a_run_that_fails_stops_no_other_and_is_told(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small")[:3], try_out(made)
    tasks[1] = replace(tasks[1], problem=tasks[1].problem | {"sha256": "another file's"})
    seen: list[object] = []
    sweep = Sweep(Store(tmp_path / "runs"), engine=Here(), watch=seen.append)
    assert len(swept(sweep, tasks, about)) == 2
    assert [type(each) for each in seen] == [Begun, Failed, Finished, Finished]  # the middle one comes first
    assert "has changed since" in sweep.failures[0].why


def test_progress_tells_how_much_is_done_and_how_long_the_rest_takes(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    tasks, about = tasks_of(made, name="small"), try_out(made)
    seen: list[Any] = []
    Sweep(Store(tmp_path / "runs"), engine=Here(), watch=seen.append).complete(tasks, about={"small": about})
    assert [each.done for each in seen[1:]] == list(range(1, len(tasks) + 1))
    assert seen[-1].left == 0.0


def test_a_job_of_several_stages_names_each_and_tells_the_time_left_for_all(tmp_path: Path) -> None:
    seen: list[Any] = []
    spec = read_spec(write_small(tmp_path / "small.toml"))
    conduct([spec], out=tmp_path, engine=Here(), watch=seen.append)
    begun = [each for each in seen if isinstance(each, Begun)]
    assert [stage(each) for each in begun] == ["stage 1 of 2, grid", "stage 2 of 2, sensitivity"]
    finished = [each for each in seen if isinstance(each, Finished)]
    last_of_grid = next(each for each in finished if each.done == each.total)
    assert last_of_grid.left is not None
    assert last_of_grid.left > 0.0  # the sensitivity study is still to come
    assert finished[-1].left == 0.0
    assert describe(last_of_grid, so_far=ManyProblems()).endswith(" left in all")


def test_a_job_of_one_stage_has_no_place_among_others(tmp_path: Path) -> None:
    seen: list[Any] = []
    text = SMALL.partition("[[sensitivity]]")[0]
    conduct(
        [read_spec(write_small(tmp_path / "small.toml", text=text))], out=tmp_path, engine=Here(), watch=seen.append
    )
    assert [stage(each) for each in seen if isinstance(each, Begun)] == ["grid"]


def test_where_a_file_lies_does_not_matter_but_its_content_does(tmp_path: Path) -> None:
    def task(folder: str, content: str) -> Task:
        (tmp_path / folder).mkdir(exist_ok=True)
        path = tmp_path / folder / "u.csv"
        path.write_text(content)
        text = SMALL.replace('name = "cosine"\ndim = 3\narms = 4', f'name = "clustered"\ncsv = "{path}"\ntarget = "y"')
        return tasks_of(experiment(tmp_path, text=text), name="small")[0]

    pytest.importorskip("sklearn", reason="scikit-learn clusters a table's rows; try: pip install 'laconic[data]'")
    table = "a,b,y\n" + "\n".join(f"{i},{i % 3},{i % 2}" for i in range(30))
    here = task("here", table)
    assert task("there", table).id == here.id
    assert task("there", table + "\n7,7,1\n").id != here.id


def test_a_job_is_plain_values_that_any_process_can_play(tmp_path: Path) -> None:
    task = tasks_of(experiment(tmp_path), name="small")[0]
    made = play(task)
    assert isinstance(made, tuple)
    row, trace = made
    assert trace is None
    assert row.algorithm == "OneKernelUCB"
    assert row.params["gamma"] == 0.1


def test_all_that_decides_a_run_is_in_its_id_and_nothing_else() -> None:
    task = Task(
        "here",
        problem={"name": "cosine", "dim": 3},
        algorithm={"name": "DisLinUCB", "D": 5.0},
        clients=2,
        rounds=4,
        seed=0,
        runtime="lockstep",
    )
    changes: list[dict[str, Any]] = [
        {"problem": {"name": "cosine", "dim": 4}},
        {"problem": {"name": "polynomial", "dim": 3}},
        {"algorithm": {"name": "DisLinUCB", "D": 5.5}},
        {"algorithm": {"name": "DisLinUCB", "D": 5.0, "lam": 0.1}},
        {"clients": 4, "rounds": 2},
        {"seed": 1},
        {"runtime": "loopback"},
    ]
    assert len({task.id, *(replace(task, **change).id for change in changes)}) == 1 + len(changes)
    assert replace(task, experiment="there").id == task.id
    assert replace(task, algorithm={"D": 5, "name": "DisLinUCB"}).id == task.id
