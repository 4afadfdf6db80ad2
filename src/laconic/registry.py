"""Names: algorithms, problems, kernels and explorations that can be asked for by name, ours and those of others.

Another package adds its own by an entry point in the group ``laconic.algorithms``, ``laconic.problems``,
``laconic.kernels`` or ``laconic.explorations`` whose value is the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from laconic.errors import InputError, UnknownName

Kind = Literal["algorithm", "problem", "kernel", "exploration"]

_OURS: dict[Kind, dict[str, str]] = {
    "algorithm": {
        name: f"laconic.algorithms:{name}"
        for name in (
            "LaconicUCB",
            "DisKernelUCB",
            "ApproxDisKernelUCB",
            "DisLinUCB",
            "OneKernelUCB",
            "NKernelUCB",
            "AskServer",
            "Random",
        )
    },
    "problem": {
        "cosine": "laconic.problems:Cosine",
        "polynomial": "laconic.problems:PolynomialReward",
        "catalogue": "laconic.problems:Catalogue",
        "recorded": "laconic.problems:Recorded",
        "replay": "laconic.problems:Replay",
        "magic": "laconic.problems.clustered:Magic",
        "mushroom": "laconic.problems.clustered:Mushroom",
        "shuttle": "laconic.problems.clustered:Shuttle",
        "clustered": "laconic.problems.clustered:Clustered",
        "movielens": "laconic.problems.ratings:MovieLens",
        "yelp": "laconic.problems.ratings:Yelp",
        "ratings": "laconic.problems.ratings:Ratings",
    },
    "kernel": {
        name: f"laconic.kernels:{name}" for name in ("Gaussian", "Matern", "RationalQuadratic", "Linear", "Polynomial")
    },
    "exploration": {
        name: f"laconic.exploration:{name}" for name in ("UCB", "Thompson", "Softmax", "EpsilonFloor", "Greedy")
    },
}


def names(kind: Kind) -> list[str]:
    """The names of a kind, ours first."""
    return [*_OURS[kind], *_others(kind)]


def find(kind: Kind, name: str) -> Any:
    """The class of that name, whatever its case; the nearest name is suggested where there is none."""
    wanted = name.strip().lower()
    # Ours first: to find those of others every installed package is read.
    known = _by_lower(_OURS[kind]).get(wanted) or _by_lower(names(kind)).get(wanted)
    if known is None:
        by_lower = _by_lower(names(kind))
        near = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.4)
        advice = f"did you mean {by_lower[near[0]]}?" if near else f"there are {', '.join(by_lower.values())}"
        raise UnknownName(f"no {kind} is called {name!r}; {advice}")
    return _load(kind, known)


def algorithm_from(table: Mapping[str, Any]) -> Any:
    """The algorithm that a table of a configuration file stands for."""
    # By its place, as everything here: what knows all kinds of parts stands above what asks for an algorithm.
    return import_module("laconic.experiments.parts").algorithm_from(table)


def preset(name: str) -> list[Any]:
    """The algorithms of a paper with its settings."""
    return list(import_module("laconic.papers.presets").preset(name))


def algorithms() -> dict[str, Any]:
    """All algorithms by name."""
    return {name: _load("algorithm", name) for name in names("algorithm")}


def problems() -> dict[str, Any]:
    """All problems by name."""
    return {name: _load("problem", name) for name in names("problem")}


def kernels() -> dict[str, Any]:
    """All kernels by name."""
    return {name: _load("kernel", name) for name in names("kernel")}


def explorations() -> dict[str, Any]:
    """All explorations by name."""
    return {name: _load("exploration", name) for name in names("exploration")}


def _by_lower(known: Iterable[str]) -> dict[str, str]:
    return {name.lower(): name for name in known}


def _others(kind: Kind) -> dict[str, Callable[[], Any]]:
    found = entry_points(group=f"laconic.{kind}s")
    return {point.name: point.load for point in found if point.name not in _OURS[kind]}


def _load(kind: Kind, name: str) -> Any:
    if name in _OURS[kind]:
        module, _, attribute = _OURS[kind][name].partition(":")
        return getattr(import_module(module), attribute)
    try:
        return _others(kind)[name]()
    except Exception as error:  # somebody else's package may fail in any way
        raise InputError(f"{kind} {name!r} of another package could not be loaded: {error!r}") from error
