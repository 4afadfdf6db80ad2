from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from laconic import Catalogue, InputError, Results, cli, defaults, run
from laconic.experiments import pace
from laconic.problems import save_recorded
from laconic.runtimes import needs
from tests.experiments.making import Periodic, Plain, listed

SMALL = ["--clients", "3", "--rounds", "4", "--seeds", "2", "--set", "problem.dim=2", "--quiet"]


class Outcome:
    """What a command left: its exit code and what it said."""

    def __init__(self, *arguments: object) -> None:
        done = CliRunner().invoke(cli.app, [str(each) for each in arguments], standalone_mode=False)
        self.code, self.out, self.err, self.error = done.exit_code, done.stdout, done.stderr, done.exception


def rows(*arguments: object) -> list[dict[str, Any]]:
    done = Outcome("compare", *arguments, "--json")
    assert done.error is None, done.error
    return list(json.loads(done.out)["rows"])


def test_json_is_the_only_thing_on_stdout_and_has_the_agreed_keys() -> None:
    found = rows("catalogue", "-a", "dislinucb,approxdiskernelucb", *SMALL)
    assert [(row["algorithm"], row["seed"]) for row in found] == [
        ("DisLinUCB", 0),
        ("ApproxDisKernelUCB", 0),
        ("DisLinUCB", 1),
        ("ApproxDisKernelUCB", 1),
    ]
    assert list(found[0]) == [
        *("algorithm", "params", "seed", "regret", "scalars", "bytes", "messages", "syncs", "dictionary", "seconds"),
        *("versions", "atoms", "d_eff", "kappa", "kappa_max", "e_hi", "beta", "fallbacks", "fallback_reasons"),
    ]
    assert found[0]["dictionary"] is None
    assert found[1]["params"]["gamma"] == 0.2


def test_the_five_algorithms_of_the_paper_run_by_default() -> None:
    found = rows(*SMALL)
    assert {row["algorithm"] for row in found} == set(defaults.ALGORITHMS)


def test_algorithms_may_be_repeated_or_listed_in_any_case() -> None:
    found = rows("-a", "random, NKERNELUCB", "-a", "disLinUCB", *SMALL)
    assert [row["algorithm"] for row in found[:3]] == ["Random", "NKernelUCB", "DisLinUCB"]


def test_laconic_ucb_takes_the_theoretical_alpha() -> None:
    found = rows("-a", "LaconicUCB", "--alpha", "theory", *SMALL)
    assert found[0]["params"]["S"] == 1.0
    assert found[0]["regret"] >= 0


def test_a_folder_has_the_figure_of_certificates_where_there_are_any(tmp_path: Path) -> None:
    done = Outcome("compare", "-a", "LaconicUCB,Random", *SMALL, "--out", tmp_path)
    assert done.error is None
    for name in ("certificates.png", "certificates.svg"):
        assert (tmp_path / name).exists()
        assert name in done.out


def test_options_reach_the_algorithms_that_have_such_a_parameter() -> None:
    found = rows("-a", "DisKernelUCB,DisLinUCB", "--gamma", 0.5, "--lam", 0.2, "--alpha", 2, "--D", 3, *SMALL)
    exact, linear = (row["params"] for row in found[:2])
    shared = {"D": 3.0, "lam": 0.2, "alpha": 2.0}
    assert exact.items() >= (shared | {"kernel": "Gaussian", "gamma": 0.5}).items()
    assert linear.items() >= shared.items()
    assert "gamma" not in linear


def test_another_kernel_takes_its_own_parameters() -> None:
    found = rows("-a", "DisKernelUCB", "--kernel", "matern", "--set", "DisKernelUCB.nu=0.5", *SMALL)
    assert (found[0]["params"]["kernel"], found[0]["params"]["nu"]) == ("Matern", 0.5)


def test_set_changes_one_algorithm_and_wins_over_the_shared_options() -> None:
    changes = ["--set", "approxdiskernelucb.qbar=.5", "--set", "ApproxDisKernelUCB.cold_start=local"]
    found = rows("-a", "DisKernelUCB,ApproxDisKernelUCB", "--D", 3, *changes, "--set", "DisKernelUCB.D=7", *SMALL)
    exact, approx = (row["params"] for row in found[:2])
    assert (exact["D"], approx["D"], approx["qbar"], approx["cold_start"]) == (7, 3.0, 0.5, "local")


def test_a_list_tries_each_value() -> None:
    found = rows("-a", "DisKernelUCB", "--set", "DisKernelUCB.gamma=[0.1, 1]", *SMALL)
    assert sorted({row["params"]["gamma"] for row in found}) == [0.1, 1]


def test_the_theoretical_alpha_can_be_asked_for() -> None:
    found = rows("-a", "DisLinUCB", "--alpha", "theory", "--set", "DisLinUCB.S=2.0", *SMALL)
    assert (found[0]["params"]["alpha"], found[0]["params"]["S"]) == ("Theory", 2.0)


@pytest.mark.parametrize("problem", ["catalogue", "cosine"])
def test_what_is_not_said_is_the_same_where_points_return_and_where_they_are_fresh(problem: str) -> None:
    params = rows(problem, "-a", "ApproxDisKernelUCB", *SMALL)[0]["params"]
    stated = {"gamma": 0.2, "lam": 0.1, "alpha": 0.2, "D": 2.0, "qbar": 1.0}
    assert {name: params[name] for name in stated} == stated


def test_the_table_and_what_it_shows_follow_the_runs() -> None:
    done = Outcome("compare", "-a", "DisKernelUCB,ApproxDisKernelUCB", *SMALL)
    lines = done.out.splitlines()
    assert lines[0] == "catalogue, d=2: 3 clients, 4 rounds, mean ± sd over 2 seeds"
    assert lines[1].split()[:2] == ["algorithm", "regret"]
    assert any(line.startswith(("! ", "✓ ", "? ")) for line in lines)
    assert done.err == ""


def test_without_a_terminal_progress_is_one_line_for_each_run() -> None:
    done = Outcome("compare", "-a", "DisLinUCB", *SMALL[:-1])
    assert [line.split(":")[0] for line in done.err.splitlines()] == [
        "[1/2] DisLinUCB, seed 0",
        "[2/2] DisLinUCB, seed 1",
    ]


def test_out_says_where_files_were_written_and_they_are_there(tmp_path: Path) -> None:
    done = Outcome("compare", "-a", "DisLinUCB", "--out", tmp_path / "o", *SMALL)
    for name in ("results.parquet", "config.toml", "figure.png", "figure.svg"):
        assert (tmp_path / "o" / name).exists()
        assert str(tmp_path / "o" / name) in done.out
    assert len(Results.from_parquet(tmp_path / "o" / "results.parquet").rows) == 2


def without_seconds(path: Path) -> list[dict[str, Any]]:
    return [row.as_dict() | {"seconds": 0} for row in Results.from_parquet(path / "results.parquet").rows]


def test_the_configuration_runs_the_same_comparison_again(tmp_path: Path) -> None:
    first = ["--out", tmp_path / "first", "--lam", 0.3, "--alpha", "theory", "--set", "ApproxDisKernelUCB.D=1.5"]
    assert Outcome("compare", *first, *SMALL).error is None
    assert Outcome("compare", tmp_path / "first" / "config.toml", "--out", tmp_path / "second", "-q").error is None
    assert without_seconds(tmp_path / "first") == without_seconds(tmp_path / "second")
    assert (tmp_path / "first" / "config.toml").read_text() == (tmp_path / "second" / "config.toml").read_text()


def test_options_change_a_configuration(tmp_path: Path) -> None:
    Outcome("compare", "-a", "DisLinUCB,NKernelUCB", "--lam", 0.3, "--out", tmp_path, *SMALL)
    found = rows(tmp_path / "config.toml", "-a", "dislinucb,random", "--seeds", 1, "--D", 2, "-q")
    assert [row["algorithm"] for row in found] == ["DisLinUCB", "Random"]
    assert (found[0]["params"]["D"], found[0]["params"]["lam"]) == (2.0, 0.3)


def test_choices_hold_the_chosen_arm_of_every_step(tmp_path: Path) -> None:
    Outcome("compare", "-a", "DisLinUCB,Random", "--choices", tmp_path / "deep" / "c.npz", *SMALL)
    with np.load(tmp_path / "deep" / "c.npz") as kept:
        assert sorted(kept) == ["DisLinUCB/0", "DisLinUCB/1", "Random/0", "Random/1"]
        alone = run(cli_default("DisLinUCB"), Catalogue(dim=2), clients=3, rounds=4, seed=1)
        assert kept["DisLinUCB/1"].tolist() == alone.choices.tolist()


def cli_default(name: str) -> Any:
    from laconic.cli.request import Words, understand

    return understand(Words(algorithms=[name])).algorithms[0]


def test_a_recorded_file_is_played_with_its_own_sizes(tmp_path: Path) -> None:
    save_recorded(tmp_path / "log.npz", Catalogue(dim=2).instance(seed=0, clients=3, rounds=4), clients=3, rounds=4)
    done = Outcome("compare", tmp_path / "log.npz", "-a", "DisLinUCB", "--seeds", 1, "--clients", 4, "-q")
    assert done.out.startswith("recorded, d=2: 4 clients, 3 rounds")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.npz"], "nowhere.npz"),
        (["nowhere.toml"], "nowhere.toml"),
        (["catalog"], "did you mean catalogue"),
        (["-a", "DisLinUBC"], "did you mean DisLinUCB"),
        (["--kernel", "gausian"], "did you mean Gaussian"),
        (["--clients", "0"], "must be a whole number from 1"),
        (["--rounds", "-3"], "must be a whole number from 1"),
        (["--seeds", "0"], "must be a whole number from 1"),
        (["--lam", "0"], "lam"),
        (["--lam", "nan"], "lam"),
        (["--D", "-1"], "D"),
        (["--gamma", "-1"], "gamma"),
        (["--alpha", "much"], "--alpha"),
        (["--alpha", "theory", "--set", "ApproxDisKernelUCB.D=20"], "theoretical alpha"),
        (["-a", "Random", "--gamma", "1"], "--gamma has nothing to set"),
        (["--set", "D=3"], "--set takes"),
        (["--set", "DisLinUCB.D"], "--set takes"),
        (["--set", "DisLinUCB.d=3"], "did you mean 'D'"),
        (["--set", "DisLinUCB.D=many"], "D must be"),
        (["--set", "Random.D=3"], "not among the algorithms compared"),
        (["--set", "problem.dims=3"], "did you mean 'dim'"),
        (["--set", "problem.dim=0"], "dim"),
        (["--runtime", "teleport"], "loopback"),
        (["--out", "/proc/nobody/can"], "/proc/nobody/can"),
        (["--choices", "/"], "it is a folder"),
    ],
)
def test_bad_input_is_refused_with_advice(arguments: list[str], said: str) -> None:
    done = Outcome("compare", "--quiet", *arguments)
    assert said in str(done.error)
    assert "\n" not in str(done.error)
    assert done.out == ""


def test_json_has_no_number_that_json_does_not_have() -> None:
    done = Outcome("compare", "-a", "ApproxDisKernelUCB", "--set", "ApproxDisKernelUCB.qbar=inf", *SMALL, "--json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert json.loads(done.out, parse_constant=refuse)["rows"][0]["params"]["qbar"] == "inf"


def test_another_packages_kernel_runs_again_from_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(monkeypatch, "kernel", Periodic=Periodic)
    kernel = ["--kernel", "periodic", "--set", "DisKernelUCB.period=0.5"]
    done = Outcome("compare", "-a", "DisKernelUCB", *kernel, "--out", tmp_path / "o", *SMALL)
    assert done.error is None
    found = rows(tmp_path / "o" / "config.toml", "-q")
    assert (found[0]["params"]["kernel"], found[0]["params"]["period"]) == ("Periodic", 0.5)


def test_a_configuration_that_cannot_be_written_is_explained_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(monkeypatch, "kernel", Plain=Plain)
    done = Outcome("compare", "-a", "DisKernelUCB", "--kernel", "plain", "--out", tmp_path / "o", *SMALL)
    assert done.error is None
    assert not (tmp_path / "o" / "config.toml").exists()
    assert done.out.splitlines()[-1].startswith("no config.toml to run this again: the parameters of Plain")


def test_what_memory_does_not_suffice_for_is_refused_unless_told_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "LEAST", 100)
    monkeypatch.setattr(needs, "FEW_POINTS", 0)
    monkeypatch.setattr(needs, "machine_memory", lambda: 800)
    asked = ["compare", "cosine", "-a", "diskernelucb", *SMALL]
    done = Outcome(*asked)
    assert isinstance(done.error, InputError)
    assert "--beyond-memory" in str(done.error)
    loud = [each for each in asked if each != "--quiet"]
    done = Outcome(*loud, "--beyond-memory")
    assert done.error is None
    assert "DisKernelUCB keeps up to 12 points" in done.err


def test_long_comparisons_say_before_how_long_they_will_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pace, "LONG", 10)
    asked = ["compare", "cosine", "-a", "dislinucb", *SMALL[:-1], "--out", tmp_path]
    done = Outcome(*asked)
    assert done.error is None
    lines = done.err.splitlines()
    assert lines[0].startswith("estimated time: ")
    assert lines[0].endswith("for 2 runs, 1 at a time")
    assert sum("seed" in line for line in lines) == 2  # of the small runs nothing is said, and nothing kept
    assert "estimated" not in Outcome(*asked).err  # all is there
