"""From a sample to settings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from laconic import registry
from laconic.arrays import Floats
from laconic.checks import any_array, require_whole
from laconic.defaults import ALPHA, D_EXACT, DELTA, LAM
from laconic.experiments.parts import ProblemLike, as_problem
from laconic.kernels import Kernel, as_kernel, require_positive_definite
from laconic.protocol.tight import least_size
from laconic.protocol.wire import Int8Wire
from laconic.runtimes.threads import one_thread
from laconic.suggestion.costs import Traffic
from laconic.suggestion.curve import Curve
from laconic.suggestion.fitting import Fit, fit
from laconic.suggestion.likelihood import evidence, parameters
from laconic.suggestion.sample import Sample, pilot
from laconic.suggestion.scale import at_scale, median_distance
from laconic.suggestion.value import Grounds, Suggestion
from laconic.suggestion.weight import Noise, weight

#: Keeps nineteen of twenty points that return, where all may be kept, and d_eff points elsewhere.
QBAR_RETURNING, QBAR_FRESH = 3.0, 1.0
DIGITS = 3


def suggest(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    kernel: Kernel | str = "Gaussian",
    clients: int = 50,
    traffic: int = 100,
    most: int = 1000,
    seed: int = 0,
) -> Suggestion:
    """Settings for data of one's own: kernel scale, λ, α and the rest, and what each algorithm would send a day.

    Args:
        X: Points, (n, d), a row for each; two or more, that are not all the same.
        y: Their rewards, (n,); None where there are none, and then only scales are fitted.
        kernel: A kernel, or the name of one. Its scale is fitted either way.
        clients: Clients N that will learn together, from 1. No setting depends on it; where every point goes to
            everyone, the estimated bytes of a client grow with it.
        traffic: Interactions of one client in a day, from 1. No setting depends on it; raising it raises the estimated
            bytes of a day.
        most: Rows to look at, from 2, of which that many are drawn where there are more. Raising it takes longer and
            estimates better.
        seed: Seed of what is drawn, from 0.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> found = suggest(X, np.sin(6 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0]))
        >>> found.kernel.gamma > 1, found.algorithm("DisKernelUCB").lam == found.lam
        (True, True)
    """
    given = Sample(any_array("X", X), None if y is None else any_array("y", y))
    return suggest_from(given, kernel=kernel, clients=clients, traffic=traffic, most=most, seed=seed)


def suggest_from(
    given: Sample, *, kernel: Kernel | str, clients: int, traffic: int, most: int, seed: int
) -> Suggestion:
    """Settings for a sample that is there already, as one that was read from a file."""
    sample = given.shuffled(most, seed=seed)
    return _suggested(sample, kernel=_as_kernel(kernel), clients=clients, traffic=traffic)


def suggest_for(
    problem: ProblemLike,
    *,
    sample: int = 500,
    kernel: Kernel | str = "Gaussian",
    clients: int = 50,
    traffic: int = 100,
    seed: int = 0,
) -> Suggestion:
    """Settings for a problem, from what a pilot of so many uniformly random choices sees of it.

    Args:
        problem: What is played: a value, a name that laconic list shows, or the path of an .npz file.
        sample: Uniformly random choices of the pilot, from 2; of a log no more than it has. Raising it takes longer and
            estimates better.
        kernel: A kernel, or the name of one. Its scale is fitted either way.
        clients: Clients N that will learn together, from 1. No setting depends on it; where every point goes to
            everyone, the estimated bytes of a client grow with it.
        traffic: Interactions of one client in a day, from 1. No setting depends on it; raising it raises the estimated
            bytes of a day.
        seed: Seed of what is drawn, from 0.
    """
    played = as_problem(problem)
    require_whole("sample", sample, least=2)
    seen = pilot(played, interactions=sample, seed=seed)
    return replace(_suggested(seen, kernel=_as_kernel(kernel), clients=clients, traffic=traffic), problem=played)


def _as_kernel(kernel: Kernel | str) -> Kernel:
    return as_kernel(registry.find("kernel", kernel)() if isinstance(kernel, str) else kernel)


@one_thread()  # several would spin in wait for each other, between matrices that are small
def _suggested(sample: Sample, *, kernel: Kernel, clients: int, traffic: int) -> Suggestion:
    X = sample.points
    load = Traffic(clients, daily=traffic, dim=sample.dim)
    median = _readable(at_scale(kernel, median_distance(X)))
    require_positive_definite(median, X[:100])
    chosen, lam, alpha, told = _settings(sample, median)
    curve = Curve.of(chosen, X, lam=lam)
    ranges = _up(float(np.abs(X).max()))
    return Suggestion(
        kernel=chosen,
        lam=lam,
        alpha=alpha,
        delta=DELTA,
        D=D_EXACT,
        D_approx=_up(float(np.median(chosen.diag(X))) / lam),
        qbar=QBAR_RETURNING if curve.population < len(X) else QBAR_FRESH,
        ranges=ranges,
        reward=1.0 if sample.rewards is None else _up(float(np.abs(sample.rewards).max())),
        d_eff=curve.effective,
        traffic=replace(load, width=_width(X, kernel=chosen, lam=lam, ranges=ranges)),
        grounds=Grounds(sample, curve=curve, median=median, **told),
    )


def _settings(sample: Sample, median: Kernel) -> tuple[Kernel, float, float, dict[str, Any]]:
    """Kernel, λ, α and what is known about them."""
    if sample.rewards is None:
        return median, LAM, ALPHA, {}  # for signals of about 0.3 with noise of about 0.1
    X, y = sample.points, sample.rewards
    best = fit(median, X, y)
    kernel, lam = _readable(best.kernel), _rounded(best.lam)
    found = evidence(kernel, X, y, lam=lam)
    noise = Noise.of(kernel, X, y, lam=lam)
    told = {"signal": found.signal, "noise": noise.all, "log": found.log, "at_limit": best.at_limit}
    return kernel, lam, _rounded(weight(noise)), told | {"lost": _lost(best, X, y)}


def _lost(best: Fit, X: Floats, y: Floats) -> tuple[float, float] | None:
    """How much less the logarithm of the evidence is at half and at twice the kernel's scale, λ as it is."""
    names = parameters(best.kernel)
    if not names:
        return None
    own = getattr(best.kernel, names[0])
    others = [replace(best.kernel, **{names[0]: own * factor}) for factor in (0.5, 2.0)]  # type: ignore[type-var]
    half, twice = (best.log - evidence(each, X, y, lam=best.lam).log for each in others)
    return half, twice


def _width(X: Floats, *, kernel: Kernel, lam: float, ranges: float) -> float:
    """Bytes of a coordinate, on average, on the wire of LaconicUCB, in few bits where that is shorter."""
    wire = Int8Wire(ranges)
    rounded, _ = wire.rounded(X, np.zeros(len(X)), kernel=kernel, lam=lam)
    return sum(map(least_size, wire.packed(rounded))) / X.size


def _readable(kernel: Kernel) -> Kernel:
    """The kernel with its fitted parameters in a few digits."""
    few = {name: _rounded(getattr(kernel, name)) for name in parameters(kernel)}
    return replace(kernel, **few) if few else kernel  # type: ignore[type-var]


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _up(number: float) -> float:
    """The number rounded up to two digits.

    Examples:
        >>> _up(0.987), _up(3.01)
        (0.99, 3.1)
    """
    unit = 10.0 ** (math.floor(math.log10(number)) - 1) if number > 0 else 1.0
    return float(f"{max(math.ceil(number / unit - 1e-9), 1) * unit:.2g}")
