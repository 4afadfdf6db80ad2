"""Results out of thin air, for tests that need no runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from laconic import registry
from laconic.arrays import Floats
from laconic.experiments import parts
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


@dataclass(frozen=True)
class Periodic:
    """A kernel as another package would bring it: no base class of ours."""

    period: float = 1.0

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        angles = np.pi * (X[:, None, :] - Y[None, :, :]) / self.period
        return np.asarray(np.exp(-2 * (np.sin(angles) ** 2).sum(axis=2)))


class Plain:
    """A kernel that is no dataclass, so that nobody can ask what it was made with."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return np.asarray(self.scale * (X @ Y.T))


def listed(monkeypatch: pytest.MonkeyPatch, kind: str, **classes: type) -> None:
    """Let other packages have declared these by entry points."""
    own = registry._others

    def others(asked: registry.Kind) -> dict[str, Any]:
        added = {name: partial(_same, each) for name, each in classes.items()} if asked == kind else {}
        return own(asked) | added

    monkeypatch.setattr(registry, "_others", others)
    parts._name_of_class.cache_clear()


def _same(each: type) -> type:
    return each
