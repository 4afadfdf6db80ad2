"""The canonical form: all that decides a result as one flat table of plain values, and its fingerprint.

A value gives its class's name, then its parameters under dotted names: ``{"kernel": "Gaussian", "kernel.gamma": 1}``.
A kernel of others, whose formula no name tells, also gives its values at fixed probe points.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

import msgspec
import numpy as np

from laconic.arrays import Floats
from laconic.checks import is_grid, seen
from laconic.errors import InputError, LaconicError, RemoteProtocolError
from laconic.kernels import Foreign, Kernel, as_kernel

Scalar = str | int | float | bool
Table = dict[str, Scalar]

#: Counts up when the same value is given another table.
FORMAT = 2
FINGERPRINT_BYTES = 16
#: Larger tables are refused unread; those of plans have about a thousand bytes.
MOST_BYTES = 65_536
#: Up to this a whole number is the same as an int and as a float.
WHOLE = 2**53
#: Arrays of up to so many numbers are spelled out, longer ones hashed.
SHORT = 16
#: Below this, relative to k(x, x), a kernel's value is rounding and nothing else.
NOISE = 1e-12
#: Begins the last part of a name that is there for readers, and decides nothing.
REMARK = "#"
#: Begins the last part of a name that is a kernel's value at probe points.
VALUE = "@"


def canonical(values: Mapping[str, object], *, dim: int | None = None) -> Table:
    """The table of values by name; a parameter that is None or empty is not in it.

    ``dim`` is the number of features of points, needed where a kernel has to be tried to be known.

    >>> from laconic.kernels import Gaussian
    >>> canonical({"kernel": Gaussian(gamma=2.0), "lam": 0.5, "ranges": None})
    {'kernel': 'Gaussian', 'kernel.gamma': 2, 'lam': 0.5}
    """
    return {key: entry for name, value in values.items() for key, entry in _entries(name, value, dim)}


def fingerprint(table: Mapping[str, Scalar]) -> str:
    """A hash of all in the table that decides a result."""
    deciding = {name: value for name, value in table.items() if not is_remark(name)}
    return hashlib.blake2b(_json(deciding), digest_size=FINGERPRINT_BYTES).hexdigest()


def table_bytes(table: Mapping[str, Scalar]) -> bytes:
    """The table as bytes: the same for the same table, on any machine."""
    encoded = _json(table)
    if len(encoded) > MOST_BYTES:
        raise InputError(f"the parameters take {len(encoded)} bytes, more than {MOST_BYTES}; try shorter ones")
    return encoded


def table_from(data: bytes) -> Table:
    """The table of which these are the bytes; what `table_bytes` would not have written is refused."""
    if len(data) > MOST_BYTES:
        raise RemoteProtocolError(f"a table of parameters has {len(data)} bytes, more than {MOST_BYTES}")
    try:
        table = msgspec.json.decode(data, type=Table)
        if _json(table) == data:
            return table
    except (msgspec.MsgspecError, UnicodeError, ValueError) as error:
        raise RemoteProtocolError(f"these bytes are no table of parameters: {error}") from None
    raise RemoteProtocolError("a table of parameters is not in its canonical form")


def _json(table: Mapping[str, Scalar]) -> bytes:
    plain = {name: value if isinstance(value, str | bool) else _number(value) for name, value in table.items()}
    # not by msgspec: how Python writes a float is the same in every version
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def is_remark(name: str) -> bool:
    """Whether an entry is there for readers only."""
    return name.rpartition(".")[2].startswith(REMARK)


def is_probed(name: str) -> bool:
    """Whether an entry is a kernel's value at probe points."""
    return name.rpartition(".")[2].startswith(VALUE)


def _entries(name: str, value: object, dim: int | None) -> Iterator[tuple[str, Scalar]]:
    if is_grid(value):
        raise InputError(f"{name} stands for several values, {seen(value)}, where one is needed; try one of them")
    if is_kernel_of_others(value):
        yield from _tried(name, value, dim)
        return
    head, inner = _apart(name, value)
    if head is not None:
        yield name, head
    for key, part in inner.items():
        yield from _entries(f"{name}.{key}", part, dim)


def _apart(name: str, value: object) -> tuple[Scalar | None, Mapping[str, object]]:
    """What stands for a value itself, and what it is made of."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool):
        return value, {}
    if isinstance(value, Real):
        return _number(value), {}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, list | tuple):
        return None, {str(place): "None" if each is None else each for place, each in enumerate(value)}
    if isinstance(value, Mapping):  # a value as configuration files write it
        return value.get("name"), {key: each for key, each in value.items() if key != "name"}
    return type(value).__name__, known_parts(value, name=name)


def _number(value: Any) -> Scalar:
    """1 and 1.0 as the same, and a word for what JSON has no number for."""
    try:
        number = float(value)
    except OverflowError:
        return str(value)
    if not math.isfinite(number) or (isinstance(value, int) and number != value):
        return str(value)
    return int(number) if number.is_integer() and abs(number) <= WHOLE else number


def _array(array: np.ndarray) -> tuple[str | None, Mapping[str, object]]:
    if array.ndim == 1 and len(array) <= SHORT:
        return None, {str(place): each for place, each in enumerate(array)}
    if array.size == 0:
        return None, {}
    numbers = np.ascontiguousarray(array, dtype="<f8")
    return f"{text(array)} {hashlib.blake2b(numbers.tobytes(), digest_size=FINGERPRINT_BYTES).hexdigest()}", {}


# Values and their parts


def parts(value: object) -> dict[str, Any]:
    """What a value was made with, by name, kernels of others as they were given; nothing for what is no dataclass."""
    return {name: bare(part) for name, part in _parts(bare(value)).items()}


def _parts(value: object) -> dict[str, Any]:
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def known_parts(value: object, *, name: str) -> dict[str, Any]:
    """The parts of a value that has nothing else to know, kernels of others as they are used."""
    nameless = isinstance(value, type) or inspect.isroutine(value)  # other classes and functions may bear its name
    if nameless or (not is_dataclass(value) and _takes_parameters(type(value))):
        raise InputError(
            f"the parameters of {name}, {seen(value)}, are not known, as it is no dataclass; try a frozen dataclass"
        )
    return _parts(value)


def _takes_parameters(kind: type) -> bool:
    try:
        return bool(inspect.signature(kind).parameters)
    except ValueError:  # a class that is not written in Python
        return True


def bare(value: Any) -> Any:
    """Somebody else's kernel without our wrapping, so that its own name and parameters are seen."""
    return value.function if isinstance(value, Foreign) else value


def text(value: object) -> str:
    """How a part is written in a table: like ``repr``, but without memory addresses and the content of arrays."""
    value = bare(value)
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(f'{name}={text(part)}' for name, part in parts(value).items())})"
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", str(getattr(value, "__qualname__", None) or repr(value)))


# Kernels that are known by their values


def is_kernel_of_others(value: object) -> bool:
    """Whether a value is a kernel whose formula no name of ours tells."""
    ours = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return isinstance(value, Foreign) or (not ours and not isinstance(value, type) and isinstance(value, Kernel))


def _tried(name: str, kernel: object, dim: int | None) -> Iterator[tuple[str, Scalar]]:
    """Somebody else's kernel: its class and parameters where it is a dataclass, and its values at the probe points."""
    if dim is None:
        raise InputError(f"{name} is known by its values only, and those need a dimension; try dim=2")
    function = bare(kernel)
    yield name, type(function).__name__ if is_dataclass(function) else "function"
    yield f"{name}.{REMARK}name", text(function)
    for key, part in _parts(function).items():
        if is_dataclass(part) or not callable(part):  # of a function inside, the values tell
            yield from _entries(f"{name}.{key}", part, dim)
    for key, value in _values(as_kernel(kernel), dim).items():
        yield f"{name}.{key}", value


def _values(kernel: Kernel, dim: int) -> Table:
    """k(x, y) of all pairs of probe points and diag(x) of each, to ten digits, as last bits differ by machine."""
    X = probes(dim)
    try:
        with np.errstate(all="ignore"):
            K, diagonal = kernel(X, X), kernel.diag(X)
    except LaconicError:
        raise
    except Exception as error:  # somebody else's function may fail in any way where it expects other points
        return {"raises": type(error).__name__, "called": text(kernel)}
    size = np.sqrt(np.abs(np.outer(diagonal, diagonal)))
    pairs = [(i, j) for i in range(len(X)) for j in range(i, len(X))]
    found = {f"{VALUE}{i},{j}": _rounded(K[i, j], size=size[i, j]) for i, j in pairs}
    return found | {f"{VALUE}{i}": _rounded(value, size=value) for i, value in enumerate(diagonal)}


def _rounded(value: float, *, size: float) -> Scalar:
    return _number(0.0 if abs(value) <= NOISE * abs(size) else float(f"{value:.9e}"))


def probes(dim: int) -> Floats:
    """The points at which kernels are compared: four ever closer to the origin, and two of zeros and ones.

    Hashed rather than drawn, so that no version of a generator changes them.
    """
    hashed = hashlib.shake_256(f"laconic probes {dim}".encode()).digest(4 * 5 * dim)
    uniform = np.frombuffer(hashed, dtype="<u4").reshape(5, dim) / 2**32
    near = (2.0 * uniform[:4] - 1.0) * np.array([[1.0], [0.5], [0.125], [0.03125]]) / math.sqrt(dim)
    corner = np.round(uniform[4:])
    return np.concatenate([near, corner, np.where(np.arange(dim) % 2 == 0, 1.0 - corner, corner)])
