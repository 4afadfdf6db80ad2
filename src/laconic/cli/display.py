"""What a comparison shows while it runs and when it is done, on terminals and in pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from laconic.cli.aside import aside, is_terminal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.live import Live
    from rich.progress import Progress
    from rich.text import Text

    from laconic.experiments.results import Results
    from laconic.experiments.runner import Begun, Event, Finished, Watch
    from laconic.experiments.verdict import Verdict
    from laconic.report.table import Table


def nothing(event: Event) -> None:
    """For ``--quiet``."""


def line(event: Event) -> None:
    """One plain line on stderr for each run that finished or failed, and one for those that were there already."""
    from laconic.cli import sweep
    from laconic.experiments.runner import Begun, Estimate, Failed, Finished, Memory

    if isinstance(event, Begun) and event.known:
        aside(already(event))
    if isinstance(event, Estimate | Memory):
        aside(sweep.describe(event))
    if isinstance(event, Finished):
        aside(describe(event))
    if isinstance(event, Failed):
        aside(f"failed: {event.task.label}, seed {event.task.seed}: {event.why}")


def already(event: Begun) -> str:
    """How many runs need not be made, in one line."""
    return f"{len(event.known):,} of {event.total:,} runs are there already"


def describe(event: Finished) -> str:
    """A finished run in one line."""
    from laconic.report.table import amount, number

    row, width = event.row, len(str(event.total))
    return (
        f"[{event.done:{width}}/{event.total}] {event.task.label}, seed {row.seed}: regret {number(row.regret)}, "
        f"{amount(row.scalars)} scalars, {row.syncs:,} syncs, {number(row.seconds)} s"
    )


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watch]:
    """The display that suits stderr: live on a terminal, lines elsewhere."""
    if quiet or not is_terminal():
        yield nothing if quiet else line
        return
    with _live() as show:
        yield show


@contextmanager
def _live() -> Iterator[Watch]:
    """The table so far above a bar for all runs and one for the run under way."""
    from laconic.cli import sweep

    with sweep.live_bars(refresh_per_second=8) as (live, bars):
        yield _Screen(live, bars=bars).watch


class _Screen:
    """What is on the terminal: runs that are done, steps of the one under way where it is in this process, the table.

    Runs are counted, and the time left is told from what those of each algorithm take: their steps differ too much.
    """

    def __init__(self, live: Live, *, bars: Progress) -> None:
        self.live, self.bars = live, bars
        self.everything = bars.add_task("all runs", total=None, left="getting ready")
        self.current = bars.add_task("", total=None, visible=False, left="")
        self.results: Results | None = None
        self.done = 0  # runs

    def watch(self, event: Event) -> None:
        """Show what has happened."""
        from laconic.cli import sweep
        from laconic.experiments.runner import Advanced, Begun, Estimate, Finished, Memory, Started

        match event:
            case Estimate() | Memory():
                self.live.console.print(sweep.describe(event), highlight=False, markup=False)
            case Begun():
                self._begin(event)
            case Started(task):
                said = _escaped(f"{task.label}, seed {task.seed}")
                self.bars.reset(self.current, total=task.steps, visible=True, description=said)
            case Advanced(task, steps):
                self.bars.update(self.current, completed=steps)
                self.bars.update(self.everything, completed=self.done + steps / task.steps)
            case Finished():
                self._finish(event)

    def _begin(self, event: Begun) -> None:
        for about in event.about.values():
            self.done, self.results = len(event.known), replace(about, rows=tuple(row for _, row in event.known))
            self.bars.update(self.everything, total=event.total, completed=self.done, left="")

    def _finish(self, event: Finished) -> None:
        from rich.console import Group

        from laconic.cli import sweep

        self.done = event.done
        self.bars.update(self.everything, completed=self.done, left=sweep.time_left(event))
        if self.results is not None:
            self.results = self.results.with_row(event.row)
            self.live.update(Group(rich_table(self.results.table()), "", self.bars))


def _escaped(text: str) -> str:
    """As text: brackets in a label are no markup."""
    from rich.markup import escape

    return escape(text)


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
    """Plain values as JSON with its letters as they are; without an indent in one line."""
    import json

    from laconic.experiments.grid import finite

    return json.dumps(finite(value), ensure_ascii=False, indent=indent, allow_nan=False)


def mark(verdict: Verdict) -> str:
    """A verdict with a sign for what holds and what does not."""
    return f"{'?' if verdict.holds is None else '✓' if verdict.holds else '!'} {verdict}"
