"""Versions: what is kept, what is new, when there is none, and that nothing but the inputs decides."""

from itertools import pairwise

import numpy as np
import pytest

from laconic.atoms import Fallback, Reason, Recipe, Reference, Version, belief_of, build, weights_of
from laconic.atoms import joint as joints
from laconic.atoms.belief import weighted_gram
from laconic.atoms.builder import mean_missed, select
from laconic.atoms.joint import Joint
from laconic.atoms.spanning import independent
from laconic.atoms.weighing import DENSE_UP_TO, SINGLE, Weighing, largest_eigenvalue
from laconic.atoms.whitened import Whitened
from laconic.beliefs import FiniteBelief
from laconic.errors import InputError
from laconic.kernels import Gaussian, Linear, Polynomial
from laconic.linalg import lower_cholesky, ridged
from tests.atoms.cases import KERNELS, Log, built, log, referenced

MANY = log(600, dim=2, seed=3)


def chain(*, seed: int = 0) -> list[Version]:
    """Versions of a growing log, each from the one before."""
    versions: list[Version] = []
    for last in (300, 330, 363, 500, 600):
        reference = referenced(Gaussian(gamma=2.0), MANY, lam=0.1, cuts=(*range(30, last, 30), last))
        previous = versions[-1] if versions else None
        versions.append(built(reference, previous=previous, seed=seed + last))
    return versions


def test_atoms_are_fewer_than_points_and_as_good_as_wanted() -> None:
    for version in chain():
        assert len(version.atoms) <= 4 * version.certificate.d_eff + 4 < version.covered
        assert version.certificate.e_hi <= 1
        assert version.certificate.kappa < 1.3


def test_kept_atoms_come_first_in_their_old_order() -> None:
    versions = chain()
    for before, after in pairwise(versions):
        stay = np.isin(before.ids, after.ids)
        kept = stay.sum()
        np.testing.assert_array_equal(before.ids[stay], after.ids[:kept])
        np.testing.assert_array_equal(before.atoms[stay], after.atoms[:kept])
        assert not np.isin(after.ids[kept:], before.ids).any()
        assert kept > 0.5 * len(before.ids)


def test_ids_are_numbers_of_distinct_points() -> None:
    distinct = np.array(list(dict.fromkeys(map(tuple, MANY.X))))
    for version in chain():
        np.testing.assert_array_equal(distinct[version.ids], version.atoms)
        assert len(np.unique(version.ids)) == len(version.ids)


def test_the_same_inputs_give_the_same_version() -> None:
    for one, other in zip(chain(), chain(), strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.mean, other.mean)
        assert one.certificate == other.certificate


def test_few_distinct_points_are_all_atoms_with_their_counts() -> None:
    data = log(400, distinct=12)
    reference = referenced(Gaussian(gamma=3.0), data)
    version = built(reference)
    np.testing.assert_array_equal(version.ids, np.arange(12))
    assert np.abs(np.log2(weights_of(version.weights) / reference.counts)).max() <= 1 / 16 + 1e-12
    assert version.certificate.kappa == pytest.approx(1, abs=0.05)
    assert version.certificate.beta == pytest.approx(0, abs=1e-6)


def test_one_point_is_one_atom() -> None:
    version = built(referenced(Gaussian(), Log(X=np.ones((1, 1)), y=np.ones(1))), settings=Recipe(share=1.0))
    assert (len(version.ids), version.covered) == (1, 1)
    assert version.belief(kernel=Gaussian(), lam=0.1).view(np.ones((1, 1))).mean[0] == pytest.approx(1 / 1.1, abs=0.02)


def test_equal_points_only_are_one_atom_with_their_number() -> None:
    version = built(referenced(Gaussian(), Log(X=np.ones((64, 2)), y=np.ones(64))))
    assert weights_of(version.weights).tolist() == [64]


def test_points_that_the_kernel_does_not_see_give_a_belief_without_coordinates() -> None:
    version = built(referenced(Linear(), Log(X=np.zeros((9, 2)), y=np.ones(9))))
    view = version.belief(kernel=Linear(), lam=0.1).view(np.ones((1, 2)))
    assert (view.mean[0], view.variance[0]) == (0, 20)


def test_a_kernel_of_low_rank_has_atoms_beyond_its_dictionary() -> None:
    version = built(referenced(Polynomial(degree=2), log(500, dim=3), lam=0.1), settings=Recipe(kappa=1.01))
    assert version.spanning.sum() < len(version.atoms)
    assert len(version.mean) == version.spanning.sum()
    assert version.certificate.kappa < 1.2


@pytest.mark.parametrize("name", ["gaussian", "polynomial"])
def test_a_belief_on_atoms_keeps_no_gram_matrix_and_makes_the_same_one_again(name: str) -> None:
    kernel = KERNELS[name]
    belief = built(referenced(kernel, log(500, dim=3), lam=0.1)).belief(kernel=kernel, lam=0.1)
    held = [value for value in vars(belief.statistics).values() if isinstance(value, np.ndarray)]
    assert held
    assert all(value.size < belief.width**2 for value in held)
    np.testing.assert_array_equal(lower_cholesky(ridged(belief.statistics.gram, 0.1)), belief.factor)
    again = FiniteBelief.nystrom(kernel=kernel, dictionary=belief.arrays()["dictionary"], lam=0.1)
    assert again.from_arrays(belief.arrays()).information == belief.information


def test_a_linear_kernel_has_no_more_atoms_in_its_dictionary_than_features() -> None:
    version = built(referenced(Linear(), log(500, dim=3), lam=0.1))
    assert version.spanning.sum() == 3
    assert version.certificate.kappa < 1.2


def test_the_dictionary_has_as_many_atoms_as_span_all_of_them() -> None:
    K = Polynomial(degree=2)(*2 * [log(30, dim=2).X])
    some = independent(K)
    keep = some.which
    assert keep.sum() == 6 == np.linalg.matrix_rank(K[:, keep])
    assert not some.every
    np.testing.assert_allclose(some.root @ some.root.T, K[np.ix_(keep, keep)])
    assert independent(np.eye(4)).which.all()
    assert independent(np.eye(4)).every
    assert independent(np.empty((0, 0))).which.shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_among_points_close_together_keeps_none_out_that_lies_far_from_all(seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (150, 3)) * 10 ** random.uniform(-6, 3, (150, 1))
    K = Gaussian(1.0)(X, X)
    some = independent(K)
    assert not some.every
    assert (np.linalg.norm(some.root @ some.root.T - K[np.ix_(some.which, some.which)]) <= 1e-12 * len(K)).all()
    left = 1.0 - np.square(np.linalg.lstsq(some.root, K[some.which], rcond=None)[0]).sum(axis=0)
    assert left.max() < 1e-7
    alone = (K - np.eye(len(K))).max(axis=1) < 0.1
    assert alone.any()
    assert some.which[alone].all()


@pytest.mark.parametrize("lam", [1e6, 1e8, 1e9])
def test_where_points_say_next_to_nothing_beside_lambda_there_is_a_good_version_or_none(lam: float) -> None:
    for seed in range(10):
        reference = referenced(Gaussian(0.5), log(200, dim=3, seed=seed), lam=lam)
        found = build(reference, lam=lam, settings=Recipe(), random=np.random.default_rng(1))
        if isinstance(found, Fallback):
            assert found.reason is Reason.PRECISION
        else:
            assert found.certificate.kappa > 0


def test_where_nothing_can_be_compressed_there_is_no_version() -> None:
    data = log(100, dim=6)
    random = np.random.default_rng(0)
    few = build(referenced(Gaussian(gamma=9.0), data), lam=1.0, settings=Recipe(), random=random)
    assert isinstance(few, Fallback)
    assert few.reason is Reason.SHARE
    capped = build(referenced(Gaussian(gamma=9.0), data, cap=10), lam=1.0, settings=Recipe(), random=random)
    assert isinstance(capped, Fallback)
    assert capped.reason is Reason.REFERENCE
    assert capped.covered == 100
    assert capped.d_eff > 0


def test_a_version_continues_across_a_fallback() -> None:
    first = chain()[0]
    reference = referenced(Gaussian(gamma=2.0), MANY, cuts=(300, 600))
    assert np.isin(built(reference, previous=first).ids, first.ids).any()


def test_a_version_of_another_log_is_refused() -> None:
    first = chain()[0]
    other = referenced(Gaussian(gamma=2.0), log(600, seed=9))
    with pytest.raises(InputError, match="same log"):
        built(other, previous=first)
    with pytest.raises(InputError, match="same log"):
        built(referenced(Gaussian(), log(5)), previous=first)
    with pytest.raises(InputError, match="at least one observation"):
        built(Reference(kernel=Gaussian(), dim=2))


@pytest.mark.parametrize(
    "bad",
    [{"kappa": 0.5}, {"most": 0.0}, {"pool": 0}, {"headroom": 2.0}, {"drop": 1.0}, {"step": 0.0}, {"first": 1.5}],
)
def test_settings_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        Recipe(**bad)  # type: ignore[arg-type]


def test_a_belief_of_parts_that_do_not_fit_is_refused() -> None:
    atoms, one, both = np.eye(2), np.ones(2), np.ones(2, dtype=np.bool_)
    good = {"spanning": both, "kernel": Gaussian(), "lam": 0.1, "count": 2}
    assert belief_of(atoms, one, one, **good).observations == 2  # type: ignore[arg-type]
    with pytest.raises(InputError, match="marks"):
        belief_of(atoms, np.ones(3), one, **good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="coefficients"):
        belief_of(atoms, one, np.ones(1), **good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="negative"):
        belief_of(atoms, -one, one, **good)  # type: ignore[arg-type]


# The builder's own numbers


def whitened(name: str = "gaussian") -> Whitened:
    return Whitened(reference=referenced(KERNELS[name], MANY), lam=0.1)


@pytest.mark.parametrize("name", KERNELS)
def test_in_whitened_coordinates_all_points_and_the_ridge_are_the_identity(name: str) -> None:
    white = whitened(name)
    A = white.rows(np.arange(white.reference.distinct))
    gram = (A.T * white.reference.counts) @ A
    np.testing.assert_allclose(gram + white.ridge, np.eye(white.rank), atol=1e-8)
    assert white.d_eff == pytest.approx(np.trace(gram))


def test_sums_of_kernel_values_give_the_joint_statistics_that_coordinates_of_every_point_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = log(400, dim=4, seed=3, distinct=300)
    reference = referenced(Gaussian(gamma=0.5), data, tolerance=0.05)
    rows = np.flatnonzero(reference.residual > 0.02)[:60]
    K = reference.kernel(reference.points[rows], reference.points[rows])
    found = []
    for negligible in (np.inf, -1.0):  # by either way
        monkeypatch.setattr(joints, "NEGLIGIBLE", negligible)
        found.append(Joint.of(Whitened(reference=reference, lam=0.1), rows, K=K, spanning=independent(K)))
    quick, careful = found
    assert len(quick.root) == reference.rank + 60
    np.testing.assert_allclose(quick.root, careful.root, atol=1e-7)
    np.testing.assert_allclose(quick.moment, careful.moment, atol=1e-7)


def test_a_step_leaves_weights_that_are_right_alone() -> None:
    white = whitened()
    rows = np.arange(white.reference.distinct)
    weighing = Weighing(ridge=white.ridge.astype(SINGLE), d_eff=white.d_eff)
    A = white.rows(rows).astype(SINGLE)
    np.testing.assert_allclose(weighing.stepped(A, white.reference.counts, steps=3), white.reference.counts, rtol=1e-3)


def test_steps_lead_to_the_least_of_what_they_minimise() -> None:
    white = whitened()
    weighing = Weighing(ridge=white.ridge.astype(SINGLE), d_eff=white.d_eff)
    A = white.rows(np.arange(0, 600, 12))

    def objective(weights: np.ndarray) -> float:
        values = np.linalg.eigvalsh(white.ridge + (A.T * weights) @ A)
        return float((1 / values + values**3 / 3).sum())

    found = weighing.stepped(A.astype(SINGLE), np.full(len(A), 10.0), steps=200)
    random = np.random.default_rng(0)
    for _ in range(20):
        assert objective(found * np.exp(0.05 * random.standard_normal(len(A)))) >= objective(found) - 1e-4


@pytest.mark.parametrize("size", [3, DENSE_UP_TO + 50])
def test_the_largest_eigenvalue_is_found(size: int) -> None:
    root = np.random.default_rng(0).normal(size=(size, 2 * size)).astype(SINGLE)
    H = root @ root.T
    assert largest_eigenvalue(H) == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-2)


def test_kappa_of_the_builder_is_its_definition() -> None:
    white = whitened()
    weighing = Weighing(ridge=white.ridge.astype(SINGLE), d_eff=white.d_eff)
    A, weights = white.rows(np.arange(40)), np.full(40, 15.0)
    H = white.ridge + (A.T * weights) @ A
    expected = np.trace(np.linalg.solve(H, np.eye(len(H)) - white.ridge)) / white.d_eff
    assert weighing.kappa(weighing.matrix(A.astype(SINGLE), weights)) == pytest.approx(expected, rel=1e-4)


def test_what_the_mean_misses_is_its_distance_from_the_span() -> None:
    white = whitened()
    target = np.linalg.solve(white.root, white.reference.moment)
    for count in (2, 5, 9):
        rows = np.arange(count)
        seen = white.reference.coordinates.take(rows) @ white.root
        left = target - seen.T @ np.linalg.lstsq(seen.T, target, rcond=None)[0]
        assert mean_missed(white, rows) == pytest.approx(np.linalg.norm(left), rel=1e-2, abs=1e-3)


def test_the_mean_misses_nothing_where_atoms_span_the_reference_of_a_long_log() -> None:
    data = log(6000, dim=4, seed=5)
    white = Whitened(reference=referenced(Gaussian(gamma=0.5), data, cuts=(500, 6000)), lam=0.1)
    rows = np.concatenate([white.reference.pivots, np.arange(50)])
    assert mean_missed(white, rows) < 0.01


def test_no_more_atoms_are_selected_than_allowed_and_none_twice() -> None:
    white = whitened()
    settings = Recipe(most=1.0, kappa=1.0)
    rows, weights = select(
        white,
        previous=np.empty(0, dtype=np.int64),
        weights=np.empty(0),
        settings=settings,
        random=np.random.default_rng(0),
    )
    assert len(np.unique(rows)) == len(rows) == len(weights) <= int(white.d_eff) + 4
    assert (weights > 0).all()


@pytest.mark.parametrize("size", [1, 2, 90])
def test_weighted_sums_of_triangular_coordinates_are_those_of_any(size: int) -> None:
    random = np.random.default_rng(size)
    root, weights = np.tril(random.standard_normal((size, size))), random.uniform(0, 3, size)
    quick, plain = (weighted_gram(root.T, weights, triangular=each) for each in (True, False))
    np.testing.assert_allclose(quick, plain, atol=1e-12)
    assert (quick == quick.T).all()
