from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laconic import ApproxDisKernelUCB, Catalogue, Cosine, InputError, Theory, defaults
from laconic.cli.request import Words, literal, understand


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.3", 0.3),
        (".3", 0.3),
        ("1e4", 1e4),
        ("true", True),
        ("paper", "paper"),
        ('"3"', "3"),
        ("[1, 2.5]", [1, 2.5]),
        ("/some/file.npz", "/some/file.npz"),
        ("2024-01-01", "2024-01-01"),
        ("", ""),
    ],
)
def test_values_are_read_as_toml_and_else_as_text(text: str, value: Any) -> None:
    assert literal(text) == value
    assert type(literal(text)) is type(value)


def test_no_words_make_the_demo() -> None:
    request = understand(Words())
    assert request.problem == Catalogue()
    assert (request.clients, request.rounds) == (defaults.CLIENTS, defaults.LONG_ROUNDS)
    assert request.seeds == tuple(range(defaults.SEEDS))
    assert [type(each).__name__ for each in request.algorithms] == list(defaults.ALGORITHMS)


@pytest.mark.parametrize("problem", ["catalogue", "cosine"])
def test_the_command_line_takes_the_defaults_of_python(problem: str) -> None:
    compared = understand(Words(problem=problem)).algorithms
    assert compared == tuple(type(each)() for each in compared)
    one = understand(Words(problem=problem, algorithms=["approxdiskernelucb"])).algorithms
    assert one == (ApproxDisKernelUCB(),)


def test_a_problem_takes_its_own_parameters() -> None:
    assert understand(Words(problem="cosine", overrides=["problem.dim=3"])).problem == Cosine(dim=3)


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ("D = 20.0\nalpha = 1.0", Words(alpha="theory", D=3.0)),
        ('D = 3.0\nalpha = "theory"', Words(alpha="2", D=20.0)),
        ("D = 20.0\nalpha = 1.0", Words(alpha="theory", overrides=["ApproxDisKernelUCB.D=3.0"])),
    ],
)
def test_options_that_only_fit_together_are_taken_together(tmp_path: Path, kept: str, words: Words) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'problem = {{name = "cosine"}}\n[[algorithms]]\nname = "ApproxDisKernelUCB"\n{kept}\n')
    alpha, D = (Theory(), 3.0) if words.alpha == "theory" else (2.0, 20.0)
    assert understand(replace(words, problem=str(file))).algorithms == (ApproxDisKernelUCB(D=D, alpha=alpha),)


def test_an_option_that_the_kernel_does_not_have_is_refused_with_those_it_has() -> None:
    advice = r"Matern has nu, length: try --set DisKernelUCB\.nu=2\.5"
    with pytest.raises(InputError, match=advice):
        understand(Words(algorithms=["DisKernelUCB"], kernel="Matern", gamma=2.0))
