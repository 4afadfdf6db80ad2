"""Parameters and settings as the paper writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from laconic.datasets.cache import data_dir
from laconic.experiments.grid import Params
from laconic.experiments.results import Results

SYMBOLS = {"gamma": "γ", "alpha": "α", "lam": "λ", "qbar": "q̄", "delta": "δ"}
TUNED = ("gamma", "alpha")  # what the paper chooses by grid search
NAMED = (*TUNED, "lam", "D", "qbar", "delta")
PLAIN_WIRES = ("float64", "paper")
#: The folders of an absolute path, quoted or with no spaces in it, but not those of an address.
_QUOTED = re.compile(r"""(?<=["'])(?:~|[A-Za-z]:)?[/\\][^"'\n]*[/\\](?=[^"'\n/\\]+["'])""")
_FOLDERS = re.compile(r"""(?<![\w:/.~])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\:;,'"()<>]+[/\\])+(?=[^\s/\\:;,'"()<>])""")


def symbol(parameter: str) -> str:
    """A parameter's letter."""
    return SYMBOLS.get(parameter, parameter)


def setting(params: Params, *, names: Iterable[str] = NAMED) -> str:
    """The numbers of a setting: γ=1, α=0.1."""
    return ", ".join(f"{symbol(name)}={value(params, name)}" for name in names if name in params)


def variant(params: Params) -> str:
    """In what a setting departs from the paper's way of sending: alone, all points, int8."""
    wire = str(params.get("wire", PLAIN_WIRES[0]))
    said = (
        "alone" if params.get("together") is False else "",
        "all points" if params.get("digest") == "AllPoints" else "",
        "" if wire in PLAIN_WIRES else wire,
    )
    return " ".join(filter(None, said))


def value(params: Params, name: str) -> str:
    """One number of a setting; a dash where it has no such parameter."""
    found = params.get(name)
    return "–" if found is None else f"{found:g}" if isinstance(found, int | float) else str(found)


def tuned_over(results: Results) -> tuple[str, ...]:
    """The parameters in which settings of the same algorithm differ: those that were tuned."""
    tried: dict[tuple[str, str], set[str]] = {}
    for group in results.groups:
        for name in group.params:
            tried.setdefault((group.algorithm, name), set()).add(value(group.params, name))
    return tuple(dict.fromkeys(name for (_, name), values in tried.items() if len(values) > 1))


def portable(text: str) -> str:
    """Text without the folders of this machine: a file is known by its name, and the data's folder as such.

    >>> portable("rows of /home/me/birds.csv; see https://example.org/birds/index.html")
    'rows of birds.csv; see https://example.org/birds/index.html'
    """
    data = str(data_dir())
    return _FOLDERS.sub("", _QUOTED.sub("", text.replace(data + os.sep, "").replace(data, "the data folder")))


def duration(seconds: float) -> str:
    """A time for people: 8 s, 12 min, 5 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours / 24:.1f} days"
