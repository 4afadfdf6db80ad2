"""What a parameter means: the one text of it, which stands in the docstring of what takes it.

A docstring describes parameters under ``Args:`` and the fields of a value under ``Attributes:``, a name and a text
each. ``help()``, ``laconic show``, the help of commands and the reference all print that text; defaults come from the
signature. Nothing slow is imported here, as help texts are made of it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path

_SECTION = re.compile(r"^(?:Args|Attributes):\n((?: {4}.*\n|\n)+)", flags=re.MULTILINE)
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+): (.*(?:\n {8}.*)*)", flags=re.MULTILINE)


def parameters(docstring: str | None) -> dict[str, str]:
    """The text of each parameter that a docstring describes.

    Examples:
        >>> parameters('''A ladder.
        ...
        ...     Args:
        ...         height: In metres,
        ...             above 0.
        ... ''')
        {'height': 'In metres, above 0.'}
    """
    entries = "".join(_SECTION.findall(cleandoc(docstring or "") + "\n"))
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(entries)}


def inherited(kind: object) -> dict[str, str]:
    """The text of each parameter of a class; what its own docstring leaves out, those of its bases may say."""
    texts = [parameters(each.__doc__) for each in reversed(getattr(kind, "__mro__", (kind,)))]
    return {name: text for each in texts for name, text in each.items()}


def said_of(where: str, name: str) -> str:
    """The text of one parameter of ``module:Class`` or ``module:function``, without importing the module."""
    return _described_in(*where.split(":"))[name]


@cache
def _described_in(module: str, name: str) -> dict[str, str]:
    """What a class or function of a module describes, read from its source: importing it would take too long."""
    (node,) = (each for each in _parsed(module).body if getattr(each, "name", None) == name)
    return parameters(ast.get_docstring(node))  # type: ignore[arg-type]  # only classes and functions are asked for


@cache
def _parsed(module: str) -> ast.Module:
    # Packages above are light, and are imported by looking for what is in them.
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
