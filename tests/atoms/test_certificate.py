"""Certificates against generalised eigenvalues and whole kernel matrices in the span of all points."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from laconic.atoms import Recipe, Reference, Version, weights_of
from laconic.kernels import Gaussian, Kernel
from tests.atoms.cases import KERNELS, Dense, Log, built, log, referenced

CASES = [(name, n, distinct) for name in KERNELS for n, distinct in ((150, None), (200, 20))]
SETTINGS = Recipe(share=1.0)


def case(name: str, n: int, distinct: int | None, *, dim: int = 2) -> tuple[Version, Dense]:
    data = log(n, dim=dim, distinct=distinct)
    reference = referenced(KERNELS[name], data, lam=0.1, cuts=(n // 3, n))
    version = built(reference, settings=SETTINGS)
    return version, Dense.of(version, reference, data, lam=0.1)


@pytest.mark.parametrize(("name", "n", "distinct"), CASES)
def test_the_bounds_are_extreme_generalised_eigenvalues(name: str, n: int, distinct: int | None) -> None:
    version, dense = case(name, n, distinct)
    values = eigh(dense.V_hat, dense.V, eigvals_only=True) - 1
    # beyond Q ∪ U both are λI, which the certificate does not look at
    certificate = version.certificate
    assert min(certificate.e_lo, 0) == pytest.approx(min(values[0], 0), abs=1e-5)
    assert max(certificate.e_hi, 0) == pytest.approx(max(values[-1], 0), abs=1e-4)
    assert certificate.e_hi <= SETTINGS.e_hi


@pytest.mark.parametrize(("name", "n", "distinct"), CASES)
def test_the_inflation_is_that_of_the_mean_variance(name: str, n: int, distinct: int | None) -> None:
    version, dense = case(name, n, distinct)
    G = dense.points.T @ dense.points
    inflation = np.trace(np.linalg.solve(dense.V_hat, G)) / np.trace(np.linalg.solve(dense.V, G))
    assert version.certificate.kappa == pytest.approx(inflation, rel=1e-5)


@pytest.mark.parametrize(("name", "n", "distinct"), CASES)
def test_the_mean_is_the_nearest_in_the_span_of_atoms(name: str, n: int, distinct: int | None) -> None:
    version, dense = case(name, n, distinct)
    root = np.linalg.cholesky(dense.V).T
    nearest = dense.atoms.T @ np.linalg.lstsq(root @ dense.atoms.T, root @ dense.mean, rcond=1e-9)[0]
    assert version.certificate.beta == pytest.approx(np.linalg.norm(root @ (dense.mean - nearest)), abs=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_figures_of_the_reference_are_its_own(name: str) -> None:
    data = log(90, distinct=40)
    reference = referenced(KERNELS[name], data, lam=0.1)
    certificate = built(reference).certificate
    eigenvalues = np.linalg.eigvalsh(reference.gram)
    assert certificate.d_eff == pytest.approx((eigenvalues / (eigenvalues + 0.1)).sum())
    assert certificate.log_det == pytest.approx(np.log1p(eigenvalues / 0.1).sum())
    assert certificate.missed == reference.missed


def nystrom_mean(kernel: Kernel, version: Version, X: np.ndarray, y: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """k_S(x)ᵀ(K_SD K_DS + λK_SS)⁻¹K_SD y, by least squares in the eigenvectors of K_SS."""
    values, vectors = np.linalg.eigh(kernel(version.atoms, version.atoms))
    keep = values > 1e-9 * values[-1]
    W = vectors[:, keep] / np.sqrt(values[keep])
    Z, P = kernel(X, version.atoms) @ W, kernel(probes, version.atoms) @ W
    return np.asarray(P @ np.linalg.solve(Z.T @ Z + 0.1 * np.eye(Z.shape[1]), Z.T @ y))


@pytest.mark.parametrize("name", KERNELS)
def test_the_belief_has_the_exact_mean_but_for_rounding(name: str) -> None:
    data = log(150)
    version = built(referenced(KERNELS[name], data, lam=0.1), settings=SETTINGS)
    probes = np.random.default_rng(1).uniform(-1, 1, size=(40, 2))
    view = version.belief(kernel=KERNELS[name], lam=0.1).view(probes)
    exact = nystrom_mean(KERNELS[name], version, data.X, data.y, probes)
    bound = np.sqrt(view.variance) * version.quantum * np.sqrt(len(version.mean)) / 2
    assert (np.abs(view.mean - exact) <= bound + 1e-6).all()


def test_a_finer_step_gives_the_exact_mean() -> None:
    data = log(150)
    version = built(referenced(Gaussian(), data, lam=0.1), settings=Recipe(step=1e-7, share=1.0))
    probes = np.random.default_rng(1).uniform(-1, 1, size=(40, 2))
    mean = version.belief(kernel=Gaussian(), lam=0.1).view(probes).mean
    np.testing.assert_allclose(mean, nystrom_mean(Gaussian(), version, data.X, data.y, probes), atol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_the_variance_is_that_of_weighted_points(name: str) -> None:
    """(k − k_S(K_SS + λ diag(1/w))⁻¹k_S)/λ: an atom of weight w is an observation with noise λ/w."""
    kernel = KERNELS[name]
    version = built(referenced(kernel, log(150, distinct=60), lam=0.1))
    probes = np.random.default_rng(1).uniform(-1, 1, size=(40, 2))
    K, k = kernel(version.atoms, version.atoms), kernel(version.atoms, probes)
    solved = np.linalg.solve(K + np.diag(0.1 / weights_of(version.weights)), k)
    variance = (kernel.diag(probes) - (k * solved).sum(axis=0)) / 0.1
    np.testing.assert_allclose(version.belief(kernel=kernel, lam=0.1).view(probes).variance, variance, atol=1e-6)


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.integers(2, 120),
    st.integers(1, 3),
    st.integers(0, 10**6),
    st.floats(0.01, 5),
)
def test_no_variance_is_smaller_or_larger_than_certified(name: str, n: int, dim: int, seed: int, lam: float) -> None:
    data = log(n, dim=dim, seed=seed, distinct=max(n // 2, 1))
    reference = referenced(KERNELS[name], data, lam=lam, cuts=(1, n))
    assume(reference.rank > 0)
    assert_certified(reference, data, lam=lam, seed=seed)


@pytest.mark.parametrize(("kernel", "lam", "times"), [(Gaussian(0.02), 2.0, 0.2), (5.0 * Gaussian(3.0), 0.02, 100.0)])
def test_certificates_hold_where_lambda_limits_what_the_reference_leaves(
    kernel: Kernel, lam: float, times: float
) -> None:
    data = log(120, dim=3)
    reference, free = referenced(kernel, data, lam=lam), referenced(kernel, data)
    np.testing.assert_allclose(reference.allowed(reference.prior), reference.tolerance * times * lam)
    assert reference.rank != free.rank
    assert_certified(reference, data, lam=lam, seed=0)


def assert_certified(reference: Reference, data: Log, *, lam: float, seed: int) -> None:
    """Variances at some probes are within the bounds of the certificate of those of all points."""
    version = built(reference, lam=lam, settings=Recipe(share=2.0))
    probes = np.random.default_rng(seed).uniform(-1.5, 1.5, size=(20, data.X.shape[1]))
    dense = Dense.of(version, reference, data, lam=lam, probes=probes)
    variance = np.einsum("ij,ij->i", dense.probes, np.linalg.solve(dense.V, dense.probes.T).T)
    seen = version.belief(kernel=reference.kernel, lam=lam).view(probes).variance
    certificate, margin = version.certificate, 1e-6 / lam
    assert (seen >= variance / (1 + max(certificate.e_hi, 0)) - margin).all()
    assert (seen <= variance / (1 + min(certificate.e_lo, 0)) * (1 + 1e-6) + margin).all()
