"""All commands, one file each.

Nothing slow is imported before a command needs it, so that ``--help`` and completion answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from laconic.cli import data_command
from laconic.cli.agent_command import agent
from laconic.cli.certs import certs
from laconic.cli.compare_command import compare
from laconic.cli.demo_federation import demo_federation
from laconic.cli.frontier_command import frontier
from laconic.cli.helping import EPILOG, command
from laconic.cli.list_command import list_all
from laconic.cli.log_command import log
from laconic.cli.reproduce_command import reproduce
from laconic.cli.run_command import run
from laconic.cli.serve import serve
from laconic.cli.show_command import show
from laconic.cli.status import status
from laconic.cli.suggest_command import suggest
from laconic.cli.top import top

app = typer.Typer(
    name="laconic",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
command(app, "compare")(compare)
command(app, "frontier")(frontier)
command(app, "run", needs=True)(run)
command(app, "reproduce", needs=True)(reproduce)
app.add_typer(data_command.app, name="data", epilog=EPILOG)
command(app, "list")(list_all)
command(app, "show", needs=True)(show)
command(app, "suggest", needs=True)(suggest)
command(app, "serve", needs=True)(serve)
command(app, "agent", needs=True)(agent)
command(app, "status", needs=True)(status)
command(app, "top", needs=True)(top)
command(app, "log", needs=True)(log)
command(app, "certs", needs=True)(certs)
command(app, "demo-federation")(demo_federation)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"laconic {version('laconic')}")
        raise typer.Exit


@app.callback()
def _laconic(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Kernel bandits that learn together and say little.

    Start with [bold]laconic compare[/]: LaconicUCB and the algorithms of the paper side by side, in a minute or two.
    """
