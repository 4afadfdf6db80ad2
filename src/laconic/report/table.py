"""A table of cells, as text for terminals and as HTML for notebooks, and how numbers are written in it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """Headers and cells; the first column is text, the others are numbers and stand right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def text(self) -> str:
        """The table in plain characters."""
        widths = [max(map(len, column)) for column in zip(self.headers, *self.rows, strict=True)]
        lines = [_line(self.headers, widths), "─" * (sum(widths) + 2 * (len(widths) - 1))]
        lines += [_line(row, widths) for row in self.rows]
        return "\n".join([self.caption, *lines] if self.caption else lines)

    def html(self) -> str:
        """The table as an HTML fragment that needs no style sheet."""
        head = "".join(_cell("th", header, left=i == 0) for i, header in enumerate(self.headers))
        body = "".join(
            "<tr>" + "".join(_cell("td", cell, left=i == 0) for i, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        caption = f'<caption style="text-align:left">{escape(self.caption)}</caption>' if self.caption else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]).rstrip()


def _cell(tag: str, content: str, *, left: bool) -> str:
    return f'<{tag} style="text-align:{"left" if left else "right"}">{escape(content)}</{tag}>'


def number(value: float | None) -> str:
    """A number with three or four digits that matter: 0.0523, 3.14, 90.2, 1,047."""
    if value is None:
        return NOTHING
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def count(value: float | None) -> str:
    """A whole number in full; a mean of whole numbers with one digit behind the point where it has one."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.1f}"


def amount(value: float | None, *, unit: str = "") -> str:
    """A large count in thousands, millions or billions: 7.82 M, 62.4 MB."""
    if value is None:
        return NOTHING
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{_three_digits(value / size)} {prefix}{unit}"
    return f"{count(value)} {unit}".rstrip()


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def spread(mean: float | None, sd: float | None) -> str:
    """A mean and, where there are several values, their standard deviation: 90.2 ± 4.1."""
    if mean is None or sd is None:
        return number(mean)
    digits = len(number(mean).partition(".")[2])
    return f"{number(mean)} ± {sd:,.{digits}f}"
