"""What the payloads of a phase hold, said once in the plan, so that names and shapes need not travel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from laconic.errors import InputError

#: A shape of numbers and symbols: ("n", "d") are n rows of the plan's d features; other symbols are found by decoding.
Shape = tuple[str | int, ...]
#: A payload has at most this many arrays and numbers.
MOST_FIELDS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """The arrays and numbers of a payload, in the order in which they travel; any of them may be missing.

    A layout that has no control fields, and says the types of every array, is *tight*: all arrays travel in one run of
    bytes. A layout has at most 64 arrays and numbers.

    Args:
        values: Shape of each array that the paper counts, by name. A shape is a tuple of whole numbers and symbols:
            ("n", "d") are n rows of the plan's d features, and other symbols are found by decoding.
        records: Shape of each further array, by name; these count in bytes only.
        control: Type of each number that the protocol adds, by name: float, which always takes the same bytes, or int,
            which takes as many as it needs.
        types: Types that the entries of each array may have, by name, such as ("int8", "float32"); of all arrays, or
            empty.
        always: Names of the arrays of a tight layout that are always there.
        rest: Name of the array of a tight layout that takes the rest of the bytes, whose length nobody says; a row that
            is always there. None: every array says its length.
        small: Names of the arrays of a tight layout that travel in few bits an entry where that is shorter.

    Examples:
        >>> Layout(values={"points": ("n", "d"), "rewards": ("n",)}, control={"offset": int}).shapes
        (('n', 'd'), ('n',))
    """

    values: Mapping[str, Shape] = field(default_factory=dict)
    records: Mapping[str, Shape] = field(default_factory=dict)
    control: Mapping[str, type[int] | type[float]] = field(default_factory=dict)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    rest: str | None = None
    small: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.types and (self.control or set(self.types) != {*self.values, *self.records}):
            raise InputError("a tight layout says the types of all its arrays, and has no control fields")
        if self.rest is not None and (
            self.rest not in self.always or len({**self.values, **self.records}[self.rest]) > 1
        ):
            raise InputError(f"the rest of the bytes is a row that is always there, not {self.rest!r}")
        if self.size > MOST_FIELDS:
            raise InputError(f"a layout has at most {MOST_FIELDS} arrays and numbers, got {self.size}")

    @property
    def size(self) -> int:
        """How many arrays and numbers there are."""
        return len(self.values) + len(self.records) + len(self.control)

    @cached_property
    def order(self) -> tuple[tuple[str, Shape], ...]:
        """The arrays in the order in which their entries travel: those of the rest last."""
        named = {**self.values, **self.records}
        last = [] if self.rest is None else [(self.rest, named[self.rest])]
        return (*((name, shape) for name, shape in named.items() if name != self.rest), *last)

    @cached_property
    def kinds(self) -> Mapping[str, Mapping[np.dtype[Any], int]]:
        """The number of each type that the entries of an array may have."""
        return {name: {np.dtype(kind): at for at, kind in enumerate(kinds)} for name, kinds in self.types.items()}

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of all arrays."""
        return (*self.values.values(), *self.records.values())


@lru_cache(maxsize=256)  # messages of one kind have mostly the same lengths
def solved(shapes: tuple[Shape, ...], lengths: tuple[int, ...], *, dim: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of flat arrays with so many entries each; a ValueError where no sizes fit.

    >>> solved((("r", "r"), ("r",), ("n", "d")), (9, 3, 8), dim=2)
    ((3, 3), (3,), (4, 2))
    """
    sizes = {"d": dim}
    pairs = list(zip(shapes, lengths, strict=True))
    while waiting := [(_unknown(shape, sizes), shape, length) for shape, length in pairs if _unknown(shape, sizes)]:
        names, shape, length = min(waiting, key=lambda each: (len(set(each[0])), len(each[0])))
        rest = math.prod(_size(axis, sizes) for axis in shape if axis not in names)
        if len(set(names)) > 1 or rest == 0:
            raise ValueError(f"the shape {shape} does not follow from {length} entries")
        sizes[names[0]] = _root(length // rest, len(names))
    found = tuple(tuple(_size(axis, sizes) for axis in shape) for shape in shapes)
    for shape, length in zip(found, lengths, strict=True):
        if math.prod(shape) != length:
            raise ValueError(f"an array of shape {shape} does not have {length} entries")
    return found


def _unknown(shape: Shape, sizes: Mapping[str, int]) -> list[str]:
    return [axis for axis in shape if isinstance(axis, str) and axis not in sizes]


def _size(axis: str | int, sizes: Mapping[str, int]) -> int:
    return sizes[axis] if isinstance(axis, str) else axis


def _root(number: int, power: int) -> int:
    """The whole number nearest to the root, which fits or not."""
    return number if power == 1 else math.isqrt(number) if power == 2 else round(number ** (1 / power))
