"""The tail by a second route: a belief that has learnt the tail's points is what belief and tail are together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from laconic.arrays import Floats
from laconic.beliefs import (
    Belief,
    BlankEmbedding,
    Embedding,
    ExactBelief,
    FiniteBelief,
    LinearEmbedding,
    NystromEmbedding,
    Statistics,
    View,
    contract,
)
from laconic.kernels import Gaussian
from laconic.tail import COLLAPSE_FROM, NOTHING_NEW, Tail
from tests import naive

Step = tuple[Floats, Floats]
LAM, GAMMA = 0.3, 1.5
KERNEL = naive.gaussian(GAMMA)


def data(n: int, *, dim: int = 2, seed: int = 1) -> Step:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, dim)), rng.standard_normal(n)


def repeats(n: int, *, items: int, seed: int = 1) -> Step:
    X, _ = data(items, seed=seed)
    rng = np.random.default_rng([seed, n])
    return X[rng.integers(items, size=n)], rng.standard_normal(n)


def exact(X: Floats, y: Floats) -> ExactBelief:
    return ExactBelief.empty(kernel=Gaussian(GAMMA), lam=LAM, dim=X.shape[1]).extended(X, y)


def finite(embedding: Embedding, X: Floats, y: Floats) -> FiniteBelief:
    return FiniteBelief(embedding=embedding, lam=LAM, statistics=Statistics.of(embedding, X, y))


def dictionary(size: int) -> NystromEmbedding:
    return NystromEmbedding(kernel=Gaussian(GAMMA), dictionary=data(size, seed=33)[0])


def tail_of(belief: Belief, X: Floats, y: Floats) -> Tail:
    tail = Tail(belief)
    for x, reward in zip(X, y, strict=True):
        tail.append(belief.view(x[None]), float(reward))
    return tail


def assert_predicts(tail: Tail, other: Belief, Xs: Floats, *, atol: float = 1e-9) -> None:
    mean, variance = tail.predict(tail.belief.view(Xs))
    view = other.view(Xs)
    assert_allclose(mean, view.mean, atol=atol)
    assert_allclose(variance, view.variance, atol=atol)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("new", [0, 1, 2, 6, 7, 8, 30])
@pytest.mark.parametrize("replayed", [True, False])
def test_a_tail_that_learns_all_at_once_is_the_one_that_learns_one_by_one(
    before: int, new: int, replayed: bool
) -> None:
    old, own, (Xs, _) = data(20), data(before + new, seed=2), data(7, seed=3)
    for belief in (finite(dictionary(6), *old), finite(LinearEmbedding(2), *old), exact(*old)):
        tail, other = (tail_of(belief, own[0][:before], own[1][:before]) for _ in range(2))
        tail.append_all(belief.view(own[0][before:]), own[1][before:], replayed=replayed)
        for x, reward in zip(own[0][before:], own[1][before:], strict=True):
            other.append(belief.view(x[None]), float(reward), replayed=replayed)
        for mine, expected in zip(tail.predict(belief.view(Xs)), other.predict(belief.view(Xs)), strict=True):
            assert_allclose(mine, expected, atol=1e-9)
        assert len(tail.rows) == len(other.rows)
        assert_allclose(tail.news.sums(), other.news.sums(), rtol=1e-9, atol=1e-12)
        assert_allclose(tail.fresh.sums(), other.fresh.sums(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("before", [0, 1, 3, 7])
def test_many_points_are_learnt_without_the_features_of_all_at_once(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "CHUNK_ENTRIES", 100)
    monkeypatch.setattr(contract, "CHUNK_LEAST", 16)
    old, own, (Xs, _) = data(20), data(before + 200, seed=2), data(7, seed=3)
    seen: list[int] = []

    def view(belief: Belief, X: Floats) -> View:
        seen.append(len(X))
        return belief.view(X)

    for belief in (finite(dictionary(6), *old), finite(LinearEmbedding(2), *old), exact(*old)):
        tail, other = (tail_of(belief, own[0][:before], own[1][:before]) for _ in range(2))
        tail.append_points(own[0][before:], own[1][before:], view=view)
        other.append_all(belief.view(own[0][before:]), own[1][before:])
        for mine, expected in zip(tail.predict(belief.view(Xs)), other.predict(belief.view(Xs)), strict=True):
            assert_allclose(mine, expected, atol=1e-12)
        assert len(tail.rows) == len(other.rows)  # folds were where they are without parts
        assert_allclose(tail.news.sums(), other.news.sums(), rtol=1e-12)
    assert max(seen) <= 50 + 7
    assert sum(seen) == 3 * 200


# Belief and tail together


@pytest.mark.parametrize("known", [0, 1, 20])
@pytest.mark.parametrize("new", [0, 1, 2, 15, 16, 17, 40, 70])
def test_an_exact_belief_and_its_tail_are_the_belief_that_learnt_the_tail(known: int, new: int) -> None:
    old, own, (Xs, _) = data(known), data(new, seed=2), data(7, seed=3)
    tail = tail_of(exact(*old), *own)
    assert_predicts(tail, exact(*old).extended(*own), np.concatenate([Xs, own[0][:3]]))
    X = np.concatenate([old[0], own[0]])
    assert_allclose(
        np.stack(tail.predict(tail.belief.view(Xs))),
        naive.posterior(KERNEL, X, np.concatenate([old[1], own[1]]), Xs, LAM),
        atol=1e-9,
    )


@pytest.mark.parametrize("known", [0, 1, 20])
@pytest.mark.parametrize("new", [0, 1, 4, 5, 6, 11, 12, 13, 40])
def test_a_nystrom_belief_and_its_tail_are_the_belief_that_learnt_the_tail(known: int, new: int) -> None:
    embedding = dictionary(5)
    (X, y), own, (Xs, _) = data(known), data(new, seed=2), data(7, seed=3)
    tail = tail_of(finite(embedding, X, y), *own)
    both = finite(embedding, np.concatenate([X, own[0]]), np.concatenate([y, own[1]]))
    assert_predicts(tail, both, np.concatenate([Xs, own[0][:3]]))
    expected = naive.nystrom(
        KERNEL, embedding.dictionary, np.concatenate([X, own[0]]), np.concatenate([y, own[1]]), Xs, LAM
    )
    assert_allclose(np.stack(tail.predict(tail.belief.view(Xs))), expected, atol=1e-8)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("new", [1, 3, 4, 9, 30])
def test_a_linear_belief_and_its_tail_are_ridge_regression_on_both(dim: int, new: int) -> None:
    (X, y), own, (Xs, _) = data(6, dim=dim), data(new, dim=dim, seed=2), data(5, dim=dim, seed=3)
    tail = tail_of(finite(LinearEmbedding(dim), X, y), *own)
    expected = naive.linear(np.concatenate([X, own[0]]), np.concatenate([y, own[1]]), Xs, LAM)
    assert_allclose(np.stack(tail.predict(tail.belief.view(Xs))), expected, atol=1e-10)


@settings(max_examples=25)
@given(
    known=st.integers(0, 12),
    numbers=st.lists(st.integers(0, 5), max_size=90),
    size=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_points_that_repeat_within_the_tail_and_the_belief_are_learnt_each_time(
    known: int, numbers: list[int], size: int, seed: int
) -> None:
    items, _ = data(6, seed=seed)
    old, own = repeats(known, items=6, seed=seed), (items[numbers], data(len(numbers), seed=seed + 1)[1])
    X, y = np.concatenate([old[0], own[0]]), np.concatenate([old[1], own[1]])
    Xs = np.concatenate([items[:3], data(3, seed=99)[0]])
    assert_predicts(tail_of(exact(*old), *own), exact(X, y), Xs)
    embedding = dictionary(size)
    assert_predicts(tail_of(finite(embedding, *old), *own), finite(embedding, X, y), Xs)


# What grows and what does not


def test_a_finite_tail_never_outgrows_the_rank() -> None:
    embedding = dictionary(5)
    tail = Tail(finite(embedding, *data(9)))
    for x, reward in zip(*data(100, seed=2), strict=True):
        tail.append(tail.belief.view(x[None]), float(reward))
        assert len(tail.rows) <= 5
    assert tail.news.count == 100


def test_folding_twice_and_more_changes_no_prediction() -> None:
    embedding, old, own, (Xs, _) = dictionary(4), data(9), data(60, seed=2), data(7, seed=3)
    tail, folds = Tail(finite(embedding, *old)), 0
    for t, (x, reward) in enumerate(zip(*own, strict=True), start=1):
        before = len(tail.rows)
        tail.append(tail.belief.view(x[None]), float(reward))
        folds += len(tail.rows) < before
        both = finite(embedding, np.concatenate([old[0], own[0][:t]]), np.concatenate([old[1], own[1][:t]]))
        assert_predicts(tail, both, Xs)
        gain = math.fsum([tail.news.log_det, tail.news.residual])
        assert gain == pytest.approx(both.information - tail.belief.information, abs=1e-9)
    assert folds >= 10


def test_an_exact_tail_of_few_points_stays_short() -> None:
    old, own, (Xs, _) = data(9), repeats(400, items=6), data(7, seed=3)
    tail, longest = Tail(exact(*old)), 0
    for x, reward in zip(*own, strict=True):
        tail.append(tail.belief.view(x[None]), float(reward))
        longest = max(longest, len(tail.rows))
    assert longest <= COLLAPSE_FROM
    assert tail.rows.counts.sum() == 400
    assert_predicts(tail, exact(*old).extended(*own), Xs)
    gain = exact(*old).extended(*own).information - tail.belief.information
    assert tail.news.log_det == pytest.approx(gain, abs=1e-8)


def test_an_exact_tail_without_repeats_keeps_every_row() -> None:
    tail = tail_of(exact(*data(9)), *data(150, seed=2))
    assert len(tail.rows) == 150


@pytest.mark.parametrize("embedding", [BlankEmbedding(2), dictionary(0)])
def test_without_coordinates_a_tail_learns_nothing_but_still_counts(embedding: Embedding) -> None:
    belief = FiniteBelief.empty(embedding=embedding, lam=LAM)
    own, (Xs, _) = data(10), data(4, seed=2)
    tail = tail_of(belief, *own)
    view = belief.view(Xs)
    mean, variance = tail.predict(view)
    assert_array_equal(mean, np.zeros(4))
    assert_array_equal(variance, view.variance)
    assert len(tail.rows) == 0
    assert tail.news.count == 10
    assert tail.news.log_det == 0.0
    prior = 10 / LAM if isinstance(embedding, NystromEmbedding) else 0.0
    assert tail.news.variance == tail.news.residual == pytest.approx(prior)
    assert tail.information == pytest.approx(prior)


# What triggers and exploration see


def beliefs() -> list[Belief]:
    old = data(12)
    return [
        exact(*data(0)),
        exact(*old),
        finite(dictionary(5), *old),
        finite(dictionary(5), *data(0)),
        finite(LinearEmbedding(2), *old),
    ]


@pytest.mark.parametrize("belief", beliefs())
@pytest.mark.parametrize("new", [1, 5, 40])
def test_the_log_det_sums_up_what_each_point_adds(belief: Belief, new: int) -> None:
    X, y = data(new, seed=2)
    tail, total = Tail(belief), 0.0
    for x, reward in zip(X, y, strict=True):
        view = belief.view(x[None])
        total += math.log1p(float(tail.predict(view)[1][0] - view.residual[0]))
        tail.append(view, float(reward))
    assert tail.news.log_det == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("known", [0, 12])
@pytest.mark.parametrize("new", [1, 5, 40])
def test_the_log_det_of_an_exact_tail_is_the_ratio_of_determinants(known: int, new: int) -> None:
    old, own = data(known), repeats(new, items=9, seed=2)
    tail = tail_of(exact(*old), *own)
    assert tail.news.log_det == pytest.approx(naive.log_det_gain(KERNEL, old[0], own[0], LAM), abs=1e-9)
    X = np.concatenate([old[0], own[0]])
    assert tail.information == pytest.approx(naive.log_det(KERNEL, X, LAM), abs=1e-9)


def test_the_log_det_of_a_linear_tail_is_the_ratio_of_determinants() -> None:
    old, own = data(6, dim=3), data(11, dim=3, seed=2)
    tail = tail_of(finite(LinearEmbedding(3), *old), *own)
    last = old[0].T @ old[0] + LAM * np.eye(3)
    new = last + own[0].T @ own[0]
    ratio = np.linalg.slogdet(new)[1] - np.linalg.slogdet(last)[1]
    assert tail.news.log_det == pytest.approx(ratio, abs=1e-10)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_the_information_of_a_nystrom_tail_is_the_clients_upper_bound(size: int) -> None:
    embedding, old, own = dictionary(size), data(12), data(20, seed=2)
    tail = tail_of(finite(embedding, *old), *own)
    X = np.concatenate([old[0], own[0]])
    assert tail.information == pytest.approx(naive.log_det_bound(KERNEL, embedding.dictionary, X, LAM), abs=1e-8)
    assert tail.information >= naive.log_det(KERNEL, X, LAM)


@pytest.mark.parametrize("belief", beliefs())
@pytest.mark.parametrize("new", [1, 5, 40])
def test_the_variance_of_the_news_is_that_of_the_last_sync(belief: Belief, new: int) -> None:
    X, y = data(new, seed=2)
    tail = tail_of(belief, X, y)
    view = belief.view(X)
    assert tail.news.variance == pytest.approx(float(view.variance.sum()))
    assert tail.news.residual == pytest.approx(float(view.residual.sum()))
    assert tail.news.count == new


def test_a_new_tail_has_no_news() -> None:
    tail = Tail(exact(*data(3)))
    assert tail.news == NOTHING_NEW
    assert tail.information == tail.belief.information


@pytest.mark.parametrize("belief", beliefs())
def test_predicting_changes_nothing(belief: Belief) -> None:
    tail, (Xs, _) = tail_of(belief, *data(9, seed=2)), data(4, seed=3)
    view = belief.view(Xs)
    features = view.features.copy()
    first, second = tail.predict(view), tail.predict(view)
    assert_array_equal(np.stack(first), np.stack(second))
    assert_array_equal(view.features, features)


def test_tails_of_one_belief_do_not_disturb_each_other() -> None:
    belief, (Xs, _) = exact(*data(9)), data(4, seed=5)
    one, other = data(20, seed=2), data(25, seed=3)
    tails = Tail(belief), Tail(belief)
    for i in range(25):
        for tail, (X, y) in zip(tails, (one, other), strict=True):
            if i < len(X):
                tail.append(belief.view(X[i][None]), float(y[i]))
    for tail, own in zip(tails, (one, other), strict=True):
        assert_predicts(tail, belief.extended(*own), Xs)


@pytest.mark.parametrize("belief", beliefs())
@pytest.mark.parametrize("replayed", [0, 1, 7, 12])
def test_replayed_points_count_in_the_news_but_are_not_fresh(belief: Belief, replayed: int) -> None:
    X, y = data(12, seed=2)
    tail, plain = Tail(belief), tail_of(belief, X, y)
    before = Tail(belief)
    for i, (x, reward) in enumerate(zip(X, y, strict=True)):
        tail.append(belief.view(x[None]), float(reward), replayed=i < replayed)
        if i < replayed:
            before.append(belief.view(x[None]), float(reward))
    assert tail.news == plain.news
    assert plain.fresh == plain.news
    assert tail.fresh.count == 12 - replayed
    for name in ("log_det", "variance", "residual"):
        rest = getattr(plain.news, name) - getattr(before.news, name)
        assert getattr(tail.fresh, name) == pytest.approx(rest, abs=1e-12)
    assert Tail.from_arrays(belief, tail.arrays()).fresh == tail.fresh


# Saving


@pytest.mark.parametrize("belief", beliefs())
@pytest.mark.parametrize("new", [0, 1, 5, 6, 31, 32, 50])
@pytest.mark.parametrize("items", [4, 1000])
def test_a_tail_is_restored_to_the_last_bit(belief: Belief, new: int, items: int) -> None:
    tail, (Xs, _) = tail_of(belief, *repeats(new, items=items)), data(4, seed=3)
    twin = Tail.from_arrays(belief, {name: array.copy() for name, array in tail.arrays().items()})
    for x, reward in zip(*repeats(40, items=items, seed=4), strict=True):
        assert twin.news == tail.news
        assert_array_equal(np.stack(twin.predict(belief.view(Xs))), np.stack(tail.predict(belief.view(Xs))))
        for each in (tail, twin):
            each.append(belief.view(x[None]), float(reward))
    assert twin.news == tail.news
    assert twin.fresh == tail.fresh
    assert twin.information == tail.information
