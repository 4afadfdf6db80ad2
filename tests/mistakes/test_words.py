"""Words that ask for nothing, or for something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from laconic import Client, Server
from tests.mistakes.answers import SMALL, Answers


@pytest.mark.parametrize("given", ["", ",", " , "])
def test_names_of_nothing_do_not_mean_everything(laconic: Answers, given: str) -> None:
    said = laconic.refused("reproduce", "li2022", "--only", given)
    assert said == f"--only names nothing: {given!r}; try --only cosine, or without it"
    for command in ("compare", "frontier"):
        said = laconic.refused(command, "cosine", *SMALL, "-a", given)
        assert said == f"--algorithms names nothing: {given!r}; try --algorithms DisKernelUCB, or without it"


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "cosine", *SMALL, "--out", ""),
        ("compare", "cosine", *SMALL, "--choices", ""),
        ("frontier", "cosine", *SMALL, "--out", ""),
        ("run", "x.toml", "--out", " "),
        ("run", "", "--out", "x"),
        ("reproduce", "li2022", "--out", ""),
        ("suggest", "cosine", "--out", ""),
        ("data", "import", "magic", ""),
        ("log", "", "--out", "x.parquet"),
        ("certs", ""),
        ("agent", ""),
        ("serve", ""),
    ],
)
def test_no_name_is_not_the_current_folder(
    laconic: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "is empty; try . for the current folder, or a name" in laconic.refused(*words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "tried"),
    [(".", "own.toml"), ("own", "own.toml"), ("own.csv", "own.toml"), ("kept/own.csv", "kept/own.toml")],
)
def test_a_suggestion_is_kept_under_the_name_of_a_toml_file(laconic: Answers, given: str, tried: str) -> None:
    said = laconic.refused("suggest", "catalogue", "--sample", "20", "--out", given)
    assert said == f"--out must be the name of a .toml file, not {given!r}; try {tried}"


def test_a_parameter_is_shown_to_those_who_ask_for_it(laconic: Answers) -> None:
    said = laconic.refused("show", "qbar")
    assert said == (
        "nothing is called 'qbar'; it is a parameter of ApproxDisKernelUCB; try laconic show ApproxDisKernelUCB"
    )
    assert "it is a parameter of Gaussian;" in laconic.refused("show", "GAMMA")


def test_only_a_name_that_is_near_is_suggested(laconic: Answers) -> None:
    assert "did you mean catalogue?" in laconic.refused("show", "catalog")
    assert "laconic list shows all names" in laconic.refused("show", "zzzz")


@pytest.mark.parametrize("kind", [Client, Server])
def test_who_may_share_a_client_among_threads_is_said(kind: type) -> None:
    assert "has no lock: threads that share one take turns" in " ".join((kind.__doc__ or "").split())
