"""HTML made of small pieces; what is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = ("br", "hr", "img", "meta")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str) -> Markup:
    """An element; ``class_`` is its class, ``data_spec`` its ``data-spec``.

    >>> tag("p", "a < b", tag("b", "!"), class_="note")
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value
    )
    return Markup(f"<{name}{given}>" if name in VOID else f"<{name}{given}>{join(content)}</{name}>")


def join(pieces: Iterable[str]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(piece, quote=False) for piece in pieces))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str = "") -> Markup:
    """A table that scrolls sideways where it is wider than the page; its first column is text, the others numbers."""
    head = tag("thead", tag("tr", *(tag("th", each, scope="col") for each in headers)))
    body = tag("tbody", *(tag("tr", tag("th", row[0], scope="row"), *(tag("td", x) for x in row[1:])) for row in rows))
    return tag("div", tag("table", head, body, class_=class_), class_="scroll")
