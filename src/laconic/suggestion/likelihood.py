"""The evidence: how likely the rewards of a sample are under y ~ N(0, s²(K + λI)), and how that changes.

s² is profiled out, so that λ is the noise's variance as a part of the signal's, which is what a ridge is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_positive
from laconic.kernels import Gaussian, Kernel, Matern, RationalQuadratic, as_kernel
from laconic.linalg import lower_cholesky, solve_lower


@dataclass(frozen=True)
class Evidence:
    """How likely the rewards of a sample are, and how that changes with the settings.

    Attributes:
        log: The largest log-likelihood over s², a natural logarithm.
        signal: That s, the standard deviation of the signal, in units of rewards.
        gradient: Slope of the log-likelihood by the logarithm of each parameter of the kernel that is fitted, and then
            of λ.
    """

    log: float
    signal: float
    gradient: Floats


def evidence(kernel: Kernel, X: Floats, y: Floats, *, lam: float) -> Evidence:
    """ln p(y) = −n/2 (1 + ln 2πs²) − ½ ln det(K + λI), with s² = yᵀ(K + λI)⁻¹y / n, and its gradient.

    Args:
        kernel: The kernel; of Gaussian, Matern and RationalQuadratic the gradient has their parameters.
        X: Points, (n, d), a row for each.
        y: Their rewards, (n,).
        lam: Ridge λ, above 0: the noise's variance as a part of the signal's.

    Examples:
        >>> import numpy as np
        >>> found = evidence(Gaussian(1.0), np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 0.5, -0.5]), lam=0.1)
        >>> round(found.log, 4), len(found.gradient)
        (-2.9246, 2)
    """
    require_positive("lam", lam)
    n = len(X)
    L = lower_cholesky(kernel(X, X) + lam * np.eye(n))
    rows = solve_lower(L, np.eye(n))  # L⁻¹, of which only norms and products are taken
    half = rows @ y
    a = half @ rows  # (K + λI)⁻¹y
    square = max(float(half @ half) / n, np.finfo(np.float64).tiny)  # s²
    log = -0.5 * n * (1.0 + math.log(2.0 * math.pi * square)) - float(np.log(np.diagonal(L)).sum())
    # ∂ ln p = ½ (aᵀ ∂K a / s² − tr (K + λI)⁻¹∂K)
    slopes = [float(a @ dK @ a) / square - float(np.vdot(rows @ dK, rows)) for dK in derivatives(kernel, X)]
    slopes.append(lam * (float(a @ a) / square - float(np.vdot(rows, rows))))
    return Evidence(log, signal=math.sqrt(square), gradient=0.5 * np.array(slopes))


def parameters(kernel: Kernel) -> tuple[str, ...]:
    """The parameters of a kernel that are chosen by evidence; all of them are positive."""
    return FITTED.get(type(kernel), ((), None))[0]


def derivatives(kernel: Kernel, X: Floats) -> list[Floats]:
    """∂K by the logarithm of each parameter that `parameters` names."""
    _, slopes = FITTED.get(type(kernel), ((), None))
    return [] if slopes is None else slopes(kernel, as_kernel(kernel)(X, X), _squares(X))


def _squares(X: Floats) -> Floats:
    from scipy.spatial.distance import pdist, squareform

    return np.asarray(squareform(pdist(X, "sqeuclidean")))


def _gaussian(kernel: Gaussian, K: Floats, squares: Floats) -> list[Floats]:
    return [-kernel.gamma * squares * K]


def _matern(kernel: Matern, K: Floats, squares: Floats) -> list[Floats]:
    s = np.sqrt(2.0 * kernel.nu * squares) / kernel.length
    factor = {0.5: s, 1.5: s * s, 2.5: s * s * (1.0 + s) / 3.0}[float(kernel.nu)]
    return [np.asarray(factor * np.exp(-s))]


def _rational_quadratic(kernel: RationalQuadratic, K: Floats, squares: Floats) -> list[Floats]:
    u = squares / (2.0 * kernel.mix * kernel.length**2)
    by_length = 2.0 * kernel.mix * K * u / (1.0 + u)
    return [by_length, kernel.mix * K * (u / (1.0 + u) - np.log1p(u))]


Slopes = Callable[..., list[Floats]]
FITTED: dict[type, tuple[tuple[str, ...], Slopes | None]] = {
    Gaussian: (("gamma",), _gaussian),
    Matern: (("length",), _matern),
    RationalQuadratic: (("length", "mix"), _rational_quadratic),
}
