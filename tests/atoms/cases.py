"""Small logs to build atoms from, and the same numbers by whole kernel matrices."""

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from laconic.arrays import Floats
from laconic.atoms import Recipe, Reference, Version, build, weights_of
from laconic.kernels import Gaussian, Kernel, Linear, Matern, Polynomial

KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(gamma=0.5),
    "scaled": 3.0 * Gaussian(gamma=0.2),
    "matern": Matern(nu=1.5, length=1.0),
    "linear": Linear(),
    "polynomial": Polynomial(degree=2, offset=0.5),
}


@dataclass(frozen=True)
class Log:
    """Observations as they arrived."""

    X: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.y)


def log(n: int, *, dim: int = 2, seed: int = 0, distinct: int | None = None) -> Log:
    """n observations of a smooth function with noise, of some distinct points where wanted."""
    random = np.random.default_rng(seed)
    X = np.round(random.uniform(-1, 1, size=(distinct or n, dim)), 2)
    if distinct is not None:
        X = X[random.integers(distinct, size=n)]
    return Log(X=X, y=np.cos(3 * X.sum(axis=1)) + 0.1 * random.standard_normal(n))


def function(kernel: Kernel, *, seed: int) -> tuple[Floats, Floats]:
    """Centres and coefficients of a function of norm 1."""
    random = np.random.default_rng(seed)
    centres, coefficients = random.uniform(-1, 1, size=(8, 2)), random.standard_normal(8)
    return centres, coefficients / np.sqrt(coefficients @ kernel(centres, centres) @ coefficients)


def referenced(
    kernel: Kernel,
    data: Log,
    *,
    lam: float = np.inf,
    cuts: tuple[int, ...] = (),
    tolerance: float = 0.005,
    cap: int = 1500,
) -> Reference:
    """The reference of a log that came in these steps; λ limits what it may leave of a point, where it is given."""
    empty = Reference(kernel=kernel, dim=data.X.shape[1], lam=lam, tolerance=tolerance, cap=cap)
    steps = pairwise((0, *(cuts or (len(data),))))
    return reduce(lambda grown, step: grown.extended(data.X[slice(*step)], data.y[slice(*step)]), steps, empty)


def built(
    reference: Reference,
    *,
    lam: float = 0.1,
    settings: Recipe | None = None,
    previous: Version | None = None,
    seed: int = 0,
) -> Version:
    """A version, which there must be."""
    random = np.random.default_rng(seed)
    version = build(reference, lam=lam, settings=settings or Recipe(), random=random, previous=previous)
    assert isinstance(version, Version)
    return version


@dataclass(frozen=True)
class Dense:
    """Everything as coordinates in the span of all points, from the eigenvectors of the whole kernel matrix.

    V = λI + PΦᵀΦP with P the projection to the span of Q ∪ U, and V̂ = λI + Σ w u uᵀ.
    """

    lam: float
    points: Floats  # (n, p) PΦ of all observations
    atoms: Floats  # (m, p)
    probes: Floats  # (k, p)
    weights: Floats
    y: Floats

    @classmethod
    def of(
        cls, version: Version, reference: Reference, data: Log, *, lam: float, probes: Floats | None = None
    ) -> "Dense":
        Q, U = reference.points[reference.pivots], version.atoms
        probes = np.empty((0, data.X.shape[1])) if probes is None else probes
        everything = np.concatenate([data.X, Q, U, probes])
        values, vectors = np.linalg.eigh(reference.kernel(everything, everything))
        coordinates = vectors * np.sqrt(np.maximum(values, 0.0))
        n, r, m = len(data), len(Q), len(U)
        P = projector(coordinates[n : n + r + m])
        return cls(
            lam=lam,
            points=coordinates[:n] @ P,
            atoms=coordinates[n + r : n + r + m],
            probes=coordinates[n + r + m :],
            weights=weights_of(version.weights),
            y=data.y,
        )

    @property
    def V(self) -> Floats:
        return self.lam * np.eye(self.points.shape[1]) + self.points.T @ self.points

    @property
    def V_hat(self) -> Floats:
        return self.lam * np.eye(self.points.shape[1]) + (self.atoms.T * self.weights) @ self.atoms

    @property
    def mean(self) -> Floats:
        return np.asarray(np.linalg.solve(self.V, self.points.T @ self.y), dtype=np.float64)


def projector(rows: Floats) -> Floats:
    """The orthogonal projection to the span of some rows."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    kept = basis[values > 1e-6 * values[0]]
    return np.asarray(kept.T @ kept)
