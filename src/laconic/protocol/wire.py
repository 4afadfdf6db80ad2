"""Wires: in which numbers points and rewards travel, and what rounding that means for everyone.

A client learns from the rounded points and rewards itself, so that both sides talk of the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.atoms.settings import POINT_ROUNDING, REWARD_ROUNDING
from laconic.checks import instead, is_grid, require_one_of, require_positive, seen
from laconic.errors import InputError, RemoteProtocolError
from laconic.kernels import Kernel

FLOATS = ("float64", "float32", "float16")
#: The types of the forms of `Int8Wire`.
FORM_TYPES = ("int8", "int16", "float32")
_FORM_TYPES, _REWARD_TYPES = tuple(map(np.dtype, FORM_TYPES)), (np.dtype(np.float16), np.dtype(np.float32))
#: How many steps the range of a coordinate has in the first two of them.
LEVELS = (127, 32767)
#: A distance is a close call when it is as near as this to what is allowed, and to what cancellation may leave.
CLOSE, CANCELLED = 1e-6, 1e-10
#: So many points are compared with what they were rounded to in one call of the kernel.
PAIRS = 64
LARGEST_SINGLE = float(np.finfo(np.float32).max)


class Wire(Protocol):
    """How points and rewards are packed.

    The class variable ``by_reference`` is True when a point that the other side knows goes as a number that names it.
    """

    #: True when a point that the other side knows goes as a number that names it.
    by_reference: ClassVar[bool]

    def rounded(self, points: Floats, rewards: Floats, *, kernel: Kernel | None, lam: float) -> tuple[Floats, Floats]:
        """Points and rewards as the other side will have them; what is exact already comes back as it is.

        Args:
            points: Points, (m, d), finite.
            rewards: Rewards, finite; they need not be as many.
            kernel: Kernel that says how far apart two points are; None: their plain distance does.
            lam: Ridge λ, above 0, to which the error of rounding is compared.

        Raises:
            InputError: A number does not fit into what travels.
        """
        ...

    def packed(self, points: Floats) -> list[np.ndarray]:
        """The forms in which rounded points travel, each with those points that need it, in order; see `form_of`.

        Args:
            points: Points as `rounded` gave them, (m, d).
        """
        ...

    def form_of(self, points: Floats) -> np.ndarray:
        """Which of the forms each point takes, 0 for the first.

        Args:
            points: Points as `rounded` gave them, (m, d); the result is (m,).
        """
        ...

    def unpacked(self, form: int, array: np.ndarray) -> Floats:
        """The points in one of the forms, in float64.

        Args:
            form: Number of the form, from 0.
            array: What came in that form, (m, d), of any type.

        Raises:
            RemoteProtocolError: There is no such form, or its numbers are of another type.
        """
        ...

    def packed_rewards(self, rewards: Floats) -> np.ndarray:
        """Rounded rewards as they travel.

        Args:
            rewards: Rewards as `rounded` gave them.
        """
        ...

    def unpacked_rewards(self, array: np.ndarray) -> Floats:
        """The rewards that came, in float64.

        Args:
            array: What came, of any type.

        Raises:
            RemoteProtocolError: Its numbers are of another type than rewards travel in.
        """
        ...


@dataclass(frozen=True)
class FloatWire:
    """Points and rewards as floating-point numbers of some width.

    Args:
        dtype: Numbers that travel: float64, float32 or float16. Fewer bits send less and round more.
    """

    dtype: str = "float64"

    by_reference: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_one_of("dtype", self.dtype, choices=FLOATS)

    def rounded(self, points: Floats, rewards: Floats, *, kernel: Kernel | None, lam: float) -> tuple[Floats, Floats]:
        if self.dtype == "float64":
            return points, rewards
        with np.errstate(over="ignore"):
            X, y = (array.astype(self.dtype).astype(np.float64) + 0.0 for array in (points, rewards))  # see unpacked
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise InputError(f"a point or a reward does not fit into {self.dtype}; rescale, or try wire='float32'")
        return X, y

    def form_of(self, points: Floats) -> np.ndarray:
        return np.zeros(len(points), dtype=np.int64)

    def packed(self, points: Floats) -> list[np.ndarray]:
        return [points.astype(self.dtype, copy=False)]

    def unpacked(self, form: int, array: np.ndarray) -> Floats:
        if form:
            raise RemoteProtocolError(f"points came in form {form}, where all are of {self.dtype}")
        points = _widened("points", array, (np.dtype(self.dtype),))
        # −0 and 0 are one point: where one side takes it from a message and the other by its number, bits must agree.
        return points if self.dtype == "float64" else points + 0.0

    def packed_rewards(self, rewards: Floats) -> np.ndarray:
        return rewards.astype(self.dtype, copy=False)

    def unpacked_rewards(self, array: np.ndarray) -> Floats:
        return _widened("rewards", array, (np.dtype(self.dtype),))


#: Points and rewards as they are.
EXACT = FloatWire()


@dataclass(frozen=True)
class Int8Wire:
    """A byte a coordinate, in steps of range/127; 16 bits where that is too coarse, and 32 beyond the range.

    A point is too coarse when ‖φ(x) − φ(x̂)‖² > 10⁻³λ. Rewards go in float16, or in float32 where rounding to that
    exceeds 1 % of √λ.

    Args:
        ranges: Largest usual size of a feature, above 0: one number for all features, or one for each. A point beyond
            it takes more bytes. Raising it makes the steps of rounding coarser.
    """

    ranges: float | tuple[float, ...] = 1.0

    by_reference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.ranges == ():
            raise InputError("ranges is empty; give one size for all features, or one for each")
        for each in self.ranges if isinstance(self.ranges, tuple) else (self.ranges,):
            require_positive("ranges", each)

    @cached_property
    def _steps(self) -> dict[int, Floats]:
        """The step of each coordinate, by the number of levels."""
        return {levels: np.asarray(self.ranges, dtype=np.float64) / levels for levels in LEVELS}

    def _counted(self, points: Floats, levels: int) -> Floats:
        """The coordinates of points in whole steps of a grid; one beyond its range is at the end of the grid."""
        if isinstance(self.ranges, tuple) and len(self.ranges) != points.shape[1]:
            raise InputError(f"ranges has {len(self.ranges)} entries, but points have {points.shape[1]} features")
        return np.minimum(np.maximum(np.round(points / self._steps[levels]), -levels), levels)

    def _on_grid(self, points: Floats, levels: int) -> Floats:
        """Points rounded to a grid."""
        return self._counted(points, levels) * self._steps[levels] + 0.0

    def rounded(self, points: Floats, rewards: Floats, *, kernel: Kernel | None, lam: float) -> tuple[Floats, Floats]:
        X = self._on_grid(points, 127)
        far = _far(points, X, kernel=kernel, lam=lam) | self._beyond(points)
        if far.any():
            finer = self._on_grid(points[far], 32767)
            still = _far(points[far], finer, kernel=kernel, lam=lam) | self._beyond(points[far])
            finer[still] = _single("point", points[far][still]) + 0.0  # −0 and 0 are one point, and have one identity
            X[far] = finer
        return X, _rounded_rewards(rewards, lam=lam)

    def _beyond(self, points: Floats) -> Bools:
        return np.asarray((np.abs(points) > np.asarray(self.ranges) * (1 + 1e-9)).any(axis=1))

    def form_of(self, points: Floats) -> np.ndarray:
        narrow = self._is_on_grid(points, 127)
        if narrow.all():  # as nearly always
            return np.zeros(len(points), dtype=np.int64)
        return np.where(narrow, 0, np.where(self._is_on_grid(points, 32767), 1, 2))

    def _is_on_grid(self, points: Floats, levels: int) -> Bools:
        return np.asarray((self._on_grid(points, levels) == points).all(axis=1))

    def packed(self, points: Floats) -> list[np.ndarray]:
        steps = self._counted(points, 127)
        if (steps * self._steps[127] == points).all():  # as nearly always
            return [steps.astype(np.int8)]
        form = self.form_of(points)
        narrow = np.round(points[form == 0] / self._steps[127]).astype(np.int8)
        wide = np.round(points[form == 1] / self._steps[32767]).astype(np.int16)
        return [narrow, wide, points[form == 2].astype(np.float32)]

    def unpacked(self, form: int, array: np.ndarray) -> Floats:
        if not 0 <= form < len(_FORM_TYPES) or array.dtype != _FORM_TYPES[form]:
            raise RemoteProtocolError(f"points of form {form} came as {array.dtype}")
        if form == 2:
            return np.asarray(array.astype(np.float64) + 0.0)
        beyond = -LEVELS[form] - 1
        if (array == beyond).any():  # no grid has it, so it could not be sent on as it is
            raise RemoteProtocolError(f"a coordinate of {beyond} steps, which no rounding gives")
        return np.asarray(array.astype(np.float64) * self._steps[LEVELS[form]] + 0.0)

    def packed_rewards(self, rewards: Floats) -> np.ndarray:
        with np.errstate(over="ignore"):
            half = rewards.astype(np.float16)
        return half if (half == rewards).all() else rewards.astype(np.float32)

    def unpacked_rewards(self, array: np.ndarray) -> Floats:
        return _widened("rewards", array, _REWARD_TYPES)


def fits_half(rewards: Floats) -> Bools:
    """Which rewards are the same in float16."""
    with np.errstate(over="ignore"):
        return np.asarray(rewards.astype(np.float16).astype(np.float64) == rewards)


def _widened(what: str, array: np.ndarray, dtypes: tuple[np.dtype[Any], ...]) -> Floats:
    """The same numbers in float64, of an array that must be of one of these types."""
    if array.dtype not in dtypes:
        raise RemoteProtocolError(f"{what} came as {array.dtype}, where {' or '.join(map(str, dtypes))} is expected")
    return array.astype(np.float64, copy=False)


def _far(points: Floats, rounded: Floats, *, kernel: Kernel | None, lam: float) -> Bools:
    """Which points rounding has moved too far, by the kernel's distance or, where there is none, the plain one."""
    most = POINT_ROUNDING * lam
    if kernel is None:
        return np.asarray(((points - rounded) ** 2).sum(axis=1) > most)
    squares = np.concatenate([np.empty(0), *_squared_distances(points, rounded, kernel=kernel)])
    # Whoever rounds a point must come to the same, so a close call is decided by looking at that point alone.
    size = np.abs(kernel.diag(points)) + (points**2).sum(axis=1)
    close = ~(np.abs(squares - most) > CLOSE * most + CANCELLED * size)
    for row in np.flatnonzero(close) if len(points) > 1 else ():
        squares[row] = next(_squared_distances(points[row : row + 1], rounded[row : row + 1], kernel=kernel))[0]
    return np.asarray(squares > most)


def _squared_distances(points: Floats, rounded: Floats, *, kernel: Kernel) -> Iterator[Floats]:
    """‖φ(x) − φ(z)‖² of each point and what it was rounded to, some at a time."""
    for first in range(0, len(points), PAIRS):
        X, Z = points[first : first + PAIRS], rounded[first : first + PAIRS]
        yield kernel.diag(X) + kernel.diag(Z) - 2.0 * np.diagonal(kernel(X, Z))


def _rounded_rewards(rewards: Floats, *, lam: float) -> Floats:
    with np.errstate(over="ignore"):
        half = rewards.astype(np.float16).astype(np.float64)
    coarse = ~(np.abs(rewards - half) <= REWARD_ROUNDING * np.sqrt(lam))
    half[coarse] = _single("reward", rewards[coarse])
    return np.asarray(half + 0.0)


def _single(what: str, values: Floats) -> Floats:
    if (np.abs(values) > LARGEST_SINGLE).any():
        raise InputError(f"a {what} beyond {LARGEST_SINGLE:.3g} does not fit into 32 bits; rescale it")
    return np.asarray(values.astype(np.float32).astype(np.float64))


#: Wires by name, as algorithms take them.
WIRES: dict[str, Any] = {name: FloatWire(name) for name in FLOATS} | {"int8": Int8Wire()}


def as_wire(wire: object) -> Wire:
    """A wire by its name, or as it is."""
    if isinstance(wire, str):
        require_one_of("wire", wire, choices=tuple(WIRES))
        return WIRES[wire]  # type: ignore[no-any-return]
    if not is_grid(wire) and not hasattr(wire, "rounded"):
        advice = instead("wire", wire, one="'float64'")
        raise InputError(f"wire must be one of {', '.join(WIRES)}, or a Wire, not {seen(wire)}; {advice}")
    return wire  # type: ignore[return-value]
