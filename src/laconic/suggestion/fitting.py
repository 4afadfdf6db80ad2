"""The most likely kernel and ridge: L-BFGS on the evidence, from several starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from laconic.arrays import Floats
from laconic.errors import KernelError
from laconic.kernels import Kernel
from laconic.suggestion.likelihood import evidence, parameters

#: A smaller ridge costs bytes, and gains little regret; above the larger one there is hardly a signal.
RIDGES = (0.03, 10.0)
#: How far from the start a kernel's own parameters may go, as a factor either way.
REACH = 1e3
#: Where the search begins: factors of the kernel's parameters, and ridges.
STARTS = tuple(product((1.0, 0.1), (0.1, 1.0)))
STEPS = 60


@dataclass(frozen=True)
class Fit:
    """The most likely setting, and which of its numbers ended at a limit of the search."""

    kernel: Kernel
    lam: float
    log: float
    signal: float
    at_limit: tuple[str, ...] = ()


def fit(kernel: Kernel, X: Floats, y: Floats) -> Fit:
    """The kernel's parameters and λ of the largest evidence, starting from the kernel as it is.

    Args:
        kernel: The kernel to begin with. Its parameters may go to a thousandth and to a thousand times what they are;
            one that has no scale stays as it is, and λ alone is fitted.
        X: Points, (n, d), a row for each.
        y: Their rewards, (n,).
    """
    from scipy.optimize import minimize

    names = (*parameters(kernel), "lam")
    start = np.array([math.log(getattr(kernel, name)) for name in names[:-1]])
    around = [(each - math.log(REACH), each + math.log(REACH)) for each in start]
    bounds = [*around, (math.log(RIDGES[0]), math.log(RIDGES[1]))]

    def downhill(theta: Floats) -> tuple[float, Floats]:
        found = evidence(_with(kernel, names, theta), X, y, lam=math.exp(theta[-1]))
        return -found.log / len(y), -found.gradient / len(y)

    ends = []
    for factor, lam in STARTS if len(start) else STARTS[:2]:
        begin = np.array([*(start + math.log(factor)), math.log(lam)])
        ends.append(minimize(downhill, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS}))
    best = min(ends, key=lambda end: float(end.fun))
    if not np.isfinite(best.fun):
        raise KernelError(f"the evidence of kernel {kernel!r} is not finite on this sample; rescale it")
    return _found(kernel, names, np.asarray(best.x), bounds=bounds, X=X, y=y)


def _with(kernel: Kernel, names: tuple[str, ...], theta: Floats) -> Kernel:
    changes = {name: math.exp(each) for name, each in zip(names[:-1], theta[:-1], strict=True)}
    return replace(kernel, **changes) if changes else kernel  # type: ignore[type-var]  # ours are dataclasses


def _found(
    kernel: Kernel, names: tuple[str, ...], theta: Floats, *, bounds: list[tuple[float, float]], X: Floats, y: Floats
) -> Fit:
    chosen, lam = _with(kernel, names, theta), math.exp(theta[-1])
    found = evidence(chosen, X, y, lam=lam)
    limits = [min(each - low, high - each) < 1e-3 for each, (low, high) in zip(theta, bounds, strict=True)]
    at_limit = tuple(name for name, there in zip(names, limits, strict=True) if there)
    return Fit(chosen, lam=lam, log=found.log, signal=found.signal, at_limit=at_limit)
