"""Compare: several algorithms, one problem, some seeds; everything is checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from laconic.algorithms import Algorithm
from laconic.checks import require_flag, require_one_of, require_whole
from laconic.defaults import ALGORITHMS, CLIENTS, PROBLEM, RUNTIME, SEEDS
from laconic.defaults import rounds as usual_rounds
from laconic.errors import InputError
from laconic.experiments.config import Experiment
from laconic.experiments.folder import Folder
from laconic.experiments.grid import expand, params
from laconic.experiments.parts import AlgorithmLike, ProblemLike, as_algorithm, as_problem, name_of
from laconic.experiments.results import Results
from laconic.experiments.runner import Estimate, Event, Failed, Memory, Sweep, Watch, silent
from laconic.experiments.tasks import Store, Task, tasks_of
from laconic.kernels import require_positive_definite
from laconic.problems.base import Instance, Problem
from laconic.problems.rounds import check_round
from laconic.runtimes import RUNTIMES
from laconic.runtimes.asking import stand_in
from laconic.runtimes.jobs import engine
from laconic.runtimes.needs import memory_needed, require_memory

SAMPLE = 100  # arms on which a kernel is tried before anything runs


class Interrupted(KeyboardInterrupt):
    """A comparison was stopped by Ctrl-C; ``results`` holds the runs that had finished."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"stopped after {len(results.rows)} finished runs")
        self.results = results


def compare(
    algorithms: AlgorithmLike | Iterable[AlgorithmLike] = ALGORITHMS,
    *,
    problem: ProblemLike = PROBLEM,
    clients: int | None = None,
    rounds: int | None = None,
    seeds: int | Iterable[int] = SEEDS,
    runtime: str = RUNTIME,
    jobs: int | None = 1,
    progress: Watch | None = None,
    out: str | PathLike[str] | None = None,
    beyond_memory: bool = False,
) -> Results:
    """Run every setting of every algorithm on every seed of a problem, and gather the results.

    ``algorithms`` are values, classes or names, possibly with grids inside; ``problem`` is a value, a name or the path
    of an ``.npz``. ``clients`` and ``rounds`` are those of ``laconic compare`` where nothing is said, or what a problem
    has of its own; `laconic.preset` has the settings of the paper. ``jobs`` runs at a time take a process
    and a core each, also of what a notebook defines; 1 is this process, None as many as cores.

    With ``out`` every finished run is kept in that folder at once, and the same call goes on where an earlier one was
    stopped or killed; a folder with other results is refused. Ctrl-C raises `Interrupted`, which carries the finished
    runs. Runs that would need more memory than the machine has are refused, unless ``beyond_memory=True``.

    >>> from laconic import Catalogue, DisKernelUCB, Gaussian, grid
    >>> problem = Catalogue(dim=2, items=6, arms=3)
    >>> results = compare([DisKernelUCB(Gaussian(gamma=grid(0.1, 1.0)))], problem=problem, clients=3, rounds=4, seeds=2)
    >>> [group.label for group in results.groups]
    ['DisKernelUCB gamma=0.1', 'DisKernelUCB gamma=1']
    """
    experiment = prepare(algorithms, problem=problem, clients=clients, rounds=rounds, seeds=seeds, runtime=runtime)
    require_flag("beyond_memory", beyond_memory)
    return played(experiment, jobs=jobs, out=out, progress=progress or silent, beyond_memory=beyond_memory)


def played(
    experiment: Experiment,
    *,
    jobs: int | None = 1,
    out: str | PathLike[str] | None = None,
    progress: Watch = silent,
    traced: bool = False,
    foretold: bool = False,
    beyond_memory: bool = False,
) -> Results:
    """The results of an experiment; ``traced`` runs are made again, and told with all that happened in them.

    Where runs are long, it is ``foretold`` how long, by smaller ones that are kept nowhere.
    """
    where = engine(processes=jobs)
    room = Room(where.slots, beyond_memory=beyond_memory, watch=progress)
    made = Comparison.of(experiment, out=out, room=room)
    sweep = Sweep(made.store, engine=where, watch=_strict(progress), closely=True, traced=traced)
    try:
        made.complete(sweep, foretold=foretold)
    except KeyboardInterrupt:
        raise Interrupted(made.kept(sweep)) from None
    results = made.kept(sweep)
    if made.folder is not None:
        certificates = results.plot_certificates() if results.is_certified else None
        made.folder.draw(results.plot(), certificates=certificates)
    return results


def _strict(progress: Watch) -> Watch:
    """A run that fails ends a comparison; what has finished is kept."""

    def watch(event: Event) -> None:
        progress(event)
        if isinstance(event, Failed):
            raise event.error

    return watch


@dataclass(frozen=True)
class Comparison:
    """An experiment with the runs it takes, and the folder where they go."""

    experiment: Experiment
    about: Results
    tasks: Sequence[Task]
    folder: Folder | None

    @classmethod
    def of(cls, experiment: Experiment, *, out: str | PathLike[str] | None, room: Room) -> Comparison:
        """All that can be refused is refused here."""
        about = try_out(experiment, room=room)
        folder = None if out is None else Folder(Path(out), experiment=experiment)
        tasks = tasks_of(experiment, name=about.problem, dim=about.dim, kept=folder is not None)
        if folder is not None:
            folder.begin(tasks)
        return cls(experiment, about=about, tasks=tasks, folder=folder)

    @property
    def store(self) -> Store:
        """Where its finished runs are kept, if they are."""
        return Store(None) if self.folder is None else self.folder.store

    def complete(self, sweep: Sweep, *, part: str = "runs", foretold: bool = False) -> None:
        """Make the runs that are not there yet, and say before how long that takes, if that is wanted."""
        about = {self.about.problem: self.about}
        with sweep.engine.session():
            if foretold:
                self._foretell(sweep, about)
            sweep.complete(self.tasks, about=about, part=part)

    def _foretell(self, sweep: Sweep, about: dict[str, Results]) -> None:
        """Of what is done for an estimate, only the estimate is told."""

        def watch(event: Event) -> None:
            if isinstance(event, Estimate):
                sweep.watch(event)

        missing = [task for task in self.tasks if not self.store.has(task)]
        Sweep(Store(None), engine=sweep.engine, watch=watch, pace=sweep.pace).foretell(missing, about=about)

    def kept(self, sweep: Sweep) -> Results:
        """The runs that have finished, left together in the folder where there is one."""
        results = sweep.results(self.tasks, about=self.about)
        if self.folder is not None:
            self.folder.save(results)
        return results


def prepare(
    algorithms: AlgorithmLike | Iterable[AlgorithmLike],
    *,
    problem: ProblemLike,
    clients: int | None,
    rounds: int | None,
    seeds: int | Iterable[int],
    runtime: str,
) -> Experiment:
    """The experiment that was asked for, names resolved and grids unfolded; refused where it makes no sense."""
    candidates = algorithms if isinstance(algorithms, Iterable) and not isinstance(algorithms, str) else [algorithms]
    settings = [single for each in candidates for _, single in expand(as_algorithm(each))]
    require_one_of("runtime", runtime, choices=tuple(RUNTIMES))
    resolved = as_problem(problem)
    n, t = _sizes(resolved, clients=clients, rounds=rounds)
    return Experiment(
        algorithms=_distinct(settings),
        problem=resolved,
        clients=n,
        rounds=t,
        seeds=_seeds(seeds),
        runtime=runtime,
    )


def _sizes(problem: Problem, *, clients: int | None, rounds: int | None) -> tuple[int, int]:
    limits = getattr(problem, "limits", None)
    if limits is not None:
        clients, rounds = limits(clients, rounds)
    clients = CLIENTS if clients is None else clients
    rounds = usual_rounds(name_of(problem, kind="problem")) if rounds is None else rounds
    require_whole("clients", clients, least=1)
    require_whole("rounds", rounds, least=1)
    assert clients is not None and rounds is not None
    return int(clients), int(rounds)


def _seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    if not isinstance(seeds, Iterable):
        require_whole("seeds", seeds, least=1)
        return tuple(range(seeds))
    listed = tuple(seeds)
    for seed in listed:
        require_whole("a seed", seed, least=0)
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"seeds must be a count, or different whole numbers, got {list(listed)!r}")
    return tuple(int(seed) for seed in listed)


def _distinct(settings: list[Algorithm]) -> tuple[Algorithm, ...]:
    """Each setting once; two that differ but would look the same in a table are refused."""
    kept: dict[str, Algorithm] = {}
    for algorithm in settings:
        key = f"{name_of(algorithm, kind='algorithm')} {params(algorithm)}"
        if kept.setdefault(key, algorithm) != algorithm:
            raise InputError(f"two algorithms would both be called {key}; give their kernels names that differ")
    if not kept:
        raise InputError("there is no algorithm to compare; try compare(['DisKernelUCB', 'ApproxDisKernelUCB'])")
    return tuple(kept.values())


@dataclass(frozen=True)
class Room:
    """So many runs at a time, in the memory that there is or ``beyond_memory``; who watches is told of their needs."""

    slots: int = 1
    beyond_memory: bool = False
    watch: Watch = silent

    def require(self, experiment: Experiment, instance: Instance) -> None:
        """Refuse an experiment that has not room enough."""
        sizes = {"clients": experiment.clients, "rounds": experiment.rounds}
        found = [memory_needed(algorithm, instance, **sizes) for algorithm in experiment.algorithms]
        needs = [need for need in found if need is not None]
        if not self.beyond_memory:
            require_memory([need for need in needs for _ in experiment.seeds], slots=self.slots)
        for need in dict.fromkeys(needs):
            self.watch(Memory(need))


def try_out(experiment: Experiment, *, room: Room | None = None) -> Results:
    """Open the problem and plan every algorithm on its first arms, so that what cannot run is refused now."""
    instance = experiment.problem.instance(
        seed=experiment.seeds[0], clients=experiment.clients, rounds=experiment.rounds
    )
    first = check_round(instance.round(0), index=0, clients=experiment.clients, dim=instance.dim)
    arms = first.arms.reshape(-1, instance.dim) if first.mask is None else first.arms[first.mask]
    for algorithm in experiment.algorithms:
        stand_in(algorithm).plan(instance.dim)
        kernel = getattr(algorithm, "kernel", None)
        if kernel is not None:
            require_positive_definite(kernel, arms[:SAMPLE])
    if room is not None:
        room.require(experiment, instance)
    return Results(
        problem=name_of(experiment.problem, kind="problem"),
        problem_params=params(experiment.problem),
        clients=experiment.clients,
        rounds=experiment.rounds,
        dim=int(instance.dim),
    )
