"""Algorithms as values: what plan each comes to, and what is refused before anything runs."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from laconic import registry
from laconic.algorithms import (
    Algorithm,
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    NKernelUCB,
    OneKernelUCB,
    Random,
    require_algorithm,
)
from laconic.beliefs import BlankEmbedding, ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding
from laconic.errors import InputError
from laconic.experiments.grid import expand, grid
from laconic.exploration import ExactTheory, Fixed, NystromTheory, Theory
from laconic.kernels import Foreign, Gaussian, Matern
from laconic.problems import Cosine
from laconic.protocol.phases import AgreeOnDictionary, ShareData, ShareStatistics
from laconic.protocol.plan import Plan
from laconic.runtimes import run
from laconic.triggers import Always, Determinant, Never, Variance

KERNELISED = [DisKernelUCB, OneKernelUCB, NKernelUCB, ApproxDisKernelUCB]
THRESHOLD = [DisKernelUCB, DisLinUCB, ApproxDisKernelUCB]
ALL: list[Any] = [*KERNELISED, DisLinUCB]


@pytest.mark.parametrize(
    ("algorithm", "trigger", "phases"),
    [
        (DisKernelUCB(Matern(), D=3.0, lam=0.5), Determinant(3.0), (ShareData(),)),
        (OneKernelUCB(Matern(), lam=0.5), Always(), (ShareData(),)),
        (NKernelUCB(Matern(), lam=0.5), Never(), ()),
        (DisLinUCB(D=3.0, lam=0.5), Determinant(3.0), (ShareStatistics("tail"),)),
        (
            ApproxDisKernelUCB(Matern(), D=3.0, lam=0.5, qbar=0.7),
            Variance(3.0),
            (AgreeOnDictionary(0.7), ShareStatistics("history")),
        ),
        (Random(), Never(), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_plan_has_the_parts_of_the_papers_algorithm(algorithm: Algorithm, trigger: object, phases: object) -> None:
    plan = algorithm.plan(4)
    assert plan.trigger == trigger
    assert plan.phases == phases
    assert plan.belief.dim == 4
    assert plan.belief.lam == (1.0 if isinstance(algorithm, Random) else 0.5)
    assert plan.belief.information == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", [DisKernelUCB, OneKernelUCB, NKernelUCB])
def test_exact_algorithms_believe_exactly(kind: Any) -> None:
    belief = kind(Matern()).plan(3).belief
    assert isinstance(belief, ExactBelief)
    assert belief.kernel == Matern()


def test_finite_algorithms_believe_in_coordinates() -> None:
    for algorithm, embedding in ((DisLinUCB(), LinearEmbedding), (Random(), BlankEmbedding)):
        belief = algorithm.plan(3).belief
        assert isinstance(belief, FiniteBelief)
        assert isinstance(belief.embedding, embedding)


def test_approx_starts_with_an_empty_dictionary_or_with_an_exact_local_model() -> None:
    starts: list[Any] = ["paper", "local"]
    paper, local = (ApproxDisKernelUCB(Matern(), lam=1.0, cold_start=start).plan(3).belief for start in starts)
    assert isinstance(paper, FiniteBelief)
    assert isinstance(paper.embedding, NystromEmbedding)
    assert paper.dictionary_size == 0
    assert isinstance(local, ExactBelief)
    x = np.zeros((1, 3))
    assert paper.view(x).variance == local.view(x).variance == 1.0


@pytest.mark.parametrize("kind", ALL)
def test_alpha_is_a_number_or_the_theory(kind: Any) -> None:
    assert kind(alpha=0.3).plan(2).confidence == Fixed(0.3)
    theory = Theory(S=2.0)
    rule = kind(alpha=theory, D=1.0) if kind in THRESHOLD else kind(alpha=theory)
    expected = NystromTheory(theory, D=1.0) if kind is ApproxDisKernelUCB else ExactTheory(theory)
    assert rule.plan(2).confidence == expected


def test_approx_refuses_the_theory_where_its_root_is_not_defined() -> None:
    with pytest.raises(InputError, match="lower D or epsilon"):
        ApproxDisKernelUCB(alpha=Theory(epsilon=0.1), D=8.0)
    ApproxDisKernelUCB(alpha=Theory(epsilon=0.01), D=8.0)


@pytest.mark.parametrize("kind", KERNELISED)
def test_any_kernel_is_taken_as_it_is(kind: Any) -> None:
    assert kind(kernel=Gaussian(2.0)).kernel == Gaussian(2.0)
    assert isinstance(kind(kernel=lambda X, Y: X @ Y.T).kernel, Foreign)
    with pytest.raises(InputError, match=r"Gaussian\(\)"):
        kind(kernel=Gaussian)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("lam", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_a_ridge_that_is_not_positive_is_refused(kind: Any, lam: object) -> None:
    with pytest.raises(InputError, match="lam must be"):
        kind(lam=lam)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf, "theory", None])
def test_an_alpha_below_zero_or_without_a_value_is_refused(kind: Any, alpha: object) -> None:
    with pytest.raises(InputError, match="alpha must be"):
        kind(alpha=alpha)


@pytest.mark.parametrize("kind", THRESHOLD)
@pytest.mark.parametrize("D", [-1e-9, math.nan, math.inf, "5"])
def test_a_threshold_below_zero_is_refused(kind: Any, D: object) -> None:
    with pytest.raises(InputError, match="D must be"):
        kind(D=D)


@pytest.mark.parametrize("qbar", [0, -1.0, math.nan, -math.inf, "many"])
def test_a_qbar_that_keeps_nothing_is_refused(qbar: float) -> None:
    with pytest.raises(InputError, match="qbar must be"):
        ApproxDisKernelUCB(qbar=qbar)


def test_an_infinite_qbar_is_allowed_and_keeps_every_point() -> None:
    assert ApproxDisKernelUCB(qbar=math.inf).plan(2).phases[0] == AgreeOnDictionary(math.inf)


def test_an_unknown_cold_start_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="paper, local"):
        ApproxDisKernelUCB(cold_start="warm")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [DisKernelUCB, OneKernelUCB, ApproxDisKernelUCB])
def test_a_precision_is_single_or_double(kind: Any) -> None:
    assert kind(dtype="float32") != kind()
    with pytest.raises(InputError, match="float64, float32"):
        kind(dtype="float16")


@pytest.mark.parametrize("kind", [*ALL, Random])
def test_an_algorithm_is_a_frozen_value_that_describes_itself(kind: Any) -> None:
    assert kind() == kind()
    assert hash(kind()) == hash(kind())
    assert require_algorithm(kind()) == kind()
    assert kind.__doc__.splitlines()[0].endswith(".")
    assert kind.equation
    assert kind.sends
    names = [field.name for field in fields(kind)]
    assert not {"equation", "sends"} & set(names)
    for name in names:
        with pytest.raises(AttributeError):
            setattr(kind(), name, 1.0)


@pytest.mark.parametrize("candidate", [DisKernelUCB, "DisKernelUCB", None, 3])
def test_what_is_no_algorithm_is_refused_with_advice(candidate: object) -> None:
    with pytest.raises(InputError, match="try"):
        require_algorithm(candidate)


def test_every_algorithm_of_the_registry_is_one_of_these() -> None:
    ours = {kind.__name__: kind for kind in (*ALL, Random)}
    assert {name: registry.find("algorithm", name) for name in ours} == ours


def test_phases_are_needed_where_a_trigger_may_fire() -> None:
    parts: Callable[..., Plan] = lambda **changed: Plan(  # noqa: E731
        **{**vars(NKernelUCB().plan(2)), **changed}
    )
    parts()
    with pytest.raises(InputError, match="phases"):
        parts(trigger=Always())


def test_random_chooses_every_arm_and_says_nothing() -> None:
    one = run(Random(), Cosine(dim=2, arms=3), clients=5, rounds=60)
    shares = np.bincount(one.choices, minlength=3) / 300
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)
    assert (one.scalars, one.messages, one.bytes, one.syncs) == (0, 0, 0, 0)
    assert one.dictionary is None


def test_a_theoretical_alpha_is_asked_for_by_value_and_not_by_name() -> None:
    with pytest.raises(InputError, match=r"try alpha=Theory\(\)"):
        DisKernelUCB(alpha="theory")  # type: ignore[arg-type]


def test_a_kernel_may_be_scaled_by_a_grid() -> None:
    scaled: Any = Gaussian() * grid(1.0, 2.0)
    assert [each.scale for _, each in expand(scaled)] == [1.0, 2.0]
