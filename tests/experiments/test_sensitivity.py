from __future__ import annotations

from typing import Any

from laconic import ApproxDisKernelUCB, Catalogue, Cosine, DisKernelUCB, Gaussian, Problem
from laconic.experiments.config import Experiment
from laconic.experiments.sensitivity import Study, study
from laconic.experiments.spec import Sensitivity
from tests.experiments.making import results
from tests.pages.making import run_of

FRESH = Cosine()
PAPERS: dict[str, Any] = {"D": 5.0, "lam": 1.0, "alpha": 0.1, "qbar": 0.3}


def around(gamma: float, problem: Problem = FRESH, **values: tuple[float, ...]) -> Study:
    """The study around an Approx of which γ has turned out best."""
    tried = [ApproxDisKernelUCB(Gaussian(gamma=each), **PAPERS) for each in (0.1, 4.0)]
    found = results(*(run_of(each, regret=abs(each.kernel.gamma - gamma), scalars=1) for each in tried))  # type: ignore[attr-defined]
    experiment = Experiment((*tried, DisKernelUCB()), problem, clients=2, rounds=2, seeds=(0,), runtime="lockstep")
    return study([Sensitivity("ApproxDisKernelUCB", values)], experiment=experiment, results=found)


def test_one_parameter_changes_and_the_tuned_ones_stay() -> None:
    found = around(4.0, qbar=(1.0,), D=(2.0, 20.0))
    assert [each.algorithm for each in found.variations] == [
        ApproxDisKernelUCB(Gaussian(gamma=4.0), **{**PAPERS, name: value})
        for name, value in (("qbar", 1.0), ("D", 2.0), ("D", 20.0))
    ]


def test_a_small_ridge_is_left_out_where_nearly_every_interaction_would_sync() -> None:
    narrow, wide = around(4.0, lam=(0.1, 10.0)), around(0.1, lam=(0.1, 10.0))
    assert [each.value for each in narrow.variations] == [10.0]
    assert [(each.parameter, each.value) for each in narrow.left_out] == [("lam", 0.1)]
    assert [each.value for each in wide.variations] == [0.1, 10.0]
    known = around(4.0, Catalogue(items=20, arms=20), lam=(0.1, 10.0))  # arms that return soon have little variance
    assert [each.value for each in known.variations] == [0.1, 10.0]
    assert known.left_out == ()


def test_an_algorithm_without_results_is_not_varied() -> None:
    experiment = Experiment((DisKernelUCB(),), Cosine(), clients=2, rounds=2, seeds=(0,), runtime="lockstep")
    assert study([Sensitivity("DisKernelUCB", {"D": (1.0,)})], experiment=experiment, results=results()) == Study()
