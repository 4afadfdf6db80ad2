import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from laconic.arrays import Floats
from laconic.errors import InputError, ProblemError
from laconic.problems import FromFunctions, Instance, Problem


def bowl(x: Floats) -> Floats:
    return 1 - (x**2).sum(axis=1)


def square(rng: np.random.Generator, clients: int) -> Floats:
    return rng.uniform(-1, 1, size=(clients, 10, 2))


def test_two_functions_make_a_problem() -> None:
    problem = FromFunctions(mean=bowl, arms=square)
    instance = problem.instance(seed=0, clients=4, rounds=3)
    assert isinstance(problem, Problem)
    assert isinstance(instance, Instance)
    assert instance.dim == 2
    met = instance.round(2)
    for i in range(4):
        for a in range(10):
            x, y = met.arms[i, a]
            assert met.means[i, a] == pytest.approx(1 - x * x - y * y)


def test_its_rounds_are_pure_and_differ() -> None:
    instance = FromFunctions(mean=bowl, arms=square).instance(seed=0, clients=4, rounds=3)
    first, second, again = instance.round(0), instance.round(1), instance.round(0)
    assert np.array_equal(first.arms, again.arms)
    assert np.array_equal(first.rewards, again.rewards)
    assert not np.array_equal(first.arms, second.arms)


def test_its_noise_is_normal_with_the_given_deviation() -> None:
    met = FromFunctions(mean=bowl, arms=square, noise=2.0).instance(seed=0, clients=2000, rounds=1).round(0)
    assert stats.kstest((met.rewards - met.means)[:, 0], stats.norm(scale=2).cdf).pvalue > 0.01


def test_what_float32_functions_return_is_played_in_float64() -> None:
    problem = FromFunctions(mean=lambda x: bowl(x).astype("f4"), arms=lambda rng, n: square(rng, n).astype("f4"))
    met = problem.instance(seed=0, clients=2, rounds=1).round(0)
    assert met.arms.dtype == met.means.dtype == met.rewards.dtype == np.float64


@pytest.mark.parametrize(
    ("mean", "arms", "why"),
    [
        (bowl, lambda rng, n: rng.uniform(size=(n, 2)), r"arms\(\) returned has shape \(3, 2\)"),
        (bowl, lambda rng, n: rng.uniform(size=(1, 4, 2)), r"arms\(\) returned shape \(1, 4, 2\) for 3 clients"),
        (bowl, lambda rng, n: np.zeros((n, 0, 2)), "nothing to choose"),
        (bowl, lambda rng, n: np.zeros((n, 4, 0)), "at least one feature"),
        (bowl, lambda rng, n: np.full((n, 1, 2), math.nan), r"round 0: arms\[0, 0, 0\] is nan"),
        (bowl, lambda rng, n: [["a"]], r"arms\(\) returned holds <U1"),
        (lambda x: x, square, r"mean\(\) returned has shape \(30, 2\), but 1 axes"),
        (lambda x: x[:5, 0], square, r"mean\(\) returned 5 numbers for 30 points"),
        (lambda x: x[:, 0] / 0.0, square, r"round 0: means\[0, 0\] is -?inf"),
        (lambda x: x[:, 0] + 1j, square, r"mean\(\) returned holds complex128"),
    ],
)
def test_functions_that_do_not_fit_are_refused_when_the_instance_opens(mean: Any, arms: Any, why: str) -> None:
    with np.errstate(divide="ignore"), pytest.raises(ProblemError, match=why):
        FromFunctions(mean=mean, arms=arms).instance(seed=0, clients=3, rounds=1)


def test_an_error_inside_a_function_of_the_user_comes_out_as_it_is() -> None:
    def broken(x: Floats) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        FromFunctions(mean=broken, arms=square).instance(seed=0, clients=1, rounds=1)


def test_what_is_not_a_function_is_refused() -> None:
    number: Any = 3.0
    with pytest.raises(InputError, match="mean must be a function, not float"):
        FromFunctions(mean=number, arms=square)
    with pytest.raises(InputError, match="noise must be a finite number of at least 0"):
        FromFunctions(mean=bowl, arms=square, noise=-1)
