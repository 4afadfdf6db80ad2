"""``laconic log``: what agents decided, and what it paid, as a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laconic.cli.options import named


def log(
    states: Annotated[
        list[Path], typer.Argument(metavar="STATE", help="State files of agents, running or not.", **named())
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.parquet", help="Where the log is written.", **named())],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Export decisions and rewards of agents: the arms shown, the one chosen, its probability, what it paid.

    The columns are those of Run.log; the client of a row is the place of its agent's file on this line, from 0. Agents
    keep a log if they were given log_decisions, the number of decisions to keep.
    """
    from laconic.cli.display import as_json as to_json
    from laconic.errors import InputError
    from laconic.problems.events import write_events
    from laconic.runtimes.service.decisions import log_table, logged

    if out.suffix != ".parquet":
        raise InputError(f"--out is {out}; give a name that ends in .parquet")
    logs = [logged(state) for state in states]
    table = log_table(logs)
    write_events(table, out)
    waiting = sum(map(len, logs)) - table.num_rows
    if as_json:
        typer.echo(to_json({"file": str(out), "decisions": table.num_rows, "without_reward": waiting}))
    else:
        typer.echo(f"{out}: {table.num_rows:,} decisions; {waiting:,} without a reward were left out")
