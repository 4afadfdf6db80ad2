"""One run of one algorithm on one seed of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laconic.algorithms import Algorithm, AskServer, require_algorithm
from laconic.checks import require_flag, require_one_of, require_whole
from laconic.errors import ProblemError
from laconic.problems.base import Problem
from laconic.runtimes import lockstep, loopback
from laconic.runtimes.asking import asked
from laconic.runtimes.threads import one_set_of_threads
from laconic.runtimes.trace import Run

#: The first is the default.
RUNTIMES: dict[str, Callable[..., Run]] = {"lockstep": lockstep.play, "loopback": loopback.play}


def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    clients: int,
    rounds: int,
    seed: int = 0,
    runtime: str = "lockstep",
    progress: Callable[[int], None] | None = None,
    log: bool = False,
) -> Run:
    """Play a problem with an algorithm and keep the full trace.

    With ``log=True`` it also keeps the probability of every choice, so that `Run.log` can write all decisions down.

    >>> from laconic import Catalogue, DisKernelUCB, run
    >>> one = run(DisKernelUCB(D=5.0), Catalogue(dim=3, items=6, arms=4), clients=4, rounds=5)
    >>> one.choices.shape, one.syncs > 0
    ((20,), True)
    """
    require_algorithm(algorithm)
    require_whole("clients", clients, least=1)
    require_whole("rounds", rounds, least=1)
    require_whole("seed", seed, least=0)
    require_flag("log", log)
    require_one_of("runtime", runtime, choices=tuple(RUNTIMES))
    if not isinstance(problem, Problem):
        raise ProblemError(f"a problem has a method instance(seed, clients, rounds), got {problem!r}; try Cosine()")
    instance = problem.instance(seed=seed, clients=clients, rounds=rounds)
    play = RUNTIMES[runtime]
    how: dict[str, Any] = {"rounds": rounds, "seed": seed, "progress": progress}
    how |= {"log": True} if log else {}
    with one_set_of_threads():
        if isinstance(algorithm, AskServer):  # here, so that no runtime asks which algorithm it plays
            return asked(play, algorithm, instance, clients=clients, **how)
        return play(algorithm, instance, clients=clients, **how)
