"""Every parameter of what is public is described, once, and everything that explains it prints that text."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import laconic
from laconic import cli, described, registry
from laconic.cli import nameable
from laconic.protocol.codec import Codec
from laconic.protocol.ledger import Ledger

REFERENCE = Path(__file__).parent.parent / "docs" / "reference.md"
#: What people call by hand: here the parameters of every method that the reference shows are described too.
CALLED = (
    laconic.Agent,
    laconic.Coordinator,
    laconic.TLS,
    laconic.Client,
    laconic.Server,
    laconic.Results,
    laconic.Suggestion,
    laconic.Log,
    Codec,
    Ledger,
)


def is_protocol(kind: Any) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def taken(thing: Any) -> list[str]:
    """What is given to a function or a class, or what a value that is made for its readers has."""
    if dataclasses.is_dataclass(thing):
        return [field.name for field in dataclasses.fields(thing) if field.init]
    if inspect.isclass(thing) and (issubclass(thing, Exception) or "__init__" not in vars(thing)):
        return []
    return [name for name in inspect.signature(thing).parameters if name not in ("cls", "self")]


def shown() -> dict[str, list[str] | None]:
    """What the reference shows: every name with its module, and which of its members; None stands for all."""
    blocks = re.findall(
        r"^::: (\S+)\n((?:    options:\n)(?:      .*\n)*)?", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    found: dict[str, list[str] | None] = {}
    for path, options in blocks:
        listed = re.search(r"members: \[(.*?)\]", options)
        members = None if listed is None else [name for name in listed[1].split(", ") if name]
        found[path] = [] if "members: false" in options else members
    return found


def resolved(path: str) -> Any:
    """What a name with its module stands for."""
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(home), name)


def methods(kind: Any, members: list[str] | None) -> list[Any]:
    """The methods of a class that are called by their name."""
    names = [name for name in vars(kind) if not name.startswith("_")] if members is None else members
    found = [getattr(kind, name) for name in names]
    return [each for each in found if inspect.isfunction(each) or inspect.ismethod(each)]


IN_REFERENCE = [(resolved(path), members) for path, members in shown().items()]
EVERYTHING = [each for each, _ in IN_REFERENCE if not is_protocol(each)]
EVERYTHING += [method for kind, members in IN_REFERENCE if kind in CALLED for method in methods(kind, members)]


@pytest.mark.parametrize("thing", EVERYTHING, ids=lambda each: each.__qualname__)
def test_every_parameter_is_described_and_nothing_that_is_none(thing: Any) -> None:
    said = described.parameters(thing.__doc__)
    assert sorted(said) == sorted(taken(thing))
    for name, text in said.items():
        assert re.match(r"[^a-z].*\.$|[a-z]+: ", text), f"{name}: {text!r} is no sentence"
        assert len(text) > 10, f"{name}: {text!r} says too little"


def test_a_parameter_without_a_text_is_noticed() -> None:
    assert taken(laconic.Gaussian) == ["gamma"]
    assert taken(laconic.compare)[:2] == ["algorithms", "problem"]
    assert described.parameters("Nothing is said of gamma.") == {}


def test_help_shows_defaults_that_are_made_for_every_value() -> None:
    shown = pydoc.plain(pydoc.render_doc(laconic.LaconicUCB))
    assert "<factory>" not in shown
    assert "kernel: 'KernelLike' = Gaussian(gamma=0.2)" in shown
    assert described.parameters(laconic.LaconicUCB.__doc__)["delta"].partition(".")[0] in " ".join(
        shown.replace("|", " ").split()
    )


def test_what_a_class_inherits_is_said_of_it_too() -> None:
    class Own(laconic.Gaussian):
        """A kernel that says nothing of its width."""

    assert described.inherited(Own) == described.parameters(laconic.Gaussian.__doc__) != {}


@pytest.mark.parametrize("name", ["kernel", "lam", "alpha", "exploration", "ranges", "D", "dtype"])
def test_what_several_algorithms_take_is_said_alike(name: str) -> None:
    algorithms = [each for each in registry.algorithms().values() if name in taken(each)]
    assert len(algorithms) > 1
    assert len({described.parameters(each.__doc__)[name] for each in algorithms}) == 1


def named() -> list[tuple[str, Any]]:
    return [(name, nameable.find(kind, name)) for kind in nameable.KINDS for name in nameable.names(kind)]


@pytest.mark.parametrize(("name", "kind"), named(), ids=[name for name, _ in named()])
def test_show_prints_the_text_of_the_docstring_and_the_default_of_the_signature(name: str, kind: Any) -> None:
    shown = " ".join(CliRunner().invoke(cli.app, ["show", name]).stdout.split())
    for parameter, text in described.parameters(kind.__doc__).items():
        assert text in shown
        default = inspect.signature(kind).parameters[parameter].default
        if isinstance(default, str | int | float):
            assert f"{parameter} {default} {text}" in shown


def plain(text: str) -> str:
    """A help page without its frame."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("laconic.kernels:Gaussian", "gamma"),
        ("laconic.algorithms:DisKernelUCB", "lam"),
        ("laconic.algorithms:DisKernelUCB", "D"),
        ("laconic.experiments.compare:compare", "clients"),
        ("laconic.experiments.compare:compare", "rounds"),
        ("laconic.experiments.compare:compare", "runtime"),
    ],
)
def test_the_help_of_compare_prints_the_text_of_the_docstring(where: str, name: str) -> None:
    shown = plain(CliRunner().invoke(cli.app, ["compare", "--help"], env={"COLUMNS": "200"}).stdout)
    assert described.said_of(where, name) in shown


def test_help_says_nothing_that_concerns_python_alone() -> None:
    for command in ("compare", "frontier"):
        shown = plain(CliRunner().invoke(cli.app, [command, "--help"], env={"COLUMNS": "200"}).stdout)
        assert "Python" not in shown
        assert "()" not in shown
        assert "or theory for the paper's schedule" in shown
        assert "How many seeds, 0, 1, … On each, all algorithms meet the same arms and noise." in shown
