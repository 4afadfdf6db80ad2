"""What a runtime must keep to: it moves messages, and changes nothing by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from laconic.algorithms import (
    Algorithm,
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
    Random,
)
from laconic.exploration import Theory
from laconic.kernels import Gaussian, Matern
from laconic.problems import Catalogue, Cosine, Log, Problem
from laconic.protocol.digests import AllPoints
from laconic.runtimes import loopback
from laconic.runtimes.trace import Run
from laconic.testing.runs import require_same_run
from laconic.testing.wording import Subject, points, rewards, shown

SEED = 5


def check_runtime(play: Callable[..., Run]) -> None:
    """Check a runtime against ``loopback.play``.

    Choices, regrets, syncs, dictionaries and every entry of the ledger must be the same, for every algorithm, and
    ``progress`` must be told how many steps are done, up to the last one.

    Args:
        play: Function play(algorithm, instance, *, clients, rounds, seed, progress) that gives a `Run`.

    Raises:
        AssertionError: Something differs; the message says what, of which algorithm and with which problem.
    """
    for what, problem, clients, rounds in _games():
        for algorithm in _algorithms():
            name = getattr(play, "__qualname__", shown(play))
            subject = Subject(f"runtime {name}", place=f"playing {algorithm!r} with {what}")
            _check_game(subject, play, algorithm, problem, clients=clients, rounds=rounds)


def _algorithms() -> tuple[Algorithm, ...]:
    return (
        DisKernelUCB(D=3.0),
        DisKernelUCB(Matern(nu=1.5), D=6.0, lam=0.3, alpha=Theory()),
        DisKernelUCB(D=3.0, together=False),
        OneKernelUCB(alpha=0.5),
        NKernelUCB(Gaussian(gamma=0.5)),
        DisLinUCB(D=2.0),
        ApproxDisKernelUCB(D=1.5),
        ApproxDisKernelUCB(D=1.0, lam=0.5, qbar=1.0, alpha=Theory(), cold_start="local"),
        LaconicUCB(lam=0.1),
        LaconicUCB(Matern(nu=1.5), delta=2.0, alpha=Theory(), digest=AllPoints()),
        Random(),
    )


def _games() -> Iterator[tuple[str, Problem, int, int]]:
    yield "fresh arms", Cosine(dim=3, arms=5), 5, 8
    yield "points that repeat", Catalogue(dim=2, items=5, arms=4), 4, 12
    yield "one client", Cosine(dim=1, arms=3), 1, 10
    yield "one arm in one round", Cosine(dim=2, arms=1), 3, 1
    steps = 20
    mask = np.arange(steps)[:, None] % 4 >= np.arange(4)
    arms = points(4 * steps, dim=2).reshape(steps, 4, 2)
    yield "arm sets of varying size", Log(arms, means=arms[..., 0], noise=0.1 * rewards(steps), mask=mask), 4, 5


def _check_game(
    subject: Subject, play: Callable[..., Run], algorithm: Algorithm, problem: Problem, *, clients: int, rounds: int
) -> None:
    instance = problem.instance(seed=SEED, clients=clients, rounds=rounds)
    reference = loopback.play(algorithm, instance, clients=clients, rounds=rounds, seed=SEED)
    told: list[int] = []
    with subject.calling("play"):
        run = play(algorithm, instance, clients=clients, rounds=rounds, seed=SEED, progress=told.append)
    subject.claim(isinstance(run, Run), f"it must return a Run, not {type(run).__name__}")
    for name in ("algorithm", "seed", "clients", "rounds"):
        was, now = getattr(reference, name), getattr(run, name)
        subject.claim(was == now, f"the run says {name}={shown(now)}, not {shown(was)}")
    require_same_run(subject, run, reference, "as in loopback")
    subject.claim(np.isfinite(run.seconds) and run.seconds >= 0, f"it took {run.seconds!r} seconds")
    steps = clients * rounds
    subject.claim(told == sorted(told) and told[-1:] == [steps], f"progress was told {shown(told)} for {steps} steps")
