"""Two sides compare their plans: which parameters differ is said by name, with both values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from laconic.canonical import REMARK, VALUE, Scalar, is_probed, is_remark
from laconic.checks import seen

#: Values of kernels of others that are as close as this are the same, computed on other machines.
CLOSE = 1e-8
#: So many differences are named, further ones counted.
NAMED = 8


def difference(ours: Mapping[str, Scalar], theirs: Mapping[str, Scalar]) -> str | None:
    """Which parameters two tables differ in, both values of each; None where there is no difference.

    Args:
        ours: Table of the plan here, as ``plan.table`` gives it.
        theirs: Table of the plan there.

    Examples:
        >>> difference({"kernel": "Gaussian", "kernel.gamma": 1}, {"kernel": "Gaussian", "kernel.gamma": 0.5})
        'kernel.gamma is 1 here and 0.5 there'
    """
    differing = [name for name in {**ours, **theirs} if not is_remark(name) and not _agree(name, ours, theirs)]
    whole = {name for name in differing if not is_probed(name)}
    # what a part is made of says nothing new where the part itself is another
    telling = [name for name in differing if not any(above in whole for above in _above(name))]
    said = [_parameter(name, ours, theirs) for name in telling if name in whole]
    kernels = dict.fromkeys(name.rpartition(".")[0] for name in telling if name not in whole)
    said += [_values(kernel, telling, ours, theirs) for kernel in kernels]
    if len(said) > NAMED:
        said = [*said[:NAMED], f"{len(said) - NAMED} more differ"]
    return "; ".join(said) or None


def _agree(name: str, ours: Mapping[str, Scalar], theirs: Mapping[str, Scalar]) -> bool:
    if name not in ours or name not in theirs:
        return False
    here, there = ours[name], theirs[name]
    if is_probed(name) and not isinstance(here, str) and not isinstance(there, str):
        return math.isclose(here, there, rel_tol=CLOSE)
    return here == there and isinstance(here, bool) == isinstance(there, bool)


def _above(name: str) -> list[str]:
    """The parts that a parameter belongs to, from the outermost on."""
    steps = name.split(".")
    return [".".join(steps[:length]) for length in range(1, len(steps))]


def _parameter(name: str, ours: Mapping[str, Scalar], theirs: Mapping[str, Scalar]) -> str:
    here, there = (_shown(name, table) for table in (ours, theirs))
    if here is None:
        return f"{_plain(name)} is not set here and {there} there"
    return f"{_plain(name)} is {here} here and {'not set' if there is None else there} there"


def _shown(name: str, table: Mapping[str, Scalar]) -> str | None:
    if name not in table:
        return None
    called = table.get(f"{name}.{REMARK}name")
    return _plain(table[name]) + ("" if called is None else f" {_plain(called)}")


def _plain(value: Scalar) -> str:
    """A value in a short line; a word that came from elsewhere without what could break one."""
    return seen(value)[1:-1] if isinstance(value, str) else seen(value)


def _values(kernel: str, names: list[str], ours: Mapping[str, Scalar], theirs: Mapping[str, Scalar]) -> str:
    """That two kernels are not the same function, shown at the first probe where that is seen."""
    first = next(name for name in names if name.rpartition(".")[0] == kernel)
    places = first.rpartition(VALUE)[2].split(",")
    where = f"probe {places[0]}" if len(places) == 1 else f"probes {places[0]} and {places[1]}"
    here, there = (_plain(table[first]) if first in table else "nothing" for table in (ours, theirs))
    called = " and ".join(_plain(table.get(f"{kernel}.{REMARK}name", "a function")) for table in (ours, theirs))
    return f"{_plain(kernel)} gives other values ({called}): {here} here and {there} there at {where}"
