"""Advice on arguments of algorithms: whose a parameter is, and what is made where none is given."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any

from laconic.checks import seen
from laconic.errors import InputError
from laconic.kernels import Gaussian, Matern, Polynomial, RationalQuadratic

#: Parameters of kernels that are often given to algorithms, and a kernel that has each.
OF_KERNELS = {
    parameter: kind.__name__
    for kind in (RationalQuadratic, Polynomial, Matern, Gaussian)
    for parameter in kind.__dataclass_fields__
}


def pointing_to_kernels(kind: Any) -> None:
    """Let a class say whose parameter it is when it is given one of a kernel."""
    made, own = kind.__init__, kind.__dataclass_fields__

    @wraps(made)
    def explaining(self: Any, *values: Any, **given: Any) -> None:
        for name in OF_KERNELS.keys() & given.keys() - own.keys():
            raise InputError(_whose(kind.__name__, name, given[name], has_kernel="kernel" in own))
        made(self, *values, **given)

    explaining.__signature__ = _with_made_defaults(kind)  # type: ignore[attr-defined]  # help() looks for it
    kind.__init__ = explaining


def _with_made_defaults(kind: Any) -> inspect.Signature:
    """The signature of ``__init__`` with the defaults that are made for every value in place of their makers."""
    signature = inspect.signature(kind.__init__)
    made = {each.name: each.default_factory() for each in fields(kind) if each.default_factory is not MISSING}
    shown = [each.replace(default=made.get(each.name, each.default)) for each in signature.parameters.values()]
    return signature.replace(parameters=shown)


def _whose(algorithm: str, name: str, value: object, *, has_kernel: bool) -> str:
    if not has_kernel:
        return f"{algorithm} has no kernel, and so no {name}; try it without, or DisKernelUCB"
    kernel = f"{OF_KERNELS[name]}({name}={seen(value)})"
    return f"{algorithm} has no parameter {name}: it is its kernel's; try {algorithm}({kernel})"
