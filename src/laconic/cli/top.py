"""``laconic top``: how a federation stands, live in the terminal."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.options import number
from laconic.cli.signals import heard

if TYPE_CHECKING:
    from rich.console import RenderableType

    from laconic.report.table import Table

WHYS = {"flush": "flushed", "trigger": "trigger fired", "asked": "asked"}
MEMBERS, EXCHANGES = 20, 10


def top(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The coordinator's HTTP address.")],
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="How often it is looked at.", **number())
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once and exit.")] = False,
) -> None:
    """Watch a federation: members, exchanges and why, bytes, rewards and last errors, until Ctrl-C.

    Where it is not shown in a terminal, it is shown once.
    The coordinator shows the same as a page at its HTTP address.
    """
    from rich.console import Console
    from rich.live import Live

    from laconic.checks import require_positive
    from laconic.cli.status import fetched

    require_positive("--every", every)
    console, found = Console(), fetched(address, path="/view")
    if once or not sys.stdout.isatty():
        console.print(shown(found))
        return
    with (
        heard(signal.SIGTERM, signal.SIGINT) as signals,
        Live(shown(found), console=console, screen=True, auto_refresh=False) as live,
    ):
        while signals.next(every) is None:
            live.update(_now(address, found), refresh=True)


def _now(address: str, last: dict[str, Any]) -> RenderableType:
    """How things stand; where nobody answers, how they stood."""
    from rich.console import Group
    from rich.text import Text

    from laconic.cli.status import fetched
    from laconic.errors import LinkError

    try:
        last.update(fetched(address, path="/view"))
    except LinkError as error:
        return Group(Text(str(error), style="bold red"), shown(last))
    return shown(last)


def shown(view: dict[str, Any]) -> RenderableType:
    """A view as text and tables."""
    from rich.console import Group
    from rich.text import Text

    from laconic.cli.display import rich_table

    parts = [Text(line) for line in _head(view)]
    tables = [rich_table(each) for each in (_members(view), _exchanges(view), _traffic(view))]
    return Group(*parts, *tables, *(Text(f"! {error}", style="red") for error in view["errors"]))


def _head(view: dict[str, Any]) -> list[str]:
    from laconic.report.table import amount

    here = sum(each["status"] == "present" for each in view["members"])
    mean, costs = view["rewards"]["mean"], view["costs"]
    number = f"epoch {view['epoch']}" if view["together"] else f"version {view['version']}"
    points = "" if view["dictionary"] is None else f", dictionary {view['dictionary']}"
    points = points if view["atoms"] is None else f", {view['atoms']} atoms"
    return [
        f"{view['address']}: {view['state'] if view['ready'] else 'not ready'}, up {view['seconds']:,.0f} s",
        f"{here} of {len(view['members'])} members present, {number}{points}, {view['observations']:,} observations"
        + ("" if mean is None else f", mean reward {mean:.3g}"),
        f"{amount(costs['sent'], unit='B')} crossed the links; the paper's wire: {amount(costs['paper'], unit='B')}, "
        f"raw sharing: {amount(costs['raw'], unit='B')}",
    ]


def _members(view: dict[str, Any]) -> Table:
    from laconic.report.table import NOTHING, Table

    rows = tuple(
        (each["name"], each["status"], f"{each['observations']:,}", NOTHING if mean is None else f"{mean:.3g}")
        for each in view["members"][:MEMBERS]
        for mean in (each["mean"],)
    )
    more = len(view["members"]) - MEMBERS
    rows += ((f"and {more} more", "", "", ""),) if more > 0 else ()
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
        for each in view["exchanges"][:EXCHANGES]
    )
    return Table(("why", "when", "no.", "what came of it", "bytes"), rows=rows, ranks=(0, 2, 3, 1, 0))


def _traffic(view: dict[str, Any]) -> Table:
    from laconic.report.table import Table

    rows = tuple(
        (f"{row['phase']}, {row['direction']}", f"{row['messages']:,}", f"{row['bytes']:,}") for row in view["traffic"]
    )
    return Table(("phase and direction", "messages", "bytes"), rows=rows, ranks=(0, 1, 0))
