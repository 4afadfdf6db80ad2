from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laconic.algorithms import ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, LaconicUCB, Random
from laconic.errors import UnknownName
from laconic.experiments.grid import expand
from laconic.experiments.parts import algorithm_from
from laconic.experiments.spec import Spec
from laconic.papers.library import read_paper

LI2022 = read_paper("li2022")
PROBLEMS = ["cosine", "polynomial", "magic", "mushroom", "shuttle", "movielens", "yelp"]


def settings(spec: Spec) -> list[object]:
    return [single for table in spec.file.algorithms for _, single in expand(algorithm_from(table))]


def test_there_is_a_file_for_each_of_the_seven_panels_in_the_papers_order() -> None:
    assert [spec.file.problem["name"] for spec in LI2022.figures] == PROBLEMS


@pytest.mark.parametrize("spec", LI2022.figures, ids=PROBLEMS)
def test_every_file_has_the_papers_grid_and_what_was_fixed_for_what_it_leaves_open(spec: Spec) -> None:
    every = settings(spec)
    kernelised: list[Any] = [each for each in every if hasattr(each, "kernel")]
    assert len(kernelised) == 5 * 9
    assert {(each.kernel.gamma, each.alpha) for each in kernelised} == {
        (g, a) for g in (0.1, 1, 4) for a in (0.1, 1, 4)
    }
    assert {each.lam for each in every if hasattr(each, "lam")} == {1.0}
    assert {each.D for each in every if isinstance(each, DisKernelUCB | DisLinUCB)} == {20.0}
    assert {each.alpha for each in every if isinstance(each, DisLinUCB)} == {0.1, 1, 4}
    approx = [each for each in every if isinstance(each, ApproxDisKernelUCB)]
    assert {(each.D, each.qbar, each.cold_start) for each in approx} == {(5.0, 0.3, "paper")}
    assert len(every) == 5 * 9 + 3 + sum(isinstance(each, Random) for each in every)
    assert (spec.file.clients, spec.file.rounds, spec.file.seeds) == (100, 100, [0, 1, 2])


@pytest.mark.parametrize("spec", LI2022.figures, ids=PROBLEMS)
def test_the_papers_algorithms_send_as_the_paper_has_them(spec: Spec) -> None:
    sent = {getattr(each, "wire", None) for each in settings(spec) if not isinstance(each, LaconicUCB)}
    assert sent == {None, "float64", "paper"}


def test_all_files_compare_the_same_algorithms_and_vary_the_same_parameters() -> None:
    first, *others = LI2022.figures
    for other in others:
        assert other.file.algorithms == first.file.algorithms
        assert other.sensitivity() == first.sensitivity()
    assert {name for each in first.sensitivity() for name in each.values} == {"qbar", "lam", "D"}


@pytest.mark.parametrize(("profile", "size", "runs"), [("quick", 30, 26), ("half", 50, 147), ("paper", 100, 147)])
def test_a_profile_sets_the_sizes(profile: str, size: int, runs: int) -> None:
    experiment = LI2022.under(profile).figures[0].experiment()
    assert (experiment.clients, experiment.rounds) == (size, size)
    assert len(experiment.algorithms) * len(experiment.seeds) == runs


def test_the_quick_profile_is_a_rehearsal_and_so_are_the_files_that_it_leaves() -> None:
    rehearsed = {name: LI2022.under(name).figures[0].file.rehearsal for name in LI2022.file.profiles}
    assert rehearsed == {"quick": True, "half": False, "paper": False}
    quick = LI2022.under("quick").figures[0]
    assert "rehearsal = true" in quick.written(quick.experiment())


def test_some_figures_can_be_asked_for_by_problem() -> None:
    assert [spec.name for spec in LI2022.only(["Yelp", "cosine"]).figures] == ["figure-1a-cosine", "figure-3b-yelp"]


def test_unknown_names_are_answered_with_known_ones() -> None:
    with pytest.raises(UnknownName, match="there is li2022"):
        read_paper("li2023")
    with pytest.raises(UnknownName, match="quick, half, paper"):
        LI2022.under("double")
    with pytest.raises(UnknownName, match="did you mean mushroom"):
        LI2022.only(["mushrooms"])
    with pytest.raises(UnknownName, match="li2022 has no problem 'foo'; there are cosine, polynomial, magic"):
        LI2022.only(["foo"])


def test_the_files_lie_inside_the_package() -> None:
    import laconic

    package = Path(str(laconic.__file__)).parent
    assert len(list((package / "papers" / "li2022").glob("*.toml"))) == len(PROBLEMS)
