"""The log of a run: every decision with the arms shown, the arm chosen, its probability and its reward."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from laconic import (
    ApproxDisKernelUCB,
    AskServer,
    Catalogue,
    Cosine,
    DisKernelUCB,
    EpsilonFloor,
    Greedy,
    InputError,
    LaconicUCB,
    Log,
    Random,
    Softmax,
    Thompson,
    run,
)
from laconic.errors import OutputError
from laconic.problems.events import events_of

COLUMNS = ["step", "client", "context", "arms", "chosen", "propensity", "propensity_error", "reward"]
SIZES: Any = {"clients": 3, "rounds": 12, "seed": 4}


def varying() -> Log:
    """A log with arm sets of varying size, whose last feature is the same for all arms of a set."""
    random = np.random.default_rng(0)
    arms = random.normal(size=(36, 4, 3))
    arms[:, :, 2] = random.normal(size=(36, 1))
    mask = random.random((36, 4)) < 0.6
    mask[np.arange(36), random.integers(4, size=36)] = True
    return Log(arms, means=np.sin(arms.sum(axis=2)), noise=np.zeros(36), mask=mask)


def test_a_row_is_what_a_client_was_shown_chose_and_was_paid() -> None:
    problem = Cosine(dim=2, arms=4)
    played = run(DisKernelUCB(D=3.0, exploration=EpsilonFloor()), problem, log=True, **SIZES)
    table = played.log()
    assert table.column_names == COLUMNS
    instance = problem.instance(**SIZES)
    for row in table.to_pylist():
        index, client = divmod(row["step"] - 1, 3)
        met = instance.round(index)
        assert row["client"] == client
        assert row["arms"] == met.arms[client].tolist()
        assert row["chosen"] == played.choices[row["step"] - 1]
        assert row["reward"] == met.rewards[client, row["chosen"]]
        assert row["propensity"] in (pytest.approx(0.025), pytest.approx(0.925), pytest.approx(0.1 / 4 + 0.9 / 4))
        assert row["context"] == []


def test_of_sets_of_varying_size_only_the_arms_that_are_there_are_listed() -> None:
    problem = varying()
    table = run(Random(), problem, log=True, **SIZES).log()
    instance = problem.instance(**SIZES)
    for row in table.to_pylist():
        index, client = divmod(row["step"] - 1, 3)
        met = instance.round(index)
        assert met.mask is not None
        assert row["arms"] == met.arms[client, met.mask[client]].tolist()
        assert row["propensity"] == pytest.approx(1 / len(row["arms"]))
        assert row["reward"] == met.rewards[client, met.mask[client]][row["chosen"]]


def test_what_the_arms_of_every_set_have_in_common_is_the_context() -> None:
    for row in run(Random(), varying(), log=True, **SIZES).log().to_pylist():
        assert row["context"] == [row["arms"][0][2]]


@pytest.mark.parametrize("problem", [Cosine(dim=2, arms=4), Catalogue(dim=2, items=6, arms=5), varying()], ids=repr)
@pytest.mark.parametrize(
    "algorithm",
    [
        DisKernelUCB(D=3.0, lam=0.3),
        DisKernelUCB(D=3.0, exploration=Greedy()),
        ApproxDisKernelUCB(D=1.0, exploration=Thompson()),
        LaconicUCB(lam=0.2),
        LaconicUCB(lam=0.2, exploration=Softmax()),
        Random(),
        AskServer(exploration=Thompson(joint=False)),
    ],
    ids=lambda each: f"{type(each).__name__} {getattr(each, 'exploration', '')}",
)
def test_both_runtimes_write_the_same_log(algorithm: Any, problem: Any) -> None:
    one, other = (run(algorithm, problem, log=True, runtime=name, **SIZES).log() for name in ("loopback", "lockstep"))
    for column in COLUMNS:
        if column.startswith("propensity"):
            np.testing.assert_allclose(one[column].to_numpy(), other[column].to_numpy(), atol=1e-8)
        else:
            assert one[column].equals(other[column]), column


def test_keeping_the_log_changes_nothing_else() -> None:
    algorithm, problem = LaconicUCB(lam=0.2, exploration=Thompson()), Cosine(dim=2, arms=4)
    kept, plain = run(algorithm, problem, log=True, **SIZES), run(algorithm, problem, **SIZES)
    assert np.array_equal(kept.choices, plain.choices)
    assert kept.ledger.total == plain.ledger.total


def test_a_run_that_was_not_asked_to_keep_it_says_how_to() -> None:
    with pytest.raises(InputError, match=r"try run\(…, log=True\)"):
        run(Random(), Cosine(dim=2), **SIZES).log()


def test_the_file_is_the_table(tmp_path: Path) -> None:
    played = run(Random(), Cosine(dim=2, arms=3), log=True, **SIZES)
    table = played.log(tmp_path / "events.parquet")
    assert pq.read_table(tmp_path / "events.parquet").equals(table)
    events = events_of(table)
    assert len(events) == 36
    assert np.array_equal(events.column, played.choices)
    with pytest.raises(OutputError, match="cannot be written"):
        played.log(tmp_path / "nowhere" / "events.parquet")
