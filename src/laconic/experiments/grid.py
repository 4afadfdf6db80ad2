"""Grids: a value that stands for several, anywhere inside an algorithm, and how it unfolds into settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, is_dataclass, replace
from itertools import product
from typing import Any, ClassVar, TypeVar

import numpy as np

from laconic.canonical import bare, parts, text
from laconic.errors import InputError
from laconic.kernels import Foreign, as_kernel

Setting = str | int | float | bool | None
Params = dict[str, Setting]
T = TypeVar("T")


@dataclass(frozen=True)
class Grid:
    """Several values where one is expected; `expand` tries each in turn."""

    values: tuple[Any, ...]
    is_grid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError("a grid needs at least one value; try grid(0.1, 1, 4)")

    def __repr__(self) -> str:
        return f"grid({', '.join(map(repr, self.values))})"


def grid(*values: Any) -> Any:
    """Several values to try where an algorithm or a kernel takes one.

    Typed as ``Any`` because it stands where a number, a kernel or a name is expected.

    Args:
        *values: The values to try, one or more; each of the others is combined with each of these.

    Examples:
        >>> grid(0.1, 1, 4)
        grid(0.1, 1, 4)
    """
    return Grid(values=values)


def expand(value: T) -> list[tuple[Params, T]]:
    """Every setting that the value stands for, the last grid turning fastest, each with its parameters.

    Examples:
        >>> from laconic.kernels import Gaussian
        >>> expand(Gaussian(gamma=grid(0.1, 1.0)))
        [({'gamma': 0.1}, Gaussian(gamma=0.1)), ({'gamma': 1.0}, Gaussian(gamma=1.0))]
    """
    return [(params(single), single) for single in _singles(value)]


def _singles(value: Any) -> list[Any]:
    if isinstance(value, Grid):
        return [single for choice in value.values for single in _singles(choice)]
    own = parts(value)
    choices = [_singles(part) for part in own.values()]
    if all(len(choice) == 1 and choice[0] is part for choice, part in zip(choices, own.values(), strict=True)):
        return [value]  # as it is, which may be no dataclass at all
    return [rebuilt(value, dict(zip(own, chosen, strict=True))) for chosen in product(*choices)]


def params(value: object) -> Params:
    """The settings of an algorithm, a problem or a kernel as one flat dictionary.

    A part with parameters of its own gives its name and then those: ``{"kernel": "Gaussian", "gamma": 1.0}``.
    """
    own = parts(value)
    flat: Params = {}
    for name, part in own.items():
        flat[name] = _setting(part)
        if _lies_flat(part):
            flat |= {_free(n, outer=name, taken=own.keys() | flat.keys()): _setting(p) for n, p in parts(part).items()}
    return flat


def rebuilt(value: Any, changes: Mapping[str, Any]) -> Any:
    """The value with other parts, all at once; kernels of others are wrapped as those were that they replace."""
    value = bare(value)
    wrapped = {key: isinstance(getattr(value, key), Foreign) for key in changes}
    return replace(value, **{key: as_kernel(part) if wrapped[key] else part for key, part in changes.items()})


def _lies_flat(part: object) -> bool:
    """A Gaussian lies flat among the parameters of its algorithm, a sum of kernels does not."""
    return is_dataclass(part) and all(_is_plain(inner) for inner in parts(part).values())


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | np.generic)


def _free(name: str, *, outer: str, taken: Set[str]) -> str:
    return f"{outer}.{name}" if name in taken else name


def _setting(value: Any) -> Setting:
    if isinstance(value, np.generic):
        value = value.item()
    if _is_plain(value):
        return finite(value)  # type: ignore[no-any-return]
    return type(value).__name__ if _lies_flat(value) else text(value)


def finite(value: Any) -> Any:
    """Plain values with ``"inf"``, ``"-inf"`` and ``"nan"`` for the numbers that JSON does not have.

    Examples:
        >>> finite({"qbar": float("inf"), "D": [5.0]})
        {'qbar': 'inf', 'D': [5.0]}
    """
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
