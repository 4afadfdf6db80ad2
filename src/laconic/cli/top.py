"""``laconic top``: how a federation stands, live in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.options import number

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

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
    with Live(shown(found), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every)
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

    parts = [Text(line) for line in _head(view)]
    tables = [_members(view), _exchanges(view), _traffic(view)]
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
        f"{amount(costs['sent'], unit='B')} crossed the links; the paper's wire would have taken "
        f"{amount(costs['paper'], unit='B')}, raw sharing {amount(costs['raw'], unit='B')}",
    ]


def _table(*columns: str, right: tuple[str, ...]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _members(view: dict[str, Any]) -> Table:
    from rich.text import Text

    table = _table("member", "status", "observations", "mean reward", right=("observations", "mean reward"))
    for each in view["members"][:MEMBERS]:
        style = "green" if each["status"] == "present" else "yellow"
        mean = "–" if each["mean"] is None else f"{each['mean']:.3g}"
        table.add_row(Text(each["name"]), Text(each["status"], style=style), f"{each['observations']:,}", mean)
    if len(view["members"]) > MEMBERS:
        table.add_row(f"and {len(view['members']) - MEMBERS} more")
    return table


def _exchanges(view: dict[str, Any]) -> Table:
    from rich.text import Text

    table = _table("when", "no.", "why", "what came of it", "bytes", right=("no.", "bytes"))
    for each in view["exchanges"][:EXCHANGES]:
        why = f"{each['member'] or 'a member that is gone'}: {WHYS[each['why']]}"
        when = time.strftime("%H:%M:%S", time.localtime(each["time"]))
        table.add_row(when, f"{each['number']}", Text(why), Text(each["result"]), f"{each['bytes']:,}")
    return table


def _traffic(view: dict[str, Any]) -> Table:
    table = _table("direction", "phase", "messages", "bytes", right=("messages", "bytes"))
    for row in view["traffic"]:
        table.add_row(row["direction"], row["phase"], f"{row['messages']:,}", f"{row['bytes']:,}")
    return table
