"""A hook of MkDocs: the reference shows the values of defaults, and not the names of constants that hold them."""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "laconic"
#: Where the constants stand that defaults are made of.
HOMES = ("atoms/reference.py", "protocol/codec.py", "runtimes/service/ages.py", "defaults.py")


def constants(path: Path) -> dict[str, Any]:
    """The constants of a module that are plain values, or arithmetic of such, without importing it."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and _is_plain(node.value):
            value = eval(compile(ast.Expression(node.value), str(path), "eval"), {"__builtins__": {}})
            found |= _assigned(node.targets[0], value)
    return found


def _is_plain(value: ast.expr) -> bool:
    allowed = ast.Constant | ast.Tuple | ast.BinOp | ast.operator | ast.expr_context
    return all(isinstance(node, allowed) for node in ast.walk(value))


def _assigned(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Tuple):
        pairs = zip(target.elts, value, strict=True)
        return {name: each for part, one in pairs for name, each in _assigned(part, one).items()}
    return {target.id: value} if isinstance(target, ast.Name) else {}


def with_values(html: str) -> str:
    """A page of the reference with values in place of names."""
    known = {name: value for home in HOMES for name, value in constants(SOURCE / home).items()}

    def shown(found: re.Match[str]) -> str:
        name = found[2]
        return f"<span{found[1]}>{escape(repr(known[name]))}</span>" if name in known else found[0]

    return re.sub(r'<span( class="n"| title="[\w.]+")>([A-Z][A-Z_]+)</span>', shown, html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page, when its references are resolved."""
    return with_values(output) if page.file.src_uri == "reference.md" else output
