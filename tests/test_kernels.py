"""Kernels against scikit-learn's, against the formulas, and what is refused."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from laconic.arrays import Floats
from laconic.errors import InputError, KernelError
from laconic.kernels import (
    Foreign,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
    as_kernel,
    largest,
    require_positive_definite,
)
from laconic.linalg import SINGLE
from tests.naive import gaussian

OURS: list[Kernel] = [
    Gaussian(gamma=0.7),
    Matern(nu=0.5, length=0.3),
    Matern(nu=1.5, length=2.0),
    Matern(nu=2.5),
    RationalQuadratic(length=0.8, mix=1.7),
    Linear(),
    Polynomial(degree=3, offset=0.5),
    Gaussian() + 2 * Linear(),
    0.5 * Matern(nu=0.5) * Polynomial(),
]


def points(n: int, *, dim: int = 3, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(-1, 1, (n, dim))


def scikit_learn_pairs() -> list[tuple[Kernel, Any]]:
    return [
        (Gaussian(gamma=1.5), sk.RBF(length_scale=1 / math.sqrt(2 * 1.5))),
        (Matern(nu=0.5, length=0.4), sk.Matern(nu=0.5, length_scale=0.4)),
        (Matern(nu=1.5, length=0.4), sk.Matern(nu=1.5, length_scale=0.4)),
        (Matern(nu=2.5, length=1.3), sk.Matern(nu=2.5, length_scale=1.3)),
        (RationalQuadratic(length=0.7, mix=2.3), sk.RationalQuadratic(length_scale=0.7, alpha=2.3)),
        (Linear(), sk.DotProduct(sigma_0=0.0)),
        (Polynomial(degree=3, offset=0.49), sk.DotProduct(sigma_0=0.7) ** 3),
        (Gaussian(gamma=0.5) + Linear(), sk.RBF() + sk.DotProduct(sigma_0=0.0)),
        (Gaussian(gamma=0.5) * Linear(), sk.RBF() * sk.DotProduct(sigma_0=0.0)),
        (3 * Gaussian(gamma=0.5), 3 * sk.RBF()),
        (Gaussian(gamma=0.5) * 0.2, 0.2 * sk.RBF()),
    ]


@pytest.mark.parametrize(("ours", "theirs"), scikit_learn_pairs(), ids=lambda k: repr(k))
def test_a_kernel_is_that_of_scikit_learn(ours: Kernel, theirs: Any) -> None:
    X, Y = points(9), points(6, seed=1)
    np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)


@pytest.mark.parametrize("gamma", [1e-9, 0.3, 50.0])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_an_offset_common_to_all_points_costs_the_gaussian_no_digits(gamma: float, offset: float) -> None:
    X, Y = points(8) + offset, points(5, seed=1) + offset
    np.testing.assert_allclose(Gaussian(gamma=gamma)(X, Y), gaussian(gamma)(X, Y), rtol=1e-12, atol=1e-300)


@settings(max_examples=30)
@given(n=st.integers(1, 12), dim=st.integers(1, 6), seed=st.integers(0, 2**32), which=st.sampled_from(range(len(OURS))))
def test_a_kernel_matrix_is_symmetric_and_semi_definite_with_diag_as_its_diagonal(
    n: int, dim: int, seed: int, which: int
) -> None:
    kernel, X = OURS[which], points(n, dim=dim, seed=seed)
    K = kernel(X, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-13)
    np.testing.assert_allclose(np.diagonal(K), kernel.diag(X), rtol=1e-13)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * K.max()
    require_positive_definite(kernel, X)


def test_a_matrix_that_is_filled_in_single_precision_is_right_to_some_units_in_the_last_place() -> None:
    points = np.random.default_rng(0).normal(size=(300, 5)) / 4.0
    X, Y = points.astype(SINGLE), points[::3].astype(SINGLE)  # some points are in both
    K = np.empty((300, 100), dtype=SINGLE)
    Gaussian(gamma=0.7).fill(K, X, Y)
    np.testing.assert_allclose(K, gaussian(0.7)(X.astype(float), Y.astype(float)), rtol=2e-6)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1e30), Gaussian(1e12), Gaussian(1e-30), Matern(0.5, 1e-9), Matern(1.5, 1e-9)]
)
def test_equal_points_have_kernel_one_exactly_whatever_the_scale(kernel: Kernel) -> None:
    X = 100 * points(40, dim=20)
    np.testing.assert_array_equal(np.diagonal(kernel(X, X)), np.ones(40))
    require_positive_definite(kernel, X)


def test_a_huge_gamma_makes_the_identity_and_a_tiny_one_all_ones() -> None:
    X = points(7)
    np.testing.assert_array_equal(Gaussian(gamma=1e12)(X, X), np.eye(7))
    np.testing.assert_array_equal(Gaussian(gamma=1e-20)(X, X), np.ones((7, 7)))


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_no_points_give_an_empty_matrix(kernel: Kernel) -> None:
    X, none = points(4), np.empty((0, 3))
    assert kernel(X, none).shape == (4, 0)
    assert kernel(none, X).shape == (0, 4)
    assert kernel(none, none).shape == (0, 0)
    assert kernel.diag(none).shape == (0,)


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_narrow_and_whole_numbers_are_taken(kernel: Kernel) -> None:
    whole: Any = np.array([[1, 2, 3], [0, -1, 2]])
    narrow: Any = points(5).astype(np.float32)
    for X, tolerance in ((whole, 1e-13), (narrow, 1e-5)):
        wide = X.astype(np.float64)
        np.testing.assert_allclose(kernel(X, X), kernel(wide, wide), rtol=tolerance)


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_a_kernel_leaves_its_points_alone_and_returns_memory_of_its_own(kernel: Kernel) -> None:
    X, Y = points(4), points(3, seed=1)
    before = X.copy(), Y.copy()
    K = kernel(X, Y)
    K[:] = np.nan
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])
    assert np.isfinite(kernel(X, Y)).all()


@pytest.mark.parametrize(
    "kernel", [*OURS, as_kernel(sk.RBF()), as_kernel(np.inner)], ids=lambda k: repr(k).split(" at ")[0]
)
def test_a_stack_of_sets_gives_a_stack_of_matrices(kernel: Kernel) -> None:
    X, Y = points(12).reshape(3, 4, 3), points(15, seed=1).reshape(3, 5, 3)
    for i in range(3):
        np.testing.assert_allclose(kernel(X, Y)[i], kernel(X[i], Y[i]), rtol=1e-13)
        np.testing.assert_allclose(kernel(X[0], Y)[i], kernel(X[0], Y[i]), rtol=1e-13)


# Algebra


def test_operators_build_sums_products_and_scalings() -> None:
    left, right = Gaussian(gamma=2.0), Matern()
    assert left + right == Sum(left, right)
    assert left * right == Product(left, right)
    assert 2 * left == left * 2.0 == Scaled(left, 2.0)


def test_kernels_of_others_take_part_in_the_algebra() -> None:
    X, Y = points(4), points(3, seed=1)

    def ones(X: Floats, Y: Floats) -> Floats:
        return np.ones((len(X), len(Y)))

    mixed = Linear() + ones
    np.testing.assert_allclose(mixed(X, Y), X @ Y.T + 1)
    np.testing.assert_allclose(mixed.diag(X), np.sum(X**2, axis=1) + 1)
    np.testing.assert_allclose((Linear() * sk.RBF())(X, Y), (X @ Y.T) * sk.RBF()(X, Y))


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_no_point_has_more_than_the_largest_value_that_a_kernel_is_said_to_have(kernel: Kernel) -> None:
    diagonal = kernel.diag(np.random.default_rng(0).normal(scale=3.0, size=(50, 2)))
    assert diagonal.max() <= largest(kernel) * (1 + 1e-12)


def test_the_largest_value_of_a_kernel_is_known_where_it_is_the_same_everywhere() -> None:
    assert largest(2.0 * Gaussian() + Matern() * RationalQuadratic()) == 3.0
    assert largest(Gaussian() + Linear()) == math.inf
    assert largest(as_kernel(sk.RBF())) == math.inf


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf])
def test_a_scale_that_spoils_positive_definiteness_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale"):
        scale * Gaussian()


# Kernels of others


def test_a_kernel_of_ours_passes_as_it_is() -> None:
    kernel = Gaussian() + Linear()
    assert as_kernel(kernel) is kernel


@pytest.mark.parametrize("theirs", [sk.RBF(0.3), sk.Matern(nu=1.5) + sk.DotProduct(), sk.RationalQuadratic()])
def test_a_scikit_learn_kernel_passes_as_it_is(theirs: Any) -> None:
    X, Y = points(5), points(4, seed=1)
    kernel = as_kernel(theirs)
    np.testing.assert_array_equal(kernel(X, Y), theirs(X, Y))
    np.testing.assert_array_equal(kernel.diag(X), theirs.diag(X))
    require_positive_definite(kernel, X)


def test_a_bare_callable_passes_and_its_diagonal_is_evaluated_point_by_point() -> None:
    calls: list[tuple[int, int]] = []

    def cosine(X: Floats, Y: Floats) -> Floats:
        calls.append((len(X), len(Y)))
        return np.cos(X[:, :1] - Y[:, 0])

    X = points(4)
    kernel = as_kernel(cosine)
    np.testing.assert_array_equal(kernel.diag(X), np.ones(4))
    assert calls == [(1, 1)] * 4  # never a matrix of all pairs


def test_what_a_callable_returns_is_copied() -> None:
    cached = np.eye(3)
    K = as_kernel(lambda X, Y: cached)(points(3), points(3))
    K[:] = 7.0
    np.testing.assert_array_equal(cached, np.eye(3))


@pytest.mark.parametrize(
    "function",
    [lambda X, Y: np.ones(len(X)), lambda X, Y: 1.0, lambda X, Y: np.ones((len(Y), len(X)))],
    ids=["diagonal", "scalar", "transposed"],
)
def test_a_callable_that_does_not_return_the_whole_matrix_is_told_so(function: Callable[..., Floats]) -> None:
    with pytest.raises(KernelError, match="whole matrix"):
        as_kernel(function)(points(4), points(3))


def test_what_is_no_kernel_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match=r"try Gaussian\(\)"):
        as_kernel(Gaussian)
    with pytest.raises(InputError, match="Gaussian"):
        as_kernel("gaussian")
    with pytest.raises(InputError, match="callable"):
        as_kernel(None)


# Refusals


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Gaussian(gamma=0), "gamma"),
        (lambda: Gaussian(gamma=-1.0), "gamma"),
        (lambda: Gaussian(gamma=math.nan), "gamma"),
        (lambda: Gaussian(gamma="big"), "gamma"),  # type: ignore[arg-type]
        (lambda: Matern(nu=2.0), "nu"),
        (lambda: Matern(length=0.0), "length"),
        (lambda: RationalQuadratic(mix=0.0), "mix"),
        (lambda: RationalQuadratic(length=math.inf), "length"),
        (lambda: Polynomial(degree=0), "degree"),
        (lambda: Polynomial(degree=1.5), "degree"),  # type: ignore[arg-type]
        (lambda: Polynomial(offset=-0.1), "offset"),
    ],
)
def test_a_parameter_that_makes_no_kernel_is_refused_by_name(make: Callable[[], object], argument: str) -> None:
    with pytest.raises(InputError, match=argument):
        make()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda X, Y: -(X @ Y.T), "not positive definite"),
        (lambda X, Y: np.tanh(3 * X @ Y.T - 2), "not positive definite"),
        (lambda X, Y: X @ np.triu(np.ones((3, 3))) @ Y.T, "not symmetric"),
        (lambda X, Y: np.log(X @ Y.T - 5), "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_callable_that_is_no_kernel_is_found_out_on_a_sample(function: Callable[..., Floats], why: str) -> None:
    with pytest.raises(KernelError, match=why):
        require_positive_definite(as_kernel(function), points(20))


def test_a_diagonal_that_is_not_that_of_the_matrix_is_found_out() -> None:
    with pytest.raises(KernelError, match="diag"):
        require_positive_definite(as_kernel(sk.RBF() + sk.WhiteKernel()), points(5))


def test_repeated_arms_and_no_arms_do_not_speak_against_a_kernel() -> None:
    require_positive_definite(Gaussian(), np.repeat(points(3), 10, axis=0))
    require_positive_definite(Gaussian(), np.empty((0, 3)))
    require_positive_definite(Linear(), np.zeros((4, 3)))


def test_kernels_are_values() -> None:
    assert Gaussian(2.0) == Gaussian(gamma=2.0)
    assert hash(Matern(1.5)) == hash(Matern(nu=1.5))
    assert isinstance(as_kernel(sk.RBF()), Foreign)
    assert isinstance(Gaussian(), Kernel)


def test_what_rounding_leaves_above_zero_is_no_kernel_value_above_one() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 7))
    K = Gaussian(gamma=0.3)(X, X.copy())
    assert K.max() <= 1.0
    np.testing.assert_allclose(K, gaussian(0.3)(X, X), atol=1e-13)
