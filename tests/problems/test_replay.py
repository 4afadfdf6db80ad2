"""A log of what was chosen and paid is replayed by rejection, and refused where it cannot tell anything."""

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

from laconic import (
    UCB,
    AskServer,
    Catalogue,
    DisKernelUCB,
    DisLinUCB,
    EpsilonFloor,
    InputError,
    LaconicUCB,
    Log,
    OneKernelUCB,
    ProblemError,
    Random,
    Replay,
    Results,
    Softmax,
    compare,
    grid,
    run,
)
from laconic.algorithms import Algorithm
from laconic.experiments.parts import as_problem
from laconic.testing import check_problem

LEVEL = 1e-4
PROBLEM = Catalogue(dim=3, items=12, arms=5)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 events of a policy that gives every arm a chance."""
    path = tmp_path_factory.mktemp("logs") / "events.parquet"
    algorithm = DisKernelUCB(D=5.0, lam=0.5, exploration=EpsilonFloor(UCB(), 0.5))
    run(algorithm, PROBLEM, clients=4, rounds=500, log=True).log(path)
    return path


def saved(folder: Path, **columns: Any) -> Path:
    base: dict[str, Any] = {
        "arms": [[[0.0], [1.0]], [[2.0], [3.0]], [[4.0], [5.0]], [[6.0], [7.0]]],
        "chosen": [0, 1, 0, 1],
        "propensity": [0.5] * 4,
        "reward": [1.0, 2.0, 3.0, 4.0],
    }
    columns = {name: value for name, value in (base | columns).items() if value is not None}
    pq.write_table(pa.table(columns), folder / "events.parquet")
    return folder / "events.parquet"


def test_only_the_reward_of_the_logged_arm_is_revealed(tmp_path: Path) -> None:
    met = Log.bandit(saved(tmp_path)).instance(seed=0, clients=2, rounds=2).round(1)
    assert met.revealed is not None
    assert met.revealed.tolist() == [[True, False], [False, True]]
    assert met.rewards[met.revealed].tolist() == [3.0, 4.0]
    assert met.arms[:, :, 0].tolist() == [[4.0, 5.0], [6.0, 7.0]]


@pytest.mark.parametrize("runtime", ["loopback", "lockstep"])
@pytest.mark.parametrize(
    "algorithm", [DisKernelUCB(D=5.0), LaconicUCB(), DisLinUCB(), AskServer()], ids=lambda a: type(a).__name__
)
def test_a_client_learns_from_the_events_it_agrees_with_and_from_no_other(
    algorithm: Algorithm, runtime: str, logged: Path
) -> None:
    problem = Log.bandit(logged)
    played = run(algorithm, problem, clients=4, rounds=100, runtime=runtime)
    events = problem.events
    agreed = played.choices == events.column[:400]
    assert played.used is not None
    assert (played.used <= agreed).all()
    assert played.events == played.used.sum() > 0
    assert played.reward == pytest.approx(events.reward[:400][played.used].mean(), rel=1e-4)  # as it travels
    assert f"{played.events} of 400 events used" in repr(played)
    other = run(algorithm, problem, clients=4, rounds=100)
    assert np.array_equal(other.choices, played.choices)
    assert other.ledger.total == played.ledger.total


def test_what_is_not_revealed_is_forgotten_and_never_shared(logged: Path) -> None:
    shared = run(OneKernelUCB(), Log.bandit(logged), clients=4, rounds=100)
    assert shared.events is not None
    assert shared.scalars == 4 * (PROBLEM.dim + 1) * shared.events


def test_the_mean_reward_of_the_events_used_is_the_value_of_the_policy(logged: Path) -> None:
    """At the level 10⁻⁴, for a policy that learns nothing: any arm."""
    problem = Log.bandit(logged)
    instance = PROBLEM.instance(seed=0, clients=4, rounds=500)
    value = np.mean([instance.round(index).means.mean() for index in range(500)])
    rewards = []
    for seed in range(10):
        played = run(Random(), problem, clients=4, rounds=500, seed=seed)
        assert played.rewards is not None
        assert played.used is not None
        rewards.append(played.rewards[played.used])
    found = np.concatenate(rewards)
    assert abs(found.mean() - value) <= norm.isf(LEVEL / 2) * found.std() / math.sqrt(len(found))
    biased = problem.events.reward.mean()  # what the logging policy got, which looked for good arms
    assert biased - value > norm.isf(LEVEL / 2) * found.std() / math.sqrt(len(found))


def test_every_arm_is_accepted_as_often_whatever_its_propensity(logged: Path) -> None:
    problem = Log.bandit(logged)
    accepted = np.zeros(2000)
    for seed in range(200):
        instance = problem.instance(seed=seed, clients=2000, rounds=1)
        revealed = instance.round(0).revealed
        assert revealed is not None
        accepted += revealed.any(axis=1)
    expected = 200 * problem.least / problem.events.propensity
    z = (accepted - expected) / np.sqrt(np.maximum(expected * (1 - expected / 200), 1e-9))
    rare = problem.events.propensity > problem.least * 1.001
    assert (accepted[~rare] == 200).all()
    assert np.abs(z[rare]).max() < norm.isf(LEVEL / 2 / 2000)


def test_a_larger_floor_uses_more_events(logged: Path) -> None:
    few = run(Random(), Log.bandit(logged), clients=4, rounds=500).events
    more = run(Random(), Log.bandit(logged, floor=0.5), clients=4, rounds=500).events
    assert few is not None
    assert more is not None
    assert more > few


def test_results_say_how_many_events_were_used(logged: Path, tmp_path: Path) -> None:
    results = compare([DisLinUCB(), Random()], problem=logged, clients=4, rounds=50, seeds=2)
    assert results.table().headers[-2:] == ("events", "reward")
    assert all(row.events is not None and row.events <= 200 for row in results.rows)
    assert {"events", "reward"} <= results.rows[0].as_dict().keys()
    results.to_parquet(tmp_path / "results.parquet")
    assert Results.from_parquet(tmp_path / "results.parquet") == results
    best = Log.bandit(logged).events.reward.max()
    for row in results.rows:
        assert row.reward is not None
        assert row.regret == pytest.approx(200 * (best - row.reward))
    ordinary = compare([Random()], problem=PROBLEM, clients=2, rounds=5, seeds=1)
    assert "events" not in ordinary.table().headers
    assert "events" not in ordinary.rows[0].as_dict()


def test_no_agreement_is_no_reward(tmp_path: Path) -> None:
    path = saved(tmp_path, arms=[[[0.0], [1.0]]] * 4, chosen=[0] * 4, propensity=[0.9, 0.9, 0.9, 1e-12])
    played = run(Random(), Log.bandit(path), clients=1, rounds=3)
    assert (played.events, played.reward) == (0, None)
    assert math.isnan(played.regret)
    assert "0 of 3 events used" in repr(played)


def test_a_replay_is_a_problem_by_its_path_and_by_name(logged: Path) -> None:
    assert as_problem(logged) == as_problem(str(logged)) == Log.bandit(logged) == Replay(logged)
    assert Log.bandit(logged).sizes() == (44, 45)
    check_problem(Log.bandit(logged), rounds=40)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"propensity": None}, "no column 'propensity', without which agreement with the log says nothing"),
        ({"propensity": [0.5, None, 0.5, 0.5]}, "propensity is missing in row 1"),
        ({"propensity": [0.5, 0.5, math.nan, 0.5]}, "propensity is missing in row 2"),
        ({"propensity": [0.0, 0.5, 0.5, 0.5]}, "propensity is no probability of something that happened in row 0"),
        ({"propensity": [0.5, -0.1, 0.5, 0.5]}, "no probability of something that happened in row 1"),
        ({"propensity": [0.5, 1.5, 0.5, 0.5]}, "propensity is above 1 in row 1"),
        ({"propensity": [0.5, 0.5, 0.5, 1.0]}, "propensity is 1 in row 3 .* others had no chance"),
        ({"propensity": ["a", "b", "c", "d"]}, "propensity holds string, not numbers"),
        ({"propensity": [None] * 4}, "propensity is missing in row 0"),
        ({"chosen": [0.0, 0.5, 0.0, 1.0]}, "chosen is no whole number in row 1 .*: 0.5"),
        ({"chosen": [0.0, math.nan, 0.0, 1.0]}, "chosen is no whole number in row 1 .*: nan"),
        ({"chosen": ["0", "1", "0", "1"]}, "chosen holds string, not numbers"),
        ({"reward": ["1", "2", "3", "4"]}, "reward holds string, not numbers"),
        ({"reward": [datetime(2026, 1, 1)] * 4}, "reward holds timestamp.*, not numbers"),
        ({"reward": [1.0, 1e200, 1.0, 1.0]}, r"reward is no number below 1e\+150 in size in row 1"),
        ({"arms": [[[0.0], [1.0]], None] * 2}, "the set of arms is missing in row 1"),
        ({"arms": [[[0.0]], [[0.0], [1.0]], [[0.0], None], [[1.0]]]}, "an arm is missing in row 2"),
        ({"arms": [[[0.0], [1.0]], [[0.0], [None]]] * 2}, "an arm in row 1 .* has the feature nan"),
        ({"arms": [[[0.0], [1.0]], [[0.0], [1e200]]] * 2}, r"an arm in row 1 .* has the feature 1e\+200"),
        ({"arms": [[["a"], ["b"]]] * 4}, r"arms holds list<.*string.*>, not lists of lists of numbers"),
        ({"chosen": [0, 1, 2, 0]}, "chosen is the place of no arm of its set in row 2"),
        ({"chosen": [0, -1, 0, 0]}, "chosen is the place of no arm of its set in row 1"),
        ({"chosen": [0, None, 0, 0]}, "chosen is missing in 1 rows"),
        ({"reward": [0.0, math.inf, 0.0, 0.0]}, "reward is no number .* in row 1 .*: inf"),
        ({"arms": [[1.0], [2.0], [3.0], [4.0]]}, r"arms holds list<.*>, not lists of lists of numbers"),
        ({"arms": [[[1.0]], [[2.0, 3.0]], [[1.0]], [[1.0]]]}, r"arms have \[1, 2\] features"),
        ({"arms": [[[1.0]], [], [[1.0]], [[1.0]]], "chosen": [0] * 4}, "arms is empty in row 1"),
        ({"arms": [[[math.nan]]] * 4, "chosen": [0] * 4}, "an arm in row 0 .* has the feature nan"),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused_with_the_row(
    columns: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ProblemError, match=why):
        Log.bandit(saved(tmp_path, **columns))


@pytest.mark.parametrize(
    "arms",
    [
        pa.array([[[0], [1]]] * 4),
        pa.array([[[0.0], [1.0]]] * 4, type=pa.list_(pa.list_(pa.float32(), 1), 2)),
        pa.array([[[0.0], [1.0]]] * 4, type=pa.large_list(pa.large_list(pa.float64()))),
        pa.array([[[False], [True]]] * 4),
    ],
    ids=lambda arms: str(arms.type),
)
def test_whatever_writes_numbers_in_lists_can_be_replayed(arms: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, arms=arms, chosen=[0.0, 1.0, 0.0, 1.0], reward=[True, False, True, True])
    events = Log.bandit(path).events
    assert events.arms.tolist() == [[[0.0], [1.0]]] * 4
    assert (events.chosen.tolist(), events.reward.tolist()) == ([0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("floor", "why"),
    [
        (1.5, "floor must be a probability, from 0 to 1, not 1.5; try floor=0.1"),
        (math.nan, "floor must be a probability"),
        (0, "floor must be a finite number greater than 0"),
        ("0.1", "floor must be a probability, from 0 to 1, not '0.1'"),
        (grid(0.1, 0.2), "floor takes one value"),
    ],
)
def test_a_floor_that_is_no_probability_is_refused(floor: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        Log.bandit(saved(tmp_path), floor=floor)


def test_where_there_is_one_arm_no_propensity_is_needed(tmp_path: Path) -> None:
    path = saved(tmp_path, arms=[[[0.0]], [[1.0]], [[2.0]], [[3.0]]], chosen=[0] * 4, propensity=[None, 1.0, 1.0, 1.0])
    assert run(DisLinUCB(), Log.bandit(path), clients=2, rounds=2).events == 4


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"there is no file '.*nothing.parquet'; try the path of a Parquet file"):
        Log.bandit(tmp_path / "nothing.parquet")
    with pytest.raises(InputError, match="path must be the path of a file, not 3"):
        Log.bandit(3)  # type: ignore[arg-type]
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(ProblemError, match="it is no Parquet file"):
        Log.bandit(tmp_path / "text.parquet")
    pq.write_table(pa.table({"arms": [], "chosen": [], "propensity": [], "reward": []}), tmp_path / "no.parquet")
    with pytest.raises(ProblemError, match="holds no events"):
        Log.bandit(tmp_path / "no.parquet")


def test_a_log_that_was_made_greedily_is_refused(tmp_path: Path) -> None:
    run(DisKernelUCB(), PROBLEM, clients=3, rounds=20, log=True).log(tmp_path / "ucb.parquet")
    with pytest.raises(ProblemError, match="log with EpsilonFloor, Softmax or Thompson"):
        Log.bandit(tmp_path / "ucb.parquet")
    run(DisKernelUCB(exploration=Softmax(0.5)), PROBLEM, clients=3, rounds=20, log=True).log(tmp_path / "s.parquet")
    assert Log.bandit(tmp_path / "s.parquet").sizes() == (7, 8)
