"""Suggestions: what they rest on, what they say, and what can be done with them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import Catalogue, Cosine, Gaussian, InputError, Linear, Log, Matern, Suggestion, run, suggest, suggest_for
from laconic.atoms import Recipe
from laconic.experiments.spec import read_spec
from laconic.suggestion import evidence, pilot, rehearsal
from laconic.suggestion.costs import Traffic
from laconic.suggestion.curve import Curve, population
from laconic.suggestion.sample import Sample
from laconic.suggestion.scale import at_scale, median_distance
from laconic.suggestion.suggesting import _up
from laconic.suggestion.words import size


def wave(n: int = 60, *, scale: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(n, 2)) * scale
    return X, np.sin(3 * X[:, 0] / scale) + 0.1 * rng.standard_normal(n)


# The sample


def test_a_pilot_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    one, same, other = (pilot(Cosine(dim=3), interactions=20, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(one.points, same.points)
    assert not np.array_equal(one.points, other.points)


def test_a_pilot_sees_arms_and_rewards_of_the_problem() -> None:
    problem = Catalogue(items=5, arms=3, dim=2, noise=0.0)
    seen = pilot(problem, interactions=40)
    instance = problem.instance(seed=0, clients=1, rounds=40)
    values = {tuple(item): value for item, value in zip(instance.items, instance.values, strict=True)}
    assert seen.rewards is not None
    assert all(values[tuple(x)] == y for x, y in zip(seen.points, seen.rewards, strict=True))


def test_a_pilot_never_chooses_an_arm_that_does_not_exist_nor_goes_beyond_a_log() -> None:
    arms = np.arange(40, dtype=float).reshape(10, 4, 1)
    log = Log(arms, means=arms[:, :, 0], noise=[0.0] * 10, mask=[[True, False, True, False]] * 10)
    seen = pilot(log, interactions=500)
    assert len(seen.points) == 10
    assert set(seen.points[:, 0] % 4) <= {0.0, 2.0}


def test_of_many_rows_some_are_drawn_with_their_rewards() -> None:
    X = np.arange(100, dtype=float)[:, None]
    few = Sample(X, X[:, 0] * 2).shuffled(30, seed=1)
    assert few.drawn_from == 100
    assert len(np.unique(few.points)) == 30
    assert few.rewards is not None
    assert np.array_equal(few.rewards, few.points[:, 0] * 2)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[1.0]], None, "two points or more"),
        (np.zeros((3, 0)), None, "one feature or more"),
        ([[1.0, 2.0]] * 5, None, "all 5 points of X are the same"),
        ([[1.0], [math.nan]], None, r"X\[1, 0\] is nan"),
        ([[1.0], [2.0]], [1.0, math.inf], r"y\[1\] is inf"),
        ([[1.0], [2.0]], [1.0], "1 rewards for 2 points"),
        ([[1.0], [2.0]], [3.0, 3.0], "all 2 rewards are 3"),
        ([[1.0], [1e40]], None, "beyond what can travel"),
        ([[0.0], [1e-200]], None, "X differs by 1e-200 at most"),
        ([[0.0], [1.0]], [0.0, 1e-200], "y differs by 1e-200 at most"),
        ([["a"], ["b"]], None, "not real numbers"),
        ([1.0, 2.0], None, "2 axes are needed"),
        ([[1.0, 2.0], [3.0]], None, "X is ragged"),
        ([[1.0], [2.0]], [[1.0], [2.0, 3.0]], "y is ragged"),
    ],
)
def test_a_sample_that_says_nothing_is_refused_with_the_reason(X: Any, y: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        suggest(X, y)


@pytest.mark.parametrize("name", ["Random", 3])
def test_what_has_no_suggestion_is_refused_with_those_that_have(name: Any) -> None:
    with pytest.raises(InputError, match=f"no suggestion for {name!r}; try one of LaconicUCB, DisKernelUCB"):
        suggest(*wave()).algorithm(name)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    X, y = wave()
    with pytest.raises(InputError, match="seed must be a whole number of at least 0"):
        suggest(X, y, seed=seed)
    with pytest.raises(InputError, match="seed must be a whole number of at least 0"):
        suggest_for("cosine", sample=3, seed=seed)


def test_features_that_never_change_or_differ_in_scale_are_remarked_on() -> None:
    X, y = wave()
    odd = np.column_stack([X[:, 0], np.full(len(X), 7.0), 1000 * X[:, 1]])
    said = suggest(odd, y).explain()
    assert "these never change and could go: 1." in said
    assert "divide each feature by its deviation first" in said
    assert "never change" not in suggest(X, y).explain()


def test_rewards_far_from_zero_are_remarked_on_and_their_noise_is_found_all_the_same() -> None:
    X, y = wave()
    far = suggest(X, y + 1000.0)
    assert "subtract a constant near their mean first" in far.explain()
    assert far.alpha < 2 * np.std(y)
    assert "subtract" not in suggest(X, y).explain()


# Scale and curve


def test_the_median_heuristic_is_the_median_of_distances_between_different_points() -> None:
    X = np.array([[0.0], [0.0], [1.0], [3.0]])  # 1, 3, 1, 3, 2
    assert median_distance(X) == 2.0
    assert at_scale(Matern(nu=0.5), 2.0) == Matern(nu=0.5, length=2.0)
    assert at_scale(Linear(), 2.0) == Linear()


def test_a_curve_begins_with_the_prior_and_its_sum_is_the_information_of_the_sample() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    curve = Curve.of(Gaussian(1.0), X, lam=0.1)
    assert curve.variance(0) == pytest.approx(10.0)
    information = sum(math.log1p(curve.variance(n)) for n in range(200))
    _, exact = np.linalg.slogdet(np.eye(200) + Gaussian(1.0)(X, X) / 0.1)
    assert information == pytest.approx(exact, rel=0.1)
    K = Gaussian(1.0)(X, X)
    assert curve.effective == pytest.approx(np.trace(np.linalg.solve(K + 0.1 * np.eye(200), K)))
    assert curve.dimension(200) == pytest.approx(curve.effective, rel=0.5)
    assert curve.variance(2000) < curve.variance(199)


def test_how_many_different_points_there_are_is_told_from_those_that_return() -> None:
    rng = np.random.default_rng(0)
    items = rng.standard_normal((40, 2))
    assert population(items[rng.integers(40, size=400)]) == pytest.approx(40, rel=0.05)
    assert population(items[rng.integers(40, size=80)]) == pytest.approx(40, rel=0.3)
    assert population(rng.standard_normal((100, 2))) > 4000


# The suggestion


def test_the_kernels_scale_follows_that_of_the_features() -> None:
    here, far = suggest(*wave()), suggest(*wave(scale=100.0))
    assert isinstance(here.kernel, Gaussian)
    assert isinstance(far.kernel, Gaussian)
    assert far.kernel.gamma == pytest.approx(here.kernel.gamma / 1e4, rel=0.02)
    assert far.lam == pytest.approx(here.lam, rel=0.02)
    assert far.ranges == pytest.approx(100 * here.ranges)


def test_alpha_follows_the_scale_of_rewards_and_nothing_else_does() -> None:
    X, y = wave()
    here, large = suggest(X, y), suggest(X, 1000 * y)
    assert large.alpha == pytest.approx(1000 * here.alpha, rel=0.01)
    assert (large.kernel, large.lam) == (here.kernel, here.lam)


def test_alpha_is_two_deviations_of_even_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    found = suggest(X, 2 * np.sin(3 * X[:, 0]) + 0.4 * rng.standard_normal(300))
    assert found.grounds.noise == pytest.approx(0.4, rel=0.15)
    assert found.alpha == pytest.approx(0.8, rel=0.3)


def test_without_rewards_there_are_defaults_and_the_words_say_so() -> None:
    X, _ = wave()
    found = suggest(X)
    assert found.kernel == Gaussian(float(f"{median_distance(X) ** -2:.3g}"))
    assert (found.lam, found.alpha, found.reward) == (0.1, 0.2, 1.0)
    said = found.explain()
    assert "There are no rewards" in said
    assert "default" in said
    assert "expect to be off" in said


def test_a_kernel_of_other_shape_is_taken_by_name_or_value() -> None:
    X, y = wave()
    assert isinstance(suggest(X, y, kernel="matern").kernel, Matern)
    assert isinstance(suggest(X, y, kernel=Linear()).kernel, Linear)
    assert "no scale of its own" in suggest(X, y, kernel="Linear").explain()
    with pytest.raises(InputError, match="did you mean Gaussian"):
        suggest(X, y, kernel="Gausian")


def test_every_algorithm_of_a_suggestion_plays() -> None:
    found = suggest_for(Cosine(dim=2), sample=60, clients=3, traffic=4)
    assert list(found.algorithms()) == list(found.costs())
    for name in found.algorithms():
        assert run(found.algorithm(name.lower()), Cosine(dim=2), clients=3, rounds=4).regret >= 0
    with pytest.raises(InputError, match="no suggestion for 'Random'"):
        found.algorithm("Random")


def test_a_suggestion_is_the_same_again() -> None:
    one, same = (suggest_for("catalogue", sample=80, seed=2) for _ in range(2))
    assert one.explain() == same.explain()
    assert one.to_toml() == same.to_toml()


def test_points_that_return_are_counted_and_kept() -> None:
    found = suggest_for(Catalogue(items=8, dim=2, arms=4), sample=120)
    assert "about 8 different ones" in found.explain()
    assert found.qbar > suggest(*wave()).qbar


def test_an_experiment_file_holds_the_suggested_algorithms(tmp_path: Path) -> None:
    found = suggest_for(Cosine(dim=2), sample=60, clients=5, traffic=7)
    path = tmp_path / "own.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    experiment = read_spec(path).experiment()
    assert experiment.algorithms == tuple(found.algorithms().values())
    assert (experiment.problem, experiment.clients, experiment.rounds) == (Cosine(dim=2), 5, 7)
    assert tomllib.loads(found.to_toml(clients=2, rounds=3))["rounds"] == 3


def test_points_without_a_problem_need_one_for_a_file() -> None:
    found = suggest(*wave())
    with pytest.raises(InputError, match="give problem="):
        found.to_toml()
    assert tomllib.loads(found.to_toml(problem=Cosine(dim=2)))["problem"]["dim"] == 2


def test_a_rehearsal_shows_points_of_the_sample_that_pay_about_their_rewards() -> None:
    X, y = wave()
    log = rehearsal(suggest(X, y), steps=50, arms=5)
    assert log.arms.shape == (50, 5, 2)
    paid = {tuple(x): reward for x, reward in zip(X, y, strict=True)}
    errors = [mean - paid[tuple(x)] for x, mean in zip(log.arms.reshape(-1, 2), log.means.ravel(), strict=True)]
    assert np.std(errors) < 0.2
    assert np.std(log.noise) == pytest.approx(0.1, rel=0.5)


def test_a_rehearsal_without_rewards_draws_a_function_of_the_kernel() -> None:
    X, _ = wave()
    log = rehearsal(suggest(X), steps=50, arms=5)
    again = {tuple(x): mean for x, mean in zip(log.arms.reshape(-1, 2), log.means.ravel(), strict=True)}
    assert all(again[tuple(x)] == mean for x, mean in zip(log.arms.reshape(-1, 2), log.means.ravel(), strict=True))
    assert 0.1 < log.means.std() < 0.6


def test_plain_values_say_what_the_words_say() -> None:
    found = suggest(*wave())
    table = found.to_dict()
    assert (table["kernel"], table["lam"], table["alpha"]) == ("Gaussian", found.lam, found.alpha)
    assert f"α = {found.alpha:g}" in found.explain()
    assert size(table["bytes_per_client"]["OneKernelUCB"]["first day"]) in found.explain()


def test_traffic_must_be_whole_numbers() -> None:
    with pytest.raises(InputError, match="traffic must be a whole number"):
        suggest(*wave(), traffic=0)
    with pytest.raises(InputError, match="clients must be a whole number"):
        Traffic(2.5, daily=3, dim=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda found: rehearsal(found, seed=-1), "seed must be a whole number"),
        (
            lambda found: found.to_toml(problem="cosine", clients=0),
            "clients must be a whole number of at least 1, not 0",
        ),
        (
            lambda found: found.to_toml(problem="cosine", rounds=-3),
            "rounds must be a whole number of at least 1, not -3",
        ),
        (lambda found: suggest_for("cosine", sample=1), "sample must be a whole number of at least 2, not 1"),
        (lambda found: evidence(found.kernel, *wave(), lam=-1.0), "lam must be a finite number greater than 0"),
        (lambda found: Recipe(tolerance=1.0), "tolerance must be below 1, not 1.0; try tolerance=0.5"),
        (lambda found: Recipe(headroom=3.0, e_hi=2.0), "headroom must be below 2, not 3.0; try headroom=1"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(wrong: Callable[[Suggestion], object], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        wrong(suggest(*wave()))


@pytest.mark.parametrize(("number", "rounded"), [(0.0, 1.0), (1.0, 1.0), (0.5555, 0.56), (123.0, 130.0), (9.99, 10.0)])
def test_ranges_are_rounded_up_to_two_digits(number: float, rounded: float) -> None:
    assert _up(number) == pytest.approx(rounded)


@pytest.mark.parametrize(
    ("number", "said"), [(0, "nothing"), (9.2, "9.2 bytes"), (999, "999 bytes"), (999_600, "1.0 MB")]
)
def test_sizes_have_units(number: float, said: str) -> None:
    assert size(number) == said
