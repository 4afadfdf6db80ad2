"""Numbers that are too large, or none: one line says which option or parameter, what was seen and what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laconic import (
    ApproxDisKernelUCB,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    InputError,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
    Random,
    compare,
    run,
)
from laconic.checks import finite_array, require_whole
from laconic.experiments.results import Results
from tests.experiments.making import row
from tests.mistakes.answers import HUGE, SMALL, Answers

LEARNS = ("-a", "DisLinUCB")
FILE = """
clients = 2
rounds = 3
seeds = {seeds}
problem = {{ name = "{problem}", {parameter} = {value} }}
[[algorithms]]
name = "DisLinUCB"
"""


@pytest.mark.parametrize("option", ["-N", "-T", "--seeds", "--jobs"])
@pytest.mark.parametrize("command", ["compare", "frontier"])
def test_a_count_of_twenty_digits(laconic: Answers, command: str, option: str) -> None:
    said = laconic.refused(command, "cosine", "-q", *LEARNS, option, HUGE)
    assert option in said
    assert f"not '{HUGE}'" in said
    assert "must be a whole number from 1 to " in said


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        (("certs", "certs"), "--days", HUGE),
        (("demo-federation",), "--agents", HUGE),
        (("demo-federation",), "--seed", HUGE),
        (("suggest", "cosine"), "--clients", HUGE),
        (("suggest", "cosine"), "--sample", 1),
        (("suggest", "cosine"), "--traffic", 0),
        (("reproduce", "li2022"), "--jobs", HUGE),
        (("run", "x.toml", "--out", "x"), "--jobs", 0),
    ],
)
def test_counts_of_other_commands(laconic: Answers, command: tuple[str, ...], option: str, value: int) -> None:
    said = laconic.refused(*command, option, value)
    assert option in said
    assert f"not '{value}'" in said


@pytest.mark.parametrize(
    ("problem", "parameter"), [("cosine", "dim"), ("cosine", "arms"), ("catalogue", "items"), ("catalogue", "dim")]
)
def test_a_size_of_a_problem_of_twenty_digits(laconic: Answers, tmp_path: Path, problem: str, parameter: str) -> None:
    said = laconic.refused("compare", problem, *SMALL, *LEARNS, "--set", f"problem.{parameter}={HUGE}")
    assert said.startswith(f"{parameter} must be at most 100000000, not {HUGE}")
    file = tmp_path / "huge.toml"
    file.write_text(FILE.format(seeds=1, problem=problem, parameter=parameter, value=HUGE))
    assert laconic.refused("compare", file, "-q") == said


def test_sizes_that_fit_alone_but_not_together(laconic: Answers) -> None:
    most = 10**8
    said = laconic.refused("compare", "cosine", "-N", most, "-T", most, "--seeds", "1", *LEARNS)
    assert said.startswith(f"clients={most} × rounds={most} is more than ")
    large = ("--set", f"problem.dim={most}", "--set", f"problem.arms={most}")
    assert "arms=100000000 × dim=100000000" in laconic.refused("compare", "cosine", *SMALL, *LEARNS, *large)


@pytest.mark.parametrize("parameter", ["qbar", "D", "lam", "alpha"])
def test_a_parameter_of_twenty_digits_that_numpy_has_no_type_for(laconic: Answers, parameter: str) -> None:
    setting = f"ApproxDisKernelUCB.{parameter}={HUGE}"
    said = laconic.refused("compare", "cosine", *SMALL, "-a", "ApproxDisKernelUCB", "--set", setting)
    assert said.startswith(f"{parameter} must be a finite number")
    assert str(HUGE) in said


@pytest.mark.parametrize("command", ["compare", "run"])
def test_a_seed_beyond_64_bits_in_a_file_is_refused_before_anything_runs(
    laconic: Answers, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "seeds.toml"
    file.write_text(FILE.format(seeds=[2**63], problem="cosine", parameter="dim", value=2))
    said = laconic.refused(command, file, "-q", "--out", tmp_path / "out")
    assert f"must be at most {2**63 - 1}, not {2**63}" in said
    assert not list(tmp_path.rglob("*.parquet"))


def test_seeds_that_no_file_holds_are_refused_by_the_library() -> None:
    with pytest.raises(InputError, match=r"seed must be at most 9223372036854775807, not 18446744073709551616"):
        run(DisLinUCB(), Cosine(dim=2), clients=2, rounds=2, seed=2**64)
    with pytest.raises(InputError, match="every one of seeds must be at most"):
        compare("DisLinUCB", problem=Cosine(dim=2), clients=2, rounds=2, seeds=[2**64])
    made = Results(problem="cosine", problem_params={}, clients=2, rounds=2, dim=2, rows=(row("A", seed=2**64),))
    with pytest.raises(InputError, match="seed must be at most"):
        made.to_parquet("never.parquet")
    assert not Path("never.parquet").exists()


@pytest.mark.parametrize(
    "algorithm",
    [DisKernelUCB(), OneKernelUCB(), NKernelUCB(), DisLinUCB(), ApproxDisKernelUCB(), LaconicUCB(), Random()],
)
@pytest.mark.parametrize("dim", [-1, 0, 1.5, True, "2", None, 10**20])
def test_a_plan_for_no_whole_number_of_features(algorithm: Any, dim: Any) -> None:
    with pytest.raises(InputError, match="dim must be"):
        algorithm.plan(dim)


@pytest.mark.parametrize(("option", "seen"), [("--gamma", "abc"), ("--lam", "1,5"), ("--D", "")])
def test_an_option_that_is_no_number_says_what_was_seen(laconic: Answers, option: str, seen: str) -> None:
    said = laconic.refused("compare", "cosine", *SMALL, "-a", "DisKernelUCB", option, seen)
    assert option in said
    assert f"must be a number, not {seen!r}" in said


@pytest.mark.parametrize("seen", ["1.5", "many", "0", "-1"])
def test_jobs_that_are_no_count_are_called_jobs(laconic: Answers, seen: str) -> None:
    said = laconic.refused("compare", "cosine", *SMALL, *LEARNS, "--jobs", seen)
    assert "'--jobs'" in said
    assert f"not '{seen}'" in said
    assert "processes" not in said


def test_jobs_that_are_no_count_are_called_jobs_in_python_too() -> None:
    with pytest.raises(InputError, match=r"^jobs must be a whole number of at least 1, not 0; try jobs=1$"):
        compare("DisLinUCB", problem=Cosine(dim=2), clients=2, rounds=2, jobs=0)


def test_advice_names_arguments_and_never_the_words_around_them() -> None:
    with pytest.raises(InputError, match=r"try 0$"):
        require_whole("every one of seeds", -1, least=0)
    with pytest.raises(InputError, match=r"try an array of 1 axes$"):
        finite_array("what mean() returned", [[1.0]], ndim=1)
    with pytest.raises(InputError, match=r"try arms\.reshape$"):
        finite_array("arms", [[1.0]], ndim=1)
