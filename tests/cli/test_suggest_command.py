"""``laconic suggest``, from its words to a file that ``laconic run`` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from laconic import InputError, Recorded
from laconic.cli import app
from laconic.experiments.spec import read_spec

SMALL = ("--sample", "60", "--clients", "3", "--traffic", "4")


def laconic(*words: str) -> Result:
    return CliRunner().invoke(app, ["suggest", *words])


def own(path: Path, *, rewards: bool = True) -> Path:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(50, 2))
    arrays: dict[str, Any] = {"X": X} | ({"y": np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(50)} if rewards else {})
    np.savez(path, **arrays)
    return path


def test_a_problem_is_explained_in_words() -> None:
    printed = laconic("catalogue", *SMALL).stdout
    assert max(map(len, printed.splitlines())) <= 80
    said = " ".join(printed.split())
    assert "This rests on 60 points of 10 features." in said
    assert "Kernel: Gaussian(gamma=" in said
    assert "for 3 clients with 4 interactions each a day" in said
    assert "estimates" in said


def test_json_holds_every_number_and_nothing_else_is_printed() -> None:
    table = json.loads(laconic("catalogue", *SMALL, "--json", "--kernel", "matern").stdout)
    assert table["kernel"] == "Matern"
    assert {"lam", "alpha", "D", "D_approx", "qbar", "delta", "ranges", "reward", "d_eff"} <= set(table)
    assert set(table["bytes_per_client"]["LaconicUCB"]) == {"first day", "later day"}


@pytest.mark.parametrize("rewards", [True, False])
def test_a_file_of_points_gives_an_experiment_that_can_be_run(tmp_path: Path, rewards: bool) -> None:
    out = tmp_path / "own.toml"
    result = laconic(str(own(tmp_path / "points.npz", rewards=rewards)), "--out", str(out), *SMALL)
    assert result.exit_code == 0, result.output
    experiment = read_spec(out).experiment()
    assert len(experiment.algorithms) == 5
    assert (tmp_path / "own-rehearsal.npz").is_file()


def visits(path: Path, *, columns: int) -> Path:
    """A table of visits whose columns are a0, a1 and so on."""
    head = ",".join(f"a{place}" for place in range(columns))
    np.savetxt(path, np.random.default_rng(0).uniform(size=(30, columns)), delimiter=",", header=head, comments="")
    return path


def test_a_table_without_rewards_says_which_columns_are_features_and_how_a_reward_is_named(tmp_path: Path) -> None:
    few = " ".join(laconic(str(visits(tmp_path / "few.csv", columns=3)), *SMALL).stdout.split())
    assert "30 points of 3 features: the columns a0, a1 and a2." in few
    assert "If one of these columns is the reward, --reward COLUMN names it." in few
    many = " ".join(laconic(str(visits(tmp_path / "many.csv", columns=12)), *SMALL).stdout.split())
    assert "the columns a0, a1, a2, a3, a4, a5, a6 and 5 more." in many
    told = " ".join(laconic(str(tmp_path / "few.csv"), "--reward", "a2", *SMALL).stdout.split())
    assert "the columns a0 and a1." in told
    assert "--reward" not in told


@pytest.mark.parametrize(("columns", "subject"), [(None, "catalogue"), (2, "visits.csv")])
def test_the_title_of_an_experiment_names_the_problem_or_the_file(
    columns: int | None, subject: str, tmp_path: Path
) -> None:
    given = subject if columns is None else str(visits(tmp_path / subject, columns=columns))
    assert laconic(given, "--out", str(tmp_path / "own.toml"), *SMALL).exit_code == 0
    assert read_spec(tmp_path / "own.toml").file.title == f"As suggested: {subject}"


def test_what_is_written_is_run_wherever_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    own(Path("points.npz"))
    assert laconic("points.npz", "--out", "here/own.toml", *SMALL).exit_code == 0
    assert str(tmp_path) not in (tmp_path / "here" / "own.toml").read_text()
    (tmp_path / "here").rename(tmp_path / "there")
    words = ["compare", "there/own.toml", "-a", "NKernelUCB", "-N", "2", "-T", "3", "--seeds", "1", "--quiet"]
    assert CliRunner().invoke(app, words).exit_code == 0
    monkeypatch.chdir(tmp_path / "there")
    assert read_spec("own.toml").experiment().problem == Recorded(tmp_path / "there" / "own-rehearsal.npz")


def test_the_experiment_of_a_problem_runs_with_laconic_run(tmp_path: Path) -> None:
    pytest.importorskip("altair", reason="the report's charts need laconic[paper]")
    pytest.importorskip("vl_convert", reason="the report's charts need laconic[paper]")
    out = tmp_path / "own.toml"
    assert laconic("catalogue", "--out", str(out), *SMALL).exit_code == 0
    run = CliRunner().invoke(app, ["run", str(out), "--out", str(tmp_path / "results"), "--quiet", "--jobs", "1"])
    assert run.exit_code == 0, run.output
    assert (tmp_path / "results" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cosin",), "did you mean cosine"),
        (("none.csv",), "there is no file"),
        (("cosine", "--reward", "y"), "leave it out"),
        (("cosine", "--sample", "9", "--out", "x.json"), "must be the name of a .toml file"),
        (("cosine", "--sample", "9", "--kernel", "gaus"), "no kernel is called"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    result = laconic(*words)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_nothing_is_replaced_by_a_suggestion_least_of_all_the_sample(tmp_path: Path) -> None:
    sample = own(tmp_path / "visits.npz")
    before = sample.read_bytes()
    out = tmp_path / "visits.toml"
    assert laconic(str(sample), "--out", str(out), *SMALL).exit_code == 0
    assert sample.read_bytes() == before
    written = out.read_bytes()
    again = laconic(str(sample), "--out", str(out), *SMALL)
    assert isinstance(again.exception, InputError)
    assert "there already, and nothing is replaced" in str(again.exception)
    assert out.read_bytes() == written


def test_the_experiment_is_compared_too(tmp_path: Path) -> None:
    out = tmp_path / "own.toml"
    assert laconic("catalogue", "--out", str(out), *SMALL).exit_code == 0
    words = ["compare", str(out), "-a", "NKernelUCB", "-N", "2", "-T", "3", "--seeds", "2", "--quiet"]
    compared = CliRunner().invoke(app, words)
    assert compared.exit_code == 0, compared.output
    assert "NKernelUCB" in compared.output
