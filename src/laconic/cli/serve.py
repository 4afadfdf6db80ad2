"""``laconic serve``: a coordinator from a file, until it is told to stop."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.lasting import Level, fail, require_level, until_stopped
from laconic.cli.options import named
from laconic.cli.signals import Signals, heard

if TYPE_CHECKING:
    from laconic.cli.federation import Federation


def serve(
    file: Annotated[
        Path,
        typer.Argument(metavar="FEDERATION.toml", help="Algorithm, dimension, address, TLS, state, limits.", **named()),
    ],
    log: Level = "info",
) -> None:
    """Coordinate a federation until SIGTERM or Ctrl-C; SIGHUP reads the names that are let in again.

    What else has changed in the file by then is logged, and waits for a restart. Logs go to stderr, one JSON object for
    each line. The first line on stdout says where it serves. It ends with 1 where only a restart can help, as after a
    failure of its disk.
    """
    # Before all that is slow to import: SIGHUP would end a process that does not hear it yet.
    with heard(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        from laconic.cli.federation import read_federation
        from laconic.runtimes.service.jsonlines import log_to_stderr
        from laconic.runtimes.threads import one_thread

        require_level(log)
        settings = read_federation(file)
        log_to_stderr(log)
        with one_thread():
            _run(settings, file, signals)


def _run(settings: Federation, file: Path, signals: Signals) -> None:
    from laconic.cli.display import as_json

    coordinator = settings.coordinator()
    with coordinator:
        where: dict[str, Any] = {"address": coordinator.address, "http": coordinator.http_address or None}
        typer.echo(as_json(where, indent=None))
        trouble = until_stopped(coordinator, signals, hang_up=lambda: _reload(coordinator, file, running=settings))
    if trouble is not None:
        fail(trouble)


def _reload(coordinator: Any, file: Path, *, running: Federation) -> None:
    """Take the allowed names from the file again; a file that cannot be read changes nothing."""
    import logging

    from laconic.cli.federation import READ_AGAIN, READ_ONCE, differing, read_federation
    from laconic.errors import LaconicError

    logger = logging.getLogger("laconic.coordinator")
    try:
        found = read_federation(file).file
    except LaconicError as error:
        logger.error("the file was not read again", extra={"reason": str(error)})
        return
    names = found.names
    coordinator.allow(names, gone=found.gone)
    logger.info("names read again", extra={"names": None if names is None else len(names), "gone": len(found.gone)})
    waiting = [key for key in differing(running.file, found) if key not in (*READ_AGAIN, *READ_ONCE)]
    if waiting:
        logger.warning("the file says something else than what runs; restart to take it up", extra={"keys": waiting})
