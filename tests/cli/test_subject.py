"""Where a problem is named: files and folders that a command does not take are refused by what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from laconic.cli import app
from laconic.errors import InputError

KINDS = {
    "compare": ".npz, .parquet or .toml",
    "frontier": ".npz, .parquet or .toml",
    "suggest": ".npz, .csv or .parquet",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("visits.csv", "make.py", "notes", "kept/config.toml", "other/notes.txt", "cosine/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1,2\n")
    return tmp_path


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--seed", "0"] if words[0] == "suggest" else [*words, "--quiet"])
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["compare", "frontier"])
@pytest.mark.parametrize("given", ["visits.csv", "./visits.csv"])
def test_a_table_is_for_suggest(command: str, given: str) -> None:
    said = f"{given} is a file, and laconic {command} takes no .csv files; try laconic suggest {given}"
    assert refused(command, given) == said


@pytest.mark.usefixtures("folder")
def test_a_configuration_is_for_compare() -> None:
    assert refused("suggest", "kept/config.toml").endswith("no .toml files; try laconic compare kept/config.toml")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [*KINDS])
@pytest.mark.parametrize(("given", "what"), [("make.py", ".py files"), ("notes", "such files")])
def test_any_other_file_is_answered_with_the_files_that_are_taken(command: str, given: str, what: str) -> None:
    said = refused(command, given)
    assert said.startswith(f"{given} is a file, and laconic {command} takes no {what}; try a name that laconic list")
    assert said.endswith(f"a file that ends in {KINDS[command]}")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [*KINDS])
def test_a_folder_is_answered_with_what_is_in_it_or_may_be_named(command: str) -> None:
    found = refused(command, "kept")
    assert found.startswith("kept is a folder; try ")
    assert found.endswith("kept/config.toml") == (command != "suggest")
    assert refused(command, "other").endswith(f"or a file that ends in {KINDS[command]}")


@pytest.mark.usefixtures("folder")
def test_a_problem_is_known_by_its_name_also_beside_a_folder_of_that_name() -> None:
    small = ["-a", "random", "-N", "2", "-T", "2", "--seeds", "1", "--quiet"]
    assert CliRunner().invoke(app, ["compare", "cosine", *small]).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_what_is_not_there_may_be_a_name_that_is_misspelt() -> None:
    assert "did you mean cosine?" in refused("compare", "cosin")
