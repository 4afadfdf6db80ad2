"""Beliefs by a second route: the paper's formulas written naively, scikit-learn's Gaussian process, determinants."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from laconic.arrays import Floats
from laconic.beliefs import (
    SLACK,
    Belief,
    BlankEmbedding,
    ExactBelief,
    FiniteBelief,
    LinearEmbedding,
    NystromEmbedding,
    Statistics,
)
from laconic.errors import InputError
from laconic.kernels import Gaussian, Linear, Matern, as_kernel
from tests import naive

Step = tuple[Floats, Floats]


def data(n: int, *, dim: int = 2, seed: int = 1) -> Step:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, dim)), rng.standard_normal(n)


def repeats(n: int, *, items: int, dim: int = 2, seed: int = 1) -> Step:
    """Rewards of points that come from a few items."""
    X, _ = data(items, dim=dim, seed=seed)
    rng = np.random.default_rng([seed, n])
    return X[rng.integers(items, size=n)], rng.standard_normal(n)


def exact(*steps: Step, gamma: float = 1.5, lam: float = 0.3, dim: int = 2) -> ExactBelief:
    belief = ExactBelief.empty(kernel=Gaussian(gamma), lam=lam, dim=dim)
    for X, y in steps:
        belief = belief.extended(X, y)
    return belief


def nystrom(S: Floats, X: Floats, y: Floats, *, gamma: float = 1.5, lam: float = 0.3) -> FiniteBelief:
    embedding = NystromEmbedding(kernel=Gaussian(gamma), dictionary=S)
    return FiniteBelief(embedding=embedding, lam=lam, statistics=Statistics.of(embedding, X, y))


def linear(X: Floats, y: Floats, *, lam: float = 0.3) -> FiniteBelief:
    embedding = LinearEmbedding(X.shape[1])
    return FiniteBelief(embedding=embedding, lam=lam, statistics=Statistics.of(embedding, X, y))


def assert_says(belief: Belief, expected: tuple[Floats, Floats], Xs: Floats, *, atol: float = 1e-10) -> None:
    view = belief.view(Xs)
    assert_allclose(view.mean, expected[0], atol=atol)
    assert_allclose(view.variance, expected[1], atol=atol)


def joined(*steps: Step) -> Step:
    return np.concatenate([X for X, _ in steps]), np.concatenate([y for _, y in steps])


# Exact


@pytest.mark.parametrize("n", [0, 1, 2, 40])
@pytest.mark.parametrize("lam", [0.01, 1.0, 7.0])
def test_an_exact_belief_says_what_the_papers_formulas_say(n: int, lam: float) -> None:
    (X, y), (Xs, _) = data(n), data(6, seed=2)
    for ours, theirs in ((Gaussian(2.0), naive.gaussian(2.0)), (Linear(), naive.linear_kernel)):
        belief = ExactBelief.empty(kernel=ours, lam=lam, dim=2).extended(X, y)
        assert_says(belief, naive.posterior(theirs, X, y, Xs, lam), Xs, atol=1e-9)
        assert belief.information == pytest.approx(naive.log_det(theirs, X, lam), abs=1e-9)
        assert belief.observations == n


@pytest.mark.parametrize("kernel", [sk.RBF(0.4), sk.Matern(0.7, nu=1.5), 2.0 * sk.RationalQuadratic()])
@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_an_exact_belief_is_the_gaussian_process_of_scikit_learn(kernel: sk.Kernel, lam: float) -> None:
    (X, y), (Xs, _) = repeats(50, items=30, dim=3), data(8, dim=3, seed=2)
    process = GaussianProcessRegressor(kernel, alpha=lam, optimizer=None).fit(X, y)
    mean, covariance = process.predict(Xs, return_cov=True)
    belief = ExactBelief.empty(kernel=as_kernel(kernel), lam=lam, dim=3).extended(X, y)
    view = belief.view(Xs)
    assert_allclose(view.mean, mean, atol=1e-10)
    assert_allclose(lam * view.variance, np.diagonal(covariance), atol=1e-10)
    assert_allclose(lam * belief.covariance(view, view), covariance, atol=1e-10)


def test_before_any_data_the_variance_is_the_prior_over_lambda() -> None:
    X, _ = data(4)
    assert_says(exact(lam=0.2), (np.zeros(4), np.full(4, 5.0)), X)
    assert exact().information == 0.0
    assert_says(ExactBelief.empty(kernel=Linear(), lam=0.5, dim=2), (np.zeros(4), 2 * np.sum(X**2, axis=1)), X)


#: Steps of an exact belief: numbers of items, few enough that they repeat within a step and between steps.
STEPS = st.lists(st.lists(st.integers(0, 8), max_size=9), max_size=6)


@pytest.mark.parametrize("small", [0, 4, 128])
@pytest.mark.parametrize("chunk", [2, 1024])
@settings(max_examples=20)
@given(steps=STEPS, seed=st.integers(0, 9))
def test_in_whatever_steps_points_come_and_repeat_the_belief_is_that_of_all_of_them(
    small: int, chunk: int, steps: list[list[int]], seed: int
) -> None:
    items, _ = data(9, seed=seed)
    learnt = [(items[numbers], data(len(numbers), seed=seed + 1)[1]) for numbers in steps]
    X, y = joined((np.empty((0, 2)), np.empty(0)), *learnt)
    Xs = np.concatenate([items[:4], data(3, seed=99)[0]])
    with patch.multiple("laconic.beliefs.exact", SMALL_FACTOR=small, CHUNK_ROWS=chunk):
        belief = exact(*learnt)
    assert_says(belief, naive.posterior(naive.gaussian(1.5), X, y, Xs, 0.3), Xs, atol=1e-9)
    assert belief.information == pytest.approx(naive.log_det(naive.gaussian(1.5), X, 0.3), abs=1e-9)
    assert belief.observations == len(X)
    distinct = len({key for numbers in steps for key in numbers})
    assert len(belief.points) == distinct if small == 128 else distinct <= len(belief.points)


def test_repeated_points_collapse_to_one_with_a_count_and_a_sum() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-0.0, 0.0], [0.0, 0.0]])
    belief = exact((X, np.array([1.0, 5.0, 2.0, 4.0])), (X[1:2], np.array([-3.0])))
    assert_array_equal(belief.points, [[0.0, 0.0], [1.0, 0.0]])
    assert_array_equal(belief.counts, [3.0, 2.0])
    assert_array_equal(belief.sums, [7.0, 2.0])
    assert belief.observations == 5


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_a_large_factor_carries_repeats_along_but_never_more_than_a_quarter(batch: int) -> None:
    items, _ = data(40, dim=3)
    belief, learnt = exact((items, np.zeros(40)), dim=3), [(items, np.zeros(40))]
    longest = 0
    with patch("laconic.beliefs.exact.SMALL_FACTOR", 10):
        for turn in range(0, 420, batch):
            new = items[np.arange(turn, turn + batch) % 40], np.full(batch, float(turn))
            belief, learnt = belief.extended(*new), [*learnt, new]
            longest = max(longest, len(belief.points))
    assert longest <= SLACK * 40
    assert (longest > 40) == (batch < 10)
    X, y = joined(*learnt)
    Xs, _ = data(5, dim=3, seed=2)
    assert_says(belief, naive.posterior(naive.gaussian(1.5), X, y, Xs, 0.3), Xs, atol=1e-7)
    assert belief.information == pytest.approx(naive.log_det(naive.gaussian(1.5), X, 0.3), rel=1e-9)


@pytest.mark.parametrize("first", [0, 1, 15, 16, 255, 256, 257])
def test_two_different_extensions_of_one_belief_do_not_disturb_each_other(first: int) -> None:
    base = data(first, dim=3)
    belief = exact(base, dim=3)
    one, other = data(30, dim=3, seed=5), repeats(20, items=9, dim=3, seed=6)
    grandchild = data(4, dim=3, seed=7)
    left = belief.extended(*one)
    right = belief.extended(*other)
    below = left.extended(*grandchild)
    again = left.extended(*other)
    Xs = np.concatenate([data(3, dim=3, seed=8)[0], one[0][:2], other[0][:2]])
    for each, steps in (
        (belief, (base,)),
        (left, (base, one)),
        (right, (base, other)),
        (below, (base, one, grandchild)),
        (again, (base, one, other)),
    ):
        X, y = joined(*steps)
        assert_says(each, naive.posterior(naive.gaussian(1.5), X, y, Xs, 0.3), Xs, atol=1e-9)


def test_a_belief_does_not_depend_on_what_was_made_of_its_base_before() -> None:
    base = exact(data(5))
    X, y = data(6, seed=2)
    fresh = exact(data(5)).extended(X, y)
    base.extended(X[:3], y[:3])
    base.extended(X, -y)
    late = base.extended(X, y)
    assert late.growth == fresh.growth
    for name, array in fresh.arrays().items():
        assert_array_equal(late.arrays()[name], array)
    assert_array_equal(late.factor.matrix(), fresh.factor.matrix())


def test_beliefs_of_one_history_share_memory() -> None:
    old = exact(data(300, dim=3), dim=3)
    new = old.extended(*data(5, dim=3, seed=2))
    assert np.shares_memory(old.points, new.points)
    assert new.factor.blocks[0] is old.factor.blocks[0]


def test_learning_nothing_changes_nothing() -> None:
    belief = exact(data(5))
    same = belief.extended(np.empty((0, 2)), np.empty(0))
    Xs, _ = data(4, seed=2)
    assert_array_equal(same.view(Xs).mean, belief.view(Xs).mean)
    assert same.observations == 5


def test_a_view_of_one_point_is_a_column_of_the_view_of_all() -> None:
    belief, (Xs, _) = exact(data(9)), data(5, seed=2)
    view = belief.view(Xs)
    for i in range(5):
        one, alone = view.at(i), belief.view(Xs[i : i + 1])
        assert_allclose(one.features, alone.features, atol=1e-13)
        for field in ("points", "mean", "signal", "residual", "variance"):
            assert_allclose(getattr(one, field), getattr(alone, field), atol=1e-13)


@pytest.mark.parametrize("n", [0, 5, 300])
def test_a_factor_in_single_precision_says_nearly_the_same_in_half_the_memory(n: int) -> None:
    learnt, again, (Xs, _) = data(n, dim=3), repeats(40, items=9, dim=3, seed=5), data(7, dim=3, seed=6)
    wide = exact(learnt, again, dim=3)
    narrow = ExactBelief.empty(kernel=Gaussian(1.5), lam=0.3, dim=3, dtype="float32")
    narrow = narrow.extended(*learnt).extended(*again)
    view = wide.view(Xs)
    assert_says(narrow, (view.mean, view.variance), Xs, atol=1e-4)
    assert narrow.information == pytest.approx(wide.information, rel=1e-4)
    assert narrow.view(Xs).mean.dtype == narrow.view(Xs).variance.dtype == np.float64
    assert {block.panel.dtype for block in narrow.factor.blocks} == {np.dtype(np.float32)}
    assert_same_bits(narrow, narrow.from_arrays(narrow.arrays()), Xs)


# Finite


@pytest.mark.parametrize("n", [0, 40])
def test_coordinates_in_single_precision_say_nearly_the_same(n: int) -> None:
    (X, y), (S, _), (Xs, _) = data(n), data(8, seed=3), data(6, seed=2)
    embedding = NystromEmbedding(kernel=Gaussian(4.0), dictionary=S, dtype="float32")
    narrow = FiniteBelief(embedding=embedding, lam=0.3, statistics=Statistics.of(embedding, X, y))
    assert_says(narrow, naive.nystrom(naive.gaussian(4.0), S, X, y, Xs, 0.3), Xs, atol=1e-4)
    assert_same_bits(narrow, narrow.from_arrays(narrow.arrays()), Xs)


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("size", [0, 1, 12])
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_a_nystrom_belief_says_what_the_papers_formulas_say(n: int, size: int, lam: float) -> None:
    (X, y), (S, _), (Xs, _) = data(n), data(size, seed=3), data(6, seed=2)
    belief = nystrom(S, X, y, gamma=4.0, lam=lam)
    assert_says(belief, naive.nystrom(naive.gaussian(4.0), S, X, y, Xs, lam), Xs, atol=1e-8)
    bound = naive.log_det_bound(naive.gaussian(4.0), S, X, lam)
    assert belief.information == pytest.approx(bound, rel=1e-9, abs=1e-9)
    assert belief.information >= naive.log_det(naive.gaussian(4.0), X, lam) - 1e-9
    assert belief.rank == belief.dictionary_size == size


def test_a_nystrom_belief_with_every_point_in_its_dictionary_is_exact() -> None:
    (X, y), (Xs, _) = repeats(40, items=12), data(6, seed=2)
    S = naive.merge_equal(X)
    full, all_of_it = nystrom(S, X, y, gamma=4.0), exact((X, y), gamma=4.0)
    view = all_of_it.view(Xs)
    assert_says(full, (view.mean, view.variance), Xs, atol=1e-8)
    assert full.information == pytest.approx(all_of_it.information, abs=1e-8)


@pytest.mark.parametrize("n", [0, 1, 30])
@pytest.mark.parametrize("dim", [1, 4])
def test_a_linear_belief_says_what_ridge_regression_says(n: int, dim: int) -> None:
    (X, y), (Xs, _) = data(n, dim=dim), data(6, dim=dim, seed=2)
    belief = linear(X, y, lam=0.7)
    assert_says(belief, naive.linear(X, y, Xs, 0.7), Xs)
    kernelised = ExactBelief.empty(kernel=Linear(), lam=0.7, dim=dim).extended(X, y)
    view = kernelised.view(Xs)
    assert_says(belief, (view.mean, view.variance), Xs)
    assert belief.information == pytest.approx(naive.log_det(naive.linear_kernel, X, 0.7), abs=1e-9)
    assert belief.information == pytest.approx(kernelised.information, abs=1e-9)
    assert belief.rank == dim
    assert belief.dictionary_size is None


def test_coordinates_are_those_of_the_cholesky_root_of_the_dictionary() -> None:
    (S, _), (X, _) = data(7), data(5, seed=2)
    embedding = NystromEmbedding(kernel=Matern(1.5), dictionary=S)
    Z = embedding.embed(X)
    assert_allclose(embedding.root @ embedding.root.T, Matern(1.5)(S, S), atol=1e-12)
    assert_array_equal(np.triu(embedding.root, 1), 0)
    assert_allclose(embedding.root @ Z, Matern(1.5)(S, X), atol=1e-12)
    rest = embedding.residual(embedding.prior(X), Z)
    assert_allclose(rest, 1 - np.sum(np.linalg.solve(embedding.root, Matern(1.5)(S, X)) ** 2, axis=0), atol=1e-12)
    assert_allclose(embedding.residual(embedding.prior(S), embedding.embed(S)), 0, atol=1e-12)


def test_statistics_of_parts_add_up_to_those_of_the_whole() -> None:
    (S, _), (X, y) = data(5), data(20, seed=2)
    embedding = NystromEmbedding(kernel=Gaussian(1.0), dictionary=S)
    whole = Statistics.of(embedding, X, y)
    parts = [Statistics.of(embedding, X[i::3], y[i::3]) for i in range(3)]
    total = Statistics.zeros(5) + parts[0] + parts[1] + parts[2]
    assert_allclose(total.gram, whole.gram, atol=1e-12)
    assert_allclose(total.moment, whole.moment, atol=1e-12)
    assert total.prior == pytest.approx(whole.prior) == 20.0
    assert total.count == whole.count == 20
    Z = naive.embedding(naive.gaussian(1.0), S, X)
    assert np.trace(whole.gram) == pytest.approx(np.sum(Z**2))


def test_the_covariance_of_a_finite_belief_is_that_of_its_coordinates() -> None:
    (X, y), (Xs, _) = data(20, dim=3), data(5, dim=3, seed=2)
    belief = linear(X, y, lam=0.7)
    view = belief.view(Xs)
    expected = Xs @ np.linalg.solve(X.T @ X + 0.7 * np.eye(3), Xs.T)
    assert_allclose(belief.covariance(view, view), expected, atol=1e-12)


def test_a_blank_belief_knows_nothing_and_doubts_nothing() -> None:
    belief = FiniteBelief.empty(embedding=BlankEmbedding(3), lam=1.0)
    assert_says(belief, (np.zeros(4), np.zeros(4)), data(4, dim=3)[0])
    assert belief.rank == 0
    assert belief.dictionary_size is None
    assert belief.information == 0.0
    assert belief.dim == 3


def test_a_new_dictionary_keeps_kernel_and_lambda_and_forgets_the_data() -> None:
    S, (X, y) = data(4)[0], data(9, seed=2)
    for old in (nystrom(S[:2], X, y, lam=0.4), exact((X, y), lam=0.4)):
        new: FiniteBelief = old.on_dictionary(S)
        assert isinstance(new.embedding, NystromEmbedding)
        assert new.embedding.kernel == Gaussian(1.5)
        assert (new.lam, new.observations, new.rank) == (0.4, 0, 4)
    with pytest.raises(InputError, match="kernel"):
        linear(X, y).on_dictionary(S)


# Saving


def assert_same_bits(one: Belief, other: Belief, Xs: Floats) -> None:
    assert type(one) is type(other)
    ours, theirs = one.view(Xs), other.view(Xs)
    for field in ("features", "mean", "signal", "residual"):
        assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert one.information == other.information


@pytest.mark.parametrize("small", [0, 128])
@pytest.mark.parametrize("chunk", [3, 1024])
@settings(max_examples=15)
@given(steps=STEPS)
def test_an_exact_belief_is_restored_to_the_last_bit(small: int, chunk: int, steps: list[list[int]]) -> None:
    items, _ = data(9)
    with patch.multiple("laconic.beliefs.exact", SMALL_FACTOR=small, CHUNK_ROWS=chunk):
        belief = exact(*[(items[numbers], data(len(numbers), seed=3)[1]) for numbers in steps])
        arrays = {name: array.copy() for name, array in belief.arrays().items()}
        twin = exact().from_arrays(arrays)
        new, Xs = repeats(4, items=9), data(5, seed=4)[0]
        assert_same_bits(belief, twin, Xs)
        assert isinstance(twin, ExactBelief)
        assert_same_bits(belief.extended(*new), twin.extended(*new), Xs)


def test_a_large_exact_belief_is_restored_to_the_last_bit() -> None:
    belief = exact(data(250), data(20, seed=2), repeats(300, items=40, seed=3))
    assert_same_bits(belief, exact().from_arrays(belief.arrays()), data(5, seed=4)[0])


def test_finite_beliefs_are_restored_to_the_last_bit() -> None:
    S, (X, y) = data(4)[0], data(9, seed=2)
    Xs, _ = data(5, seed=4)
    fresh = nystrom(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))
    for belief, template in (
        (nystrom(S, X, y), fresh),
        (nystrom(S, X, y), exact()),  # a cold start on exact local models
        (fresh, fresh),
        (linear(X, y), linear(X[:0], y[:0])),
    ):
        twin = template.from_arrays(belief.arrays())
        assert_same_bits(belief, twin, Xs)
        assert isinstance(twin, FiniteBelief)
        assert twin.observations == belief.observations


def test_variances_are_clipped_at_zero_where_rounding_would_make_them_negative() -> None:
    X = np.zeros((1, 1)) + 1e-9 * np.arange(60)[:, None]
    y = np.ones(60)
    for belief in (
        ExactBelief.empty(kernel=Gaussian(1.0), lam=1e-12, dim=1).extended(X, y),
        nystrom(X[:1], X, y, lam=1e-12),
    ):
        view = belief.view(X)
        assert (view.signal >= 0).all()
        assert (view.residual >= 0).all()
        assert np.isfinite(view.mean).all()
        assert math.isfinite(belief.information)
