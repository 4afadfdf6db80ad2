"""From the words of a command line to algorithms, a problem and sizes; nothing here prints or runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from laconic import defaults, registry
from laconic.algorithms import Algorithm
from laconic.canonical import parts
from laconic.checks import seen
from laconic.cli.options import listed
from laconic.errors import InputError
from laconic.experiments.compare import prepare
from laconic.experiments.config import ConfigFile, Experiment, read_experiment
from laconic.experiments.frontier import knobs
from laconic.experiments.parts import Draft, algorithm_from, among, as_algorithm, name_of, problem_from
from laconic.experiments.spec import SpecFile


@dataclass(frozen=True)
class Words:
    """What was written on the command line; None where nothing was."""

    problem: str = defaults.PROBLEM
    algorithms: Sequence[str] = ()
    preset: str | None = None
    clients: int | None = None
    rounds: int | None = None
    seeds: int | None = None
    kernel: str | None = None
    gamma: float | None = None
    lam: float | None = None
    alpha: str | None = None
    D: float | None = None
    overrides: Sequence[str] = ()
    runtime: str | None = None


@dataclass
class _Overrides:
    """``--set``, sorted by whose parameter it is."""

    problem: dict[str, Any] = field(default_factory=dict)
    algorithms: list[tuple[str, str, Any]] = field(default_factory=list)  # name, parameter, value


@dataclass(frozen=True)
class Unless:
    """What is taken where nothing was written; rounds by the problem's name."""

    algorithms: Callable[[], list[Algorithm]]
    clients: int
    rounds: Callable[[str], int]
    seeds: int


def understand(words: Words, *, unless: Unless | None = None) -> Experiment:
    """The experiment that the words ask for; refused with advice where they ask for none."""
    unless = unless or COMPARISON
    overrides = _sorted(words.overrides)
    file = read_experiment(words.problem, SpecFile) if words.problem.lower().endswith(".toml") else None
    problem = problem_from(_problem_table(words, file=file, changes=overrides.problem))
    name = name_of(problem, kind="problem")
    chosen = _chosen(words, file=file, unless=unless)
    drafts = [Draft.of(each) for each in chosen]
    for option, value in _shared(words).items():
        drafts = _everywhere(drafts, option, value)
    for algorithm, parameter, value in overrides.algorithms:
        drafts = _for_one(drafts, algorithm, parameter, value)
    sized = hasattr(problem, "sizes")
    return prepare(
        [draft.made() for draft in drafts],
        problem=problem,
        clients=_first(words.clients, file and file.clients, None if sized else unless.clients),
        rounds=_first(words.rounds, file and file.rounds, None if sized else unless.rounds(name)),
        seeds=_first(words.seeds, file and file.seeds, unless.seeds),
        runtime=_first(words.runtime, file and file.runtime, defaults.RUNTIME),
    )


def _problem_table(words: Words, *, file: ConfigFile | None, changes: dict[str, Any]) -> dict[str, Any]:
    table = {"name": words.problem} if file is None else dict(file.problem)
    if changes:
        table.pop("sha256", None)  # the hash is that of the problem as it was
    return table | changes


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _chosen(words: Words, *, file: ConfigFile | None, unless: Unless) -> list[Algorithm]:
    """The algorithms asked for, with the settings of the file where it has them and the defaults elsewhere."""
    written = [algorithm_from(table) for table in file.algorithms] if file else []
    offered = registry.preset(words.preset) if words.preset is not None else written or unless.algorithms()
    names = listed("--algorithms", words.algorithms, one="DisKernelUCB")
    return among(offered, names) if names else offered


COMPARISON = Unless(
    algorithms=lambda: list(map(as_algorithm, defaults.ALGORITHMS)),
    clients=defaults.CLIENTS,
    rounds=defaults.rounds,
    seeds=defaults.SEEDS,
)
SWEEP = Unless(
    algorithms=knobs,
    clients=defaults.SWEPT_CLIENTS,
    rounds=defaults.swept_rounds,
    seeds=defaults.SWEPT_SEEDS,
)


def _name(draft: Draft) -> str:
    return name_of(draft.value, kind="algorithm")


def _shared(words: Words) -> dict[str, Any]:
    """The options that go to every algorithm which has such a parameter; the kernel first, as gamma is the kernel's."""
    alpha = None if words.alpha is None else _alpha(words.alpha)
    given = {"kernel": words.kernel, "gamma": words.gamma, "lam": words.lam, "alpha": alpha, "D": words.D}
    return {name: value for name, value in given.items() if value is not None}


def _alpha(text: str) -> float | str:
    if text.lower() == "theory":
        return "theory"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--alpha must be a number or 'theory', got {text!r}") from None


def _everywhere(drafts: Sequence[Draft], parameter: str, value: Any) -> list[Draft]:
    if not any(draft.has(parameter) for draft in drafts):
        names = ", ".join(map(_name, drafts))
        raise InputError(
            f"--{parameter} has nothing to set: none of {names} has a parameter {parameter!r}{_instead(drafts)}"
        )
    return [draft.changed(parameter, value) if draft.has(parameter) else draft for draft in drafts]


def _instead(drafts: Iterable[Draft]) -> str:
    """What the first kernel among the algorithms has, and how it is set."""
    for draft in drafts:
        kernel = draft.parts.get("kernel")
        for parameter, value in parts(kernel).items():
            known = ", ".join(parts(kernel))
            return f"; {type(kernel).__name__} has {known}: try --set {_name(draft)}.{parameter}={value}"
    return ""


def _for_one(drafts: Sequence[Draft], name: str, parameter: str, value: Any) -> list[Draft]:
    kind = registry.find("algorithm", name)
    if not any(type(draft.value) is kind for draft in drafts):
        raise InputError(
            f"--set {name}.{parameter}: {name} is not among the algorithms compared; add it to --algorithms"
        )
    return [draft.changed(parameter, value) if type(draft.value) is kind else draft for draft in drafts]


def _sorted(overrides: Sequence[str]) -> _Overrides:
    result = _Overrides()
    for text in overrides:
        target, parameter, value = _override(text)
        if target.lower() == "problem":
            result.problem[parameter] = value
        else:
            result.algorithms.append((target, parameter, value))
    return result


def _override(text: str) -> tuple[str, str, Any]:
    where, equals, value = text.partition("=")
    target, dot, parameter = where.strip().partition(".")
    if not (equals and dot and target and parameter):
        raise InputError(f"--set takes ALGORITHM.parameter=value or problem.parameter=value, got {text!r}")
    return target, parameter, literal(value.strip())


def literal(text: str) -> Any:
    """A value as TOML would read it (a list is a grid), and text where it would not.

    >>> literal("0.3"), literal(".3"), literal("[1, 2]"), literal("paper")
    (0.3, 0.3, [1, 2], 'paper')
    """
    if text in ("True", "False"):  # as Python, and our own tables, spell them
        return text == "True"
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return _number_or_text(text)
    except RecursionError:
        raise InputError(
            f"--set takes a plain value, a list or a table, got brackets without end: {seen(text)}"
        ) from None
    return value if isinstance(value, bool | int | float | str | list | dict) else text


def _number_or_text(text: str) -> float | str:
    """TOML knows 0.3 but not .3, and no text without quotes."""
    try:
        return float(text)
    except ValueError:
        return text
