"""Beliefs multiplied out say what beliefs say, and tails on them what tails say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from laconic import Gaussian, Linear, Matern
from laconic.atoms import belief_of
from laconic.beliefs import FiniteBelief, LinearEmbedding, NystromEmbedding, Statistics
from laconic.exploration import tied_with_best
from laconic.runtimes.lockstep import sights
from laconic.runtimes.lockstep.lone_tails import Bound, QuickTail, scored
from laconic.runtimes.lockstep.sights import Folded, Plain, Sights, sight_of
from laconic.tail import Tail

DRAW = np.random.default_rng(5)
POINTS = DRAW.uniform(-1, 1, size=(40, 3))


def weighted(kernel: Any, atoms: int) -> FiniteBelief:
    weights, c = DRAW.uniform(0, 9, size=atoms), DRAW.normal(size=atoms)
    X = DRAW.uniform(-1, 1, size=(atoms, 3))
    return belief_of(X, weights, c, spanning=np.ones(atoms, dtype=bool), kernel=kernel, lam=0.1, count=9)


def plain() -> FiniteBelief:
    embedding = LinearEmbedding(3)
    return FiniteBelief(embedding=embedding, lam=0.1, statistics=Statistics.of(embedding, POINTS, POINTS[:, 0]))


def blank() -> FiniteBelief:
    return FiniteBelief.nystrom(kernel=Gaussian(0.4), dictionary=POINTS[:9], lam=0.1)


BELIEFS = {
    "one atom": weighted(Gaussian(0.4), 1),
    "gaussian": weighted(Gaussian(0.4), 30),
    "matern": weighted(Matern(2.5), 12),
    "linear": weighted(Linear(), 3),
    "without data": blank(),
    "no dictionary": plain(),
}


LARGE = weighted(Gaussian(3.0), 80)  # whose variances are bounded first


@pytest.fixture(params=[sights.MOST_KEPT, 0], ids=["small", "large"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sights, "MOST_KEPT", request.param)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS)
def test_a_sight_says_what_the_view_says(belief: FiniteBelief) -> None:
    sight, view = sight_of(belief), belief.view(POINTS)
    look, found = sight.look(POINTS), sight.sighting(POINTS)
    assert_allclose(look.mean, view.mean, atol=1e-9)
    assert_allclose(look.upper, view.variance, atol=1e-9)
    assert_allclose(look.variance(np.array([2, 5])), view.variance[[2, 5]], atol=1e-9)
    for name in ("points", "mean", "signal", "residual"):
        assert_allclose(getattr(found, name), getattr(view, name), atol=1e-9)
    assert_allclose(found.features, view.features.T, atol=1e-9)
    assert_allclose(found.numbers, look.numbers, atol=1e-9)
    assert_allclose(sight.numbers(view), look.numbers, atol=1e-9)
    assert_allclose(found.turned @ look.numbers.T, belief.covariance(view, view), atol=1e-9)
    taken = look.taken(np.array([7, 0, 7]))
    assert_allclose(taken.mean, view.mean[[7, 0, 7]], atol=1e-9)
    assert_allclose(taken.upper, view.variance[[7, 0, 7]], atol=1e-9)
    assert_allclose(taken.variance(np.array([1])), view.variance[[0]], atol=1e-9)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS)
def test_tails_by_the_numbers_of_a_look_see_what_tails_predict(belief: FiniteBelief) -> None:
    tails, sights = [Tail(belief), Tail(belief)], Sights()
    sight, quick = sights.of(belief), [QuickTail.of(tail, sights) for tail in tails]
    for step in range(3 * belief.width + 40):
        for number in range(1 + step % 2):  # the second is half as long
            x, y = DRAW.uniform(-1, 1, size=(1, 3)), float(DRAW.normal())
            for each in (tails[number], quick[number]):
                assert each is not None
                each.append(belief.view(x), y)
    look, numbers = sight.look(POINTS), np.arange(len(POINTS))
    for mine, tail in zip(quick, tails, strict=True):
        assert mine is not None
        mean, variance = tail.predict(belief.view(POINTS))
        assert_allclose(look.mean + look.numbers @ mine.lean, mean, atol=1e-8)
        assert_allclose(mine.left(look.numbers, look.variance(numbers)), variance, atol=1e-8)


@pytest.mark.usefixtures("_sizes")
def test_a_lazy_look_bounds_variances_and_knows_those_that_are_asked_for() -> None:
    belief = weighted(Gaussian(3.0), 80)
    look, variance, some = sight_of(belief).look(POINTS, lazily=True), belief.view(POINTS).variance, np.arange(3, 9)
    assert (look.upper > variance + 1e-3).any()
    assert (look.upper >= variance - 1e-9).all()
    assert_allclose(look.variance(some), variance[some], atol=1e-9)
    assert_allclose(look.taken(np.array([5, 1])).variance(np.array([0])), variance[[5]], atol=1e-9)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("belief", [*BELIEFS.values(), LARGE], ids=[*BELIEFS, "large"])
def test_a_variance_is_exact_where_it_is_more_than_asked_for_and_else_at_most_that(belief: FiniteBelief) -> None:
    exact = belief.view(POINTS).variance
    for most in (exact - 1e-3, np.full(len(POINTS), np.median(exact)), exact + 1e9):
        found = sight_of(belief).variance(POINTS, most=most)
        assert (found >= exact - 1e-9).all()
        beyond = found > most
        assert_allclose(found[beyond], exact[beyond], atol=1e-9)


def test_sights_are_made_once_and_forgotten_with_their_beliefs() -> None:
    sights, one, other = Sights(), BELIEFS["gaussian"], BELIEFS["matern"]
    first, second = sights.of(one), sights.of(other)
    assert sights.of(one) is first
    sights.keep([one], newest=one)
    assert sights.of(one) is first
    assert sights.of(other) is not second


@given(
    alpha=st.sampled_from([0.0, 0.1, 1.0, 5.0]),
    masked=st.booleans(),
    tie=st.sampled_from([1e-10, 0.1]),  # the larger one so that ties come about
    equal=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_arms_that_are_left_at_a_bound_change_neither_the_choice_nor_a_tie(
    alpha: float, masked: bool, tie: float, equal: bool, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    belief = BELIEFS["gaussian"] if seed % 3 else LARGE
    arms = draw.uniform(-1, 1, size=(3, 7, 3))
    if equal:
        arms[:, 4] = arms[:, 1]
    there = draw.random(size=(3, 7)) < 0.7 if masked else None
    if there is not None:
        there[:, 1] = True
    tails, sights = [], Sights()
    for length in (0, 2, 9):
        tail = QuickTail.of(Tail(belief), sights)
        assert tail is not None
        for x in draw.uniform(-1, 1, size=(length, 1, 3)):
            tail.append(belief.view(x), float(draw.normal()))
        tails.append(tail)
    sight = sights.of(belief)
    mean, variance = scored(tails, sight.look(arms.reshape(-1, 3), lazily=True), Bound(alpha, tie=tie, there=there))
    looks = [sight.look(each) for each in arms]
    expected = (
        np.array([look.mean + look.numbers @ tail.lean for tail, look in zip(tails, looks, strict=True)]),
        np.array([tail.left(look.numbers, look.upper) for tail, look in zip(tails, looks, strict=True)]),
    )
    assert_allclose(mean, expected[0], atol=1e-8)
    assert (variance >= expected[1] - 1e-8).all()
    mine, theirs = (
        tied_with_best(mu, alpha * np.sqrt(left), tie=tie, there=there) for mu, left in ((mean, variance), expected)
    )
    assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("_sizes")
def test_a_sight_says_the_same_when_its_belief_has_let_go_of_its_factor() -> None:
    belief, rows = weighted(Gaussian(0.4), 30), DRAW.normal(size=(5, 30))
    sight = sight_of(belief)
    found, turned = sight.sighting(POINTS), sight.turned(rows)
    sight.lighten()
    assert_array_equal(sight.sighting(POINTS).features, found.features)
    assert_array_equal(sight.turned(rows), turned)
    assert "factor" not in vars(belief)  # nor was it made again


def test_only_beliefs_on_a_dictionary_in_double_precision_are_multiplied_out() -> None:
    embedding = NystromEmbedding(kernel=Gaussian(), dictionary=POINTS[:4], dtype="float32")
    assert isinstance(sight_of(FiniteBelief.empty(embedding=embedding, lam=1.0)), Plain)
    assert isinstance(sight_of(plain()), Plain)
    assert isinstance(sight_of(BELIEFS["gaussian"]), Folded)


def test_an_arm_that_is_not_there_neither_wins_nor_is_looked_at() -> None:
    bound = Bound(1.0, tie=1e-10, there=np.array([[False, True, True]]))
    assert bound.open(np.array([[9.0, 1.0, 0.9]]), np.array([[1.0, 0.04, 0.04]])).tolist() == [[False, True, True]]


def test_where_one_arm_alone_may_win_none_is_looked_at() -> None:
    bound = Bound(1.0, tie=1e-10, there=None)
    assert not bound.open(np.array([[1.0, 0.5, -3.0]]), np.array([[0.01, 0.01, 0.01]])).any()


def test_the_arm_by_whose_size_ties_are_measured_is_looked_at_too() -> None:
    bound = Bound(1.0, tie=1e-10, there=None)
    assert bound.open(np.array([[1.0, 0.95, -3.0, 0.0]]), np.full((1, 4), 0.01)).tolist() == [[True, True, True, False]]


def test_an_arm_that_may_tie_with_the_best_is_looked_at() -> None:
    mean, variance = np.array([[1.0, 0.95, 0.6]]), np.zeros((1, 3))
    assert Bound(0.0, tie=0.1, there=None).open(mean, variance).tolist() == [[True, True, False]]
    assert not Bound(0.0, tie=1e-10, there=None).open(mean, variance).any()
