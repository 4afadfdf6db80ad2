"""One run of one algorithm on one seed of a problem."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from os import PathLike
from typing import Any

from laconic.algorithms import Algorithm, AskServer, require_algorithm
from laconic.canonical import parts
from laconic.checks import is_grid, require_flag, require_one_of, require_seed, require_sizes, seen
from laconic.errors import InputError, ProblemError
from laconic.problems.base import Problem
from laconic.problems.rounds import check_round
from laconic.registry import find
from laconic.runtimes import lockstep, loopback
from laconic.runtimes.asking import asked
from laconic.runtimes.meeting import require_kernel
from laconic.runtimes.needs import memory_needed, require_memory
from laconic.runtimes.threads import one_set_of_threads
from laconic.runtimes.trace import Run

#: The first is the default.
RUNTIMES: dict[str, Callable[..., Run]] = {"lockstep": lockstep.play, "loopback": loopback.play}


def run(
    algorithm: Algorithm,
    problem: Problem | str | PathLike[str],
    *,
    clients: int,
    rounds: int,
    seed: int = 0,
    runtime: str = "lockstep",
    progress: Callable[[int], None] | None = None,
    log: bool = False,
    beyond_memory: bool = False,
) -> Run:
    """Play a problem, or the one of that name or ``.npz`` file, with an algorithm and keep the full trace.

    With ``log=True`` `Run.log` can write all decisions down.

    Args:
        algorithm: Who plays: one value, without grids.
        problem: What is played: a value, a name that laconic list shows, or the path of an .npz file.
        clients: Clients N that learn together, from 1.
        rounds: Rounds T, from 1; every client acts once in each.
        seed: Seed of arms, noise and ties, from 0.
        runtime: What moves the messages: lockstep, or loopback, which is slower and encodes every message.
        progress: Called as the run goes on with the number of steps so far.
        log: True: the probability of every choice is kept too.
        beyond_memory: True: a run that would need more memory than the machine has is made all the same. False: it is
            refused, or warned of where it may need less.

    Examples:
        >>> from laconic import Catalogue, DisKernelUCB, run
        >>> one = run(DisKernelUCB(D=5.0), Catalogue(dim=3, items=6, arms=4), clients=4, rounds=5)
        >>> one.choices.shape, one.syncs > 0
        ((20,), True)
    """
    _require_single(require_algorithm(algorithm), name=type(algorithm).__name__)
    require_sizes(clients=clients, rounds=rounds)
    require_seed("seed", seed)
    require_flag("log", log)
    require_flag("beyond_memory", beyond_memory)
    require_one_of("runtime", runtime, choices=tuple(RUNTIMES))
    instance = _problem(problem).instance(seed=seed, clients=clients, rounds=rounds)
    play = RUNTIMES[runtime]
    how: dict[str, Any] = {"rounds": rounds, "seed": seed, "progress": progress}
    how |= {"log": True} if log else {}
    with one_set_of_threads():
        first = check_round(instance.round(0), index=0, clients=clients, dim=instance.dim)
        if not beyond_memory:
            need = memory_needed(algorithm, instance, clients=clients, rounds=rounds)
            require_memory([need] if need else [])
        require_kernel(algorithm, first)
        if isinstance(algorithm, AskServer):  # here, so that no runtime asks which algorithm it plays
            return asked(play, algorithm, instance, clients=clients, **how)
        return play(algorithm, instance, clients=clients, **how)


def _require_single(value: object, *, name: str) -> None:
    """Refuse what stands for several settings, also within parts."""
    for own, part in parts(value).items():
        if is_grid(part):
            raise InputError(f"{name}.{own} is {seen(part)}, and run plays one setting; try one value, or compare(…)")
        _require_single(part, name=f"{name}.{own}")


def _problem(candidate: Problem | str | PathLike[str]) -> Problem:
    """A problem as it is, by its name, or from the file that holds it."""
    if isinstance(candidate, str | PathLike):
        return _named(os.fspath(candidate))
    if isinstance(candidate, type):
        raise ProblemError(f"a problem is a value, got the class {candidate.__name__}; try {candidate.__name__}()")
    if not isinstance(candidate, Problem):
        said = "a problem is a name or has a method instance(seed, clients, rounds)"
        raise ProblemError(f"{said}, got {seen(candidate)}; try 'cosine'")
    return candidate


def _named(name: str) -> Problem:
    if name.lower().endswith(".npz"):
        recorded: Problem = find("problem", "recorded")(name)
        return recorded
    kind = find("problem", name)
    needed = [each.name for each in inspect.signature(kind).parameters.values() if each.default is each.empty]
    if needed:
        raise ProblemError(f"{name} needs {', '.join(needed)}; try {kind.__name__}({needed[0]}=…)")
    made: Problem = kind()
    return made
