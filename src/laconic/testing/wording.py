"""How checks speak: a claim that does not hold names the object, the place and what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, View
from laconic.problems.synthetic import in_ball
from laconic.protocol.messages import Payload
from laconic.randomness import Role, generator

#: Two routes to the same number may differ by this much, relative to its size or to 1.
CLOSE = 1e-7
#: The same where features are kept in float32.
CLOSE_IN_SINGLE = 1e-3
#: How much of an object's repr a message shows.
SHOWN = 120


@dataclass(frozen=True)
class Subject:
    """What is being checked, and where in the check we are."""

    name: str
    place: str = ""

    @classmethod
    def of(cls, kind: str, value: object) -> Subject:
        """An object as a message names it."""
        return cls(f"{kind} {shown(value)}")

    def at(self, place: str) -> Subject:
        """The same object at another place."""
        return replace(self, place=place)

    def claim(self, holds: object, broken: str) -> None:
        """Raise an AssertionError that says what is broken, unless the claim holds."""
        if not holds:
            raise AssertionError(self._said(broken))

    @contextmanager
    def calling(self, call: str) -> Iterator[None]:
        """An error inside a call that must succeed is a broken claim too."""
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:  # the object is somebody else's and may fail in any way
            raise AssertionError(self._said(f"{call} raised {type(error).__name__}: {error}")) from error

    def _said(self, broken: str) -> str:
        return f"{self.name}, {self.place}: {broken}" if self.place else f"{self.name}: {broken}"


def shown(value: object) -> str:
    """An object as one line."""
    line = " ".join(repr(value).split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def points(count: int, *, dim: int, stream: int = 0) -> Floats:
    """Points in the unit ball, the same ones for the same stream."""
    return in_ball(generator(stream, Role.ROUND).standard_normal((count, dim + 2)))


def rewards(count: int, *, stream: int = 0) -> Floats:
    """Rewards to learn from."""
    return generator(stream, Role.ROUND, 1).standard_normal(count)


def same(a: Floats, b: Floats) -> bool:
    """Equal to the last bit."""
    return a.shape == b.shape and np.array_equal(a, b)


def close(a: Floats, b: Floats, *, within: float = CLOSE) -> bool:
    """Equal but for rounding."""
    return a.shape == b.shape and gap(a, b) <= within * max(1.0, float(np.abs(b).max(initial=0.0)))


def rounding(belief: Belief) -> float:
    """How close two routes to what a belief says must come."""
    return CLOSE if belief.view(points(1, dim=belief.dim)).features.dtype == np.float64 else CLOSE_IN_SINGLE


def gap(a: Floats, b: Floats) -> float:
    """The largest difference."""
    return float(np.abs(a - b).max(initial=0.0))


def same_arrays(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> bool:
    """Equal names, and under each of them equal arrays."""
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)


def same_view(a: View, b: View) -> bool:
    """Views equal to the last bit."""
    fields = ("points", "features", "mean", "signal", "residual")
    return all(same(getattr(a, name), getattr(b, name)) for name in fields)


def same_belief(a: Belief, b: Belief) -> bool:
    """Beliefs that learnt the same and say the same, to the last bit."""
    X = points(5, dim=a.dim)
    return a.dim == b.dim and same_arrays(a.arrays(), b.arrays()) and same_view(a.view(X), b.view(X))


def copied(payload: Payload) -> Payload:
    """A payload with arrays of its own."""
    return Payload(values={name: array.copy() for name, array in payload.values.items()}, control=dict(payload.control))


def same_payload(a: Payload, b: Payload) -> bool:
    """Payloads equal to the last bit."""
    return same_arrays(a.values, b.values) and same_arrays(a.records, b.records) and a.control == b.control


def require_array(subject: Subject, value: Any, *, name: str, shape: tuple[int, ...], single: bool = False) -> None:
    """A finite float64 array of this shape; with ``single`` it may also be float32."""
    subject.claim(isinstance(value, np.ndarray), f"{name} must be a numpy array, not {type(value).__name__}")
    subject.claim(value.shape == shape, f"{name} has shape {value.shape} instead of {shape}")
    fits = value.dtype == np.float64 or (single and value.dtype == np.float32)
    subject.claim(fits, f"{name} holds {value.dtype} instead of float64")
    subject.claim(np.isfinite(value).all(), f"{name} holds values that are not finite")
