"""From experiment files to results: open the problems, time small runs, run the grids, vary what was tuned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from laconic.datasets.cache import MissingData
from laconic.datasets.extras import MissingExtra
from laconic.errors import OutputError
from laconic.experiments.compare import Room, try_out
from laconic.experiments.config import Experiment
from laconic.experiments.folder import RUNS
from laconic.experiments.pace import smaller
from laconic.experiments.results import Group, Results
from laconic.experiments.runner import TIMING, Event, Failed, Sweep, silent
from laconic.experiments.sensitivity import Study, Variation, study
from laconic.experiments.spec import Spec
from laconic.experiments.tasks import Store, Task, id_of, tasks_of
from laconic.experiments.tuning import complete_only
from laconic.runtimes.jobs import Engine

GRID, SENSITIVITY = "grid", "sensitivity"  # the parts of a sweep


@dataclass(frozen=True)
class Opening:
    """A problem is being opened, which may take a while the first time."""

    spec: Spec


@dataclass(frozen=True)
class Absent:
    """An experiment that cannot run here, and what to do about it."""

    spec: Spec
    why: str

    @property
    def name(self) -> str:
        """What the problem is called."""
        return self.spec.problem


Step = Opening | Absent | Event
Watch = Callable[[Step], None]


@dataclass(frozen=True)
class Panel:
    """One experiment with all that came of it."""

    spec: Spec
    experiment: Experiment
    results: Results
    study: Study
    varied: Results

    @property
    def name(self) -> str:
        """What the problem is called, in every table, figure and link alike."""
        return self.results.problem

    @property
    def id(self) -> str:
        """A hash of what was run."""
        return id_of(self.experiment)

    def variations(self) -> list[tuple[Variation, Group]]:
        """What was varied around the tuned settings, and what came of it."""
        found = {(group.algorithm, *group.params.items()): group for group in self.varied.groups}
        keys = [(each, (each.name, *each.params.items())) for each in self.study.variations]
        return [(each, found[key]) for each, key in keys if key in found]


@dataclass(frozen=True)
class Outcome:
    """All experiments of a sweep: what ran, what could not, and single runs that failed or were not kept."""

    panels: tuple[Panel, ...]
    absent: tuple[Absent, ...] = ()
    failures: tuple[Failed, ...] = ()
    unkept: tuple[OutputError, ...] = ()

    @property
    def tuned_at(self) -> tuple[str, ...]:
        """At which other sizes settings did best, where they come from there and no grid was run."""
        return tuple(dict.fromkeys(panel.spec.file.tuned for panel in self.panels if panel.spec.file.tuned))


@dataclass(frozen=True)
class _Opened:
    spec: Spec
    experiment: Experiment
    about: Results
    tasks: list[Task]

    @classmethod
    def of(cls, spec: Spec, room: Room) -> _Opened:
        experiment = spec.experiment()
        return cls(spec, experiment, about=try_out(experiment, room=room), tasks=tasks_of(experiment, name=spec.name))


def conduct(
    specs: Sequence[Spec], *, out: Path, engine: Engine, watch: Watch = silent, beyond_memory: bool = False
) -> Outcome:
    """Run everything that the folder does not have yet, and gather all of it."""
    store = Store(out / RUNS)
    opened, absent = _open(specs, watch, room=Room.of(engine, beyond_memory=beyond_memory, watch=watch))
    sweep = Sweep(store, engine=engine, watch=watch)
    about = {each.spec.name: each.about for each in opened}
    tasks = [task for each in opened for task in each.tasks]
    missing = [task for task in tasks if not store.has(task)]
    varied = [task for each in opened for task in _stand_ins(each)]
    asked = {TIMING: bool(smaller(missing)), GRID: True, SENSITIVITY: bool(varied)}
    stages = tuple(part for part, wanted in asked.items() if wanted)
    with engine.session():
        sweep.foretell(missing, about=about, more=varied, stages=stages)
        sweep.complete(tasks, about=about, part=GRID, stages=stages, later=varied)
        panels = _vary(sweep, opened, about=about, stages=stages)
    return Outcome(panels, absent=absent, failures=tuple(sweep.failures), unkept=tuple(sweep.unkept))


def _open(specs: Sequence[Spec], watch: Watch, *, room: Room) -> tuple[list[_Opened], tuple[Absent, ...]]:
    opened, absent = [], []
    for spec in specs:
        watch(Opening(spec))
        try:
            opened.append(_Opened.of(spec, room))
        except (MissingData, MissingExtra) as missing:
            absent.append(Absent(spec, why=str(missing)))
            watch(absent[-1])
    return opened, tuple(absent)


def _stand_ins(opened: _Opened) -> list[Task]:
    """As many runs of the grid as the sensitivity study will have, as what is tuned is not known yet."""
    stand_ins = []
    for asked in opened.spec.sensitivity():
        alike = [task for task in opened.tasks if task.algorithm["name"] == asked.algorithm]
        count = len(opened.experiment.seeds) * sum(map(len, asked.values.values()))
        stand_ins += [alike[number % len(alike)] for number in range(count) if alike]
    return stand_ins


def _vary(
    sweep: Sweep, opened: Sequence[_Opened], *, about: dict[str, Results], stages: tuple[str, ...]
) -> tuple[Panel, ...]:
    """The sensitivity study of every experiment, around what its grid has shown to be best."""
    begun = [_with_study(sweep, each) for each in opened]
    tasks = [task for _, _, _, varied in begun for task in varied]
    if SENSITIVITY in stages:
        sweep.complete(tasks, about=about, part=SENSITIVITY, stages=stages)
    return tuple(
        Panel(
            each.spec,
            experiment=each.experiment,
            results=results,
            study=planned,
            varied=complete_only(sweep.results(varied, about=each.about), seeds=each.experiment.seeds),
        )
        for each, results, planned, varied in begun
    )


def _with_study(sweep: Sweep, opened: _Opened) -> tuple[_Opened, Results, Study, list[Task]]:
    seeds = opened.experiment.seeds
    results = complete_only(sweep.results(opened.tasks, about=opened.about), seeds=seeds)
    planned = study(opened.spec.sensitivity(), experiment=opened.experiment, results=results)
    return opened, results, planned, _tasks(opened, planned)


def _tasks(opened: _Opened, planned: Study) -> list[Task]:
    algorithms = tuple(each.algorithm for each in planned.variations)
    return tasks_of(replace(opened.experiment, algorithms=algorithms), name=opened.spec.name)
