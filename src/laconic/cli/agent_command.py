"""``laconic agent``: an agent beside an application, over HTTP on this machine, until it is told to stop."""

from __future__ import annotations

import signal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.lasting import Level, fail, require_level, until_stopped
from laconic.cli.options import named
from laconic.cli.signals import Signals, heard

if TYPE_CHECKING:
    from laconic.cli.agent_file import AgentSettings
    from laconic.runtimes.service.agent import Agent

#: So often a start that waits for its coordinator looks whether a signal came, in seconds.
LOOK = 0.1
#: After so many looks it says what it waits for.
SILENT = 10


def agent(
    file: Annotated[
        Path, typer.Argument(metavar="AGENT.toml", help="Coordinator, name, state, TLS, where to listen.", **named())
    ],
    log: Level = "info",
) -> None:
    """Serve an agent to applications in other languages, as HTTP with JSON, until SIGTERM or Ctrl-C.

    There are POST /choose, /observe, /learn, /flush, /reconnect and /leave, GET /status, and GET /openapi.json, which
    describes them.
    Logs go to stderr, one JSON object for each line. The first line on stdout says where it serves. It ends with 1
    where only a restart can help, as after a failure of its disk.
    """
    with heard(signal.SIGTERM, signal.SIGINT) as signals:  # before all that is slow to import
        import asyncio

        from laconic.cli.agent_file import read_agent
        from laconic.runtimes.service.jsonlines import log_to_stderr
        from laconic.runtimes.threads import one_thread

        require_level(log)
        settings = read_agent(file)
        log_to_stderr(log)
        with one_thread():
            one = asyncio.run(_joined(settings, signals))
            if one is not None:
                _serve(one, settings, signals)


async def _joined(settings: AgentSettings, signals: Signals) -> Agent | None:
    """The agent; None where a signal comes first, as while a first start waits for its coordinator."""
    import asyncio
    import logging

    joining = asyncio.create_task(settings.join())
    for looks in count(1):
        await asyncio.wait([joining], timeout=LOOK)
        if joining.done() or not signals.came.empty():
            break
        if looks == SILENT:
            logger, where = logging.getLogger("laconic.agent"), {"address": settings.file.address}
            logger.info(settings.waits_for, extra=where)
    if joining.done():
        return await joining
    joining.cancel()
    await asyncio.gather(joining, return_exceptions=True)
    return None


def _serve(one: Agent, settings: AgentSettings, signals: Signals) -> None:
    from laconic.cli.display import as_json
    from laconic.errors import StateError

    trouble = None
    try:
        with one, settings.sidecar(one) as there:
            where: dict[str, Any] = {"listen": there.address, "name": one.name}
            typer.echo(as_json(where, indent=None))
            trouble = until_stopped(one, signals)
    except StateError:  # what waited could not be written at the end, which the trouble says already
        if trouble is None:
            raise
    if trouble is not None:
        fail(trouble)
