"""Growing factors against fresh ones, and pivoting against whole Schur complements and LAPACK."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import lapack

from laconic.arrays import Floats
from laconic.errors import KernelError
from laconic.linalg import (
    LARGE_BLOCK,
    SMALL_BLOCK,
    GrowingFactor,
    add_gram,
    lower_cholesky,
    lower_gram,
    lower_product,
    paired,
    pivoted_cholesky,
    product_with_lower,
    reversed_cholesky,
    reversed_outer,
    solve_identity,
    solve_lower,
    solve_transposed,
    subtract_product,
)
from tests.naive import gaussian, thin


def positive_definite(n: int, *, seed: int = 0) -> Floats:
    root = np.random.default_rng(seed).standard_normal((n, n + 3))
    return root @ root.T / (n + 1) + 0.1 * np.eye(n)


def extension(factor: GrowingFactor, A: Floats) -> tuple[GrowingFactor, Floats]:
    """The factor of A from that of its leading part."""
    old = factor.size
    return factor.extended(factor.solve(A[:old, old:].copy()), A[old:, old:])


def grown(A: Floats, sizes: list[int], *, block_rows: int) -> GrowingFactor:
    """The factor of A, grown by so many rows at a time."""
    factor = GrowingFactor(block_rows=block_rows)
    for size in sizes:
        old, new = factor.size, factor.size + size
        factor, rows = extension(factor, A[:new, :new])
        assert rows.shape == (size, new)
        assert old + size == factor.size
    return factor


# One factor


def test_a_cholesky_factor_is_that_of_numpy() -> None:
    A = positive_definite(20)
    np.testing.assert_allclose(lower_cholesky(A), np.linalg.cholesky(A), rtol=1e-12)
    assert lower_cholesky(np.empty((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("n", [1, 2, 40, 200])
def test_two_factors_in_the_memory_of_one_solve_and_multiply_as_they_do_alone(n: int) -> None:
    A, B = lower_cholesky(positive_definite(n)), lower_cholesky(positive_definite(n, seed=1))
    C = np.random.default_rng(2).standard_normal((n, 3))
    rows, columns = paired(A, B)
    assert np.shares_memory(rows, columns) == (n > 1)
    np.testing.assert_array_equal(solve_lower(rows, C), solve_lower(A, C))
    np.testing.assert_array_equal(solve_transposed(rows, C), solve_transposed(A, C))
    np.testing.assert_allclose(lower_product(columns, C), B @ C, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_factor_from_the_last_row_on_is_lower_and_gives_the_matrix_from_the_left(n: int) -> None:
    A = positive_definite(n)
    C = reversed_cholesky(A)
    np.testing.assert_array_equal(C, np.tril(C))
    np.testing.assert_allclose(C.T @ C, A, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_with_a_solved_identity_are_solves_however_the_columns_lie(n: int, order: Any) -> None:
    L = lower_cholesky(positive_definite(n))
    B = np.asarray(np.random.default_rng(1).standard_normal((n, 7)), order=order)
    solved = solve_identity(L)
    np.testing.assert_array_equal(solved, np.tril(solved))
    np.testing.assert_allclose(lower_product(solved, B), solve_lower(L, B), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lower_product(L, B), L @ B, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product_with_lower(B.T, L), B.T @ L, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(L.T @ solve_transposed(L, B), B, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [2, 40, 300])
def test_a_pivot_lost_to_rounding_is_lifted(n: int) -> None:
    for A in (np.ones((n, n)), np.zeros((n, n)) + 1e12, np.outer(np.arange(n), np.arange(n)).astype(float)):
        L = lower_cholesky(A)
        assert np.abs(L @ L.T - A).max() <= 1e-9 * n * A.max()


def test_a_row_of_which_cancellation_leaves_nothing_is_lifted_relative_to_what_it_was() -> None:
    factor, solved = GrowingFactor().appended(np.eye(1)), np.full((1, 2), 1.0 + 1e-13)
    corner = np.ones((2, 2))
    assert (corner - solved.T @ solved < 0).all()
    _, rows = factor.extended(solved, corner)
    np.testing.assert_allclose(rows @ rows.T, corner, atol=1e-11)
    with pytest.raises(KernelError, match="larger lam"):
        factor.extended(np.full((1, 2), 1.1), corner)


@pytest.mark.parametrize("bad", [-np.eye(3), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_what_rounding_does_not_explain_is_refused_with_advice(bad: Floats) -> None:
    with pytest.raises(KernelError, match="larger lam"):
        lower_cholesky(bad)


def test_a_triangular_solve_leaves_the_right_hand_side_alone() -> None:
    L: Floats = np.asarray(np.linalg.cholesky(positive_definite(6)))
    B: Floats = np.ones((6, 2))
    np.testing.assert_allclose(L @ solve_lower(L, B), B, rtol=1e-12)
    np.testing.assert_array_equal(B, np.ones((6, 2)))
    empty = np.empty((0, 4))
    assert solve_lower(np.empty((0, 0)), empty).shape == (0, 4)
    assert solve_lower(np.empty((0, 0)), empty) is not empty


# Growing


@pytest.mark.parametrize("block_rows", [4, SMALL_BLOCK])
@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 21), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_factor_grown_in_any_steps_is_the_fresh_one(block_rows: int, sizes: list[int], seed: int) -> None:
    A = positive_definite(sum(sizes), seed=seed)
    factor = grown(A, sizes, block_rows=block_rows)
    L = np.linalg.cholesky(A)
    np.testing.assert_allclose(factor.matrix(), L, atol=1e-12)
    np.testing.assert_allclose(factor.diagonal(), np.diagonal(L), atol=1e-12)
    B = np.random.default_rng(seed).standard_normal((len(A), 3))
    np.testing.assert_allclose(factor.solve(B.copy()), np.linalg.solve(L, B), atol=1e-10)


@pytest.mark.parametrize(
    ("block_rows", "sizes"),
    [
        (LARGE_BLOCK, [255, 1, 1]),
        (LARGE_BLOCK, [256, 256]),
        (LARGE_BLOCK, [257, 300]),
        (LARGE_BLOCK, [600]),
        (SMALL_BLOCK, [15, 1, 1, 15, 1]),
        (SMALL_BLOCK, [16, 16]),
        (SMALL_BLOCK, [100]),
    ],
)
def test_growing_over_the_edge_of_a_block_loses_nothing(block_rows: int, sizes: list[int]) -> None:
    A = positive_definite(sum(sizes))
    factor = grown(A, sizes, block_rows=block_rows)
    np.testing.assert_allclose(factor.matrix(), np.linalg.cholesky(A), atol=1e-11)
    ends = [block.start + block.capacity for block in factor.blocks]
    assert [block.start for block in factor.blocks] == [0, *ends[:-1]]
    assert ends[-1] >= len(A)


@pytest.mark.parametrize("sizes", [[200], [16, 1, 150, 33], [1] * 200])
def test_small_blocks_double_wherever_a_factor_was_cut(sizes: list[int]) -> None:
    factor = grown(positive_definite(200), sizes, block_rows=SMALL_BLOCK)
    assert [block.start for block in factor.blocks] == [0, 16, 32, 64, 128, 192]


def test_a_solve_happens_where_the_right_hand_side_lies() -> None:
    factor = grown(positive_definite(40), [17, 23], block_rows=SMALL_BLOCK)
    B = np.ones((40, 2))
    assert factor.solve(B) is B
    assert factor.solve(np.empty((40, 0))).shape == (40, 0)
    assert GrowingFactor().solve(np.empty((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("done", [0, 1, 15, 16, 17, 39, 40])
def test_a_solve_may_start_where_another_one_ended(done: int) -> None:
    A = positive_definite(40)
    factor, L = grown(A, [40], block_rows=SMALL_BLOCK), np.linalg.cholesky(A)
    B = np.random.default_rng(0).standard_normal((40, 3))
    begun = B.copy()
    begun[:done] = np.linalg.solve(L, B)[:done]
    np.testing.assert_allclose(factor.solve(begun, done=done), np.linalg.solve(L, B), atol=1e-12)


@pytest.mark.parametrize("first", [1, 15, 16, 17, 33])
def test_two_extensions_of_one_factor_do_not_disturb_each_other(first: int) -> None:
    one, other = positive_definite(50), positive_definite(50)
    other[first:, :] *= 0.5
    other[:, first:] *= 0.5
    base = grown(one, [first], block_rows=SMALL_BLOCK)
    before = base.matrix()
    long, short, longer = (extension(base, A)[0] for A in (one[:40, :40], other[:36, :36], other))
    np.testing.assert_allclose(long.matrix(), np.linalg.cholesky(one[:40, :40]), atol=1e-12)
    np.testing.assert_allclose(short.matrix(), np.linalg.cholesky(other[:36, :36]), atol=1e-12)
    np.testing.assert_allclose(longer.matrix(), np.linalg.cholesky(other), atol=1e-12)
    np.testing.assert_array_equal(base.matrix(), before)


@pytest.mark.parametrize("first", [0, 1, 15, 16, 17, 40, 49, 50])
def test_a_corner_is_the_last_rows_and_columns(first: int) -> None:
    A = positive_definite(50)
    factor = grown(A, [7, 23, 20], block_rows=SMALL_BLOCK)
    np.testing.assert_array_equal(factor.corner(first), factor.matrix()[first:, first:])


@pytest.mark.parametrize("size", [1, 15, 16, 17, 40])
def test_a_trace_has_no_rows_that_a_longer_factor_added(size: int) -> None:
    A = positive_definite(size)
    base = GrowingFactor(block_rows=16).appended(lower_cholesky(A))
    was = base.trace()
    assert was == pytest.approx(np.trace(np.linalg.cholesky(A)), rel=1e-14)
    longer = base.appended(np.full((3, size + 3), np.inf))
    assert longer.trace() == np.inf
    assert base.trace() == was
    assert GrowingFactor().trace() == 0.0


def test_the_first_extension_shares_the_memory_of_its_base() -> None:
    A = positive_definite(60)
    base = grown(A[:30, :30], [20, 10], block_rows=LARGE_BLOCK)
    child, _ = extension(base, A)
    assert child.blocks == base.blocks
    sibling, _ = extension(base, A)
    assert sibling.blocks[0] is base.blocks[0]  # it is full, so nobody appends to it
    assert sibling.blocks[1] is not base.blocks[1]


@pytest.mark.parametrize("size", [1, 5, 16, 17, 40])
def test_a_small_factor_solves_to_the_same_bits_in_whatever_steps_it_grew(size: int) -> None:
    A = positive_definite(size)
    slowly = grown(A, [1] * size, block_rows=SMALL_BLOCK)
    at_once = GrowingFactor(block_rows=SMALL_BLOCK).appended(slowly.matrix())
    B = np.random.default_rng(0).standard_normal((size, 3))
    np.testing.assert_array_equal(at_once.solve(B.copy()), slowly.solve(B.copy()))


# Pivoting


def pivots_of(A: Floats, *, tolerance: float = 1e-12) -> list[int]:
    return pivoted_cholesky(lambda j: A[j].copy(), np.diagonal(A), tolerance=tolerance)


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 200])
def test_pivots_are_those_of_lapack(n: int) -> None:
    A = positive_definite(n, seed=n)
    _, order, rank, _ = lapack.dpstrf(A, lower=1, tol=1e-12)
    assert rank == n
    assert pivots_of(A) == list(order - 1)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_pivots_are_those_of_whole_schur_complements(gamma: float, dim: int) -> None:
    X = np.random.default_rng(3).uniform(-1, 1, (80, dim))
    K = gaussian(gamma)(X, X)
    np.testing.assert_array_equal(X[pivots_of(K, tolerance=1e-10)], thin(gaussian(gamma), X))


def test_of_equal_residuals_the_first_is_taken() -> None:
    assert pivots_of(np.eye(4)) == [0, 1, 2, 3]
    assert pivots_of(np.diag([1.0, 3.0, 2.0, 3.0])) == [1, 3, 2, 0]


def test_a_residual_at_the_tolerance_is_not_taken() -> None:
    A = np.diag([4.0, 1.0, 1.0 + 1e-9, 0.5])
    assert pivots_of(A, tolerance=1.0) == [0, 2]
    assert pivots_of(A, tolerance=4.0) == []


def test_pivoting_stops_at_the_rank_and_no_pivot_comes_twice() -> None:
    X = np.random.default_rng(0).standard_normal((30, 4))
    pivots = pivots_of(X @ X.T, tolerance=1e-9)
    assert len(pivots) == len(set(pivots)) == 4
    full = pivots_of(np.eye(100) + 1e-3, tolerance=-1.0)
    assert sorted(full) == list(range(100))
    assert pivots_of(np.empty((0, 0))) == []


def test_pivoting_asks_for_no_more_rows_than_it_takes() -> None:
    X = np.random.default_rng(0).standard_normal((30, 4))
    asked: list[int] = []

    def row(j: int) -> Floats:
        asked.append(j)
        return np.asarray(X[j] @ X.T)

    assert pivoted_cholesky(row, np.sum(X**2, axis=1), tolerance=1e-9) == asked


@pytest.mark.parametrize("n", [3, SMALL_BLOCK, 40, LARGE_BLOCK])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_factor_made_whole_grows_as_one_that_was_grown(n: int, dtype: str) -> None:
    A = positive_definite(n + 20)
    L = lower_cholesky(A[:n, :n])
    whole = GrowingFactor.of(L, dtype=np.dtype(dtype))
    kept = L.copy()
    for seed in (0, 1):  # twice from the same factor
        longer = A.copy()
        longer[n:, n:] += seed * np.eye(20)
        factor, _ = extension(whole, longer)
        tolerance = 1e-12 if dtype == "float64" else 1e-4
        np.testing.assert_allclose(factor.matrix(), lower_cholesky(longer), atol=tolerance)
    np.testing.assert_allclose(whole.matrix(), kept, atol=1e-6 if dtype == "float32" else 0.0)
    np.testing.assert_array_equal(L, kept)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("inner", [0, 1, 5])
def test_a_product_is_subtracted_where_the_matrix_lies(dtype: str, transposed: bool, inner: int) -> None:
    random = np.random.default_rng(0)
    whole = random.standard_normal((9, 7)).astype(dtype)
    A = (
        random.standard_normal((inner, 4)).astype(dtype).T
        if transposed
        else random.standard_normal((4, inner)).astype(dtype)
    )
    B = random.standard_normal((inner, 7)).astype(dtype)
    expected = whole.copy()
    expected[3:7] -= A @ B
    subtract_product(whole[3:7], A, B)
    np.testing.assert_allclose(whole, expected, atol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("n", [0, 1, 95, 96, 97, 250])
def test_an_inverse_in_parts_is_that_of_the_whole(n: int) -> None:
    L = lower_cholesky(positive_definite(n))
    whole = lapack.dtrtri(L.T, lower=0)[0].T if n else L
    np.testing.assert_allclose(solve_identity(L), whole, rtol=1e-11, atol=1e-13)
    assert (np.triu(solve_identity(L), 1) == 0).all()


@pytest.mark.parametrize("n", [0, 1, 2, 70])
def test_products_of_a_triangle_with_itself_are_those_of_whole_matrices(n: int) -> None:
    L = lower_cholesky(positive_definite(n))
    np.testing.assert_allclose(np.triu(lower_gram(L)), np.triu(L.T @ L), atol=1e-13)
    np.testing.assert_allclose(np.triu(reversed_outer(L)), np.triu((L @ L.T)[::-1, ::-1]), atol=1e-13)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 3), (40, 25), (25, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_gram_is_added_on_and_above_the_diagonal(n: int, m: int, order: Any) -> None:
    random = np.random.default_rng(3)
    C, A = np.asfortranarray(positive_definite(n)), np.array(random.standard_normal((n, m)), order=order)
    expected = np.triu(C + A @ A.T)
    np.testing.assert_allclose(np.triu(add_gram(C, A)), expected, atol=1e-12)
