"""The coefficient α by its formulas, and where it is refused."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.errors import InputError
from laconic.exploration import ExactTheory, Fixed, NystromTheory, Theory
from tests import naive

POSITIVE = st.floats(0.01, 100)


def test_a_fixed_alpha_stays_what_it_is() -> None:
    assert Fixed(0.3).coefficient(lam=9.0, clients=7, information=100.0) == 0.3
    assert Fixed(0).coefficient(lam=1.0, clients=1, information=0.0) == 0


@given(S=POSITIVE, R=POSITIVE, delta=st.floats(0.01, 0.99), lam=POSITIVE, clients=st.integers(1, 100))
def test_the_exact_alpha_is_that_of_the_appendix(S: float, R: float, delta: float, lam: float, clients: int) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    kernel = naive.gaussian(1.0)
    alpha = ExactTheory(Theory(S=S, R=R, delta=delta)).coefficient(
        lam=lam, clients=clients, information=naive.log_det(kernel, X, lam)
    )
    assert alpha == pytest.approx(naive.exact_alpha(kernel, X, lam=lam, clients=clients, S=S, R=R, delta=delta))


@given(
    S=POSITIVE,
    R=POSITIVE,
    delta=st.floats(0.01, 0.99),
    epsilon=st.floats(0.01, 0.5),
    lam=POSITIVE,
    clients=st.integers(1, 100),
    part=st.floats(0, 0.99),
    information=st.floats(0, 1e4),
)
def test_the_nystrom_alpha_is_that_of_the_appendix(
    S: float, R: float, delta: float, epsilon: float, lam: float, clients: int, part: float, information: float
) -> None:
    D = part * (1 - epsilon) ** 2 / (epsilon * (1 + epsilon))
    theory = Theory(S=S, R=R, delta=delta, epsilon=epsilon)
    alpha = NystromTheory(theory, D=D).coefficient(lam=lam, clients=clients, information=information)
    expected = naive.nystrom_alpha(information, lam=lam, clients=clients, S=S, R=R, delta=delta, eps=epsilon, D=D)
    assert alpha == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 0.9])
def test_the_nystrom_alpha_is_refused_exactly_where_its_root_is_not_defined(epsilon: float) -> None:
    limit = (1 - epsilon) ** 2 / (epsilon * (1 + epsilon))
    theory = Theory(epsilon=epsilon)
    below = NystromTheory(theory, D=0.999 * limit)
    assert math.isfinite(below.coefficient(lam=1.0, clients=2, information=1.0))
    for D in (limit, 1.001 * limit, 1e9):
        with pytest.raises(InputError, match="lower D or epsilon, or give alpha as a number"):
            NystromTheory(theory, D=D)


@pytest.mark.parametrize("rule", [ExactTheory(Theory()), NystromTheory(Theory(), D=1.0)])
def test_the_theoretical_alphas_take_the_information_of_many_clients(rule: Any) -> None:
    information = np.array([0.0, 1.0, 50.0])
    together = rule.coefficient(lam=0.5, clients=3, information=information)
    alone = [rule.coefficient(lam=0.5, clients=3, information=float(each)) for each in information]
    np.testing.assert_allclose(together, alone)
    assert np.all(np.diff(together) > 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"S": -1.0},
        {"R": -0.1},
        {"R": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"epsilon": 0.0},
        {"epsilon": 1.0},
        {"epsilon": "small"},
    ],
)
def test_a_theory_without_meaning_is_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        Theory(**bad)


@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf, "1"])
def test_an_alpha_that_is_no_number_of_at_least_zero_is_refused(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha"):
        Fixed(alpha)
