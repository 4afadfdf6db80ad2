"""``laconic top``: how a federation stands, live in the terminal."""

from __future__ import annotations

import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.options import number
from laconic.cli.signals import heard

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from laconic.report.table import Table

WHYS = {"flush": "flushed", "trigger": "trigger fired", "asked": "asked"}
#: So many rows are shown at most, and what there is more of in a terminal that has room for it.
MEMBERS, EXCHANGES, PHASES, ERRORS = 20, 10, 20, 10
FILLING = ("exchange", "member")
#: So many lines of an error, where not everything fits.
ERROR_LINES = 2
#: A line, and how it is painted.
Line = tuple[str, str]


def top(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The coordinator's HTTP address.")],
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="How often it is looked at.", **number())
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once and exit.")] = False,
) -> None:
    """Watch a federation: members, exchanges and why, bytes, rewards and last errors, until Ctrl-C.

    Where not everything fits it says what is left out. Where it is not shown in a terminal, it is shown once.
    The coordinator shows the same as a page at its HTTP address.
    """
    from rich.console import Console
    from rich.live import Live

    from laconic.checks import require_positive
    from laconic.cli.status import fetched

    require_positive("--every", every)
    console, found = Console(), fetched(address, drawn=_tried, path="/view")
    if once or not sys.stdout.isatty():
        console.print(Screen(found))
        return
    with (
        heard(signal.SIGTERM, signal.SIGINT) as signals,
        Live(Screen(found, fits=True), console=console, screen=True, auto_refresh=False) as live,
    ):
        while signals.next(every) is None:
            live.update(_now(address, found), refresh=True)


def _now(address: str, last: dict[str, Any]) -> Screen:
    """How things stand; where nobody answers, how they stood."""
    from laconic.cli.status import fetched
    from laconic.errors import LinkError

    try:
        last.update(fetched(address, drawn=_tried, path="/view"))
    except LinkError as error:
        return Screen(last, trouble=str(error), fits=True)
    return Screen(last, fits=True)


def _tried(view: dict[str, Any]) -> None:
    """Draw it for nobody: what cannot be drawn is no view of a coordinator."""
    Screen(view).lines(width=80, height=None)


@dataclass(frozen=True)
class Screen:
    """A view as lines and tables, for which rich asks once it knows how much room there is.

    ``trouble`` is what is wrong with it, and stands above it. One that ``fits`` has no more lines than the terminal.
    """

    view: dict[str, Any]
    trouble: str = ""
    fits: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for line, style in self.lines(width=options.max_width, height=options.max_height if self.fits else None):
            yield Text(line, style=style, no_wrap=True, overflow="ignore")

    def lines(self, *, width: int, height: int | None) -> list[Line]:
        """All lines, where there is room for them, and else as many as there is room for."""
        from laconic.terminal import all_shown, shown

        view: Any = all_shown(self.view)
        return replace(self, view=view, trouble=shown(self.trouble))._lines(width=width, height=height)

    def _lines(self, *, width: int, height: int | None) -> list[Line]:
        parts = [_errors(self.view), *_tables(self.view)]
        rows = _rows(parts)
        lines = self._drawn(parts, rows, width=width)
        if height is None:
            return lines
        if len(lines) > height:
            return self._cut(width=width, height=height)
        return self._drawn(parts, self._filled(parts, rows, width=width, height=height), width=width)

    def _filled(self, parts: Sequence[_Part], rows: Sequence[int], *, width: int, height: int) -> list[int]:
        """With as many more rows as there is room for."""
        filled, places = [*rows], {part.what: place for place, part in enumerate(parts)}
        for place in map(places.__getitem__, FILLING):

            def drawn(count: int, place: int = place) -> int:
                return len(self._drawn(parts, [*filled[:place], count, *filled[place + 1 :]], width=width))

            counts = range(filled[place], len(parts[place].rows) + 1)
            filled[place] = counts[bisect_right(counts, height, lo=1, key=drawn) - 1]
        return filled

    def _cut(self, *, width: int, height: int) -> list[Line]:
        """So many lines at most: of those parts that have most rows for their weight some are left out."""
        parts = [_errors(self.view, most_lines=ERROR_LINES), *_tables(self.view)]
        rows = _rows(parts)
        lines = self._drawn(parts, rows, width=width)
        while len(lines) > height and (
            losing := [place for place, part in enumerate(parts) if rows[place] > part.least]
        ):
            rows[max(losing, key=lambda place: rows[place] / parts[place].weight)] -= 1
            lines = self._drawn(parts, rows, width=width)
        return lines if len(lines) <= height else [*lines[: height - 1], ("…", "")]

    def _drawn(self, parts: Sequence[_Part], rows: Sequence[int], *, width: int) -> list[Line]:
        from laconic.report.table import wrapped

        head = [(self.trouble, "bold red")] if self.trouble else []
        head += [(line, "") for line in _head(self.view)]
        lines = [(line, style) for text, style in head for line in wrapped(text, width=width).split("\n")]
        drawn = (part.lines(count, width=width) for part, count in zip(parts, rows, strict=True))
        return [*lines, *chain.from_iterable(drawn)]


@dataclass(frozen=True)
class _Part:
    """A part of the screen: what its rows are and how they are drawn, how many at most, and how much they matter."""

    what: str
    rows: Sequence[Any]
    draw: Callable[[Sequence[Any], int], list[str]]
    most: int
    weight: float
    more: str = "more"  # what those are that are not shown
    style: str = ""
    least: int = 0

    def lines(self, rows: int, *, width: int) -> list[Line]:
        """So many of its rows, and how many there are beside them."""
        left = len(self.rows) - rows
        drawn = self.draw(self.rows[:rows], width) if rows or not left else []
        beside = f"{self.more} " if rows else ""
        said = [f"… {left} {beside}{self.what}{'' if left == 1 else 's'}"] if left else []
        return [(line, self.style) for line in [*drawn, *said]]


def _rows(parts: Sequence[_Part]) -> list[int]:
    """How many rows of each part are shown where there is room."""
    return [min(part.most, len(part.rows)) for part in parts]


def _errors(view: dict[str, Any], *, most_lines: int | None = None) -> _Part:
    """The last errors, newest first, each in so many lines at most."""
    from laconic.report.table import wrapped

    def draw(errors: Sequence[str], width: int) -> list[str]:
        texts = [wrapped(f"! {error}", width=width).split("\n") for error in errors]
        return [line for text in texts for line in _begun(text, most_lines or len(text))]

    newest = view["errors"][::-1]
    return _Part("error", newest, draw, most=ERRORS, weight=1.0, more="earlier", style="red", least=min(1, len(newest)))


def _begun(text: list[str], most: int) -> list[str]:
    """The first lines of a text, with a sign where there are more."""
    return text if len(text) <= most else [*text[: most - 1], f"{text[most - 1][:-2].rstrip()} …"]


def _tables(view: dict[str, Any]) -> list[_Part]:
    """Members, exchanges and bytes."""
    return [
        _part("member", _members(view), most=MEMBERS, weight=2.0),
        _part("exchange", _exchanges(view), most=EXCHANGES, weight=1.0, more="earlier"),
        _part("phase", _traffic(view), most=PHASES, weight=1.0),
    ]


def _part(what: str, table: Table, *, most: int, weight: float, more: str = "more") -> _Part:
    def draw(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
        return replace(table, rows=tuple(rows)).text(width=width).split("\n")

    return _Part(what, table.rows, draw, most=most, weight=weight, more=more)


def _head(view: dict[str, Any]) -> list[str]:
    from laconic.cli.status import newest_in
    from laconic.report.table import amount

    here, known = (sum(map(holds, view["members"])) for holds in (_is_present, _is_member))
    mean, costs = view["rewards"]["mean"], view["costs"]
    return [
        f"{view['address']}: {view['state'] if view['ready'] else 'not ready'}, up {view['seconds']:,.0f} s",
        f"{here} of {known} members present, {newest_in(view)}, {view['observations']:,} observations"
        + ("" if mean is None else f", mean reward {mean:.3g}"),
        f"{amount(costs['sent'], unit='B')} crossed the links; the paper's wire: {amount(costs['paper'], unit='B')}, "
        f"raw sharing: {amount(costs['raw'], unit='B')}",
    ]


def _is_present(member: dict[str, Any]) -> bool:
    return bool(member["status"] == "present")


def _is_member(member: dict[str, Any]) -> bool:
    return bool(member["status"] != "left")


def _members(view: dict[str, Any]) -> Table:
    """All who came: first those who are missed, then those who are there, and last those who left."""
    from laconic.report.table import NOTHING, Table

    rows = tuple(
        (each["name"], each["status"], f"{each['observations']:,}", NOTHING if mean is None else f"{mean:.3g}")
        for each in sorted(view["members"], key=lambda each: (not _is_member(each), _is_present(each)))
        for mean in (each["mean"],)
    )
    return Table(("member", "status", "observations", "mean reward"), rows=rows, ranks=(0, 0, 1, 2))


def _exchanges(view: dict[str, Any]) -> Table:
    from laconic.report.table import Table

    rows = tuple(
        (
            f"{each['member'] or 'a member that is gone'}: {WHYS[each['why']]}",
            time.strftime("%H:%M:%S", time.localtime(each["time"])),
            f"{each['number']}",
            each["result"],
            f"{each['bytes']:,}",
        )
        for each in view["exchanges"]
    )
    numbered = "epoch" if view["together"] else "version"
    return Table(("why", "when", numbered, "what came of it", "bytes"), rows=rows, ranks=(0, 2, 3, 1, 0))


def _traffic(view: dict[str, Any]) -> Table:
    from laconic.report.table import Table

    rows = tuple(
        (f"{row['phase']}, {row['direction']}", f"{row['messages']:,}", f"{row['bytes']:,}") for row in view["traffic"]
    )
    return Table(("phase and direction", "messages", "bytes"), rows=rows, ranks=(0, 1, 0))
