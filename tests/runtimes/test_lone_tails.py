"""Tails in rows to multiply by say what tails in factors to solve with say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import Gaussian
from laconic.beliefs import ExactBelief, FiniteBelief, LinearEmbedding, NystromEmbedding, Statistics, View
from laconic.runtimes.lockstep.exact_tail import ExactTail
from laconic.runtimes.lockstep.lone_tails import LateTail, QuickTail, replayed
from laconic.runtimes.lockstep.sights import Sights, sight_of
from laconic.tail import Learning, Tail


def belief(rank: int, *, seed: int) -> FiniteBelief:
    draw = np.random.default_rng(seed)
    embedding = NystromEmbedding(kernel=Gaussian(0.7), dictionary=draw.normal(size=(rank, 2)))
    empty = FiniteBelief.empty(embedding=embedding, lam=0.3)
    X = draw.normal(size=(20, 2))
    Z = embedding.embed(X)
    sums = Statistics(gram=Z @ Z.T, moment=Z @ draw.normal(size=20), prior=20.0, count=20, squares=20.0)
    return empty.with_statistics(sums)


def assert_same_tails(quick: QuickTail | ExactTail, tail: Tail, view: View) -> None:
    for mine, expected in zip(quick.predict(view), tail.predict(view), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-9)
    for a, b in ((quick.news, tail.news), (quick.fresh, tail.fresh)):
        assert a.sums() == pytest.approx(b.sums(), rel=1e-8, abs=1e-9)
    assert quick.information == pytest.approx(tail.information)


@given(rank=st.integers(1, 12), before=st.integers(0, 6), after=st.integers(1, 90), seed=st.integers(0, 99))
def test_a_quick_tail_predicts_and_reports_what_a_tail_does(rank: int, before: int, after: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    tail = Tail(belief(rank, seed=seed))
    for _ in range(min(before, rank)):  # more would be folded
        tail.append(tail.belief.view(draw.normal(size=(1, 2))), float(draw.normal()), replayed=bool(draw.integers(2)))
    quick = QuickTail.of(tail, Sights())
    assert quick is not None
    for _ in range(after):
        x, y = draw.normal(size=(1, 2)), float(draw.normal())
        for each in (tail, quick):
            each.append(each.belief.view(x), y)
    assert_same_tails(quick, tail, tail.belief.view(draw.normal(size=(7, 2))))


@given(rank=st.integers(1, 12), lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_late_tails_that_are_looked_at_together_are_those_that_were_replayed_alone(
    rank: int, lengths: list[int], seed: int
) -> None:
    draw, known = np.random.default_rng(seed), belief(rank, seed=seed)
    parts = [(draw.normal(size=(length, 2)), draw.normal(size=length)) for length in lengths]
    quick = replayed([LateTail(known, X, y) for X, y in parts], sight_of(known))
    view = known.view(draw.normal(size=(7, 2)))
    for mine, (X, y) in zip(quick, parts, strict=True):
        assert_same_tails(mine, Learning().replayed(known, X, y), view)


def test_a_quick_tail_never_has_many_more_rows_than_coordinates() -> None:
    quick = QuickTail.of(Tail(belief(3, seed=1)), Sights())
    assert quick is not None
    draw = np.random.default_rng(0)
    for _ in range(200):
        quick.append(quick.belief.view(draw.normal(size=(1, 2))), 0.5)
    assert len(quick._rows.values) <= 2 * 3 + 32


def test_tails_without_fixed_coordinates_have_no_quick_form() -> None:
    assert QuickTail.of(Tail(ExactBelief.empty(kernel=Gaussian(), lam=1.0, dim=2)), Sights()) is None
    folded = Tail(FiniteBelief.empty(embedding=LinearEmbedding(1), lam=1.0))
    for _ in range(3):
        folded.append(folded.belief.view(np.ones((1, 1))), 1.0)
    assert folded.basis is not None
    assert QuickTail.of(folded, Sights()) is None
