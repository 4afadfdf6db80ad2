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
from laconic.cli.list_command import list_all
from laconic.cli.log_command import log
from laconic.cli.reproduce_command import reproduce
from laconic.cli.run_command import run
from laconic.cli.serve import serve
from laconic.cli.show_command import show
from laconic.cli.status import status
from laconic.cli.suggest_command import suggest
from laconic.cli.top import top

EPILOG = (
    "Exit codes: 0 all went well, 2 bad input (one line on stderr says what; without the argument that it needs, a "
    "command shows its help), 130 stopped by Ctrl-C, 143 by SIGTERM; "
    "what runs until it is stopped (serve, agent, top) ends with 0, and serve and agent with 1 where only a restart "
    "can help."
)

app = typer.Typer(
    name="laconic",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
app.command("compare", epilog=EPILOG, no_args_is_help=False)(compare)
app.command("frontier", epilog=EPILOG, no_args_is_help=False)(frontier)
app.command("run", epilog=EPILOG, no_args_is_help=True)(run)
app.command("reproduce", epilog=EPILOG, no_args_is_help=True)(reproduce)
app.add_typer(data_command.app, name="data", epilog=EPILOG)
app.command("list", epilog=EPILOG)(list_all)
app.command("show", epilog=EPILOG, no_args_is_help=True)(show)
app.command("suggest", epilog=EPILOG, no_args_is_help=True)(suggest)
app.command("serve", epilog=EPILOG, no_args_is_help=True)(serve)
app.command("agent", epilog=EPILOG, no_args_is_help=True)(agent)
app.command("status", epilog=EPILOG, no_args_is_help=True)(status)
app.command("top", epilog=EPILOG, no_args_is_help=True)(top)
app.command("log", epilog=EPILOG, no_args_is_help=True)(log)
app.command("certs", epilog=EPILOG, no_args_is_help=True)(certs)
app.command("demo-federation", epilog=EPILOG, no_args_is_help=False)(demo_federation)


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
