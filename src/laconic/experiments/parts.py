"""Algorithms, problems and kernels by name, by table and by value, and how one parameter of them is changed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from laconic import kernels, registry
from laconic.algorithms import Algorithm, require_algorithm
from laconic.arguments import OF_KERNELS
from laconic.atoms import Recipe
from laconic.canonical import bare, known_parts, parts
from laconic.checks import require_one_of, seen
from laconic.errors import InputError
from laconic.experiments.grid import Grid, rebuilt
from laconic.exploration import Theory
from laconic.paths import is_file, own_path
from laconic.problems.base import Problem
from laconic.protocol.digests import AllPoints, Atoms
from laconic.protocol.wire import FloatWire, Int8Wire
from laconic.uploads import Growth, WithAsk

AlgorithmLike = Algorithm | type[Any] | str
ProblemLike = Problem | type[Any] | str | os.PathLike[str]
PATHS = ("path", "file", "csv")  # parameters of problems that name a file
RECORDS = (".npz", ".parquet")  # files that are problems themselves
COMPOSED: dict[str, Any] = {kind.__name__: kind for kind in (kernels.Sum, kernels.Product, kernels.Scaled)}
#: Parts of algorithms that are no kernels, by the names under which files have them.
OTHERS: dict[str, Any] = {
    kind.__name__: kind for kind in (Theory, AllPoints, Atoms, Recipe, Growth, WithAsk, FloatWire, Int8Wire)
}
#: Parameters that the name of a part is enough for, and these names.
BY_NAME = {"digest": ("Atoms", "AllPoints"), "upload": ("Growth", "WithAsk")}
#: Parameters that are a kernel: an algorithm's, and the parts of kernels made of others.
KERNELS = ("kernel", "left", "right")
#: Parameters that are an exploration.
EXPLORATIONS = ("exploration", "of")
#: Names that a table without one may have been meant to have.
EXAMPLES = {"problem": "'cosine'", "algorithm": "'DisKernelUCB'"} | dict.fromkeys(KERNELS, "'Gaussian'")
_NAMES = {kind: name for name, kind in {**COMPOSED, **OTHERS}.items()}


def as_algorithm(candidate: AlgorithmLike) -> Algorithm:
    """An algorithm from a value, a class or a name."""
    if isinstance(candidate, str):
        candidate = registry.find("algorithm", candidate)
    return require_algorithm(_made(candidate))


def among(offered: Sequence[Algorithm], asked: Iterable[AlgorithmLike]) -> list[Algorithm]:
    """What is asked for by name or class, with the settings that are offered; what is not offered as it is alone."""
    chosen: list[Algorithm] = []
    for each in asked:
        kind = registry.find("algorithm", each) if isinstance(each, str) else each
        chosen += [other for other in offered if type(other) is kind] or [as_algorithm(each)]
    return chosen


def as_problem(candidate: ProblemLike) -> Problem:
    """A problem from a value, a class, a name, or the path of an ``.npz`` or of a ``.parquet`` of events."""
    if isinstance(candidate, str | os.PathLike):
        return problem_from({"name": os.fspath(candidate)})
    problem = _made(candidate)
    if not isinstance(problem, Problem):
        advice = "one comparison for each" if isinstance(problem, list | tuple) else "problem='catalogue'"
        raise InputError(
            f"problem must have a method instance(seed, clients, rounds), got {seen(problem)}; try {advice}"
        )
    return problem


def _made(candidate: Any) -> Any:
    """A value of a class, its parameters at their defaults; a value as it is."""
    return _make(candidate, {}, name=candidate.__name__) if isinstance(candidate, type) else candidate


def problem_from(table: Mapping[str, Any]) -> Problem:
    """A problem from its name (or the path of its file), parameters and, where it has been noted, hash."""
    name = _name_in(table, kind="problem")
    given = {key: value for key, value in table.items() if key not in ("name", "sha256")}
    if name.lower().endswith(".parquet"):
        name, given = "replay", {"path": name} | given
    elif name.lower().endswith(".npz") or (os.sep in name and is_file(name)):
        name, given = "recorded", {"path": name} | given
    problem: Problem = _make(registry.find("problem", name), given, name=name)
    wanted = table.get("sha256", getattr(problem, "sha256", None))
    if wanted != getattr(problem, "sha256", None):
        raise InputError(f"{given.get('path', name)} has changed since this configuration was written")
    return problem


def algorithm_from(table: Mapping[str, Any]) -> Algorithm:
    """An algorithm from its name and parameters; what is not given is the default."""
    name = _name_in(table, kind="algorithm")
    given = {key: _part(value, name=key) for key, value in table.items() if key != "name"}
    return require_algorithm(_make(registry.find("algorithm", name), given, name=name))


def _name_in(table: Mapping[str, Any], *, kind: str) -> str:
    """What a table says that it is; one that does not say it is refused."""
    name = table.get("name")
    if isinstance(name, str) and name.strip():
        return name
    said = f"name={seen(name)}" if "name" in table else f"only {', '.join(table) or 'nothing'}"
    raise InputError(f"a table of {kind} needs a name, and this one has {said}; try name = {EXAMPLES.get(kind, '…')}")


def _make(kind: Any, given: Mapping[str, Any], *, name: str) -> Any:
    accepted = inspect.signature(kind).parameters
    for key in given:
        if key not in accepted:
            advice = _of_kernel(key, accepted) or _advice(key, list(accepted))
            raise InputError(f"{name} has no parameter {key!r}{advice}")
    for key, parameter in accepted.items():
        if parameter.default is parameter.empty and key not in given:
            raise InputError(f"{name} needs a value for its parameter {key!r}")
    return kind(**given)


def _of_kernel(parameter: str, accepted: Mapping[str, Any]) -> str:
    """Where a parameter belongs that was given to an algorithm instead of its kernel."""
    if parameter not in OF_KERNELS or "kernel" not in accepted:
        return ""
    return f": it is its kernel's; try kernel = {{ name = {OF_KERNELS[parameter]!r}, {parameter} = … }}"


def _part(value: Any, *, name: str) -> Any:
    """A parameter as it is written in TOML: a list is a grid, a table or a name is a part."""
    if isinstance(value, list):
        return Grid(tuple(_part(choice, name=name) for choice in value))
    if isinstance(value, Mapping):
        kind = _name_in(value, kind=name)
        given = {key: _part(inner, name=key) for key, inner in value.items() if key != "name"}
        if kind in OTHERS:
            return _make(OTHERS[kind], given, name=kind)
        if name in EXPLORATIONS:
            return _make(registry.find("exploration", kind), given, name=kind)
        found = COMPOSED.get(kind) or registry.find("kernel", kind)
        return kernels.as_kernel(_make(found, given, name=kind))
    if isinstance(value, str) and name in KERNELS:
        return _make(registry.find("kernel", value), {}, name=value)
    if isinstance(value, str) and name in EXPLORATIONS:
        return _make(registry.find("exploration", value), {}, name=value)
    if isinstance(value, str) and name in BY_NAME:
        require_one_of(name, value, choices=BY_NAME[name])
        return OTHERS[value]()
    if isinstance(value, str) and name == "alpha" and value.lower() == "theory":
        return Theory()
    return value


def to_table(value: object, *, name: str) -> dict[str, Any]:
    """A value as a table that `algorithm_from` or `problem_from` turns back into it."""
    known = known_parts(value, name=name)
    return {"name": name} | {key: _written(bare(part), key=key) for key, part in known.items() if part is not None}


def _written(part: Any, *, key: str) -> Any:
    if isinstance(part, Grid):
        return [_written(choice, key=key) for choice in part.values]
    if key in PATHS and isinstance(part, str | os.PathLike):
        return str(own_path(key, part).absolute())
    if hasattr(part, "item") and not hasattr(part, "__len__"):  # a numpy scalar
        return part.item()
    if isinstance(part, str | bool | int | float):
        return part
    name = _NAMES.get(type(part)) or _listed(part, kind="exploration" if key in EXPLORATIONS else "kernel")
    if name is not None:
        return to_table(part, name=name)
    raise InputError(f"{key}={part!r} has no name that a configuration file could give")


def name_of(value: object, *, kind: registry.Kind) -> str:
    """The name under which a value's class is listed; the class's own where it is not."""
    return _listed(value, kind=kind) or type(value).__name__


def is_listed(value: object, *, kind: registry.Kind) -> bool:
    """Whether a name leads to the value's class."""
    return _listed(value, kind=kind) is not None


def _listed(value: object, *, kind: registry.Kind) -> str | None:
    wanted: Any = type(value)  # which is hashable, whatever its values are
    return _name_of_class(wanted, kind)


@cache  # looking for the entries of other packages takes milliseconds
def _name_of_class(wanted: Any, kind: registry.Kind) -> str | None:
    likely = sorted(registry.names(kind), key=lambda name: name.lower() != wanted.__name__.lower())
    for name in likely:
        with suppress(InputError):  # another package's entry that does not load is not the one
            if registry.find(kind, name) is wanted:
                return name
    return None


def has_param(value: object, name: str) -> bool:
    """Whether the value, or one of its parts, has such a parameter."""
    own = parts(value)
    return name in own or any(has_param(part, name) for part in own.values())


def with_param(value: Any, name: str, setting: Any) -> Any:
    """The value with one parameter changed: its own, or else that of the part that has it; ``kernel.gamma`` says which.

    >>> with_param(kernels.Gaussian(), "gamma", 4.0)
    Gaussian(gamma=4.0)
    """
    return Draft.of(value).changed(name, setting).made()


@dataclass(frozen=True)
class Draft:
    """A value under change: made, and so checked, when all of its parameters are there rather than after each."""

    value: Any
    parts: Mapping[str, Any]

    @classmethod
    def of(cls, value: Any) -> Draft:
        """The value as it is."""
        return cls(value, parts=parts(value))

    def has(self, name: str) -> bool:
        """Whether it, or one of its parts, has such a parameter."""
        return name in self.parts or any(has_param(part, name) for part in self.parts.values())

    def changed(self, name: str, setting: Any) -> Draft:
        """The draft with one parameter changed, as `with_param` finds it."""
        own = self.parts
        head, _, rest = name.partition(".")
        if rest and head in own:
            return self._with(head, with_param(own[head], rest, setting))
        if name in own:
            return self._with(name, _part(setting, name=name))
        for key, part in own.items():
            if has_param(part, name):
                return self._with(key, with_param(part, name, setting))
        raise InputError(f"{type(self.value).__name__} has no parameter {name!r}{_advice(name, _all_params(own))}")

    def _with(self, key: str, part: Any) -> Draft:
        return Draft(self.value, parts={**self.parts, key: part})

    def made(self) -> Any:
        """The changed value."""
        own = parts(self.value)
        changes = {key: part for key, part in self.parts.items() if part is not own[key]}
        return rebuilt(self.value, changes) if changes else self.value


def _all_params(own: Mapping[str, Any]) -> list[str]:
    return [*own, *(inner for part in own.values() for inner in _all_params(parts(part)))]


def _advice(name: str, known: list[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    if near:
        return f"; did you mean {by_lower[near[0]]!r}?"
    return f"; it has {', '.join(known)}" if known else "; it has none"
