"""Argument checks shared by the whole package: each says which argument, what was seen, what to try."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Collection, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.errors import InputError
from laconic.limits import MOST_COUNT, MOST_SEED, MOST_STEPS

#: Larger numbers are refused: their squares overflow.
MOST = 1e150


#: Names are no longer than this.
MOST_NAME = 1000


def seen(value: object) -> str:
    """A value as one short line, whatever it is."""
    return " ".join(reprlib.repr(value).split())


def is_grid(value: object) -> bool:
    """Whether a value stands for several to try; each of them is checked when the grid unfolds."""
    return getattr(value, "is_grid", False) is True


def instead(name: str, value: object, *, one: object) -> str:
    """What to try in place of a value: one of a kind, or a grid where several were given."""
    return f"try {grid_of(name, value)} to compare them, or one of them" if several(value) else trying(name, one)


def trying(name: str, one: object) -> str:
    """Advice to give a value; where the name is words rather than an argument's, the value alone."""
    is_argument = name.isidentifier() or name.startswith("--")
    return f"try {name}={one}" if is_argument else f"try {one}"


def several(value: object) -> list[Any]:
    """The values of a list or its like, where it has more than one."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    listed = list(plain) if isinstance(plain, list | tuple | set | range) else []
    return listed if len(listed) > 1 else []


def grid_of(name: str, value: object) -> str:
    """How the values of a list are written as a grid."""
    listed = several(value)
    return f"{name}=grid({', '.join(map(seen, listed[:4]))}{', …' if len(listed) > 4 else ''})"


def require_no_grid(**values: object) -> None:
    """Single values, where nothing unfolds a grid."""
    for name, value in values.items():
        if is_grid(value):
            raise InputError(f"{name} takes one value, not {seen(value)}; try one comparison for each value")


def require_finite_number(name: str, value: object) -> None:
    """A finite real number; True and False are not numbers."""
    if not is_grid(value) and _finite(value) is None:
        raise InputError(f"{name} must be a finite number, not {seen(value)}; {instead(name, value, one=1.0)}")


def require_positive(name: str, value: object) -> None:
    """A finite number above zero."""
    number = _finite(value)
    if not is_grid(value) and (number is None or number <= 0):
        advice = instead(name, value, one=1.0)
        raise InputError(f"{name} must be a finite number greater than 0, not {seen(value)}; {advice}")


def require_at_least(name: str, value: object, *, least: float) -> None:
    """A finite number that is not too small."""
    number = _finite(value)
    if not is_grid(value) and (number is None or number < least):
        advice = instead(name, value, one=least)
        raise InputError(f"{name} must be a finite number of at least {least}, not {seen(value)}; {advice}")


def require_probability(name: str, value: object, *, one: float = 0.1) -> None:
    """A number from 0 to 1."""
    number = _finite(value)
    if not is_grid(value) and (number is None or not 0 <= number <= 1):
        advice = instead(name, value, one=one)
        raise InputError(f"{name} must be a probability, from 0 to 1, not {seen(value)}; {advice}")


def require_whole(name: str, value: object, *, least: int, most: int = MOST_COUNT) -> None:
    """A whole number that is neither too small nor too large; 5.0 and True are not whole numbers."""
    whole = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if is_grid(value) or (whole is not None and least <= whole <= most):
        return
    if whole is not None and whole > most:
        raise InputError(f"{name} must be at most {most}, not {seen(value)}; {trying(name, most)} or less")
    raise InputError(f"{name} must be a whole number of at least {least}, not {seen(value)}; {trying(name, least)}")


def require_seed(name: str, value: object) -> None:
    """A seed: a whole number that fits into a file of results."""
    require_whole(name, value, least=0, most=MOST_SEED)


def require_sizes(*, clients: object, rounds: object) -> None:
    """Clients and rounds of a run, which together must not be more interactions than anything can hold."""
    require_whole("clients", clients, least=1)
    require_whole("rounds", rounds, least=1)
    require_product(MOST_STEPS, clients=clients, rounds=rounds)


def require_product(most: int = MOST_COUNT, /, **sizes: object) -> None:
    """Sizes of one array, each checked before, which together must not have more numbers than an array can."""
    if math.prod(int(size) for size in sizes.values() if isinstance(size, Integral)) > most:
        said = " × ".join(f"{name}={seen(size)}" for name, size in sizes.items())
        raise InputError(f"{said} is more than {most}; try smaller ones")


def require_one_of(name: str, value: object, *, choices: Collection[str]) -> None:
    """One of a few words."""
    if not is_grid(value) and not (isinstance(value, str) and value in choices):
        advice = f", or {grid_of(name, value)} to compare several" if several(value) else ""
        raise InputError(f"{name} cannot be {seen(value)}; try one of {', '.join(choices)}{advice}")


def require_number(name: str, value: object, *, least: int = 0, bits: int = 53) -> None:
    """A whole number that fits into a message."""
    require_no_grid(**{name: value})
    require_whole(name, value, least=least, most=2**bits - 1)


def require_name(name: str, value: object) -> None:
    """A text that fits into a message: neither empty nor long, and of whole letters."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_NAME:
        raise InputError(f"{name} must be a text of 1 to {MOST_NAME} letters, not {seen(value)}; try {name}='edge-17'")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{name} holds half a letter and cannot be sent: {seen(value)}; try {name}='edge-17'"
        ) from None


def require_names(name: str, value: Iterable[object]) -> tuple[str, ...]:
    """Texts that fit into a message, in order: of one text alone each letter would be taken for a name."""
    if isinstance(value, str):
        raise InputError(f"{name} must be a list of names, not the text {seen(value)}; try {name}=[{value[:40]!r}]")
    names = []
    for each in value:
        require_name(name, each)
        names.append(str(each))
    return tuple(names)


def require_flag(name: str, value: object) -> None:
    """True or False, and nothing that merely counts as one of them."""
    if not is_grid(value) and not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {seen(value)}; {instead(name, value, one=True)}")


def any_array(name: str, value: object) -> NDArray[Any]:
    """An array of whatever it holds; rows of unequal length are refused."""
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError(f"{name} is ragged; try rows of equal length") from None


def real_array(name: str, value: object, *, ndim: int) -> Floats:
    """A float64 array with this many axes, its values unchecked; text, objects and complex numbers are refused."""
    array = any_array(name, value)
    if np.ma.is_masked(value):  # what stands under a mask is no value
        raise InputError(f"{name} has masked entries; leave out their rows, or fill them")
    if array.dtype.kind not in "biuf":
        advice = f"{name}.astype(float)" if name.isidentifier() else "numbers"
        raise InputError(f"{name} holds {array.dtype}, not real numbers; try {advice}")
    if array.ndim != ndim:
        how = f"{name}.reshape" if name.isidentifier() else f"an array of {ndim} axes"
        if array.size == 0 and ndim == 2:
            how = "at least one row"
        raise InputError(f"{name} has shape {array.shape}, but {ndim} axes are needed; try {how}")
    with np.errstate(over="ignore"):  # a long double may become inf here; finite_array says so
        return np.asarray(array, dtype=np.float64, order="C")


def finite_array(name: str, value: object, *, ndim: int) -> Floats:
    """A float64 array with this many axes and neither NaN nor infinity in it."""
    array = real_array(name, value, ndim=ndim)
    where = first_non_finite(array)
    if where is None:
        return array
    raise InputError(f"{name}{list(where)} is {array[where]}; try finite numbers below {MOST:g} in size")


def first_non_finite(array: Floats) -> tuple[int, ...] | None:
    """The index of the first number that is NaN, infinite or too large to square, None when there is none."""
    usable = np.abs(array) < MOST
    if usable.all():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(usable)), array.shape))


def _finite(value: object) -> float | None:
    """The value as a float; None for what is none, as a whole number that numpy has no type for."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    if isinstance(value, Integral) and abs(int(value)) > MOST_SEED:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def require_path(name: str, value: object) -> str:
    """The value as a path, or an error that says what was seen."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be the path of a file, not {seen(value)}; try {name}='data.csv'")
    if value == "":  # an option whose variable is not set; the empty path would be the current folder
        raise InputError(f"{name} is empty; try {name}='.' for the current folder, or a name")
    if "\0" in os.fspath(value):
        raise InputError(f"{name} holds a null character, as no path does: {seen(value)}; try {name} without it")
    return os.fspath(value)
