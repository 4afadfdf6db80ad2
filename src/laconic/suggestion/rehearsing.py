"""A problem made of a sample, on which settings can be tried before anything is deployed."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Floats
from laconic.checks import require_seed, require_whole
from laconic.linalg import lower_cholesky, solve_lower
from laconic.problems.recorded import Log
from laconic.randomness import Role, generator
from laconic.suggestion.value import Suggestion

ARMS = 20
NOISE = 0.1  # where there are no rewards


def rehearsal(suggestion: Suggestion, *, steps: int = 2000, arms: int = ARMS, seed: int = 0) -> Log:
    """A log of steps whose arms are drawn from the sample, and pay what the fitted model expects, and its noise.

    Without rewards the means are one function drawn from the kernel's own prior, scaled to a deviation of 0.3. It is a
    rehearsal and not the world: what the model does not know is not in it.

    Args:
        suggestion: Settings that were found, with the sample that they rest on.
        steps: Steps of the log, from 1, which all clients together can play.
        arms: Arms of each step, from 1, drawn with return; 20 where nothing is said. Raising it makes the best of them
            better, so that a wrong choice costs more.
        seed: Seed of what is drawn, from 0.
    """
    require_whole("steps", steps, least=1)
    require_whole("arms", arms, least=1)
    require_seed("seed", seed)
    X = suggestion.grounds.sample.points
    rng = generator(seed, Role.SAMPLE, len(X), steps, arms)
    means = _means(suggestion, rng)
    noise = NOISE if suggestion.grounds.noise is None else suggestion.grounds.noise
    shown = rng.integers(len(X), size=(steps, arms))
    return Log(X[shown], means=means[shown], noise=noise * rng.standard_normal(steps), source="rehearsal")


def _means(suggestion: Suggestion, rng: np.random.Generator) -> Floats:
    """The mean at each point of the sample: K(K + λI)⁻¹y, or a draw from the prior."""
    X, y = suggestion.grounds.sample.points, suggestion.grounds.sample.rewards
    K = suggestion.kernel(X, X)
    L = lower_cholesky(K + suggestion.lam * np.eye(len(X)))
    if y is not None:
        return np.asarray(solve_lower(L, K).T @ solve_lower(L, y))
    drawn = lower_cholesky(K + 1e-9 * float(np.trace(K)) / len(X) * np.eye(len(X))) @ rng.standard_normal(len(X))
    return np.asarray(0.3 * drawn / max(float(drawn.std()), 1e-12))
