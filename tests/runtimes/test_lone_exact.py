"""Clients that exchange alone on exact beliefs are scored together and lazily, and no choice shows it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import AllPoints, Catalogue, Cosine, DisKernelUCB, Gaussian, Greedy, LaconicUCB, Log, Matern
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief
from laconic.runtimes import run
from laconic.runtimes.lockstep import shadow
from laconic.runtimes.lockstep.batch import Exploring
from laconic.runtimes.lockstep.exact_tail import ExactTail
from laconic.runtimes.lockstep.lazy import Screen
from laconic.runtimes.lockstep.lines import AtHand, Line, Lines
from laconic.runtimes.lockstep.lone import LoneFleet
from laconic.runtimes.lockstep.shadow import Bounds
from laconic.tail import Tail
from tests.runtimes.test_lazy import belief_of, eager_to_be_lazy
from tests.runtimes.test_lockstep import KERNELS, PROBLEMS, assert_equal_runs, both
from tests.runtimes.test_lone_tails import assert_same_tails


@st.composite
def lone_algorithms(draw: st.DrawFn) -> Any:
    how: Any = {
        "kernel": draw(KERNELS),
        "lam": draw(st.sampled_from([1e-2, 0.1, 1.0])),
        "alpha": draw(st.sampled_from([0.0, 0.1, 1.0, 5.0])),
    }
    if draw(st.booleans()):
        how["exploration"] = Greedy()
    if draw(st.booleans()):
        delta = draw(st.sampled_from([0.1, 0.5, 4.0]))
        return LaconicUCB(**how, ranges=2.0, delta=delta, digest=AllPoints())
    D, wire = draw(st.sampled_from([0.0, 0.3, 2.0, 6.0])), draw(st.sampled_from(["float64", "float32", "int8"]))
    return DisKernelUCB(**how, D=D, wire=wire, together=False)


@settings(max_examples=50, deadline=None)
@given(
    algorithm=lone_algorithms(),
    problem=PROBLEMS,
    clients=st.integers(1, 6),
    rounds=st.integers(1, 6),
    seed=st.integers(0, 9),
    lazy_from=st.sampled_from([1, 7]),
    most_values=st.sampled_from([1, 24_000_000]),  # 1: one client at a time
)
def test_lazy_scores_choose_what_loopback_chooses(
    algorithm: Any, problem: Any, clients: int, rounds: int, seed: int, lazy_from: int, most_values: int
) -> None:
    with eager_to_be_lazy(LAZY_FROM=lazy_from, MOST_VALUES=most_values):
        assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize(
    "algorithm",
    [
        LaconicUCB(Gaussian(1.0), lam=1.0),  # which falls back
        LaconicUCB(Matern(nu=1.5), lam=1.0, digest=AllPoints()),
        DisKernelUCB(Gaussian(1.0), lam=1.0, D=2.0, together=False),
    ],
    ids=["fallback", "points", "exact"],
)
def test_lazy_scores_choose_what_loopback_chooses_over_many_rounds(algorithm: Any, alpha: float) -> None:
    with eager_to_be_lazy(LAZY_FROM=60, SHARPEST=shadow.SHARPEST) as made:
        assert_equal_runs(*both(replace(algorithm, alpha=alpha), Cosine(dim=6, arms=8), clients=9, rounds=40))
    rows = [bounds.prefixes.rows for bounds in made if bounds.prefixes is not None]
    assert any(len(set(each)) > 1 for each in rows)  # clients on several beginnings of one log
    assert any(each.min() < each.max() - 8 for each in rows)


def test_beliefs_that_are_large_as_they_are_choose_what_loopback_chooses() -> None:
    algorithm = LaconicUCB(Gaussian(1.0), lam=1.0, alpha=1.0, digest=AllPoints())
    with eager_to_be_lazy(LAZY_FROM=384, LEAST_ROWS=64, SHARPEST=shadow.SHARPEST) as made:
        assert_equal_runs(*both(algorithm, Cosine(dim=20), clients=15, rounds=36))
    assert made
    assert max(len(bounds.K) for bounds in made) > 384


def test_points_that_return_and_factors_that_are_made_anew_change_no_choice() -> None:
    """Of 400 items more than 128 are seen, then many again: some clients' beliefs go on from an older factor."""
    algorithm = DisKernelUCB(Gaussian(2.0), lam=0.1, D=0.5, alpha=0.5, together=False)
    with eager_to_be_lazy(LAZY_FROM=20) as made:
        assert_equal_runs(*both(algorithm, Catalogue(items=400, dim=4, arms=4), clients=6, rounds=80))
    assert max(len(bounds.K) for bounds in made) > 128
    assert len({id(bounds.shadow.belief.factor.blocks[0]) for bounds in made if len(bounds.K) > 128}) > 1


def test_arms_that_mirror_each_other_tie_and_one_of_them_is_drawn() -> None:
    random, steps = np.random.default_rng(1), 120
    half = random.normal(size=(steps, 3, 2)) * np.array([1.0, 0.0])
    arms = np.concatenate([half + np.array([0.0, 1.0]), half - np.array([0.0, 1.0])], axis=1)
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=np.zeros(steps))
    with eager_to_be_lazy() as made:
        one, other = both(DisKernelUCB(Gaussian(0.5), D=0.5, lam=0.1, together=False), problem, clients=4, rounds=30)
        assert_equal_runs(one, other)
    assert made
    assert len(set((one.choices >= 3).tolist())) == 2  # else nothing was drawn among arms that tie


def test_of_arms_that_a_set_holds_twice_and_some_that_are_not_there_the_same_are_chosen() -> None:
    random, steps = np.random.default_rng(2), 120
    arms = random.normal(size=(steps, 3, 2))[:, [0, 1, 2, 0, 1, 2]]
    mask = random.random((steps, 6)) < 0.7
    mask[:, 4] = True
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=np.zeros(steps), mask=mask)
    for algorithm in (
        DisKernelUCB(Gaussian(0.5), D=2.0, lam=0.1, together=False),
        LaconicUCB(Gaussian(0.5), lam=0.1, ranges=4.0, digest=AllPoints()),
    ):
        with eager_to_be_lazy() as made:
            assert_equal_runs(*both(algorithm, problem, clients=3, rounds=40))
        assert made


def test_a_download_before_a_clients_turn_is_taken_into_its_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """One asks while another, who mostly sees one point, has nothing new, and is sent it in that one's turn."""
    late, by_itself = [], LoneFleet._by_itself

    def noted(fleet: LoneFleet, number: int, client: Any, *given: Any, **how: Any) -> int:
        late.append((number, client.learner.belief.factor.size))
        return by_itself(fleet, number, client, *given, **how)

    monkeypatch.setattr(LoneFleet, "_by_itself", noted)
    arms = np.random.default_rng(4).normal(scale=2.0, size=(160, 4, 2))
    arms[[step for step in range(0, 160, 2) if step % 10]] = 0.0
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=np.zeros(160))
    for algorithm in (
        DisKernelUCB(Gaussian(0.5), lam=0.1, D=1.0, together=False),
        LaconicUCB(Gaussian(0.5), lam=0.1, ranges=8.0, digest=AllPoints()),
    ):
        late.clear()
        with eager_to_be_lazy():
            assert_equal_runs(*both(algorithm, problem, clients=2, rounds=80))
        assert any(number == 1 and size > 0 for number, size in late)  # who has nothing yet is played by itself


def test_rounds_that_all_share_their_arms_come_between_others() -> None:
    """Where arms are shared nothing is lazy, and what clients were not told yet is not lost."""
    random = np.random.default_rng(3)
    arms = random.normal(size=(200, 4, 2))
    arms[100:160] = arms[100]
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=0.1 * random.normal(size=200))
    algorithm = LaconicUCB(Gaussian(0.5), lam=0.1, ranges=4.0, digest=AllPoints())
    with eager_to_be_lazy() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr("laconic.runtimes.lockstep.arms.SHARE_UP_TO", 4)
        assert_equal_runs(*both(algorithm, problem, clients=5, rounds=40))
    assert made


@pytest.mark.parametrize("problem", [Catalogue(items=6, dim=2, arms=6), Cosine(dim=3)])
def test_where_no_belief_is_large_enough_nobody_looks_for_lines(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each belief is looked for in all lines, and small ones that are factored anew are as many lines as clients."""
    looked, number = [], Lines._number

    def noted(lines: Lines, belief: ExactBelief) -> int:
        looked.append(belief)
        return number(lines, belief)

    monkeypatch.setattr(Lines, "_number", noted)
    run(DisKernelUCB(Gaussian(1.0), D=0.5, together=False), problem, clients=3, rounds=6)
    assert not looked


# -- parts


def grown(belief: ExactBelief, count: int, *, seed: int) -> ExactBelief:
    random = np.random.default_rng(seed)
    return belief.extended(random.normal(size=(count, 3)), random.normal(size=count))


def line_of(*sizes: int) -> tuple[Line, list[ExactBelief]]:
    """Beliefs that grow by so many points, all on one line."""
    beliefs = [belief_of(sizes[0])]
    for seed, size in enumerate(sizes[1:], start=1):
        beliefs.append(grown(beliefs[-1], size, seed=seed))
    line = Line(beliefs[0])
    assert all(line.has(belief) for belief in beliefs)
    return line, beliefs


@pytest.mark.parametrize("alpha", [0.0, 0.3, 3.0])
def test_bounds_of_beginnings_hold_and_their_best_arms_are_candidates(alpha: float) -> None:
    line, beliefs = line_of(200, 30, 70)
    clients = [beliefs[at] for at in (2, 0, 1, 0)]
    arms, exploring = np.random.default_rng(5).normal(size=(4, 9, 3)), Exploring(alpha)
    assert line.shadow is not None
    bounds = Bounds(line.shadow, arms, line.prefixes(clients))
    bounds.narrow(exploring, Screen(bounds, first=0).finish)
    upper, lower = bounds._indices(slice(0, 4), exploring)
    candidates = bounds.candidates(slice(0, 4), exploring)
    for row, belief in enumerate(clients):
        view = belief.view(arms[row])
        index = view.mean + alpha * np.sqrt(view.variance)
        assert (index <= upper[row]).all()
        assert (lower[row] <= index).all()
        assert candidates[row, index.argmax()]
        np.testing.assert_allclose(bounds.mean[row], view.mean, atol=bounds.mean_rounding)
    assert candidates.sum() < 18


@given(before=st.integers(0, 70), after=st.integers(1, 12), distinct=st.sampled_from([2, 999]), seed=st.integers(0, 99))
@settings(deadline=None)
def test_an_exact_tail_predicts_and_reports_what_a_tail_does(before: int, after: int, distinct: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    points = draw.normal(size=(distinct, 1, 3))
    tail = Tail(belief_of(12))
    for _ in range(before):  # of points that return, many are merged
        tail.append(tail.belief.view(points[draw.integers(distinct)]), float(draw.normal()), replayed=True)
    quick = ExactTail.of(tail)
    for _ in range(after):
        x, y = points[draw.integers(distinct)], float(draw.normal())
        for each in (tail, quick):
            each.append(each.belief.view(x), y)
    assert_same_tails(quick, tail, tail.belief.view(draw.normal(size=(7, 3))))


def test_a_copy_of_an_exact_tail_learns_by_itself() -> None:
    draw = np.random.default_rng(0)
    tail = ExactTail.of(Tail(belief_of(5)))
    tail.append(tail.belief.view(draw.normal(size=(1, 3))), 1.0)
    view = tail.belief.view(draw.normal(size=(4, 3)))
    before, twin = tail.predict(view), copy(tail)
    twin.append(twin.belief.view(draw.normal(size=(1, 3))), 2.0)
    assert all(np.array_equal(a, b) for a, b in zip(tail.predict(view), before, strict=True))
    tail.append(tail.belief.view(draw.normal(size=(1, 3))), -1.0)
    assert (len(tail), len(twin)) == (2, 2)
    assert not np.allclose(tail.predict(view)[0], twin.predict(view)[0])


def features_of(belief: ExactBelief, X: Floats) -> Floats:
    return np.ascontiguousarray(belief.view(X).features.T)


def test_features_at_hand_are_the_first_ones_under_every_belief_that_went_on() -> None:
    _, beliefs = line_of(140, 20, 30)
    X = np.random.default_rng(7).normal(size=(3, 3))
    hand = AtHand(Lines())
    hand.note(beliefs[0], X[:2], features_of(beliefs[0], X[:2]))
    hand.note(beliefs[1], X[2:], features_of(beliefs[1], X[2:]))
    found = hand.columns(beliefs[2], X[::-1])
    assert found is not None
    np.testing.assert_allclose(found, beliefs[2].view(X[::-1]).features[:140])
    assert hand.columns(beliefs[2], np.concatenate([X, X + 1.0])) is None
    hand.begin_round()
    assert hand.columns(beliefs[2], X) is None


def test_beliefs_that_learn_points_at_hand_are_those_that_learn_them_anew() -> None:
    _, beliefs = line_of(140, 20)
    X, y = np.random.default_rng(7).normal(size=(3, 3)), np.array([1.0, -1.0, 0.5])
    hand = AtHand(Lines())
    hand.note(beliefs[0], X, features_of(beliefs[0], X))
    grown_by_hand, anew = hand.extended(beliefs[1], X, y), beliefs[1].extended(X, y)
    assert isinstance(grown_by_hand, ExactBelief)
    np.testing.assert_allclose(grown_by_hand.weights, anew.weights)
    np.testing.assert_allclose(hand.view(beliefs[1], X).features, beliefs[1].view(X).features)


def test_what_tails_know_of_their_points_is_used_when_a_download_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []
    columns = AtHand.columns

    def counted(self: AtHand, belief: ExactBelief, X: Floats) -> Floats | None:
        found = columns(self, belief, X)
        used.append(found is not None)
        return found

    monkeypatch.setattr(AtHand, "columns", counted)
    with eager_to_be_lazy():
        run(DisKernelUCB(Gaussian(0.5), D=0.3, lam=0.1, together=False), Cosine(dim=3), clients=4, rounds=12, seed=0)
    assert any(used)


def test_features_under_a_factor_that_was_made_anew_are_not_taken_for_those_of_another() -> None:
    old, X = belief_of(140), np.random.default_rng(7).normal(size=(2, 3))
    anew = grown(belief_of(140, seed=1), 20, seed=2)
    hand = AtHand(Lines())
    hand.note(old, X, features_of(old, X))
    assert hand.columns(grown(old, 5, seed=3), X) is not None
    assert hand.columns(anew, X) is None
