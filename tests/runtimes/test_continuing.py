"""What was computed under an exact belief is taken on to the one that grew from it."""

from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laconic.arrays import Floats
from laconic.beliefs import ExactBelief
from laconic.kernels import Gaussian
from laconic.runtimes.lockstep.continuing import Known, continued, continues


def data(n: int, *, dim: int = 2, seed: int = 1) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.standard_normal((n, dim)), random.standard_normal(n)


def exact(known: tuple[Floats, Floats], *, dim: int = 2) -> ExactBelief:
    return ExactBelief.empty(kernel=Gaussian(0.4), lam=0.3, dim=dim).extended(*known)


@pytest.mark.parametrize("first", [0, 3, 255, 256, 300])
def test_a_view_is_continued_by_the_belief_that_learnt_more(first: int) -> None:
    old = exact(data(first, dim=3), dim=3)
    new = old.extended(*data(9, dim=3, seed=5)).extended(*data(3, dim=3, seed=6))
    Xs, _ = data(7, dim=3, seed=7)
    assert continues(new, old)
    taken_on, view = continued(new, old.view(Xs)), new.view(Xs)
    assert_array_equal(taken_on.points, Xs)
    for field in ("features", "mean", "signal", "residual"):
        assert_allclose(getattr(taken_on, field), getattr(view, field), atol=1e-11)


def test_a_belief_that_counts_points_again_or_is_another_one_does_not_continue() -> None:
    X, y = data(9)
    for rewards in (y, np.zeros(9)):  # without rewards only the counts tell
        old = exact((X, rewards))
        assert not continues(old.extended(X[:2], rewards[:2]), old)
        assert not continues(exact((X[::-1].copy(), rewards)), old)
        assert not continues(old, old.extended(*data(3, seed=5)))
        assert continues(old, old)


def test_features_at_hand_spare_work_and_change_nothing() -> None:
    old, new, (Xs, _) = exact(data(200)), data(9, seed=5), data(5, seed=6)
    features = old.view(np.concatenate([new[0], Xs])).features.T
    known = Known.of(np.concatenate([new[0], Xs]), features).columns
    with patch.object(type(old.factor), "solve", autospec=True, side_effect=type(old.factor).solve) as solve:
        belief = old.extended(*new, known=known)
    solve.assert_not_called()
    view = old.extended(*new).view(Xs)
    assert_allclose(belief.view(Xs).mean, view.mean, atol=1e-12)
    assert_allclose(belief.view(Xs).variance, view.variance, atol=1e-12)
    unknown = data(9, seed=8)
    view = old.extended(*unknown).view(Xs)
    assert_allclose(old.extended(*unknown, known=known).view(Xs).mean, view.mean, atol=1e-12)
