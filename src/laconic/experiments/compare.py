"""Compare: several algorithms, one problem, some seeds; everything is checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from laconic.algorithms import Algorithm
from laconic.checks import require_one_of, require_whole
from laconic.errors import InputError
from laconic.experiments.config import Experiment
from laconic.experiments.grid import Params, expand, params
from laconic.experiments.output import Folder
from laconic.experiments.parts import AlgorithmLike, ProblemLike, as_algorithm, as_problem, name_of
from laconic.experiments.results import Results, Row, labels
from laconic.kernels import require_positive_definite
from laconic.problems.base import Problem
from laconic.problems.rounds import check_round
from laconic.runtimes import RUNTIMES, Run, run
from laconic.runtimes.asking import stand_in

SAMPLE = 100  # arms on which a kernel is tried before anything runs


class Interrupted(KeyboardInterrupt):
    """A comparison was stopped by Ctrl-C; ``results`` holds the runs that had finished."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"stopped after {len(results.rows)} finished runs")
        self.results = results


@dataclass(frozen=True)
class Job:
    """One run to be made: an algorithm with one setting, on one seed."""

    number: int
    total: int
    algorithm: Algorithm
    name: str
    params: Params
    label: str
    seed: int
    steps: int


@dataclass(frozen=True)
class Started:
    """A run has begun."""

    job: Job


@dataclass(frozen=True)
class Advanced:
    """A run has made so many of its steps."""

    job: Job
    steps: int


@dataclass(frozen=True)
class Finished:
    """A run is done, and kept among the results."""

    job: Job
    run: Run
    results: Results


Event = Started | Advanced | Finished
Progress = Callable[[Event], None]


def compare(
    algorithms: AlgorithmLike | Iterable[AlgorithmLike],
    *,
    problem: ProblemLike = "catalogue",
    clients: int | None = None,
    rounds: int | None = None,
    seeds: int | Iterable[int] = 3,
    runtime: str = "lockstep",
    progress: Progress | None = None,
    out: str | PathLike[str] | None = None,
) -> Results:
    """Run every setting of every algorithm on every seed of a problem, and gather the results.

    ``algorithms`` are values, classes or names, possibly with grids inside; ``problem`` is a value, a name or the path
    of an ``.npz``. ``clients`` and ``rounds`` may be left to a problem that has sizes of its own. With ``out`` every
    finished run is kept in that folder at once. Ctrl-C raises `Interrupted`, which carries the finished runs.

    >>> from laconic import Catalogue, DisKernelUCB, Gaussian, grid
    >>> problem = Catalogue(dim=2, items=6, arms=3)
    >>> results = compare([DisKernelUCB(Gaussian(gamma=grid(0.1, 1.0)))], problem=problem, clients=3, rounds=4, seeds=2)
    >>> [group.label for group in results.groups]
    ['DisKernelUCB gamma=0.1', 'DisKernelUCB gamma=1']
    """
    experiment = prepare(algorithms, problem=problem, clients=clients, rounds=rounds, seeds=seeds, runtime=runtime)
    results = try_out(experiment)
    folder = None if out is None else Folder(Path(out), experiment=experiment)
    tell = progress or _nobody
    try:
        for job, finished in _play(experiment, tell=tell):
            results = results.with_row(Row.of(finished, algorithm=job.name, params=job.params))
            if folder is not None:
                folder.save(results)
            tell(Finished(job, run=finished, results=results))
    except KeyboardInterrupt:
        if folder is not None:
            folder.save(results)
        raise Interrupted(results) from None
    if folder is not None:
        certificates = results.plot_certificates() if results.is_certified else None
        folder.draw(results.plot(), certificates=certificates)
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


def try_out(experiment: Experiment) -> Results:
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
    return Results(
        problem=name_of(experiment.problem, kind="problem"),
        problem_params=params(experiment.problem),
        clients=experiment.clients,
        rounds=experiment.rounds,
        dim=int(instance.dim),
    )


def jobs_of(experiment: Experiment) -> list[Job]:
    """Every run to be made, seed by seed, so that all algorithms have as many seeds at any time."""
    named = [(name_of(each, kind="algorithm"), params(each)) for each in experiment.algorithms]
    settings = list(zip(experiment.algorithms, named, labels(named), strict=True))
    pairs = [(seed, setting) for seed in experiment.seeds for setting in settings]
    return [
        Job(
            number=number,
            total=len(pairs),
            algorithm=algorithm,
            name=name,
            params=own,
            label=label,
            seed=seed,
            steps=experiment.clients * experiment.rounds,
        )
        for number, (seed, (algorithm, (name, own), label)) in enumerate(pairs, start=1)
    ]


def _play(experiment: Experiment, *, tell: Progress) -> Iterator[tuple[Job, Run]]:
    for job in jobs_of(experiment):
        tell(Started(job))
        yield job, _run(job, experiment=experiment, tell=tell)


def _run(job: Job, *, experiment: Experiment, tell: Progress) -> Run:
    return run(
        job.algorithm,
        experiment.problem,
        clients=experiment.clients,
        rounds=experiment.rounds,
        seed=job.seed,
        runtime=experiment.runtime,
        progress=lambda steps: tell(Advanced(job, steps=steps)),
    )


def _nobody(event: Event) -> None:
    """Listens to progress when nobody else does."""
