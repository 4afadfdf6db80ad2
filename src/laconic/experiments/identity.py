"""By what a part of the user's own is known again: its class, the code behind it and its parameters.

No name leads back to a class of a notebook, so that a finished run of it is found by what it was a run of. Code is
compared as Python compiled it: a comment changes nothing, a formula does, and so does a constant or a function of the
user's own that it uses.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from laconic.canonical import FINGERPRINT_BYTES, Scalar, canonical, is_kernel_of_others, known_parts, text
from laconic.checks import seen
from laconic.errors import InputError

PLAIN = (str, bytes, bool, int, float, complex, type(None), np.generic, np.ndarray)
GENERATED = "<string>"  # the file of code that dataclasses write for themselves; their fields are parameters
INSTALLED = ("site-packages", "dist-packages")


def identity(value: object, *, dim: int | None = None) -> dict[str, Scalar]:
    """Plain values that stay the same as long as a value's class, its code and its parameters do.

    ``dim`` is the number of features of points, at some of which kernels of others are tried.

    >>> from laconic.kernels import Gaussian
    >>> identity(Gaussian(2.0))
    {'value': 'Gaussian', 'value.gamma': 2}
    """
    try:
        known = canonical({"value": _described(value, within=())}, dim=dim)
    except InputError as error:
        raise InputError(
            f"runs of {seen(value)} cannot be kept, as they could not be found again: {error}; "
            "a frozen dataclass can be known, and without out any value can be run"
        ) from None
    code = code_of(value)
    return known | ({"code": code} if code else {})


# Parameters


def _described(value: Any, *, within: tuple[int, ...]) -> Any:
    """A value as what `canonical` reads: plain values, tables with a name, and kernels as they are."""
    if isinstance(value, bytes | complex):
        return repr(value)
    if isinstance(value, PLAIN) or is_kernel_of_others(value):
        return value
    if id(value) in within:
        return "itself"
    within = (*within, id(value))
    if isinstance(value, list | tuple):
        return [_described(each, within=within) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(text(each) for each in value)
    if isinstance(value, Mapping):
        return {str(key): _described(each, within=within) for key, each in value.items()}
    own = {key: _described(each, within=within) for key, each in _parameters(value).items()}
    return {"name": getattr(value, "__qualname__", None) or type(value).__name__, **own}


def _parameters(value: Any) -> dict[str, Any]:
    """What a value was made with, as far as anybody can tell."""
    if isinstance(value, type) or inspect.isroutine(value) or isinstance(value, np.ufunc):
        return {}
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    if is_dataclass(value):
        return known_parts(value, name=type(value).__name__)
    try:
        return dict(vars(value))
    except TypeError:
        raise InputError(f"the parameters of {seen(value)} are not known") from None


# Code


def code_of(value: object) -> str:
    """A hash of all code of the user's own that a value leads to; nothing where there is none."""
    found = _Found()
    found.add(value)
    if not found.entries:
        return ""
    listed = "\n".join(sorted(found.entries))
    return hashlib.blake2b(listed.encode(), digest_size=FINGERPRINT_BYTES).hexdigest()


@dataclass
class _Found:
    """What was met on the way: a line for each function and constant, in whatever order."""

    entries: set[str] = field(default_factory=set)
    met: dict[int, Any] = field(default_factory=dict)  # kept, so that no other value takes their place in memory

    def add(self, value: Any, *, called: str = "") -> None:
        """A value under the name by which code calls it."""
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, PLAIN):
            if called:
                self.entries.add(f"{called} = {_constant(value)}")
            return
        if id(value) in self.met:
            return
        self.met[id(value)] = value
        for name, inner in _inside(value):
            self.add(inner, called=name)
        if isinstance(value, FunctionType) and not _is_installed(value):
            self.entries.add(f"{value.__qualname__}: {_compiled(value.__code__)}")


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value rests on, with the names that constants have there."""
    if isinstance(value, FunctionType):
        if not _is_installed(value):
            yield from _used_by(value)
    elif isinstance(value, type):
        for kind in value.__mro__:
            if not _is_installed(kind):
                yield from _members(kind)
    elif isinstance(value, MethodType):
        yield from (("", value.__func__), ("", value.__self__))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("", each) for each in value)
    elif isinstance(value, Mapping):
        yield from (("", each) for each in value.values())
    elif not inspect.isroutine(value) and not inspect.ismodule(value):
        yield "", type(value)
        yield from (("", part) for part in _parts_of(value).values())


def _parts_of(value: Any) -> dict[str, Any]:
    """The parts of a value in which there may be code; of other packages' values, their class is their code."""
    if isinstance(value, functools.partial) or is_dataclass(value) or not _is_installed(type(value)):
        return _parameters(value)
    return {}


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The functions and constants of a class."""
    for name, member in vars(kind).items():
        inner = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if isinstance(inner, FunctionType):
            if inner.__code__.co_filename != GENERATED:
                yield "", inner
        elif not name.startswith("__"):
            yield f"{kind.__qualname__}.{name}", inner


def _used_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Defaults, what a function closes over, and what it uses of its module."""
    where = function.__qualname__
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"{where} default {place}", each) for place, each in enumerate(defaults))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{where} {name}", cell.cell_contents
        except ValueError:  # a name that is not bound yet
            continue
    for name in sorted(_globals_in(function.__code__) & function.__globals__.keys()):
        yield name, function.__globals__[name]


def _globals_in(code: CodeType) -> set[str]:
    own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_globals_in(each) for each in code.co_consts if isinstance(each, CodeType)))


def _compiled(code: CodeType) -> str:
    """Code as Python compiled it, without where it was written."""
    constants = [_compiled(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def _constant(value: object) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(repr, value))})"
    if isinstance(value, np.ndarray):
        return f"{text(value)} {hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    return repr(value)


def _is_installed(value: Any) -> bool:
    """Whether a class or a function comes with Python or a package, whose versions are not the user's to edit."""
    module = str(getattr(value, "__module__", None) or "")
    if module == "__main__":  # of a notebook it may say the file of the package that runs notebooks
        return False
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return True
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return any(part in file for part in INSTALLED)
