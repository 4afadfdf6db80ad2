"""A table of cells, as text for terminals and as HTML for notebooks, and how numbers are written in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from textwrap import wrap

NOTHING = "–"
WIDTH, GAP = 80, 2


@dataclass(frozen=True)
class Table:
    """Headers and cells; the first column is text, the others are numbers and stand right.

    Where there is no room for all columns, those of the highest rank are left out first, and those of rank 0 never:
    what does not fit of them goes on in a table below. No word and no number is ever split.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    ranks: tuple[int, ...] = ()  # one for each column; without them all are of rank 0
    left_out: tuple[str, ...] = ()  # columns for which there was no room

    def text(self, *, width: int = WIDTH) -> str:
        """The table in plain characters, no line of which is longer than the width if words allow it."""
        return "\n\n".join("\n".join(each._lines(width)) for each in self.fitted(width))

    def fitted(self, width: int = WIDTH, *, gap: int = GAP) -> tuple[Table, ...]:
        """The same as one table that fits, or as several below each other."""
        word = _longest_word(self._column(0))
        beside = max(self._widths()[1:], default=0)  # the widest of the others, which never shares a table with less
        least = max(min(width // 2, width - gap - beside), word)  # of the first, if its words go below each other
        kept = self._with_room(width, least=least, gap=gap)
        left = width - (kept._width(gap) - kept._widths()[0])
        return kept._first_wrapped(left if left >= word else least)._split(width, gap=gap)

    def _with_room(self, width: int, *, least: int, gap: int) -> Table:
        """Without as many columns as it takes, those of the highest rank first."""
        table = self
        while any(table.ranks) and table._first_wrapped(least)._width(gap) > width:
            place = max(range(len(table.ranks)), key=lambda each: (table.ranks[each], each))
            places = [each for each in range(len(table.headers)) if each != place]
            table = replace(table._only(places), left_out=(*table.left_out, table.headers[place]))
        return table

    def _split(self, width: int, *, gap: int) -> tuple[Table, ...]:
        """Columns in as few tables as hold them, each with the first column."""
        widths = self._widths()
        bands: list[list[int]] = [[0]]
        for place in range(1, len(widths)):
            taken = sum(widths[each] + gap for each in bands[-1]) + widths[place]
            if taken > width and len(bands[-1]) > 1:
                bands.append([0])
            bands[-1].append(place)
        first, *others = (self._only(band) for band in bands)
        more = [replace(each, caption="") for each in others]
        *before, last = (replace(each, left_out=()) for each in (first, *more))
        return (*before, replace(last, left_out=self.left_out))

    def _only(self, places: Sequence[int]) -> Table:
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        ranks = tuple(self.ranks[place] for place in places) if self.ranks else ()
        return replace(self, headers=tuple(self.headers[place] for place in places), rows=rows, ranks=ranks)

    def _first_wrapped(self, room: int) -> Table:
        """With the words of the first column below each other where they are too long for its room."""
        header, *cells = (wrapped(each, width=room) for each in self._column(0))
        rows = tuple((cell, *row[1:]) for cell, row in zip(cells, self.rows, strict=True))
        return replace(self, headers=(header, *self.headers[1:]), rows=rows)

    def _column(self, place: int) -> list[str]:
        return [line[place] for line in (self.headers, *self.rows)]

    def _widths(self) -> list[int]:
        columns = zip(self.headers, *self.rows, strict=True)
        return [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]

    def _width(self, gap: int) -> int:
        widths = self._widths()
        return sum(widths) + gap * (len(widths) - 1)

    def _lines(self, width: int) -> Iterator[str]:
        widths = self._widths()
        if self.caption:
            yield wrapped(self.caption, width=width)
        yield from _line(self.headers, widths)
        yield "─" * self._width(GAP)
        for row in self.rows:
            yield from _line(row, widths)
        if self.left_out:
            yield wrapped(f"not shown, for want of room in {width} columns: {', '.join(self.left_out)}", width=width)

    def html(self) -> str:
        """The table as an HTML fragment that needs no style sheet."""
        head = "".join(_cell("th", header, left=i == 0) for i, header in enumerate(self.headers))
        body = "".join(
            "<tr>" + "".join(_cell("td", cell, left=i == 0) for i, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        caption = f'<caption style="text-align:left">{escape(self.caption)}</caption>' if self.caption else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def wrapped(text: str, *, width: int = WIDTH) -> str:
    """Text whose lines go on below where they are too long; a word that is longer than a line stays whole.

    >>> print(wrapped("regret of OneKernelUCB", width=12))
    regret of
    OneKernelUCB
    """
    lines = (wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""] for line in text.split("\n"))
    return "\n".join(part for line in lines for part in line)


def hanging(text: str, *, indent: int, width: int = WIDTH) -> str:
    """Text that begins at a column, and goes on below its own beginning where it is too long for a terminal."""
    return wrapped(text, width=width - indent).replace("\n", "\n" + " " * indent)


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def _line(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row, in as many lines as its tallest cell has."""
    for parts in zip_longest(*(cell.split("\n") for cell in cells), fillvalue=""):
        numbers = (part.rjust(width) for part, width in zip(parts[1:], widths[1:], strict=True))
        yield (" " * GAP).join([parts[0].ljust(widths[0]), *numbers]).rstrip()


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
