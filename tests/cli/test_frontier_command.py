from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_compare_command import Outcome

SMALL = ["--clients", "3", "--rounds", "4", "--seeds", "2", "--set", "problem.dim=2", "--jobs", "1", "--quiet"]


def test_the_table_says_what_is_best_and_where_the_figure_is(tmp_path: Path) -> None:
    done = Outcome("frontier", "cosine", "-a", "askserver,nkernelucb,dislinucb", *SMALL, "--out", tmp_path)
    assert done.error is None, done.error
    assert "cosine, d=2: 3 clients, 4 rounds, mean ± sd over 2 seeds" in done.out
    assert "DisLinUCB D=20 compact" in done.out
    assert f"{tmp_path / 'figure.svg'}" in done.out
    assert max(map(len, done.out.partition("\nwrote")[0].splitlines())) <= 80


def test_json_is_the_only_thing_on_stdout(tmp_path: Path) -> None:
    done = Outcome("frontier", "-a", "AskServer,DisKernelUCB", *SMALL, "--gamma", "0.5", "--json", "--out", tmp_path)
    said = json.loads(done.out)
    assert len(said["points"]) == 25  # one that asks, and six thresholds on each of four wires
    (asking,) = (point for point in said["points"] if point["round_trip_a_decision"])
    assert (asking["label"], asking["params"]["gamma"]) == ("AskServer", 0.5)
    best = [point for point in said["points"] if point["non_dominated"]]
    assert best
    assert all(not point["dominated_by"] for point in best)
    assert str(tmp_path / "results.parquet") in said["files"]


def test_without_a_folder_the_problem_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = Outcome("frontier", "catalogue", "-a", "NKernelUCB", *SMALL)
    assert done.error is None, done.error
    assert (tmp_path / "frontier-catalogue" / "figure.png").exists()


def test_the_configuration_that_it_leaves_gives_the_same_again(tmp_path: Path) -> None:
    first = Outcome("frontier", "-a", "LaconicUCB", *SMALL, "--out", tmp_path / "one")
    again = Outcome("frontier", tmp_path / "one" / "config.toml", "--jobs", "1", "-q", "--out", tmp_path / "two")
    assert again.error is None, again.error
    table, tables = (done.out.partition("\nwrote")[0] for done in (first, again))
    assert table == tables


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cosin"], "did you mean cosine"),
        (["--alpha", "much"], "--alpha must be a number"),
        (["-a", "DisLinUCB", "--gamma", "1"], "--gamma has nothing to set"),
        (["--rounds", "0"], "must be a whole number from 1"),
        (["--jobs", "0"], "must be a whole number from 1"),
        (["--set", "Random.x=1"], "Random is not among"),
    ],
)
def test_mistakes_are_refused_with_advice(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = Outcome("frontier", *arguments, "--quiet", "--out", tmp_path)
    assert said in str(done.error)
