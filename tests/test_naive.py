"""The naive reference checked against itself by other routes, before anything is checked against it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tests.naive import (
    ALGORITHMS,
    Context,
    Floats,
    Kernel,
    Naive,
    Uniforms,
    diagonal,
    exact_alpha,
    gaussian,
    gram,
    linear,
    linear_kernel,
    log_det,
    log_det_bound,
    log_det_gain,
    merge_equal,
    nystrom,
    nystrom_alpha,
    nystrom_alpha_bound,
    play,
    posterior,
    rls_probabilities,
    thin,
)

GAUSSIAN = gaussian(1.0)


@dataclass(frozen=True)
class World:
    """Arms, means and noise of a small problem."""

    arms: Floats
    means: Floats
    noise: Floats


def world(*, steps: int = 40, arms: int = 5, dim: int = 3, seed: int = 0) -> World:
    """Fresh arms each step in a box, a smooth reward, a little noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (steps, arms, dim))
    return World(x, np.cos(3 * x @ rng.uniform(-1, 1, dim)), 0.1 * rng.standard_normal(steps))


def catalogue(*, steps: int = 40, arms: int = 5, dim: int = 3, seed: int = 0) -> World:
    """The same arms at every step."""
    fresh = world(steps=steps, arms=arms, dim=dim, seed=seed)
    return World(np.repeat(fresh.arms[:1], steps, axis=0), np.repeat(fresh.means[:1], steps, axis=0), fresh.noise)


def data(n: int, *, dim: int = 2, seed: int = 1) -> tuple[Floats, Floats]:
    """Points and rewards."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, dim)), rng.standard_normal(n)


def chosen(w: World, choices: object) -> Floats:
    """The points played."""
    index = np.asarray(choices, dtype=np.int64)
    return np.asarray(w.arms[np.arange(len(index)), index])


def played(
    algorithm: str,
    w: World,
    *,
    clients: int = 4,
    kernel: Kernel | None = GAUSSIAN,
    lam: float = 1.0,
    alpha: float | Callable[[Context], float] = 1.0,
    D: float = math.inf,
    qbar: float = math.inf,
    cold_start: str = "paper",
    mask: ArrayLike | None = None,
    forced: ArrayLike | None = None,
    uniforms: Uniforms | None = None,
) -> Naive:
    """Play a small problem with the settings most tests share."""
    return play(
        algorithm,
        arms=w.arms,
        means=w.means,
        noise=w.noise,
        mask=mask,
        clients=clients,
        kernel=kernel,
        lam=lam,
        alpha=alpha,
        D=D,
        qbar=qbar,
        cold_start=cold_start,
        forced=forced,
        uniforms=uniforms,
    )


# Estimators


@pytest.mark.parametrize("lam", [0.01, 1.0, 7.0])
@pytest.mark.parametrize("n", [1, 2, 25])
def test_the_exact_posterior_is_that_of_scikit_learn(n: int, lam: float) -> None:
    without = "the posterior to compare with is scikit-learn's; try: pip install 'laconic[data]'"
    gp = pytest.importorskip("sklearn.gaussian_process", reason=without)
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels", reason=without)
    (X, y), (Xs, _) = data(n), data(6, seed=2)
    rbf = kernels.RBF(length_scale=1 / math.sqrt(2 * 1.5), length_scale_bounds="fixed")
    mean, std = gp.GaussianProcessRegressor(rbf, alpha=lam, optimizer=None).fit(X, y).predict(Xs, return_std=True)
    mu, variance = posterior(gaussian(1.5), X, y, Xs, lam)
    np.testing.assert_allclose(mu, mean, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(lam * variance), std, atol=1e-9)


def test_with_a_linear_kernel_the_dual_form_is_the_primal_form() -> None:
    (X, y), (Xs, _) = data(12, dim=3), data(5, dim=3, seed=2)
    dual, primal = posterior(linear_kernel, X, y, Xs, 0.3), linear(X, y, Xs, 0.3)
    np.testing.assert_allclose(dual, primal, atol=1e-11)


@pytest.mark.parametrize("kernel", [gaussian(1.0), linear_kernel])
def test_without_data_the_variance_is_the_prior_over_lambda(kernel: Kernel) -> None:
    none, (Xs, _) = np.zeros((0, 2)), data(4)
    for mu, variance in (
        posterior(kernel, none, np.zeros(0), Xs, 0.2),
        nystrom(kernel, none, none, np.zeros(0), Xs, 0.2),
        nystrom(kernel, none, Xs, np.ones(4), Xs, 0.2),
    ):
        np.testing.assert_array_equal(mu, np.zeros(4))
        np.testing.assert_allclose(variance, diagonal(kernel, Xs) / 0.2)


def test_the_papers_variance_is_the_stable_one_with_a_cholesky_root() -> None:
    k, lam = gaussian(0.7), 0.4
    (X, y), (Xs, _) = data(20), data(7, seed=2)
    S = X[:6]
    L = np.linalg.cholesky(gram(k, S, S))
    Z, z = np.linalg.solve(L, gram(k, S, X)).T, np.linalg.solve(L, gram(k, S, Xs)).T
    A = Z.T @ Z + lam * np.eye(6)
    mean = z @ np.linalg.solve(A, Z.T @ y)
    variance = (1 - np.sum(z**2, axis=1)) / lam + np.sum(z.T * np.linalg.solve(A, z.T), axis=0)
    np.testing.assert_allclose(nystrom(k, S, X, y, Xs, lam), (mean, variance), atol=1e-10)


def test_nystrom_is_exact_when_the_dictionary_holds_every_point() -> None:
    (X, y), (Xs, _) = data(10), data(7, seed=2)
    k = gaussian(4.0)
    np.testing.assert_allclose(nystrom(k, X, X, y, Xs, 0.5), posterior(k, X, y, Xs, 0.5), atol=1e-9)


# Determinants and α


def test_the_log_det_ratio_is_the_sum_over_points_of_log_one_plus_variance() -> None:
    k, (X, y) = gaussian(1.0), data(15)
    terms = [math.log1p(posterior(k, X[:s], y[:s], X[s : s + 1], 0.3)[1][0]) for s in range(9, 15)]
    assert log_det_gain(k, X[:9], X[9:], 0.3) == pytest.approx(sum(terms), abs=1e-10)


@pytest.mark.parametrize("size", [0, 1, 4, 12])
def test_a_client_bounds_the_information_it_cannot_compute_from_above(size: int) -> None:
    k, (X, _) = gaussian(1.0), data(12)
    bound = log_det_bound(k, X[:size], X, 0.5)
    assert bound >= log_det(k, X, 0.5) - 1e-10
    if size == 12:
        assert bound == pytest.approx(log_det(k, X, 0.5), abs=1e-9)


def test_the_theoretical_alphas_without_data_are_their_closed_forms() -> None:
    none, k = np.zeros((0, 2)), gaussian(1.0)
    assert exact_alpha(k, none, lam=4.0, clients=3, S=2.0, R=0.5, delta=0.1) == pytest.approx(
        4.0 + 0.5 * math.sqrt(2 * math.log(30))
    )
    bound = nystrom_alpha_bound(k, none, none, lam=4.0, clients=3, S=2.0, R=0.5, delta=0.1, eps=0.0, D=3.0)
    assert bound == pytest.approx((1 + 2) * 4.0 + 0.5 * math.sqrt(4 * math.log(30)))


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.9])
def test_the_nystrom_alpha_exists_exactly_below_the_stated_threshold(eps: float) -> None:
    limit = (1 - eps) ** 2 / (eps * (1 + eps))
    kwargs = {"lam": 1.0, "S": 1.0, "R": 1.0, "delta": 0.1, "eps": eps}
    assert nystrom_alpha(1.0, clients=2, D=0.999 * limit, **kwargs) > 0
    with pytest.raises(ValueError, match="no root"):
        nystrom_alpha(1.0, clients=2, D=1.001 * limit, **kwargs)


def test_a_theoretical_alpha_sees_the_points_the_client_knew_before_it_chose() -> None:
    w = world(steps=9)
    seen: list[int] = []

    def alpha(context: Context) -> float:
        seen.append(len(context.X))
        return exact_alpha(context.kernel, context.X, lam=context.lam, clients=context.clients, S=1, R=1, delta=0.1)

    run = played("NKernelUCB", w, clients=3, alpha=alpha)
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert np.all(np.diff(run.alphas[::3]) > 0)


# Dictionaries


def test_leverage_probabilities_stop_at_one() -> None:
    np.testing.assert_array_equal(rls_probabilities(np.array([0.0, 0.5, 3.0]), 1.0), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(rls_probabilities(np.array([0.0, 0.5]), math.inf), [1.0, 1.0])


def test_thinning_keeps_all_far_points_one_of_near_points_and_the_rank_of_a_linear_kernel() -> None:
    X, _ = data(9, dim=3)
    np.testing.assert_array_equal(thin(gaussian(1e6), X), X)
    np.testing.assert_array_equal(thin(gaussian(1e-13), X), X[:1])
    assert len(thin(linear_kernel, X)) == 3


def test_thinning_leaves_nothing_unexplained_and_a_factor_of_full_rank() -> None:
    X, _ = data(60, dim=1)
    k = gaussian(1.0)
    S = thin(k, X)
    assert len(S) < 20
    L = np.linalg.cholesky(gram(k, S, S))
    rest = 1 - np.sum(np.linalg.solve(L, gram(k, S, X)) ** 2, axis=0)
    assert rest.max() <= 1.1e-10
    assert np.all(np.diff(np.diag(L)) <= 1e-8)


def test_equal_points_are_merged_in_order_of_appearance() -> None:
    points = np.array([[2.0, 1.0], [0.0, 0.0], [2.0, 1.0], [-0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(merge_equal(points), [[2.0, 1.0], [0.0, 0.0], [1.0, 2.0]])


# Algorithms


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("D", [0.5, 5.0])
def test_with_a_linear_kernel_both_distributed_algorithms_are_one(dim: int, D: float) -> None:
    w = world(dim=dim)
    kernelised = played("DisKernelUCB", w, kernel=linear_kernel, lam=0.5, D=D)
    primal = played("DisLinUCB", w, lam=0.5, D=D)
    np.testing.assert_array_equal(kernelised.choices, primal.choices)
    assert kernelised.syncs == primal.syncs
    assert len(primal.syncs) > 1
    np.testing.assert_allclose(kernelised.triggers, primal.triggers, atol=1e-9)
    assert primal.scalars_by_sync == [2 * 4 * (dim**2 + dim)] * len(primal.syncs)


@pytest.mark.parametrize("fixed", [False, True])
def test_right_after_a_sync_approx_with_every_point_is_exact(fixed: bool) -> None:
    w = catalogue() if fixed else world()
    approx = played("ApproxDisKernelUCB", w, lam=0.5, D=3.0)
    one = played("OneKernelUCB", w, lam=0.5, forced=approx.choices)
    after = [t for t in approx.syncs if t < 40]
    assert after
    for t in after:
        np.testing.assert_allclose(approx.ucb[t], one.ucb[t], atol=1e-8)
    distinct = [len(merge_equal(chosen(w, approx.choices)[:t])) for t in approx.syncs]
    assert approx.dictionary_sizes == distinct


def test_one_kernel_ucb_sends_each_point_to_everyone_at_every_step() -> None:
    w = world(steps=11)
    run = played("OneKernelUCB", w, clients=3)
    assert run.syncs == list(range(1, 12))
    assert run.scalars_by_sync == [3 * 4] * 11
    assert run.scalars == 11 * 3 * 4


def test_one_and_n_are_the_distributed_algorithm_that_always_and_never_fires() -> None:
    w = world()
    runs = {
        name: played(name.split()[0], w, D=D)
        for name, D in [
            ("OneKernelUCB", 9.0),
            ("DisKernelUCB always", 0.0),
            ("NKernelUCB", 0.0),
            ("DisKernelUCB never", math.inf),
        ]
    }
    np.testing.assert_array_equal(runs["OneKernelUCB"].choices, runs["DisKernelUCB always"].choices)
    assert runs["OneKernelUCB"].scalars_by_sync == runs["DisKernelUCB always"].scalars_by_sync
    np.testing.assert_array_equal(runs["NKernelUCB"].choices, runs["DisKernelUCB never"].choices)
    assert runs["NKernelUCB"].syncs == runs["DisKernelUCB never"].syncs == []
    assert runs["NKernelUCB"].scalars == 0


def test_a_lone_client_learns_the_same_whatever_the_threshold_but_pays_for_its_points() -> None:
    w = world(steps=12)
    runs = [played("DisKernelUCB", w, clients=1, D=D) for D in (0.0, 2.0, math.inf)]
    for run in runs:
        np.testing.assert_array_equal(run.choices, runs[0].choices)
        assert run.scalars == 4 * max(run.syncs, default=0)


def test_data_shared_is_counted_once_up_and_once_down_to_everyone_else() -> None:
    w = world()
    run = played("DisKernelUCB", w, D=5.0)
    new = np.diff([0, *run.syncs])
    assert len(new) > 1
    assert run.scalars_by_sync == [n * 4 + 3 * n * 4 for n in new]


def test_a_trigger_at_its_threshold_does_not_fire() -> None:
    w = world()
    run = played("ApproxDisKernelUCB", w, D=2.0)
    np.testing.assert_array_equal(run.triggers[:9], [1, 1, 1, 1, 2, 2, 2, 2, 3])
    assert run.syncs[0] == 9
    assert played("ApproxDisKernelUCB", w, D=2 - 1e-9).syncs[0] == 9
    assert played("ApproxDisKernelUCB", w, D=2 - 1e-7).syncs[0] == 5


def test_triggers_weigh_only_the_acting_clients_own_points_since_the_last_sync() -> None:
    w = world()
    dis, approx = played("DisKernelUCB", w, D=5.0), played("ApproxDisKernelUCB", w, D=2.0)
    for run in (dis, approx):
        X, y, last, dictionary = chosen(w, run.choices), run.rewards, 0, np.zeros((0, 3))
        for s, value in enumerate(run.triggers):
            new = [r for r in range(last, s + 1) if r % 4 == s % 4]
            if run is dis:
                expected = len(new) * log_det_gain(GAUSSIAN, X[:last], X[new], 1.0)
            else:
                expected = sum(nystrom(GAUSSIAN, dictionary, X[:last], y[:last], X[new], 1.0)[1])
            assert value == pytest.approx(expected, abs=1e-10)
            if s + 1 in run.syncs:
                last = s + 1
                dictionary = np.concatenate([X[i:last:4] for i in range(4)])
        assert last > 0


def test_before_the_first_dictionary_paper_ties_every_arm_and_local_learns_alone() -> None:
    w = world(steps=16)
    paper, local = (played("ApproxDisKernelUCB", w, D=2.0, cold_start=start) for start in ("paper", "local"))
    alone = played("NKernelUCB", w)
    assert paper.syncs[0] == local.syncs[0] == 9
    assert paper.ties[:9].all()
    assert not local.ties[4:9].any()
    np.testing.assert_array_equal(local.choices[:9], alone.choices[:9])
    np.testing.assert_array_equal(local.triggers[:9], paper.triggers[:9])


def test_after_the_first_dictionary_both_cold_starts_are_one() -> None:
    w = world()

    def low(client: int, epoch: int, n: int) -> Floats:
        return np.linspace(0, 1, n)

    paper = played("ApproxDisKernelUCB", w, D=2.0, qbar=0.3, uniforms=low)
    local = played("ApproxDisKernelUCB", w, D=2.0, qbar=0.3, uniforms=low, cold_start="local", forced=paper.choices)
    assert paper.syncs == local.syncs
    assert paper.scalars_by_sync == local.scalars_by_sync
    np.testing.assert_array_equal(paper.ucb[paper.syncs[0] :], local.ucb[paper.syncs[0] :])


def test_a_dictionary_has_the_numerical_rank_of_its_points_not_their_number() -> None:
    run = played("ApproxDisKernelUCB", world(dim=1), kernel=gaussian(0.1), D=1.0)
    assert run.syncs[-1] > 20
    assert all(r <= 8 for r in run.dictionary_sizes)


def test_when_nothing_is_picked_the_first_sync_sends_one_point_and_later_ones_keep_the_dictionary() -> None:
    w = world()
    run = played("ApproxDisKernelUCB", w, D=1.0, qbar=0.1, uniforms=lambda client, epoch, n: np.full(n, 0.999))
    assert len(run.syncs) > 2
    assert run.picked_by_sync == [[1, 0, 0, 0], *[[0, 0, 0, 0]] * (len(run.syncs) - 1)]
    statistics = 2 * 4 * (1 + 1)
    assert run.scalars_by_sync == [4 + 4 * 4 + statistics, *[statistics] * (len(run.syncs) - 1)]
    np.testing.assert_array_equal(run.dictionaries[-1], w.arms[0, run.choices[0]][None])


def test_draws_of_zero_keep_every_point_of_positive_variance_and_repetitions_are_paid_for() -> None:
    w = catalogue()
    run = played("ApproxDisKernelUCB", w, D=2.0, qbar=0.1, uniforms=lambda client, epoch, n: np.zeros(n))
    assert len(run.syncs) > 1
    assert [sum(sizes) for sizes in run.picked_by_sync] == run.syncs
    for t, r, scalars in zip(run.syncs, run.dictionary_sizes, run.scalars_by_sync, strict=True):
        assert r <= 5
        assert scalars == t * 4 + 4 * r * 4 + 2 * 4 * (r * r + r)


def test_draws_are_asked_for_by_client_and_number_of_earlier_syncs() -> None:
    w = world()
    asked: list[tuple[int, int, int]] = []

    def uniforms(client: int, epoch: int, n: int) -> Floats:
        asked.append((client, epoch, n))
        return np.random.default_rng([client, epoch]).random(n)

    run = played("ApproxDisKernelUCB", w, D=2.0, qbar=0.5, uniforms=uniforms)
    expected = [(i, e, len(range(i, t, 4))) for e, t in enumerate(run.syncs) for i in range(4)]
    assert asked == expected
    with pytest.raises(ValueError, match="uniforms"):
        played("ApproxDisKernelUCB", w, D=2.0, qbar=0.5)


def test_a_forced_choice_is_followed_and_its_distance_from_the_best_recorded() -> None:
    w = world(steps=12)
    free = played("NKernelUCB", w, clients=2)
    other = (free.choices + 1) % 5
    forced = played("NKernelUCB", w, clients=2, forced=other)
    np.testing.assert_array_equal(forced.choices, other)
    np.testing.assert_array_equal(free.within, np.zeros(12))
    np.testing.assert_array_equal(forced.within, [u.max() - u[a] for u, a in zip(forced.ucb, other, strict=True)])


def test_a_masked_arm_is_as_good_as_absent() -> None:
    w = world(steps=20)
    mask = np.ones((20, 5), dtype=np.bool_)
    mask[:, 3:] = False
    for name in ALGORITHMS:
        masked = played(name, w, mask=mask, clients=2, D=2.0)
        absent = played(name, World(w.arms[:, :3], w.means[:, :3], w.noise), clients=2, D=2.0)
        np.testing.assert_array_equal(masked.choices, absent.choices)
        np.testing.assert_array_equal(masked.regrets, absent.regrets)
        assert all(np.isneginf(u[3:]).all() for u in masked.ucb)


def test_a_masked_arm_does_not_widen_the_tie_rule() -> None:
    w = World(np.array([[[1.0], [1.0 - 1e-6], [1e9]]]), np.zeros((1, 3)), np.zeros(1))
    run = played("DisLinUCB", w, mask=[[True, True, False]])
    assert run.scales == [1.0]
    assert not run.ties[0]


def test_equal_arms_tie_bit_for_bit() -> None:
    w = world(steps=20)
    arms, means = np.concatenate([w.arms, w.arms], axis=1), np.concatenate([w.means, w.means], axis=1)
    run = played("OneKernelUCB", World(arms, means, w.noise), clients=3)
    assert run.ties.all()
    for u in run.ucb:
        np.testing.assert_array_equal(u[:5], u[5:])


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("steps", "arms", "dim", "clients"), [(1, 1, 1, 1), (1, 4, 2, 3), (7, 1, 2, 3), (9, 3, 1, 1)])
@pytest.mark.parametrize("gamma", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("fixed", [False, True])
def test_odd_sizes_and_scales_are_played_to_the_end(
    name: str, steps: int, arms: int, dim: int, clients: int, gamma: float, fixed: bool
) -> None:
    w = (catalogue if fixed else world)(steps=steps, arms=arms, dim=dim)
    run = played(name, w, clients=clients, kernel=gaussian(gamma), lam=0.1, D=0.5)
    assert len(run.ucb) == steps
    assert np.isfinite(np.concatenate(run.ucb)).all()
    assert (run.regrets >= 0).all()
    assert len(run.syncs) == len(run.scalars_by_sync)
    assert not np.isnan(run.triggers).any()


def test_a_question_without_an_answer_is_refused() -> None:
    w = world(steps=4, arms=2)
    first_only = np.tile([True, False], (4, 1))
    with pytest.raises(ValueError, match="is not one of"):
        played("KernelUCB", w)
    with pytest.raises(ValueError, match="needs a kernel"):
        played("NKernelUCB", w, kernel=None)
    with pytest.raises(ValueError, match="neither"):
        played("NKernelUCB", w, cold_start="warm")
    with pytest.raises(ValueError, match="without arms"):
        played("NKernelUCB", w, mask=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="hides"):
        played("NKernelUCB", w, mask=first_only, forced=[0, 0, 1, 0])
