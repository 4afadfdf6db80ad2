"""An experiment file: one problem, algorithms with grids, seeds, and what to vary around the tuned settings.

It is laid out like the ``config.toml`` of a comparison, with a few fields more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from laconic import registry
from laconic.algorithms import Algorithm
from laconic.checks import seen
from laconic.errors import InputError
from laconic.experiments.compare import prepare
from laconic.experiments.config import ConfigFile, Experiment, problem_table, read_experiment, to_text
from laconic.experiments.grid import expand, params
from laconic.experiments.parts import algorithm_from, has_param, name_of, problem_from, to_table, with_param
from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of

RUNTIME = "lockstep"
SEEDS = 3
HEADER = "# Run this experiment exactly with: laconic run THIS_FILE --out DIR\n\n"


class SpecFile(ConfigFile, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The layout of an experiment file."""

    title: str | None = None
    figure: str | None = None
    paper: str | None = None  # whose claims are checked on the results
    rehearsal: bool = False  # True where it is too small to judge a claim by
    tuned: str | None = None  # at which other sizes its settings did best, where they come from there
    sensitivity: list[dict[str, Any]] = msgspec.field(default_factory=list)


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes, seeds and a narrower grid instead of those of the files; what is None stays as it is."""

    about: str
    clients: int | None = None
    rounds: int | None = None
    seeds: list[int] | None = None
    grid: dict[str, list[float]] = msgspec.field(default_factory=dict)
    rehearsal: bool = False


@dataclass(frozen=True)
class Sensitivity:
    """Values to try, by parameter, in place of the tuned setting's own."""

    algorithm: str
    values: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Earlier:
    """What an experiment came to before, at sizes that may be others."""

    results: Results
    rehearsal: bool

    @property
    def sizes(self) -> str:
        """At which sizes, and on which seeds."""
        seeds = sorted({row.seed for row in self.results.rows})
        return f"N = {self.results.clients}, T = {self.results.rounds}, seeds {', '.join(map(str, seeds))}"


@dataclass(frozen=True)
class Spec:
    """An experiment file and what was made of it by a profile."""

    name: str
    file: SpecFile
    grid: Mapping[str, list[float]] = field(default_factory=dict)  # instead of the file's own, by parameter

    @property
    def title(self) -> str:
        """What readers call it."""
        return self.file.title or str(self.file.problem.get("name", self.name))

    @property
    def problem(self) -> str:
        """The name of its problem."""
        return str(self.file.problem["name"])

    def under(self, profile: Profile) -> Spec:
        """The same experiment at the profile's sizes."""
        sizes = {name: getattr(profile, name) for name in ("clients", "rounds", "seeds")}
        given = {name: value for name, value in sizes.items() if value is not None}
        given["rehearsal"] = profile.rehearsal
        return Spec(self.name, file=msgspec.structs.replace(self.file, **given), grid=profile.grid)

    def tuned_by(self, earlier: Earlier) -> Spec:
        """The same experiment with each algorithm at the setting that did best earlier, and nothing else."""
        best = best_of(earlier.results)
        file = msgspec.structs.replace(
            self.file,
            algorithms=[_tuned(each, best, where=self.name) for each in self.algorithms],
            sensitivity=[],
            rehearsal=self.file.rehearsal or earlier.rehearsal,
            tuned=earlier.sizes,
        )
        return Spec(self.name, file=file)

    @cached_property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """The algorithms, grids inside; the file's tables are read here and nowhere else."""
        return tuple(self._narrowed(algorithm_from(table)) for table in self.file.algorithms)

    def experiment(self) -> Experiment:
        """What is to be run, its problem opened; refused where it makes no sense."""
        return prepare(
            self.algorithms,
            problem=problem_from(self.file.problem),
            clients=self.file.clients,
            rounds=self.file.rounds,
            seeds=SEEDS if self.file.seeds is None else self.file.seeds,
            runtime=self.file.runtime or RUNTIME,
        )

    def written(self, experiment: Experiment) -> str:
        """The experiment as an experiment file, every parameter spelled out and the content of its data noted."""
        file = msgspec.structs.replace(
            self.file,
            clients=experiment.clients,
            rounds=experiment.rounds,
            seeds=list(experiment.seeds),
            runtime=experiment.runtime,
            problem=problem_table(experiment.problem),
            algorithms=[to_table(each, name=name_of(each, kind="algorithm")) for each in self.algorithms],
        )
        return HEADER + to_text(file)

    def _narrowed(self, algorithm: Algorithm) -> Algorithm:
        for parameter, values in self.grid.items():
            if has_param(algorithm, parameter):
                algorithm = with_param(algorithm, parameter, values)
        return algorithm

    def sensitivity(self) -> list[Sensitivity]:
        """What is varied once the grid is done."""
        return [_sensitivity(table, known=self.algorithms, where=self.name) for table in self.file.sensitivity]


def read_spec(path: str | PathLike[str]) -> Spec:
    """The experiment in a TOML file, called like the file."""
    spec = Spec(Path(path).stem, file=read_experiment(path, SpecFile))
    spec.sensitivity()  # refused now rather than after hours
    return spec


def _tuned(algorithm: Algorithm, best: Mapping[str, Group], *, where: str) -> dict[str, Any]:
    """The setting of an algorithm's grid that did best, by the parameters that the grid varies, as a file has it."""
    name, settings = name_of(algorithm, kind="algorithm"), expand(algorithm)
    first = settings[0][0]
    varied = [each for each in first if any(own.get(each) != first[each] for own, _ in settings)]
    for own, single in settings:
        if name in best and all(best[name].params.get(each) == own.get(each) for each in varied):
            return to_table(single, name=name)
    other = f"another {' or '.join(varied)}" if name in best else "no such algorithm"
    raise InputError(
        f"{where}: {name} was to be at the setting that did best in earlier results, and they have {other}; "
        "try those of the same paper"
    )


def _sensitivity(table: Mapping[str, Any], *, known: Sequence[Algorithm], where: str) -> Sensitivity:
    name = str(table.get("algorithm", ""))
    kind = registry.find("algorithm", name)
    algorithm = next((each for each in known if type(each) is kind), None)
    if algorithm is None:
        raise InputError(f"{where}: sensitivity of {name}, which is not among the algorithms of the file; add it there")
    values = {key: value for key, value in table.items() if key != "algorithm"}
    listed: dict[str, tuple[float, ...]] = {}
    settings = [single for _, single in expand(algorithm)]
    for parameter, tried in values.items():
        if not isinstance(tried, list) or not all(_is_number(each) for each in tried):
            raise InputError(
                f"{where}: sensitivity to {parameter} takes a list of numbers, got {seen(tried)}; try [0.1, 1]"
            )
        for setting in settings:  # any of them may turn out to be the tuned one
            flat = _flat(setting, parameter, where=where)
            listed[flat] = tuple(_taken(setting, flat, each) for each in tried)
    return Sensitivity(name_of(algorithm, kind="algorithm"), values=listed)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(setting: Algorithm, parameter: str, *, where: str) -> str:
    """The name under which results have a parameter: ``kernel.gamma`` is ``gamma`` there."""
    known = params(setting)
    for name in (parameter, parameter.rpartition(".")[2]):
        if name in known and has_param(setting, name):
            return name
    raise InputError(
        f"{where}: sensitivity to {parameter}, which {name_of(setting, kind='algorithm')} has not; "
        f"try one of {', '.join(name for name, value in known.items() if _is_number(value))}"
    )


def _taken(setting: Algorithm, parameter: str, value: float) -> float:
    """The value as the parameter takes it: a whole number where it takes no other."""
    try:
        with_param(setting, parameter, float(value))
    except (InputError, OverflowError):
        with_param(setting, parameter, value)
        return value
    return float(value)
