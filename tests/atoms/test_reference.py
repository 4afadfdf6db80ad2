"""The reference dictionary against whole kernel matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.atoms import Reference
from laconic.atoms.panels import PANEL_ROWS, Panels
from laconic.errors import InputError, KernelError
from laconic.kernels import Gaussian, Kernel, Linear, Polynomial, as_kernel
from tests.atoms.cases import KERNELS, Log, log, referenced


def features(reference: Reference, X: np.ndarray) -> np.ndarray:
    """z of the rows of X from the whole kernel matrix of Q."""
    Q = reference.points[reference.pivots]
    return np.linalg.solve(np.linalg.cholesky(reference.kernel(Q, Q)), reference.kernel(Q, X)).T


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("cuts", [(120,), (1, 2, 50, 120), tuple(range(10, 121, 10))])
def test_statistics_are_the_sums_over_all_observations(kernel: Kernel, cuts: tuple[int, ...]) -> None:
    data = log(120, dim=3, distinct=70)
    reference = referenced(kernel, data, cuts=cuts)
    Z = features(reference, data.X)
    np.testing.assert_allclose(reference.gram, Z.T @ Z, atol=1e-9)
    np.testing.assert_allclose(reference.moment, Z.T @ data.y, atol=1e-9)
    left = kernel.diag(data.X) - (Z**2).sum(axis=1)
    assert reference.missed == pytest.approx(left.sum(), abs=1e-9)
    assert (left <= 0.005 * kernel.diag(data.X) + 1e-12).all()
    assert not reference.overflows
    taken = reference.coordinates.take(np.arange(reference.distinct))
    np.testing.assert_allclose(taken, features(reference, reference.points), atol=1e-9)
    np.testing.assert_allclose(reference.embedded(data.X), Z, atol=1e-9)
    np.testing.assert_allclose(reference.root @ reference.root.T, kernel(*2 * [reference.points[reference.pivots]]))


def test_repeated_points_are_one_row_with_a_count_and_a_sum() -> None:
    data = log(200, distinct=7)
    reference = referenced(Gaussian(), data, cuts=(3, 90, 200))
    points, counts = np.unique(data.X, axis=0, return_counts=True)
    order = np.lexsort(reference.points.T[::-1])
    np.testing.assert_array_equal(reference.points[order], points)
    np.testing.assert_array_equal(reference.counts[order], counts)
    assert reference.sums.sum() == pytest.approx(data.y.sum())
    assert reference.covered == 200


def test_pivots_are_those_of_a_pivoted_cholesky_factorisation() -> None:
    data = log(60, dim=1)
    reference = referenced(Gaussian(gamma=2.0), data)
    K = Gaussian(gamma=2.0)(reference.points, reference.points)
    nearest = np.where(np.eye(len(K), dtype=bool), 0.0, K).max(axis=0)
    apart = 40.0 * np.quantile(1.0 - nearest, 0.25)
    assert 0 < apart < 1  # so that it decides
    left, pivots = K.copy(), []
    while np.diagonal(left).max() > 0.005 * apart:
        j = int(np.argmax(np.diagonal(left)))
        pivots.append(j)
        left = left - np.outer(left[j], left[j]) / left[j, j]
    assert reference.pivots.tolist() == pivots


def test_what_tells_points_apart_is_not_lost_beside_a_large_constant_in_the_kernel() -> None:
    data = log(120, dim=3)
    reference = referenced(Gaussian(gamma=0.001), data, cuts=(5, 40, 120))
    K = Gaussian(gamma=0.001)(reference.points[:64], reference.points[:64])
    nearest = np.where(np.eye(64, dtype=bool), 0.0, K).max(axis=0)
    apart = 1.0 - np.quantile(nearest, 0.75)
    assert apart < 0.003  # less than the 0.005 that is left of a point elsewhere
    assert reference.spread == pytest.approx(apart, rel=1e-6)
    assert reference.residual.max() <= 0.005 * 40 * apart
    assert reference.rank >= 4  # the constant and three directions
    assert referenced(Gaussian(gamma=0.001), Log(data.X[:4], data.y[:4])).rank < 4  # of so few nothing is concluded


def coarse(n: int) -> Log:
    """Points of three kinds that lie far apart, and within a kind hardly differ."""
    random = np.random.default_rng(0)
    return Log(
        np.column_stack([np.eye(3)[random.integers(3, size=n)], random.uniform(-0.05, 0.05, (n, 2))]), np.ones(n)
    )


def test_one_coarse_feature_does_not_hide_fine_ones() -> None:
    data, kernel = coarse(300), Gaussian(gamma=0.5)
    alike = (data.X[:, :3] == data.X[:1, :3]).all(axis=1)
    fine = data.X[alike, 3:]
    apart = 0.5 * fine.var(axis=0).sum()  # of k(x, x), by which points of a kind differ from their mean
    assert apart < 0.005  # which is left of a point elsewhere: three pivots would be enough
    reference = referenced(kernel, data, cuts=(100, 300))
    assert reference.residual.max() < 0.25 * apart
    assert reference.rank >= 9  # of each kind, where it is and two directions


def test_points_that_return_with_a_little_noise_are_one() -> None:
    random = np.random.default_rng(0)
    items = random.uniform(-1, 1, (10, 2))
    X = items[random.integers(10, size=400)] + 1e-3 * random.normal(size=(400, 2))
    reference = Reference(kernel=Gaussian(gamma=1.0), dim=2, lam=0.1).extended(X, np.ones(400))
    assert reference.spread < 1e-5
    assert reference.rank == 10


def test_what_lambda_does_not_hide_is_not_lost_beside_a_large_kernel() -> None:
    data = log(150, dim=2)
    X = np.column_stack([data.X, np.full(150, 7.0)])
    kernel = Polynomial(degree=4)
    empty = Reference(kernel=kernel, dim=3, lam=0.1)
    reference = empty.extended(X, data.y)
    assert reference.residual.max() <= 0.5 * 0.1
    assert referenced(kernel, Log(X, data.y)).residual.max() > 10.0  # without λ a part of k(x, x), which is huge


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Linear() + Gaussian(1.0)])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_no_point_is_left_more_than_is_allowed_where_points_differ_in_size(kernel: Kernel, lam: float) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)) * np.exp(random.normal(size=(300, 1))) * (1.0, 0.3, 0.1, 0.01)
    reference = referenced(kernel, Log(X, np.ones(300)), lam=lam)
    assert not reference.overflows
    assert (reference.residual <= reference.allowed(reference.prior)).all()


def test_rounding_makes_no_pivots_where_nothing_tells_points_apart() -> None:
    constant = as_kernel(lambda X, Y: np.full((len(X), len(Y)), 4.0))
    assert referenced(constant, log(100)).rank == 1


def test_no_more_pivots_than_the_cap_and_then_it_overflows() -> None:
    data = log(100, dim=5)
    reference = referenced(Gaussian(gamma=5.0), data, cuts=(30, 100), cap=20)
    assert reference.rank == 20
    assert reference.overflows
    assert not referenced(Linear(), data, cap=5).overflows


def test_an_older_reference_stays_as_it_was_when_two_grow_from_it() -> None:
    first, second = log(80, dim=3, seed=1), log(80, dim=3, seed=2)
    old = referenced(Gaussian(), log(50, dim=3))
    coordinates, gram = old.coordinates.take(np.arange(50)), old.gram.copy()
    one, other = old.extended(first.X, first.y), old.extended(second.X, second.y)
    again = old.extended(first.X, first.y)
    np.testing.assert_array_equal(old.coordinates.take(np.arange(50)), coordinates)
    np.testing.assert_array_equal(old.gram, gram)
    np.testing.assert_array_equal(one.gram, again.gram)
    for grown in (one, other, again):
        rows = np.arange(grown.distinct)
        np.testing.assert_allclose(grown.coordinates.take(rows), features(grown, grown.points), atol=1e-9)


def test_a_reference_that_grows_in_the_same_steps_has_the_same_bits() -> None:
    data, cuts = log(300, dim=4, distinct=200), (40, 41, 180, 300)
    one, other = (referenced(Gaussian(), data, cuts=cuts) for _ in range(2))
    np.testing.assert_array_equal(one.gram, other.gram)
    np.testing.assert_array_equal(one.pivots, other.pivots)


@settings(max_examples=20)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_equal_points_and_single_points_need_one_pivot(count: int, seed: int) -> None:
    X = np.repeat(np.random.default_rng(seed).normal(size=(1, 2)), count, axis=0)
    reference = referenced(Gaussian(), Log(X=X, y=np.ones(count)))
    assert (reference.rank, reference.distinct) == (1, 1)
    np.testing.assert_allclose(reference.gram, [[count]])


def test_a_point_that_the_kernel_does_not_see_becomes_no_pivot() -> None:
    reference = referenced(Linear(), Log(X=np.array([[0.0, 0.0], [1.0, 0.0]]), y=np.ones(2)))
    assert reference.pivots.tolist() == [1]


def test_bad_observations_are_refused() -> None:
    empty = Reference(kernel=Gaussian(), dim=2)
    with pytest.raises(InputError, match="2; try"):
        empty.extended(np.ones((3, 4)), np.ones(3))
    with pytest.raises(InputError, match="one reward a point"):
        empty.extended(np.ones((3, 2)), np.ones(2))
    with pytest.raises(InputError, match="nan"):
        empty.extended(np.full((1, 2), np.nan), np.ones(1))
    with pytest.raises(InputError, match="tolerance"):
        Reference(kernel=Gaussian(), dim=2, tolerance=0.0)
    assert empty.extended(np.empty((0, 2)), np.empty(0)) is empty


def test_a_kernel_with_a_negative_diagonal_is_refused() -> None:
    class Negative:
        def __call__(self, X: np.ndarray, Y: np.ndarray, /) -> np.ndarray:
            return -np.ones((len(X), len(Y)))

        def diag(self, X: np.ndarray, /) -> np.ndarray:
            return -np.ones(len(X))

    with pytest.raises(KernelError, match="below zero"):
        Reference(kernel=Negative(), dim=1).extended(np.ones((1, 1)), np.ones(1))


def test_a_table_grows_both_ways_across_panels() -> None:
    whole = np.random.default_rng(0).normal(size=(PANEL_ROWS + 300, 150))
    table = Panels()
    for size, width in ((10, 3), (10, 80), (PANEL_ROWS + 1, 80), (PANEL_ROWS + 300, 150)):
        old, table = table, table.resized(size=size, width=width)
        for where, block in table.blocks():
            block[:] = whole[where, :width]
        rows = np.arange(old.size)
        np.testing.assert_array_equal(old.take(rows), whole[: old.size, : old.width])
    np.testing.assert_array_equal(table.take(np.array([PANEL_ROWS + 5, 3])), whole[[PANEL_ROWS + 5, 3]])
