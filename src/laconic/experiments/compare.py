"""Compare: several algorithms, one problem, some seeds; everything is checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from laconic import registry
from laconic.algorithms import Algorithm
from laconic.checks import require_flag, require_one_of, require_seed, require_sizes, require_whole, seen
from laconic.defaults import ALGORITHMS, CLIENTS, PROBLEM, RUNTIME, SEEDS
from laconic.defaults import rounds as usual_rounds
from laconic.errors import InputError, LaconicError
from laconic.experiments.config import Experiment
from laconic.experiments.files import locked
from laconic.experiments.folder import Folder
from laconic.experiments.grid import expand, params
from laconic.experiments.notebook import usual_watch
from laconic.experiments.parts import AlgorithmLike, ProblemLike, among, as_algorithm, as_problem, name_of
from laconic.experiments.results import Results
from laconic.experiments.runner import Estimate, Event, Memory, Sweep, Watch, silent
from laconic.experiments.tasks import Store, Task, tasks_of
from laconic.limits import MOST_SEEDS
from laconic.paths import own_path
from laconic.problems.base import Instance, Problem
from laconic.problems.rounds import check_round
from laconic.runtimes import RUNTIMES
from laconic.runtimes.asking import stand_in
from laconic.runtimes.jobs import Engine, engine
from laconic.runtimes.meeting import require_kernel, require_within
from laconic.runtimes.needs import memory_of, require_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Interrupted(KeyboardInterrupt):
    """A comparison was stopped by Ctrl-C; ``results`` holds the runs that had finished."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"stopped after {len(results.rows)} finished runs")
        self.results = results


class Incomplete(LaconicError):
    """Some runs of a comparison failed, or could not be kept; ``results`` holds those that finished."""

    def __init__(self, why: str, *, results: Results) -> None:
        super().__init__(why)
        self.results = results


def compare(
    algorithms: AlgorithmLike | Iterable[AlgorithmLike] | None = None,
    *,
    problem: ProblemLike = PROBLEM,
    preset: str | None = None,
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

    Where ``clients`` or ``rounds`` is None, a file of steps decides: it is dealt to ⌊√steps⌋ clients, for as many
    whole rounds as it has. On any other problem there are 50 clients and 60 rounds, or 200 where points return: on
    catalogue, clustered, magic, mushroom and shuttle.

    With ``out`` the same call goes on where an earlier one was stopped or killed; a folder with other results, or one
    that another comparison is writing to, is refused. With ``jobs`` above 1, classes that a notebook defines are played
    in other processes too. Ctrl-C raises `Interrupted`, and a run that fails or a disk that is full `Incomplete`, once
    the others are done: both carry the finished runs.

    Args:
        algorithms: Algorithms as values, classes or names, one or several, grids inside where several values are to be
            tried. None: LaconicUCB, OneKernelUCB, DisKernelUCB, ApproxDisKernelUCB, NKernelUCB and DisLinUCB, or with a
            preset all that it has.
        problem: What is played: a value, a name that laconic list shows, or the path of an .npz file.
        preset: A paper, such as li2022, whose algorithms have its settings: all of them, or those that are named. None:
            settings are the defaults.
        clients: Clients N that learn together, from 1.
        rounds: Rounds T, from 1; every client acts once in each.
        seeds: How many seeds, 0, 1, … (in Python also which). On each, all algorithms meet the same arms and noise.
        runtime: What moves the messages: lockstep, or loopback, which is slower and encodes every message.
        jobs: Runs at a time, one core each, from 1. In Python None takes all cores.
        progress: Called with every event of the comparison as it happens; without it a notebook shows a bar, and other
            places nothing.
        out: Folder that keeps every finished run at once; None: nothing is written.
        beyond_memory: True: runs that would need more memory than the machine has are made all the same. False: they
            are refused before anything runs, or warned of where they may need less.

    Examples:
        >>> from laconic import Catalogue, DisKernelUCB, Gaussian, grid
        >>> problem = Catalogue(dim=2, items=6, arms=3)
        >>> tried = DisKernelUCB(Gaussian(gamma=grid(0.1, 1.0)))
        >>> results = compare(tried, problem=problem, clients=3, rounds=4, seeds=2)
        >>> [group.label for group in results.groups]
        ['DisKernelUCB gamma=0.1', 'DisKernelUCB gamma=1']
    """
    settings = _offered(algorithms, preset=preset)
    experiment = prepare(settings, problem=problem, clients=clients, rounds=rounds, seeds=seeds, runtime=runtime)
    require_flag("beyond_memory", beyond_memory)
    watch = progress or usual_watch()
    return played(experiment, jobs=jobs, out=out, progress=watch, beyond_memory=beyond_memory)


def _offered(
    algorithms: AlgorithmLike | Iterable[AlgorithmLike] | None, *, preset: str | None
) -> AlgorithmLike | Iterable[AlgorithmLike]:
    """The algorithms asked for, with the settings of a paper where one is named."""
    if preset is None:
        return ALGORITHMS if algorithms is None else algorithms
    if not isinstance(preset, str):
        raise InputError(f"preset must be the name of a paper, not {seen(preset)}; try preset='li2022'")
    offered = registry.preset(preset)
    return offered if algorithms is None else among(offered, _listed(algorithms))


def _listed(algorithms: AlgorithmLike | Iterable[AlgorithmLike]) -> Iterable[AlgorithmLike]:
    return algorithms if isinstance(algorithms, Iterable) and not isinstance(algorithms, str) else [algorithms]


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
    where = engine(jobs=jobs)
    room = Room.of(where, beyond_memory=beyond_memory, watch=progress)
    with Comparison.opened(experiment, out=out, room=room) as made:
        sweep = Sweep(made.store, engine=where, watch=progress, closely=True, traced=traced)
        try:
            made.complete(sweep, foretold=foretold)
            results = made.kept(sweep)
            made.draw(sweep, results.plot, results.plot_certificates if results.is_certified else None)
        except KeyboardInterrupt:
            raise Interrupted(made.kept(sweep)) from None
        made.require_complete(sweep)
    return results


@dataclass(frozen=True)
class Comparison:
    """An experiment with the runs it takes, and the folder where they go."""

    experiment: Experiment
    about: Results
    tasks: Sequence[Task]
    folder: Folder | None

    @classmethod
    @contextmanager
    def opened(cls, experiment: Experiment, *, out: str | PathLike[str] | None, room: Room) -> Iterator[Comparison]:
        """The comparison, with its folder to itself until it is done; all that can be refused is refused here."""
        about = try_out(experiment, room=room)
        tasks = tasks_of(experiment, name=about.problem, dim=about.dim, kept=out is not None)
        if out is None:
            yield cls(experiment, about=about, tasks=tasks, folder=None)
            return
        path = own_path("out", out)
        with locked(path):
            folder = Folder(path, experiment=experiment)
            folder.begin(tasks)
            yield cls(experiment, about=about, tasks=tasks, folder=folder)

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
            with sweep.noting_losses():
                self.folder.save(results)
        return results

    def draw(self, sweep: Sweep, plot: Callable[[], Figure], certificates: Callable[[], Figure] | None = None) -> None:
        """Leave figures in the folder, where there is one and anything to draw."""
        if self.folder is not None and sweep.rows:
            with sweep.noting_losses():
                self.folder.draw(plot(), certificates=None if certificates is None else certificates())

    def require_complete(self, sweep: Sweep) -> None:
        """Say what failed and what could not be kept, with all that finished."""
        results = sweep.results(self.tasks, about=self.about)
        if sweep.failures:
            failed = sweep.failures[0]
            if not results.rows:
                raise failed.error
            first = f"the first ({failed.task.label}, seed {failed.task.seed}) with: {failed.why}"
            raise Incomplete(f"{len(sweep.failures)} of {len(self.tasks)} runs failed, {first}", results=results)
        if sweep.unkept:
            raise Incomplete(f"not all could be kept: {sweep.unkept[0]}; make room and run it again", results=results)


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
    settings = [single for each in _listed(algorithms) for _, single in expand(as_algorithm(each))]
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
    sizes = getattr(problem, "sizes", None)
    if sizes is not None:
        clients, rounds = sizes(clients, rounds)
    clients = CLIENTS if clients is None else clients
    rounds = usual_rounds(name_of(problem, kind="problem")) if rounds is None else rounds
    require_sizes(clients=clients, rounds=rounds)
    assert clients is not None and rounds is not None
    return int(clients), int(rounds)


def _seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    if not isinstance(seeds, Iterable):
        require_whole("seeds", seeds, least=1, most=MOST_SEEDS)
        return tuple(range(seeds))
    listed = tuple(seeds)
    for seed in listed:
        require_seed("every one of seeds", seed)
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"seeds must be a count, or different whole numbers, got {seen(list(listed))}")
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
    """So many runs at a time, in the memory that there is or ``beyond_memory``; who watches is told of their needs.

    On a cluster nothing is refused: that this machine has less than is needed says nothing of its nodes.
    """

    slots: int = 1
    beyond_memory: bool = False
    watch: Watch = silent

    @classmethod
    def of(cls, engine: Engine, *, beyond_memory: bool, watch: Watch) -> Room:
        """The room that an engine's jobs have."""
        return cls(engine.slots, beyond_memory=beyond_memory or not engine.shares_memory, watch=watch)

    def require(self, experiment: Experiment, instance: Instance) -> None:
        """Refuse an experiment that has not room enough."""
        needs = memory_of(experiment.algorithms, instance, clients=experiment.clients, rounds=experiment.rounds)
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
    for algorithm in experiment.algorithms:
        plan = stand_in(algorithm).plan(instance.dim)
        require_kernel(algorithm, first)
        require_within(plan, first, index=0)
    if room is not None:
        room.require(experiment, instance)
    return Results(
        problem=name_of(experiment.problem, kind="problem"),
        problem_params=params(experiment.problem),
        clients=experiment.clients,
        rounds=experiment.rounds,
        dim=int(instance.dim),
    )
