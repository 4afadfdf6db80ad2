"""Sensitivity: one parameter at a time is varied around each algorithm's tuned setting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from laconic.algorithms import Algorithm, ApproxDisKernelUCB
from laconic.experiments.config import Experiment
from laconic.experiments.grid import Params, params
from laconic.experiments.parts import name_of, with_param
from laconic.experiments.results import Results
from laconic.experiments.spec import Sensitivity
from laconic.experiments.tuning import best_of
from laconic.growing import key
from laconic.kernels import Gaussian

NARROW = 1.0  # γ from which on one arm tells little about another
LEFT_OUT = (
    "a fresh arm's variance k/λ alone exceeds D, and with γ ≥ 1 arms tell little about each other, so nearly every "
    "interaction would sync"
)


@dataclass(frozen=True)
class Variation:
    """A tuned algorithm with one parameter changed."""

    algorithm: Algorithm
    name: str
    parameter: str
    value: float

    @property
    def params(self) -> Params:
        """Its settings, as its results have them."""
        return params(self.algorithm)


@dataclass(frozen=True)
class Study:
    """What is varied, and what is left out for the reason that `LEFT_OUT` gives."""

    variations: tuple[Variation, ...] = ()
    left_out: tuple[Variation, ...] = ()


def study(asked: Iterable[Sensitivity], *, experiment: Experiment, results: Results) -> Study:
    """The variations around the settings that are best in these results."""
    tuned = _tuned(experiment, results=results)
    every = [
        Variation(with_param(tuned[each.algorithm], parameter, value), each.algorithm, parameter, value)
        for each in asked
        if each.algorithm in tuned
        for parameter, values in each.values.items()
        for value in values
    ]
    flooding = [each for each in every if _floods(each.algorithm)]
    left_out = flooding if flooding and _has_fresh_arms(experiment) else []
    return Study(variations=tuple(each for each in every if each not in left_out), left_out=tuple(left_out))


def _tuned(experiment: Experiment, *, results: Results) -> dict[str, Algorithm]:
    best = best_of(results)
    return {
        name: algorithm
        for algorithm in experiment.algorithms
        if (name := name_of(algorithm, kind="algorithm")) in best and params(algorithm) == best[name].params
    }


def _has_fresh_arms(experiment: Experiment) -> bool:
    """True when nothing that the first client may choose in its second round was there in its first."""
    if experiment.rounds == 1:
        return True
    sizes = {"clients": experiment.clients, "rounds": experiment.rounds}
    instance = experiment.problem.instance(seed=experiment.seeds[0], **sizes)
    before, after = (instance.round(index).arms[0] for index in (0, 1))
    return not {key(arm) for arm in before} & {key(arm) for arm in after}


def _floods(algorithm: Algorithm) -> bool:
    if not isinstance(algorithm, ApproxDisKernelUCB) or not isinstance(algorithm.kernel, Gaussian):
        return False
    return 1.0 / algorithm.lam > algorithm.D and algorithm.kernel.gamma >= NARROW
