"""LaconicUCB as its users meet it: any problem, any input, and what a run says of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from laconic import (
    AllPoints,
    Atoms,
    Catalogue,
    Client,
    Cosine,
    FromFunctions,
    Gaussian,
    InputError,
    Kernel,
    LaconicUCB,
    Linear,
    Log,
    Matern,
    OneKernelUCB,
    Polynomial,
    Problem,
    Random,
    RationalQuadratic,
    Theory,
    compare,
    grid,
    run,
)
from laconic.atoms import Reason, Recipe
from laconic.protocol.wire import Int8Wire
from laconic.runtimes import loopback
from laconic.runtimes.network import Delivery
from laconic.runtimes.trace import Run
from laconic.testing import check_algorithm
from laconic.triggers import Every
from laconic.uploads import WithAsk

LEAN = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1)


def log_of(arms: Any, *, scale: float = 1.0) -> Log:
    """A problem of these arms, whose rewards are of some size."""
    return Log(arms, means=scale * np.cos(arms.sum(axis=2)), noise=0.1 * scale * np.sin(np.arange(len(arms))))


@pytest.mark.parametrize("algorithm", [LEAN, LaconicUCB(digest=AllPoints()), LaconicUCB(Linear(), upload=WithAsk())])
def test_it_keeps_to_the_contract(algorithm: LaconicUCB) -> None:
    check_algorithm(algorithm)


def test_it_learns_like_everybody_who_hears_all_for_few_bytes() -> None:
    sizes: dict[str, Any] = {"clients": 8, "rounds": 40}
    lean = run(LEAN, Cosine(dim=3), **sizes)
    one = run(OneKernelUCB(Gaussian(0.5), lam=0.1, alpha=0.1), Cosine(dim=3), **sizes)
    nothing = run(Random(), Cosine(dim=3), **sizes)
    assert lean.regret < one.regret + 0.2 * (nothing.regret - one.regret)
    assert lean.bytes < one.bytes / 15


def test_where_nothing_can_be_compressed_all_points_are_sent_and_the_run_says_so() -> None:
    """γ = λ = 1 in twenty dimensions: points are nearly orthogonal, and atoms would be most of them."""
    sizes: dict[str, Any] = {"clients": 10, "rounds": 25}
    lean = run(LaconicUCB(Gaussian(1.0), lam=1.0), Cosine(dim=20), **sizes)
    raw = run(LaconicUCB(Gaussian(1.0), lam=1.0, digest=AllPoints()), Cosine(dim=20), **sizes)
    assert lean.versions
    assert all(each.raw and each.atoms == 0 for each in lean.versions)
    took, would = (each.ledger.by("direction", "client") for each in (lean, raw))
    for client in range(10):
        assert took["down", client].bytes <= 2 * would["down", client].bytes


def shifted(*, low: float, high: float, beside: float | None = None) -> FromFunctions:
    """Arms in a cube, with a feature that never changes where one is given, and rewards that grow with the others."""

    def arms(random: np.random.Generator, count: int) -> np.ndarray:
        drawn = random.uniform(low, high, (count, 8, 3))
        return drawn if beside is None else np.concatenate([drawn, np.full((count, 8, 1), beside)], axis=2)

    return FromFunctions(mean=lambda x: x[:, :3].sum(axis=1) / high, arms=arms, noise=0.1)


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [
        (LaconicUCB(), shifted(low=-0.02, high=0.02)),
        (LaconicUCB(Gaussian(0.001), lam=0.1, alpha=0.1), shifted(low=-1.0, high=1.0)),
        (LaconicUCB(Linear(), lam=0.1, alpha=0.1, ranges=20.0), shifted(low=-1.0, high=1.0, beside=20.0)),
        (LaconicUCB(Polynomial(degree=3), lam=0.1, alpha=0.1, ranges=8.0), shifted(low=-1.0, high=1.0, beside=7.0)),
    ],
    ids=["features that hardly differ", "a kernel that hardly falls", "a constant feature", "and its powers"],
)
def test_a_kernel_with_a_large_constant_in_it_is_learnt_as_from_all_points(
    algorithm: LaconicUCB, problem: FromFunctions
) -> None:
    sizes: dict[str, Any] = {"clients": 5, "rounds": 40}
    lean = run(algorithm, problem, **sizes)
    everything = run(replace(algorithm, digest=AllPoints()), problem, **sizes)
    nothing = run(Random(), problem, **sizes)
    assert any(not each.raw for each in lean.versions)
    assert lean.regret < everything.regret + 0.05 * (nothing.regret - everything.regret)


def kinds(random: np.random.Generator, count: int) -> np.ndarray:
    """Arms of one kind of five in each step, which differ in six fine features."""
    which = np.repeat(np.eye(5)[random.integers(5, size=count)][:, None], 10, axis=1)
    return np.concatenate([which, random.uniform(-0.06, 0.06, (count, 10, 6))], axis=2)


def marked(random: np.random.Generator, count: int) -> np.ndarray:
    """Arms that differ in ten fine features, beside a mark of 1 or −1 that all of a step have."""
    mark = np.repeat(random.choice([-1.0, 1.0], size=(count, 1, 1)), 10, axis=1)
    return np.concatenate([mark, random.uniform(-0.03, 0.03, (count, 10, 10))], axis=2)


FINE = np.array([0.5, -0.4, 0.4, -0.4, 0.4, -0.3, 0.2, -0.3, 0.4, 0.1])


@pytest.mark.parametrize(
    ("algorithm", "arms", "fine"),
    [
        (LaconicUCB(), kinds, 6),
        (LaconicUCB(Linear(), lam=0.01, alpha=0.2), marked, 10),
        (LaconicUCB(Gaussian(0.5), lam=0.01, alpha=0.2), marked, 10),
    ],
    ids=["kinds", "a mark, linear", "a mark, Gaussian"],
)
def test_fine_features_beside_a_coarse_one_are_learnt_as_from_all_points(
    algorithm: LaconicUCB, arms: Callable[[np.random.Generator, int], np.ndarray], fine: int
) -> None:
    problem = FromFunctions(mean=lambda x: 10.0 * x[:, -fine:] @ FINE[:fine], arms=arms, noise=0.1)
    sizes: dict[str, Any] = {"clients": 10, "rounds": 60}
    lean, everything = (run(each, problem, **sizes) for each in (algorithm, replace(algorithm, digest=AllPoints())))
    assert lean.regret < 1.15 * everything.regret
    assert lean.bytes < 0.5 * everything.bytes


def test_atoms_that_would_leave_too_much_unknown_are_not_sent_and_the_run_says_so() -> None:
    loose = LaconicUCB(Gaussian(0.5), lam=0.001, alpha=0.2, digest=Atoms(Recipe(most=1.0)))
    problem = FromFunctions(mean=lambda x: 10.0 * x[:, -10:] @ FINE, arms=marked, noise=0.1)
    sizes: dict[str, Any] = {"clients": 10, "rounds": 60}
    lean, everything = (run(each, problem, **sizes) for each in (loose, replace(loose, digest=AllPoints())))
    assert str(Reason.WEAK) in {each.why for each in lean.versions}
    assert max(each.kappa for each in lean.versions) <= 2.3
    assert lean.regret < everything.regret + 0.05 * (run(Random(), problem, **sizes).regret - everything.regret)


def test_points_too_different_in_size_to_be_weighed_are_sent_as_they_are_with_the_reason() -> None:
    random = np.random.default_rng(0)
    large = np.where(random.random((360, 6, 1)) < 0.05, 50.0, 1.0)
    arms = large * random.uniform(-1, 1, (360, 6, 2)) / np.sqrt(2)
    played = run(LaconicUCB(Polynomial(degree=3), lam=0.1, alpha=0.1), log_of(arms), clients=6, rounds=60)
    assert str(Reason.PRECISION) in {each.why for each in played.versions}


# What is said of a run


def test_a_run_says_what_each_download_was_certified_to_be() -> None:
    lean = run(LEAN, Cosine(dim=3), clients=6, rounds=40)
    assert len(lean.versions) == lean.syncs
    assert [each.step for each in lean.versions] == lean.sync_steps.tolist()
    assert {each.raw for each in lean.versions} == {True, False}
    for each in lean.versions:
        assert each.raw == (each.atoms == 0)
        assert -1 < each.e_lo <= each.e_hi
        assert each.d_eff > 0
        if each.raw:
            assert (each.e_lo, each.e_hi, each.kappa, each.beta) == (0, 0, 1, 0)
        else:
            assert each.kappa < 1.3
            assert each.e_hi < 1.01
            assert each.atoms < each.length
    for client in range(6):
        mine = [each for each in lean.versions if each.client == client]
        assert [each.version for each in mine] == sorted({each.version for each in mine})
    assert run(OneKernelUCB(), Cosine(dim=3), clients=2, rounds=3).versions == ()


def test_loopback_and_lockstep_download_the_same() -> None:
    problem, sizes = Cosine(dim=3), {"clients": 5, "rounds": 30}
    fast = run(LEAN, problem, **sizes)  # type: ignore[arg-type]
    slow = loopback.play(LEAN, problem.instance(seed=0, **sizes), seed=0, **sizes)  # type: ignore[arg-type]
    assert fast.versions == slow.versions
    assert (fast.choices == slow.choices).all()
    assert fast.bytes == slow.bytes


# Any input


def ball(steps: int, arms: int, dim: int) -> Any:
    return np.random.default_rng(3).uniform(-1, 1, (steps, arms, dim)) / np.sqrt(dim)


STRANGE: dict[str, tuple[Problem, int, int]] = {
    "points beyond the ranges": (log_of(3.0 * ball(60, 4, 2)), 4, 15),
    "points far beyond the ranges": (log_of(1e6 * ball(60, 4, 2)), 4, 15),
    "constant features": (log_of(np.concatenate([ball(60, 4, 2), np.ones((60, 4, 1))], axis=2)), 4, 15),
    "nothing but constants": (log_of(np.ones((60, 4, 3))), 4, 15),
    "one arm": (log_of(ball(60, 1, 2)), 4, 15),
    "one client": (log_of(ball(60, 4, 2)), 1, 60),
    "one client and one arm": (log_of(ball(20, 1, 2)), 1, 20),
    "one feature": (log_of(ball(60, 4, 1)), 4, 15),
    "many features": (log_of(ball(40, 3, 200)), 4, 10),
    "five hundred features": (log_of(ball(24, 3, 500)), 3, 8),
    "duplicates only": (log_of(np.repeat(ball(1, 3, 2), 120, axis=0)), 4, 30),
    "large rewards": (log_of(ball(60, 4, 2), scale=1e6), 4, 15),
    "tiny rewards": (log_of(ball(60, 4, 2), scale=1e-6), 4, 15),
}


@pytest.mark.parametrize("how", STRANGE)
def test_strange_problems_are_played_to_their_end(how: str) -> None:
    problem, clients, rounds = STRANGE[how]
    played = played_alike(LEAN, problem, clients=clients, rounds=rounds)
    if clients == 1:
        assert played.syncs == 0  # nobody else has anything to say


def played_alike(algorithm: LaconicUCB, problem: Problem, *, clients: int, rounds: int) -> Run:
    """The run, which must be the same in lockstep and event by event through bytes, and finite."""
    fast = run(algorithm, problem, clients=clients, rounds=rounds)
    instance, delivery = problem.instance(seed=0, clients=clients, rounds=rounds), Delivery(through_bytes=True)
    slow = loopback.play(algorithm, instance, seed=0, clients=clients, rounds=rounds, delivery=delivery)
    assert (fast.choices == slow.choices).all()
    assert fast.versions == slow.versions
    assert fast.bytes == slow.bytes
    assert np.isfinite(fast.regrets).all()
    for each in fast.versions:
        figures = (each.d_eff, each.e_lo, each.e_hi, each.kappa, each.beta)
        assert np.isfinite(figures).all()
    return fast


@pytest.mark.parametrize(
    "kernel",
    [Polynomial(), Polynomial(degree=3, offset=2.0), Matern(nu=0.5), Matern(nu=2.5), Linear(), RationalQuadratic()],
    ids=repr,
)
def test_it_learns_with_any_kernel(kernel: Kernel) -> None:
    algorithm, problem = LaconicUCB(kernel, lam=0.1, alpha=0.1), Catalogue(dim=3, items=12, arms=5)
    played = played_alike(algorithm, problem, clients=5, rounds=40)
    assert played.regret < run(Random(), problem, clients=5, rounds=40).regret
    assert played.syncs > 0


def test_the_range_of_rewards_scales_the_steps_of_the_mean() -> None:
    """Rewards a thousand times as large, and all that has their size too: the same choices, but for rounding."""
    arms = ball(120, 4, 2)
    small = run(LEAN, log_of(arms, scale=1.0), clients=4, rounds=30)
    large = run(replace(LEAN, reward=1024.0, alpha=102.4), log_of(arms, scale=1024.0), clients=4, rounds=30)
    assert (small.choices != large.choices).mean() < 0.1
    assert LaconicUCB(reward=7.0).plan(2).digest == Atoms(Recipe(range=7.0))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"delta": -1.0}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"lam": 0.0}, "lam"),
        ({"alpha": "theory"}, "alpha"),
        ({"ranges": 0}, "ranges"),
        ({"ranges": ()}, "ranges"),
        ({"ranges": (1.0, -1.0)}, "ranges"),
        ({"ranges": "1"}, "ranges"),
        ({"reward": 0.0}, "reward"),
        ({"digest": "atoms"}, r"digest .* try digest=Atoms\(\)"),
        ({"digest": Atoms}, "digest"),
        ({"upload": Every(3)}, r"upload .* try Growth\(\)"),
        ({"digest": Atoms(Recipe(range=3.0)), "reward": 2.0}, r"try LaconicUCB\(reward=3.0\)"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_at_once(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        LaconicUCB(**given)


def test_ranges_must_be_as_many_as_features() -> None:
    algorithm = LaconicUCB(ranges=(1, 2))
    assert algorithm.plan(2).wire == Int8Wire((1, 2))
    assert LaconicUCB(ranges=[1, 2]) == algorithm  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ranges has 2 entries, but arms have 3 features"):
        run(algorithm, Cosine(dim=3), clients=2, rounds=2)


@pytest.mark.parametrize("reward", [1e39, -1e120, np.inf, np.nan])
def test_a_reward_that_cannot_travel_is_refused_and_the_decision_stays_open(reward: float) -> None:
    client = Client(LEAN.plan(2))
    decision = client.choose(ball(1, 3, 2)[0])
    with pytest.raises(InputError, match="reward"):
        client.observe(decision, reward)
    client.observe(decision, 0.5)
    assert client.count == 1


def test_a_point_that_cannot_travel_is_refused() -> None:
    client = Client(LEAN.plan(2))
    with pytest.raises(InputError, match="point beyond"):
        client.learn([[1e39, 0.0]], [1.0])
    assert client.count == 0


def test_its_plan_tells_all_that_decides_a_result() -> None:
    plans = [
        LaconicUCB(),
        LaconicUCB(delta=1.0),
        LaconicUCB(ranges=2.0),
        LaconicUCB(ranges=(1.0, 2.0)),
        LaconicUCB(ranges=(2.0, 1.0)),
        LaconicUCB(reward=3.0),
        LaconicUCB(digest=AllPoints()),
        LaconicUCB(digest=Atoms(Recipe(kappa=1.5))),
        LaconicUCB(upload=WithAsk()),
    ]
    assert len({each.plan(2).fingerprint for each in plans}) == len(plans)
    assert LaconicUCB(reward=3).plan(2).fingerprint == LaconicUCB(reward=3.0).plan(2).fingerprint
    assert LaconicUCB(ranges=(1.0, 2.0)).plan(2).table["wire.ranges.1"] == 2


def test_it_is_compared_with_others_and_with_itself() -> None:
    algorithms = [replace(LEAN, delta=grid(0.5, 4.0)), replace(LEAN, alpha=Theory())]
    results = compare(algorithms, problem=Catalogue(dim=3, items=8, arms=4), clients=4, rounds=10, seeds=1)
    assert [row.algorithm for row in results.rows] == ["LaconicUCB"] * 3
