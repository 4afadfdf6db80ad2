"""Results out of thin air, for tests that need no runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.experiments.results import Curve, Results, Row


def curve(*, regret: float = 1.0, scalars: int = 0, steps: int = 4) -> Curve:
    t = np.arange(1, steps + 1)
    sent = (scalars * (t == steps)).astype(np.int64)
    none = np.zeros(steps, dtype=np.int64)
    return Curve(t=t.astype(np.int64), regret=regret * t / steps, scalars=sent, syncs=none, dictionary=none)


def row(algorithm: str, *, seed: int = 0, regret: float = 1.0, scalars: int = 0, **more: Any) -> Row:
    fields: dict[str, Any] = {
        "params": {"D": 5.0},
        "bytes": 8 * scalars,
        "messages": 3,
        "syncs": int(scalars > 0),
        "dictionary": None,
        "seconds": 0.5,
        "curve": curve(regret=regret, scalars=scalars),
    }
    return Row(algorithm=algorithm, seed=seed, regret=regret, scalars=scalars, **(fields | more))


def results(*rows: Row, clients: int = 10, rounds: int = 10, dim: int = 4) -> Results:
    return Results(problem="cosine", problem_params={"dim": dim}, clients=clients, rounds=rounds, dim=dim, rows=rows)


def unnamed(scale: float = 1.0) -> Any:
    """A kernel of the user's own that no configuration file can name."""
    return lambda X, Y: scale * (X @ Y.T)
