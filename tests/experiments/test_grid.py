from __future__ import annotations

import numpy as np
import pytest

from laconic import ApproxDisKernelUCB, Catalogue, DisKernelUCB, Gaussian, InputError, Log, Matern, Random, Theory, grid
from laconic.experiments.grid import expand, params
from laconic.kernels import Sum
from tests.experiments.making import Periodic, unnamed


def test_a_grid_inside_a_kernel_inside_an_algorithm_unfolds() -> None:
    settings = expand(DisKernelUCB(Gaussian(gamma=grid(0.1, 1, 4)), D=20))
    assert [value.kernel for _, value in settings] == [Gaussian(0.1), Gaussian(1), Gaussian(4)]
    assert [own["gamma"] for own, _ in settings] == [0.1, 1, 4]


def test_two_grids_make_every_pair_the_last_turning_fastest() -> None:
    settings = expand(DisKernelUCB(Gaussian(gamma=grid(0.1, 1.0)), D=grid(5, 20)))
    assert [(own["gamma"], own["D"]) for own, _ in settings] == [(0.1, 5), (0.1, 20), (1.0, 5), (1.0, 20)]


def test_a_value_without_a_grid_stands_for_itself() -> None:
    algorithm = ApproxDisKernelUCB()
    assert [value is algorithm for _, value in expand(algorithm)] == [True]


def test_a_grid_of_one_value_is_that_value() -> None:
    assert [value for _, value in expand(Gaussian(gamma=grid(2.0)))] == [Gaussian(2.0)]


def test_a_grid_inside_a_grid_is_laid_flat() -> None:
    assert [value.gamma for _, value in expand(Gaussian(gamma=grid(1.0, grid(2.0, 3.0))))] == [1.0, 2.0, 3.0]


def test_a_bad_value_inside_a_grid_is_refused_when_it_unfolds() -> None:
    with pytest.raises(InputError, match="gamma"):
        expand(DisKernelUCB(Gaussian(gamma=grid(1.0, -1.0))))


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(InputError, match="at least one value"):
        grid()


def test_params_are_flat_and_name_the_kernel() -> None:
    own = params(ApproxDisKernelUCB(Gaussian(2.0), D=5.0, lam=0.1, alpha=0.3, qbar=1.0))
    numbers = {"gamma": 2.0, "D": 5.0, "lam": 0.1, "alpha": 0.3, "qbar": 1.0}
    assert own.items() >= (numbers | {"kernel": "Gaussian", "cold_start": "paper"}).items()


def test_a_theoretical_alpha_lists_its_constants() -> None:
    own = params(DisKernelUCB(alpha=Theory(S=2.0)))
    assert (own["alpha"], own["S"], own["delta"]) == ("Theory", 2.0, 0.1)


def test_a_sum_of_kernels_is_written_as_one_text() -> None:
    own = params(DisKernelUCB(Sum(Gaussian(2.0), Matern())))
    assert own["kernel"] == "Sum(left=Gaussian(gamma=2.0), right=Matern(nu=2.5, length=1.0))"
    assert "gamma" not in own


def test_a_kernel_of_the_users_own_is_known_by_its_name_without_an_address() -> None:
    own = params(DisKernelUCB(unnamed()))
    assert "unnamed" in str(own["kernel"])
    assert "0x" not in str(own["kernel"])


def test_numpy_numbers_become_plain_ones() -> None:
    own = params(DisKernelUCB(D=np.float32(2.0)))  # type: ignore[arg-type]  # what a user's array gives
    assert type(own["D"]) is float


def test_an_algorithm_without_parameters_has_none() -> None:
    assert params(Random()) == {}


def test_a_problem_in_memory_is_described_by_shapes_not_by_its_numbers() -> None:
    log = Log(arms=np.zeros((6, 2, 1)), means=np.zeros((6, 2)), noise=np.zeros(6))
    assert params(log)["arms"] == "array(6, 2, 1)"
    assert params(Catalogue())["items"] == 30


def test_a_kernel_of_another_package_lists_its_name_and_parameters() -> None:
    own = params(DisKernelUCB(Periodic(period=0.5)))
    assert (own["kernel"], own["period"]) == ("Periodic", 0.5)


def test_a_grid_inside_another_packages_kernel_unfolds() -> None:
    settings = expand(DisKernelUCB(Gaussian() * Periodic(period=grid(0.5, 2.0))))
    assert [value for _, value in settings] == [DisKernelUCB(Gaussian() * Periodic(each)) for each in (0.5, 2.0)]


def test_a_number_that_json_does_not_have_is_listed_as_text() -> None:
    assert params(ApproxDisKernelUCB(qbar=float("inf")))["qbar"] == "inf"
    assert params(ApproxDisKernelUCB(qbar=np.float64("inf")))["qbar"] == "inf"
