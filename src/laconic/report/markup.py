"""HTML made of small pieces; what is not markup already is escaped."""

from __future__ import annotations

import re
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
    """A table whose first column is text and whose others are numbers.

    Where there is no room for its columns, the page's script makes each row a list of its own, every cell with its
    header; without scripts it scrolls inside its box.
    """
    head = tag("thead", tag("tr", *(tag("th", breakable(each), scope="col") for each in headers)))
    body = tag("tbody", *(_row(headers, row) for row in rows))
    return tag("div", tag("table", head, body, class_=class_), class_="scroll")


def _row(headers: Sequence[str], cells: Sequence[str]) -> Markup:
    named = zip(headers[1:], cells[1:], strict=True)
    return tag("tr", tag("th", cells[0], scope="row"), *(tag("td", cell, data_label=each) for each, cell in named))


def breakable(name: str) -> Markup:
    """A name that may go on in the next line where a word of it begins, as in Dis|Kernel|UCB.

    >>> breakable("DisLinUCB")
    'Dis<wbr>Lin<wbr>UCB'
    """
    return Markup(re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(name, quote=False)))


def folded(summary: str, content: Markup) -> Markup:
    """What only some readers want, behind a line to click."""
    return tag("details", tag("summary", summary), content, class_="more")
