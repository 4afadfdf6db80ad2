"""Beliefs multiplied out say what beliefs say, and tails on them what tails say."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laconic import Gaussian, Linear, Matern
from laconic.atoms import belief_of
from laconic.beliefs import FiniteBelief, LinearEmbedding, NystromEmbedding, Statistics
from laconic.runtimes.lockstep import sights
from laconic.runtimes.lockstep.lone_tails import QuickTail, turn
from laconic.runtimes.lockstep.sights import Folded, Plain, sight_of
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


@pytest.fixture(params=[sights.MOST_KEPT, 0], ids=["small", "large"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sights, "MOST_KEPT", request.param)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS)
def test_a_sight_says_what_the_view_says(belief: FiniteBelief) -> None:
    sight, view = sight_of(belief), belief.view(POINTS)
    look, other = sight.look(POINTS), sight.view(POINTS)
    assert_allclose(look.mean, view.mean, atol=1e-9)
    assert_allclose(look.variance, view.variance, atol=1e-9)
    for name in ("points", "features", "mean", "signal", "residual"):
        assert_allclose(getattr(other, name), getattr(view, name), atol=1e-9)
    assert_allclose(look.between(3, 9).mean, view.mean[3:9], atol=1e-9)
    assert_allclose(look.taken(np.array([7, 0, 7])).variance, view.variance[[7, 0, 7]], atol=1e-9)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS)
def test_tails_turned_for_a_sight_see_what_tails_predict(belief: FiniteBelief) -> None:
    tails, sight = [Tail(belief), Tail(belief)], sight_of(belief)
    quick = [each for each in map(QuickTail.of, tails) if each is not None]
    for step in range(3 * belief.width + 40):
        for number in range(1 + step % 2):  # the second is half as long
            x, y = DRAW.uniform(-1, 1, size=(1, 3)), float(DRAW.normal())
            for each in (tails[number], quick[number]):
                each.append(belief.view(x), y)
        if step % 5 == 0:
            turn(quick, sight)
    turn(quick, sight)
    for mine, tail in zip(quick, tails, strict=True):
        for one, other in zip(mine.seen(sight.look(POINTS)), tail.predict(belief.view(POINTS)), strict=True):
            assert_allclose(one, other, atol=1e-8)


@pytest.mark.usefixtures("_sizes")
def test_a_sight_says_the_same_when_its_belief_has_let_go_of_its_factor() -> None:
    belief, rows = weighted(Gaussian(0.4), 30), DRAW.normal(size=(5, 30))
    sight = sight_of(belief)
    view, turned = sight.view(POINTS), sight.turned(rows)
    sight.lighten()
    assert_array_equal(sight.view(POINTS).features, view.features)
    assert_array_equal(sight.turned(rows), turned)
    assert "factor" not in vars(belief)  # nor was it made again


def test_only_beliefs_on_a_dictionary_in_double_precision_are_multiplied_out() -> None:
    embedding = NystromEmbedding(kernel=Gaussian(), dictionary=POINTS[:4], dtype="float32")
    assert isinstance(sight_of(FiniteBelief.empty(embedding=embedding, lam=1.0)), Plain)
    assert isinstance(sight_of(plain()), Plain)
    assert isinstance(sight_of(BELIEFS["gaussian"]), Folded)
