from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from laconic import cli, registry
from laconic.cli import complete, nameable
from laconic.experiments.parts import BY_NAME


def said(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, list(arguments), standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


def test_list_has_a_line_for_everything_that_has_a_name() -> None:
    lines = said("list").splitlines()
    for kind in nameable.KINDS:
        for name in nameable.names(kind):
            assert sum(line.split()[:1] == [name] and len(line.split()) > 3 for line in lines) == 1, name
    assert not any("`" in line for line in lines)


def test_list_as_json_is_by_kind() -> None:
    found = json.loads(said("list", "--json"))
    assert list(found) == ["algorithms", "problems", "kernels", "explorations", "digests", "uploads"]
    assert list(found["algorithms"]) == registry.names("algorithm")


def test_show_explains_an_algorithm_in_any_case() -> None:
    shown = said("show", "approxDISkernelucb")
    for part in ("ApproxDisKernelUCB", "argmax", "sends", "qbar", "1.0", "cold_start", "Gaussian(gamma=0.2)"):
        assert part in shown


def test_show_as_json_has_equation_parameters_and_what_it_sends() -> None:
    page = json.loads(said("show", "DisLinUCB", "--json"))
    assert (page["name"], page["kind"], page["parameters"]) == (
        "DisLinUCB",
        "algorithm",
        {"D": 20.0, "lam": 0.1, "alpha": 0.2, "wire": "paper", "exploration": "UCB()"},
    )
    assert page["equation"]
    assert page["sends"]


@pytest.mark.parametrize("name", ["catalogue", "recorded", "matern", "Random", "Thompson", "EpsilonFloor"])
def test_show_explains_problems_kernels_and_explorations_too(name: str) -> None:
    assert said("show", name).lower().startswith(name.lower())


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in BY_NAME.items() for name in names])
def test_show_explains_the_parts_that_a_configuration_names(kind: str, name: str) -> None:
    page = json.loads(said("show", name.lower(), "--json"))
    assert (page["name"], page["kind"]) == (name, kind)
    assert page["summary"] in " ".join(said("list").split())


def entries(shown: str) -> dict[str, str]:
    """What is said below each parameter, and beside it."""
    below = shown.partition("parameters\n")[2]
    return {each.split()[0]: " ".join(each.split()[1:]) for each in re.split(r"\n  (?! )", "\n" + below) if each}


def test_show_tells_what_must_be_given_from_what_the_data_decides() -> None:
    of_ratings = entries(said("show", "ratings"))
    assert of_ratings["file"].startswith("(needed)")
    assert of_ratings["users"].startswith("None The most active users to keep, from 2; None: 2,000")
    assert "(needed)" not in said("show", "magic")


def test_show_fits_80_columns() -> None:
    for name in registry.names("algorithm"):
        assert max(map(len, said("show", name).splitlines())) <= 80


def test_show_suggests_the_nearest_name() -> None:
    done = CliRunner().invoke(cli.app, ["show", "DisKernelUBC"], standalone_mode=False)
    assert "did you mean DisKernelUCB?" in str(done.exception)


@pytest.mark.parametrize("name", ["zzz", "catalonia", "grower"])
def test_show_guesses_nothing_that_is_far_off(name: str) -> None:
    done = CliRunner().invoke(cli.app, ["show", name], standalone_mode=False)
    assert str(done.exception) == f"nothing is called {name!r}; laconic list shows all names"


def test_completion_offers_names() -> None:
    assert complete.algorithms("Dis") == ["DisKernelUCB", "DisLinUCB"]
    assert complete.algorithms("Random,one") == ["Random,oneKernelUCB"]
    assert "catalogue" in complete.problems("cat")
    assert complete.kernels("Gau") == ["Gaussian"]
    assert complete.anything("Thom") == ["Thompson"]
    assert complete.anything("all") == ["allPoints"]
    assert complete.anything("POLY") == ["POLYnomial", "POLYnomial"]


def test_the_shell_is_offered_names() -> None:
    asked = {"_LACONIC_COMPLETE": "complete_bash", "COMP_WORDS": "laconic compare -a random,dis", "COMP_CWORD": "3"}
    done = CliRunner().invoke(cli.app, [], env=asked, prog_name="laconic")
    assert done.stdout.split() == ["random,disKernelUCB", "random,disLinUCB"]


@pytest.mark.parametrize(
    ("name", "kinds"), [("Polynomial", ["kernel", "problem"]), ("polynomial", ["problem", "kernel"])]
)
def test_show_explains_all_of_a_name_the_one_spelled_alike_first(name: str, kinds: list[str]) -> None:
    titles = [line for line in said("show", name).splitlines() if line.lower().startswith("polynomial (")]
    assert [title.partition(" ")[2] for title in titles] == [f"({kind})" for kind in kinds]
    page = json.loads(said("show", name, "--json"))
    assert [page["kind"], *(other["kind"] for other in page["also"])] == kinds


@pytest.mark.parametrize(
    ("name", "parameter", "said_of_it"),
    [
        ("DisKernelUCB", "together", "alone"),
        ("DisKernelUCB", "wire", "float32"),
        ("DisLinUCB", "wire", "compact"),
        ("DisLinUCB", "exploration", "μ and ασ"),
    ],
)
def test_show_says_what_a_parameter_means(name: str, parameter: str, said_of_it: str) -> None:
    assert said_of_it in entries(said("show", name))[parameter]
