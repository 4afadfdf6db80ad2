"""The log of decisions: what is in it, what it costs, how long it gets, and how it is exported."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from laconic import Agent, Coordinator, DisLinUCB, EpsilonFloor, Gaussian, LaconicUCB, Serving
from laconic.cli import app
from laconic.errors import InputError, StateError
from laconic.problems.events import read_events
from laconic.runtimes.service import decisions, diary
from laconic.runtimes.service.decisions import log_table, logged
from tests.service.test_agent import limited

ALGORITHM = LaconicUCB(Gaussian(), lam=0.1, exploration=EpsilonFloor(epsilon=0.5))
NOWHERE = "127.0.0.1:1"  # where nobody listens
ARMS = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]]
COLUMNS = ["step", "client", "context", "arms", "chosen", "propensity", "propensity_error", "reward"]


def logging(folder: Path, *, name: str = "a", log_decisions: int = 100, **options: Any) -> Agent:
    state = folder / f"{name}.db"
    options = {"algorithm": ALGORITHM, "dim": 2, **options}
    return Agent.join(NOWHERE, name=name, state=state, insecure=True, seed=1, log_decisions=log_decisions, **options)


def export(folder: Path, *names: str) -> Any:
    states = [str(folder / f"{name}.db") for name in names]
    done = CliRunner().invoke(app, ["log", *states, "--out", str(folder / "log.parquet"), "--json"])
    if done.exception is not None:
        raise done.exception
    return json.loads(done.output)


def test_a_log_has_the_arms_shown_the_chance_and_the_reward_of_every_decision(tmp_path: Path) -> None:
    with logging(tmp_path) as agent:
        picks = [agent.choose(ARMS[: 2 + step % 2]) for step in range(6)]
        for step in (3, 0, 5, 1):  # two of them never pay
            agent.observe(picks[step], step / 8)
        agent.learn(ARMS, [1.0, 2.0, 3.0])  # nothing was decided there
    assert export(tmp_path, "a") == {"file": str(tmp_path / "log.parquet"), "decisions": 4, "without_reward": 2}
    table = pq.read_table(tmp_path / "log.parquet")
    assert table.column_names == COLUMNS
    kept = [0, 1, 3, 5]
    assert table["arms"].to_pylist() == [ARMS[: 2 + step % 2] for step in kept]
    assert table["chosen"].to_pylist() == [picks[step].arm for step in kept]
    assert table["propensity"].to_pylist() == [picks[step].propensity for step in kept]
    np.testing.assert_allclose(table["reward"], [step / 8 for step in kept], atol=0.01)  # as it was learnt: rounded
    assert len(read_events(tmp_path / "log.parquet")) == 4  # and it can be replayed


def test_a_log_in_which_nothing_has_paid_yet_is_empty(tmp_path: Path) -> None:
    with logging(tmp_path) as agent:
        agent.choose(ARMS)
    assert export(tmp_path, "a") == {"file": str(tmp_path / "log.parquet"), "decisions": 0, "without_reward": 1}
    assert pq.read_table(tmp_path / "log.parquet").column_names == COLUMNS


def test_a_log_survives_restarts_and_rewards_come_to_it_late(tmp_path: Path) -> None:
    with logging(tmp_path) as agent:
        pick = agent.choose(ARMS)
    with logging(tmp_path, log_decisions=0) as agent:  # no longer asked for: nothing is added
        agent.observe(pick.id, 0.5)
        agent.observe(agent.choose(ARMS), 1.0)
    (one,) = logged(tmp_path / "a.db")
    assert (one.id, one.chosen) == (pick.id, pick.arm)
    assert one.reward == pytest.approx(0.5, abs=0.01)


def test_a_log_keeps_the_newest_so_many_and_outlives_compaction(tmp_path: Path) -> None:
    with logging(tmp_path, log_decisions=5) as agent:
        ids = []
        for _ in range(12):
            pick = agent.choose(ARMS)
            ids.append(pick.id)
            agent.observe(pick, 1.0)
        agent._diary.compact()
    assert [each.id for each in logged(tmp_path / "a.db")] == ids[-5:]


def test_the_logs_of_agents_that_run_are_read_without_stopping_them(tmp_path: Path) -> None:
    with logging(tmp_path) as one, logging(tmp_path, name="b") as other:
        for agent in (one, other, other, one):
            agent.observe(agent.choose(ARMS), 1.0)
        assert export(tmp_path, "a", "b")["decisions"] == 4
        assert one.status().observations == 2
    table = pq.read_table(tmp_path / "log.parquet")
    assert (table["client"].to_pylist(), table["step"].to_pylist()) == ([0, 1, 1, 0], [1, 2, 3, 4])


def test_a_clock_that_was_set_back_does_not_change_the_order_of_an_agents_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logging(tmp_path) as agent:
        picks = [agent.choose(ARMS)]
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() - 3600.0)
        picks += [agent.choose(ARMS[:2]), agent.choose(ARMS)]
        for pick in picks:
            agent.observe(pick, 1.0)
    export(tmp_path, "a")
    table = pq.read_table(tmp_path / "log.parquet")
    assert [len(arms) for arms in table["arms"].to_pylist()] == [3, 2, 3]


def test_an_agent_that_keeps_no_log_stores_no_arms_and_says_how_to(tmp_path: Path) -> None:
    with logging(tmp_path, log_decisions=0) as agent:
        agent.observe(agent.choose(ARMS), 1.0)
    with pytest.raises(InputError, match="log_decisions=100_000"):
        logged(tmp_path / "a.db")


def test_what_is_no_state_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("rubbish")
    sqlite3.connect(tmp_path / "b.db").execute("CREATE TABLE x (y)")
    for name, words in (("a", "cannot be read"), ("b", "another program"), ("c", "no state file")):
        with pytest.raises(StateError, match=words):
            export(tmp_path, name)
    (tmp_path / "d.db").touch()
    with pytest.raises(StateError, match="is empty"):
        export(tmp_path, "d")
    serving = Serving(bind="127.0.0.1:0", insecure=True)
    Coordinator(DisLinUCB().plan(2), state=tmp_path / "e.db", serving=serving).stop()
    with pytest.raises(InputError, match="state of a coordinator"):
        export(tmp_path, "e")
    assert (tmp_path / "a.db").read_text() == "rubbish"
    done = CliRunner().invoke(app, ["log", str(tmp_path / "a.db"), "--out", "log.csv"])
    assert isinstance(done.exception, InputError)


class Unwritable:
    """SQLite where nothing can be made beside a file, as in a folder that is mounted to be read alone."""

    DatabaseError, OperationalError = sqlite3.DatabaseError, sqlite3.OperationalError

    @staticmethod
    def connect(where: str, **options: Any) -> Any:
        if "immutable" in where:
            return sqlite3.connect(where, **options)
        return SimpleNamespace(execute=Unwritable.fail, close=lambda: None)

    @staticmethod
    def fail(_: str) -> None:
        raise sqlite3.OperationalError("unable to open database file")


def test_a_log_is_read_through_a_link_while_its_agent_runs_and_where_nothing_can_be_made_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "a.db")
    with logging(tmp_path) as agent:
        agent.observe(agent.choose(ARMS), 1.0)
        assert len(logged(link)) == 1
        monkeypatch.setattr(decisions, "sqlite3", Unwritable())
        with pytest.raises(StateError, match="unable to open"):  # what the agent has written since is beside it
            logged(link)
    assert len(logged(link)) == 1


def test_agents_of_different_problems_make_no_log_together(tmp_path: Path) -> None:
    with logging(tmp_path) as one, logging(tmp_path, name="b", dim=1) as other:
        one.observe(one.choose(ARMS), 1.0)
        other.observe(other.choose([[1.0], [2.0]]), 1.0)
    with pytest.raises(InputError, match="1 and 2 features"):
        log_table([logged(tmp_path / f"{name}.db") for name in "ab"])


def test_arms_that_cannot_be_written_are_bounded_and_choosing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diary, "MOST_SHOWN", 100)
    with logging(tmp_path) as agent:
        with agent._diary._disk:  # as while a disk is slow
            picks = [agent.choose(ARMS) for _ in range(10)]
        for pick in picks:
            agent.observe(pick, 1.0)
        again = agent.choose(ARMS)
        agent.observe(again, 1.0)
    kept = [each.id for each in logged(tmp_path / "a.db")]
    assert 3 <= len(kept) < 10  # 48 bytes each
    assert kept[-1] == again.id


def test_a_full_disk_loses_no_row_of_the_log(tmp_path: Path) -> None:
    with logging(tmp_path) as agent:
        agent.observe(agent.choose(ARMS), 1.0)
        limited(1)
        try:
            pick = agent.choose(ARMS)
            with pytest.raises(StateError):
                agent.observe(pick, 2.0)
        finally:
            limited(None)
        agent.observe(pick, 2.0)
        assert [each.reward for each in logged(tmp_path / "a.db")] == pytest.approx([1.0, 2.0], abs=0.02)
