"""What a comparison shows while it runs and when it is done, on terminals and in pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.progress import Progress as Bars
    from rich.table import Table as RichTable

    from laconic.experiments.compare import Event, Finished, Progress
    from laconic.experiments.results import Results
    from laconic.experiments.verdict import Verdict
    from laconic.report.table import Table

EDGES, BETWEEN = 2, 3  # what rich puts around a table, and between two columns


def nothing(event: Event) -> None:
    """For ``--quiet``."""


def line(event: Event) -> None:
    """One plain line on stderr for each finished run."""
    from laconic.experiments.compare import Finished

    if isinstance(event, Finished):
        typer.echo(describe(event), err=True)


def describe(event: Finished) -> str:
    """A finished run in one line."""
    from laconic.report.table import amount, number

    job, run = event.job, event.run
    width = len(str(job.total))
    return (
        f"[{job.number:{width}}/{job.total}] {job.label}, seed {job.seed}: regret {number(run.regret)}, "
        f"{amount(run.scalars)} scalars, {run.syncs:,} syncs, {number(run.seconds)} s"
    )


@contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """The display that suits stderr: live on a terminal, lines elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield nothing if quiet else line
        return
    with _live() as show:
        yield show


@contextmanager
def _live() -> Iterator[Progress]:
    """The table so far above a bar for the run under way and one for all runs."""
    from rich.console import Console, Group
    from rich.live import Live

    bars = _bars()
    with Live(bars, console=Console(stderr=True), transient=True, refresh_per_second=8) as live:
        yield _updater(bars, lambda table: live.update(Group(table, bars)))


def _bars() -> Bars:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(),
    )


def _updater(bars: Bars, show_table: Callable[[RichTable], None]) -> Progress:
    from rich.markup import escape

    from laconic.experiments.compare import Advanced, Finished, Started

    everything = bars.add_task("all runs", total=None)
    current = bars.add_task("", total=None, visible=False)

    def update(event: Event) -> None:
        job = event.job
        if isinstance(event, Started):
            bars.update(everything, total=job.total * job.steps, visible=True)
            bars.reset(current, total=job.steps, visible=True, description=escape(f"{job.label}, seed {job.seed}"))
        elif isinstance(event, Advanced):
            bars.update(current, completed=event.steps)
            bars.update(everything, completed=(job.number - 1) * job.steps + event.steps)
        elif isinstance(event, Finished):
            bars.update(everything, completed=job.number * job.steps)
            show_table(rich_table(event.results.table()))

    return update


def rich_table(table: Table) -> Any:
    """The table for a terminal, in as many of its columns as that has room for."""
    return _Fitted(table)


@dataclass(frozen=True)
class _Fitted:
    """What rich asks for its lines once it knows how wide they may be."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        yield from map(_rich_table, self.table.fitted(options.max_width - EDGES, gap=BETWEEN))


def _rich_table(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=table.caption or None,
        title_justify="left",
        title_style="bold",
        caption=f"without {', '.join(table.left_out)}" if table.left_out else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, header in enumerate(table.headers):
        shown.add_column(header, justify="right" if index else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(Text, row))  # as text: brackets in a label are no markup
    return shown


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
    console.print(rich_table(results.table()))
    console.print(said)


def as_json(value: object) -> str:
    """Plain values as JSON with its letters as they are."""
    import json

    from laconic.experiments.grid import finite

    return json.dumps(finite(value), ensure_ascii=False, indent=2, allow_nan=False)


def mark(verdict: Verdict) -> str:
    """A verdict with a sign for what holds and what does not."""
    return f"{'✓' if verdict.holds else '!'} {verdict}"
