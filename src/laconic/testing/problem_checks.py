"""What a problem must keep to."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.algorithms import DisLinUCB, Random
from laconic.checks import require_whole
from laconic.problems.base import Instance, Problem, Round
from laconic.problems.rounds import check_round
from laconic.runtimes.one_run import run
from laconic.testing.wording import Subject, same


def check_problem(problem: Problem, *, clients: int = 3, rounds: int = 4, seeds_matter: bool = True) -> None:
    """Check a problem on a few small instances.

    Its rounds must fit together and be finite, be the same whenever they are asked for, and not depend on the horizon.

    Args:
        problem: A value with a method instance(seed, clients, rounds).
        clients: Clients N of the instances, from 1; a problem with sizes of its own is given no more than it has.
        rounds: Rounds T of the instances, from 1; a problem with sizes of its own is given no more than it has.
        seeds_matter: True: another seed must give other rounds. False: it need not, as for a log.

    Raises:
        AssertionError: It breaks the contract; the message says in which round.
    """
    require_whole("clients", clients, least=1)
    require_whole("rounds", rounds, least=1)
    subject = Subject.of("problem", problem)
    subject.claim(isinstance(problem, Problem), "it has no method instance(*, seed, clients, rounds)")
    clients, rounds = _sizes(subject, problem, clients=clients, rounds=rounds)
    instance = _opened(subject, problem, seed=0, clients=clients, rounds=rounds)
    met = [_round(subject, instance, index, clients=clients) for index in range(rounds)]
    _check_purity(subject, instance, met, clients=clients)
    _check_instances(subject, problem, met, clients=clients)
    _check_seeds(subject, problem, met, clients=clients, matter=seeds_matter)
    with subject.calling("playing it"):
        for algorithm in (Random(), DisLinUCB(D=1.0)):
            run(algorithm, problem, clients=clients, rounds=rounds)


def _sizes(subject: Subject, problem: Problem, *, clients: int, rounds: int) -> tuple[int, int]:
    sizes = getattr(problem, "sizes", None)
    if sizes is None:
        return clients, rounds
    with subject.calling("sizes()"):
        most_clients, most_rounds = sizes()
    for name, size in (("clients", most_clients), ("rounds", most_rounds)):
        subject.claim(isinstance(size, int) and size > 0, f"sizes() gives {name}={size!r}, not a number above 0")
    return min(clients, most_clients), min(rounds, most_rounds)


def _opened(subject: Subject, problem: Problem, *, seed: int, clients: int, rounds: int) -> Instance:
    with subject.calling(f"instance(seed={seed}, clients={clients}, rounds={rounds})"):
        instance = problem.instance(seed=seed, clients=clients, rounds=rounds)
    subject.claim(isinstance(instance, Instance), "an instance has a number of features dim and a method round(index)")
    known: Any = getattr(problem, "dim", instance.dim)
    subject.claim(instance.dim == known, f"its dim is {known!r}, but that of its instance is {instance.dim!r}")
    return instance


def _round(subject: Subject, instance: Instance, index: int, *, clients: int) -> Round:
    """A copy of a round that was found in order."""
    with subject.calling(f"round({index})"):
        met = check_round(instance.round(index), index=index, clients=clients, dim=instance.dim)
    mask, revealed = (None if each is None else each.copy() for each in (met.mask, met.revealed))
    return Round(met.arms.copy(), means=met.means.copy(), rewards=met.rewards.copy(), mask=mask, revealed=revealed)


def _same_round(a: Round, b: Round) -> bool:
    marks = all(_same_marks(getattr(a, name), getattr(b, name)) for name in ("mask", "revealed"))
    return marks and all(same(getattr(a, name), getattr(b, name)) for name in ("arms", "means", "rewards"))


def _same_marks(a: Any, b: Any) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _check_purity(subject: Subject, instance: Instance, met: list[Round], *, clients: int) -> None:
    for index in reversed(range(len(met))):
        again = _round(subject, instance, index, clients=clients)
        subject.claim(
            _same_round(again, met[index]), f"round({index}) is another one when asked for again: it must be pure"
        )
    spoilt = instance.round(0)
    for array in (spoilt.arms, spoilt.means, spoilt.rewards):
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = 0
    again = _round(subject, instance, 0, clients=clients)
    subject.claim(
        _same_round(again, met[0]),
        "writing into what round(0) returned changes the instance: return copies, or arrays that are read-only",
    )


def _check_instances(subject: Subject, problem: Problem, met: list[Round], *, clients: int) -> None:
    for horizon in sorted({1, len(met)}):
        instance = _opened(subject, problem, seed=0, clients=clients, rounds=horizon)
        for index in range(horizon):
            again = _round(subject, instance, index, clients=clients)
            subject.claim(
                _same_round(again, met[index]),
                f"round({index}) of an instance with rounds={horizon} is not that of one with rounds={len(met)}: "
                "seed and clients alone must decide",
            )


def _check_seeds(subject: Subject, problem: Problem, met: list[Round], *, clients: int, matter: bool) -> None:
    instance = _opened(subject, problem, seed=1, clients=clients, rounds=len(met))
    other = [_round(subject, instance, index, clients=clients) for index in range(len(met))]
    equal = all(_same_round(a, b) for a, b in zip(met, other, strict=True))
    if matter:
        subject.claim(not equal, "seeds 0 and 1 give the same rounds; say seeds_matter=False if that is meant")
    else:
        subject.claim(equal, "seeds 0 and 1 give different rounds, but seeds_matter=False was said")
