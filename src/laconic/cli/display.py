"""What results look like on a terminal, in a pipe and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from laconic.experiments.results import Results, Row
    from laconic.experiments.verdict import Verdict
    from laconic.report.table import Table


def rich_table(table: Table) -> Any:
    """The table for a terminal, in as many of its columns as that has room for."""
    return _Fitted(table)


@dataclass(frozen=True)
class _Fitted:
    """What rich asks for its lines once it knows how wide they may be; they are those of a pipe of that width."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        from laconic.report.table import wrapped

        width = options.max_width
        shown = Text(self.table.text(width=width), no_wrap=True, overflow="ignore")
        if self.table.caption:
            shown.stylize("bold", 0, len(wrapped(self.table.caption, width=width)))
        yield shown


def outcome(results: Results, *, verdicts: Sequence[Verdict]) -> None:
    """The final table and what it shows, on stdout."""
    if not sys.stdout.isatty():
        typer.echo("\n".join([repr(results), "", *map(mark, verdicts)]).rstrip())
        return
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    said = RichTable.grid(padding=(0, 1))  # two columns, so that long sentences hang from their sign
    for verdict in verdicts:
        said.add_row(*map(Text, mark(verdict).split(" ", 1)), style="" if verdict.holds else "yellow")
    console = Console(highlight=False)
    console.print(rich_table(results.table()), "", said, sep="\n")


def as_json(value: object, *, indent: int | None = 2) -> str:
    """Plain values as JSON with its letters as they are, but control characters; without an indent in one line."""
    import json

    from laconic.experiments.grid import finite
    from laconic.terminal import shown

    return shown(json.dumps(finite(value), ensure_ascii=False, indent=indent, allow_nan=False), in_lines=True)


def plain(row: Row) -> dict[str, Any]:
    """A run as plain values; a replay that used no event has no regret."""
    values = row.as_dict()
    return values | {"regret": None if isnan(row.regret) else row.regret}


def mark(verdict: Verdict) -> str:
    """A verdict with a sign for what holds and what does not."""
    return f"{'?' if verdict.holds is None else '✓' if verdict.holds else '!'} {verdict}"
