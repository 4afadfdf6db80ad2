"""Scores are lazy under large exact beliefs, and no choice shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import Cosine, DisKernelUCB, Gaussian, Greedy, Log, Matern, NKernelUCB, OneKernelUCB, Theory, Thompson, run
from laconic.arrays import Floats
from laconic.beliefs import ExactBelief
from laconic.runtimes.lockstep import arms, lazy, lone, shadow
from laconic.runtimes.lockstep.batch import Exploring
from laconic.runtimes.lockstep.lazy import Screen, screened
from laconic.runtimes.lockstep.shadow import Bounds, Room, Shadow
from laconic.runtimes.lockstep.tails import Tails
from tests.runtimes.test_lockstep import KERNELS, PROBLEMS, assert_equal_runs, both


@contextmanager
def eager_to_be_lazy(**changes: Any) -> Iterator[list[Bounds]]:
    """Beliefs of any size count as large, arms as nobody else's, and stages are short; all bounds that were made."""
    own: dict[str, Any] = {"LAZY_FROM": 1, "LEAST_ROWS": 1, "SHARPEST": np.inf} | changes
    made: list[Bounds] = []

    def noted(*given: Any, **named: Any) -> Bounds:
        made.append(Bounds(*given, **named))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setattr(lazy if hasattr(lazy, name) else shadow, name, value)
        patch.setattr(arms, "SHARE_UP_TO", 0)
        patch.setattr(lazy, "Bounds", noted)
        patch.setattr(lone, "Bounds", noted)
        yield made


@st.composite
def exact_algorithms(draw: st.DrawFn) -> Any:
    kernel, lam = draw(KERNELS), draw(st.sampled_from([1e-2, 0.1, 1.0, 10.0]))
    how: Any = {
        "lam": lam,
        "alpha": draw(st.sampled_from([0.0, 0.1, 1.0, 5.0, Theory()])),
        "wire": draw(st.sampled_from(["float64", "float32"])),
    }
    if draw(st.booleans()):
        how["exploration"] = Greedy()
    D = draw(st.sampled_from([0.0, 0.3, 2.0, 6.0]))
    return draw(st.sampled_from([DisKernelUCB(kernel, D=D, **how), OneKernelUCB(kernel, **how)]))


@settings(max_examples=100, deadline=None)
@given(
    algorithm=exact_algorithms(),
    problem=PROBLEMS,
    clients=st.integers(1, 6),
    rounds=st.integers(1, 6),
    seed=st.integers(0, 9),
    most_values=st.sampled_from([1, 24_000_000]),  # 1: bounds of as few clients as act at a time
    added_up_to=st.sampled_from([0.0, 0.25, 9.0]),  # bounds are made anew at every sync, sometimes, or never
    stages=st.sampled_from([2, 16]),
    drifts=st.sampled_from([0.0, 1.5]),
)
def test_lazy_scores_choose_what_loopback_chooses(
    algorithm: Any,
    problem: Any,
    clients: int,
    rounds: int,
    seed: int,
    most_values: int,
    added_up_to: float,
    stages: int,
    drifts: float,
) -> None:
    with eager_to_be_lazy(MOST_VALUES=most_values, ADDED_UP_TO=added_up_to, STAGES=stages, DRIFTS=drifts):
        assert_equal_runs(*both(algorithm, problem, clients=clients, rounds=rounds, seed=seed))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("kind", [OneKernelUCB, DisKernelUCB], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(nu=1.5)], ids=repr)
def test_lazy_scores_choose_what_loopback_chooses_over_many_rounds(kernel: Any, kind: Any, alpha: float) -> None:
    clients = 5 if kind is OneKernelUCB else 9  # all of whom sync after each step
    with eager_to_be_lazy(LAZY_FROM=60, SHARPEST=shadow.SHARPEST) as made:
        assert_equal_runs(*both(kind(kernel, lam=1.0, alpha=alpha), Cosine(dim=6, arms=8), clients=clients, rounds=40))
    assert made


def test_arms_that_mirror_each_other_tie_and_are_all_looked_at() -> None:
    random, steps = np.random.default_rng(1), 120
    half = random.normal(size=(steps, 3, 2)) * np.array([1.0, 0.0])
    arms = np.concatenate([half + np.array([0.0, 1.0]), half - np.array([0.0, 1.0])], axis=1)
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=np.zeros(steps))
    with eager_to_be_lazy() as made:
        for seed in range(3):
            algorithm = DisKernelUCB(Gaussian(0.5), D=0.5, lam=0.1, alpha=1.0)
            one, other = both(algorithm, problem, clients=4, rounds=30, seed=seed)
            assert_equal_runs(one, other)
            assert len(set((one.choices >= 3).tolist())) == 2  # else nothing was drawn among arms that tie
    assert made


def test_a_point_that_a_set_holds_twice_is_learnt_by_whichever_arm_was_chosen() -> None:
    arms = np.random.default_rng(2).normal(size=(90, 3, 2))[:, [0, 1, 2, 0, 1, 2]]
    problem = Log(arms, means=np.sin(arms[..., 0]), noise=np.zeros(90))
    with eager_to_be_lazy() as made:
        one, other = both(DisKernelUCB(Gaussian(0.5), D=2.0, lam=0.1, alpha=1.0), problem, clients=3, rounds=30)
        assert_equal_runs(one, other)
        np.testing.assert_allclose(one.regrets, other.regrets)
    assert made
    assert len(set((one.choices >= 3).tolist())) == 2  # the first of two as well as the second


def belief_of(count: int, *, lam: float = 0.5, seed: int = 0, kernel: Any = None) -> ExactBelief:
    random = np.random.default_rng(seed)
    blank = ExactBelief.empty(kernel=kernel or Gaussian(0.7), lam=lam, dim=3)
    return blank.extended(random.normal(size=(count, 3)), random.normal(size=count))


def bounds_of(belief: ExactBelief, arms: Floats) -> Bounds:
    found = Shadow.of(belief)
    assert found is not None
    return Bounds(found, arms)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian(9.0), Matern()], ids=repr)
def test_bounds_hold_and_the_best_arms_are_among_the_candidates(kernel: Any, alpha: float) -> None:
    belief, arms = belief_of(300, kernel=kernel), np.random.default_rng(5).normal(size=(7, 9, 3))
    view = belief.view(arms.reshape(-1, 3))
    index = (view.mean + alpha * np.sqrt(view.variance)).reshape(7, 9)
    bounds, everyone, exploring = bounds_of(belief, arms), slice(0, 7), Exploring(alpha)
    bounds.narrow(exploring, Screen(bounds, first=0).finish)
    upper, lower = bounds._indices(everyone, exploring)
    assert (index <= upper).all()
    assert (lower <= index).all()
    candidates = bounds.candidates(everyone, exploring)
    assert candidates[np.arange(7), index.argmax(axis=1)].all()
    assert candidates.sum() < 20
    np.testing.assert_allclose(bounds.mean.ravel(), view.mean, atol=bounds.shadow.mean_rounding)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("finished", [True, False], ids=["arms of the round", "other points"])
def test_what_syncs_add_within_a_round_is_in_bounds_and_in_scores(finished: bool, alpha: float) -> None:
    belief, random = belief_of(300), np.random.default_rng(5)
    arms, exploring = random.normal(size=(7, 9, 3)), Exploring(alpha)
    screen = screened(bounds_of(belief, arms), Tails(belief, 7), exploring, slack=0.05)
    for client in range(1, 7):
        known = np.flatnonzero(screen.at[client - 1] >= 0)
        new = arms[client - 1, known[:1]] if finished else random.normal(size=(2, 3))
        belief = belief.extended(new, random.normal(size=len(new)))
        assert screen.taken_on(belief, client)
        scores, found = screen.scored(Tails(belief, 7), client, client + 1, lambda *_: exploring)
        view, done = belief.view(arms[client]), scores.at[0] >= 0
        upper = found.mean[0] + screen.bounds.errors(slice(client, client + 1))[0] + alpha * np.sqrt(found.signal[0])
        assert (view.mean + alpha * np.sqrt(view.signal) <= upper)[~done].all()
        assert done[(view.mean + alpha * np.sqrt(view.signal)).argmax()]
        np.testing.assert_allclose(found.mean[0, done], view.mean[done], atol=1e-12)
        np.testing.assert_allclose(found.signal[0, done], view.signal[done], atol=1e-12)
        np.testing.assert_allclose(scores.features, view.features.T[done], atol=1e-12)


def test_rooms_are_taken_again_while_they_are_large_enough() -> None:
    room = Room()
    first = room.of(90, 8)
    assert first.shape == (90, 8)
    assert np.shares_memory(room.of(100, 8), first)
    assert not np.shares_memory(room.of(200, 8), first)


@pytest.mark.parametrize("lam", [1e-2, 1.0])
def test_single_precision_stays_far_within_its_margin(lam: float) -> None:
    belief, arms = belief_of(700, lam=lam), np.random.default_rng(5).normal(size=(4, 20, 3))
    bounds = bounds_of(belief, arms)
    bounds.narrow(Exploring(1.0), Screen(bounds, first=0).finish, slack=1e9)  # so that every arm is solved whole
    assert bounds.whole.all()
    left = bounds.prior - bounds.squares
    exact = belief.lam * belief.view(arms.reshape(-1, 3)).variance.reshape(left.shape)
    assert np.abs(left - exact).max() < 0.1 * bounds.shadow.rounding


@pytest.mark.parametrize("lam", [1.0, 1e3])
@pytest.mark.parametrize("dim", [20, 256, 257, 3000])
def test_means_of_points_far_from_zero_and_close_together_stay_within_their_margin(dim: int, lam: float) -> None:
    random = np.random.default_rng(0)
    middle = random.normal(size=dim)
    middle *= 1.41 / np.linalg.norm(middle)
    points = middle + 1e-3 * random.normal(size=(600, dim)) / np.sqrt(dim)
    belief = ExactBelief.empty(kernel=Gaussian(1.0), lam=lam, dim=dim).extended(points[:400], np.ones(400))
    bounds = bounds_of(belief, points[400:].reshape(20, 10, dim))
    wrong = np.abs(bounds.mean.ravel() - belief.view(points[400:]).mean)
    assert (wrong <= 0.75 * bounds.errors(slice(0, 20)).ravel()).all()


def test_a_belief_too_close_to_singular_for_single_precision_has_no_shadow() -> None:
    assert Shadow.of(belief_of(300, lam=1e-7)) is None
    assert Shadow.of(belief_of(300, kernel=1e20 * Gaussian(1.0), lam=1e20)) is None


def test_a_shadow_goes_on_where_a_belief_grew() -> None:
    old = belief_of(300)
    random = np.random.default_rng(3)
    new = old.extended(random.normal(size=(40, 3)), random.normal(size=40))
    before = Shadow.of(old)
    assert before is not None
    after, anew = Shadow.of(new, before), Shadow.of(new)
    assert after is not None
    assert anew is not None
    assert after.factor.blocks[0] is before.factor.blocks[0]
    np.testing.assert_array_equal(after.factor.matrix(), anew.factor.matrix())
    X = random.normal(size=(5, 3))
    np.testing.assert_allclose(new.kernel(X, new.points) @ after.solution, new.view(X).mean, atol=1e-11)


def test_few_arms_are_solved_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    view = ExactBelief.view

    def counted(self: ExactBelief, X: Floats, **how: Any) -> Any:
        seen.append((self.factor.size, len(X)))
        return view(self, X, **how)

    monkeypatch.setattr(ExactBelief, "view", counted)
    how: Any = {"clients": 20, "rounds": 40, "runtime": "lockstep"}
    for algorithm in (OneKernelUCB(Gaussian(1.0), lam=1.0, alpha=0.1), DisKernelUCB(Gaussian(1.0), lam=1.0, alpha=0.1)):
        seen.clear()
        run(algorithm, Cosine(), **how)
        large = [count for size, count in seen if size >= lazy.LAZY_FROM]
        assert large
        assert sum(large) < 0.15 * 20 * 20 * 21  # of the arms of the rounds from 384 points on


def test_other_explorations_and_beliefs_without_rows_score_all_arms() -> None:
    exact = DisKernelUCB(Gaussian(1.0), D=1.0)
    with eager_to_be_lazy() as made:
        for algorithm in (NKernelUCB(), replace(exact, exploration=Thompson()), replace(exact, dtype="float32")):
            assert_equal_runs(*both(algorithm, Cosine(dim=2, arms=4), clients=3, rounds=6))
        assert not made
        run(exact, Cosine(dim=2, arms=4), clients=3, rounds=6)
        assert made
