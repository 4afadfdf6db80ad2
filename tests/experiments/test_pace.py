from __future__ import annotations

import pytest

from laconic.experiments.pace import LONG, Pace, smaller, telling_first
from laconic.experiments.tasks import Task


def task(
    *, n: int = 10, algorithm: str = "OneKernelUCB", problem: str = "cosine", seed: int = 0, **more: float
) -> Task:
    table = {"name": algorithm, "alpha": 1.0} | more
    return Task("x", problem={"name": problem}, algorithm=table, clients=n, rounds=n, seed=seed, runtime="lockstep")


def test_nothing_is_known_before_anything_has_run() -> None:
    assert Pace().predict(task()) is None
    assert Pace().left([task()], slots=2) is None
    assert Pace().left([], slots=2) == 0.0


def test_the_likest_run_tells() -> None:
    pace = Pace()
    pace.note(task(D=5.0), 2.0)
    pace.note(task(D=20.0), 10.0)
    assert pace.predict(task(D=20.0, seed=1)) == 10.0
    assert pace.predict(task(D=20.0, alpha=4.0)) == 10.0
    assert pace.predict(task(problem="yelp")) == 6.0


def test_two_smaller_sizes_tell_of_a_larger_one_by_the_law_of_growth() -> None:
    pace = Pace()
    for n in (20, 40):
        pace.note(task(n=n), 1e-3 * n**2 + 1e-9 * n**6)
    assert pace.predict(task(n=100)) == pytest.approx(1e-3 * 100**2 + 1e-9 * 100**6)


def test_work_that_grows_with_the_steps_alone_is_foreseen_so() -> None:
    pace = Pace()
    for n in (20, 40):
        pace.note(task(n=n), 1e-3 * n**2)
    assert pace.predict(task(n=100)) == pytest.approx(10.0)


def test_a_step_that_happens_to_be_a_little_dearer_is_not_taken_for_a_cube() -> None:
    pace = Pace()
    for n, luck in ((20, 1.0), (40, 1.25)):
        pace.note(task(n=n), luck * 1e-3 * n**2)
    assert pace.predict(task(n=100)) == pytest.approx(12.5)


def test_the_rest_is_shared_by_those_who_work() -> None:
    pace = Pace()
    pace.note(task(), 3.0, now=False)
    assert pace.left([task(seed=seed) for seed in range(4)], slots=2) == 6.0


def test_only_long_runs_are_timed_on_smaller_ones_each_setting_once() -> None:
    assert smaller([task(n=50, seed=seed) for seed in range(3)]) == []
    long = [task(n=100, seed=seed, alpha=alpha) for seed in range(3) for alpha in (0.1, 1.0)]
    timed = [(each.clients, each.rounds, each.algorithm["alpha"], each.seed) for each in smaller(long)]
    assert timed == [(n, n, alpha, 0) for n in (40, 70) for alpha in (0.1, 1.0)]
    assert LONG <= 100 * 100


def test_one_run_of_every_problem_and_algorithm_comes_first_from_the_middle_of_its_settings() -> None:
    alphas = (0.1, 1.0, 4.0)
    grid = [task(algorithm=name, problem=on, alpha=a) for on in ("p", "q") for name in ("A", "B") for a in alphas]
    ordered = telling_first(grid)
    first = [(each.problem["name"], each.algorithm["name"], each.algorithm["alpha"]) for each in ordered[:4]]
    assert first == [("p", "A", 1.0), ("p", "B", 1.0), ("q", "A", 1.0), ("q", "B", 1.0)]
    assert ordered[4:] == [each for each in grid if each.algorithm["alpha"] != 1.0]
    assert telling_first([]) == []


def test_both_sizes_of_smaller_runs_are_among_the_first() -> None:
    grid = [task(n=n, seed=seed) for n in (40, 70) for seed in range(3)]
    assert [(each.clients, each.seed) for each in telling_first(grid)[:2]] == [(40, 0), (70, 0)]


def test_the_first_run_of_each_kind_tells_the_whole_where_a_slow_algorithm_begins_the_grid() -> None:
    seconds = {("p", "slow"): 100.0, ("p", "quick"): 1.0, ("q", "slow"): 4.0, ("q", "quick"): 2.0}
    grid = [task(algorithm=name, problem=on, seed=seed) for on, name in seconds for seed in range(5)]
    pace, ordered = Pace(), telling_first(grid)
    for each in ordered[:4]:
        pace.note(each, seconds[each.problem["name"], each.algorithm["name"]], now=False)
    assert pace.left(ordered[4:], slots=1) == 4 * 107.0
