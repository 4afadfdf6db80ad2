"""Presets: a paper's settings are what its experiment files say, and one word away."""

from dataclasses import replace
from typing import Any

import pytest

from laconic import ApproxDisKernelUCB, DisKernelUCB, Gaussian, compare, preset
from laconic.cli.request import Words, understand
from laconic.errors import InputError, UnknownName
from laconic.experiments.grid import expand
from laconic.papers.library import read_paper


def test_a_preset_has_the_settings_that_reproduce_runs() -> None:
    swept = read_paper("li2022").figures[0].experiment().algorithms
    offered = [single for each in preset("li2022", grids=True) for _, single in expand(each)]
    assert offered == [each for each in swept if type(each).__name__ not in ("LaconicUCB", "Random")]
    assert all(each in swept for each in preset("li2022"))


def test_a_preset_is_not_the_default() -> None:
    exact, approximate = preset("li2022")[1:3]
    assert exact == DisKernelUCB(Gaussian(1.0), D=20.0, lam=1.0, alpha=1.0)
    assert approximate == ApproxDisKernelUCB(Gaussian(1.0), D=5.0, lam=1.0, alpha=1.0, qbar=0.3)
    assert exact != DisKernelUCB()


def test_the_command_line_takes_a_preset_and_some_of_its_algorithms() -> None:
    assert list(understand(Words(preset="li2022")).algorithms) == preset("li2022")
    chosen = understand(Words(preset="li2022", algorithms=["diskernelucb"], gamma=4.0)).algorithms
    assert chosen == (DisKernelUCB(Gaussian(4.0), D=20.0, lam=1.0, alpha=1.0),)


def test_a_preset_is_compared_as_any_algorithms() -> None:
    results = compare(preset("li2022"), problem="catalogue", clients=2, rounds=3, seeds=1)
    assert len(results.rows) == len(preset("li2022"))
    by_name = compare(preset="li2022", problem="catalogue", clients=2, rounds=3, seeds=1)
    assert [replace(row, seconds=0.0) for row in by_name.rows] == [replace(row, seconds=0.0) for row in results.rows]


@pytest.mark.parametrize("asked", ["diskernelucb", DisKernelUCB, ["DisKernelUCB"]], ids=str)
def test_what_is_asked_for_by_name_or_class_has_the_settings_of_the_preset(asked: Any) -> None:
    results = compare(asked, preset="li2022", problem="catalogue", clients=2, rounds=3, seeds=1)
    assert [(row.algorithm, row.params["lam"], row.params["gamma"]) for row in results.rows] == [
        ("DisKernelUCB", 1.0, 1.0)
    ]


def test_a_value_and_what_a_preset_has_not_are_taken_as_they_are() -> None:
    asked: list[Any] = [DisKernelUCB(lam=0.7), "NKernelUCB", "Random"]
    results = compare(asked, preset="li2022", problem="catalogue", clients=2, rounds=3, seeds=1)
    assert [(row.algorithm, row.params.get("lam")) for row in results.rows] == [
        ("DisKernelUCB", 0.7),
        ("NKernelUCB", 1.0),
        ("Random", None),
    ]


def test_another_word_is_refused() -> None:
    with pytest.raises(UnknownName, match="li2022"):
        preset("li2023")
    with pytest.raises(UnknownName, match="li2022"):
        compare(preset="li2023")
    with pytest.raises(InputError, match=r"preset must be the name of a paper, not .*; try preset='li2022'"):
        compare(preset=preset("li2022"))  # type: ignore[arg-type]
