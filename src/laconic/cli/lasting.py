"""What commands share that last until they are told to stop: how much they log, and what ends them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Annotated, NoReturn, Protocol

import typer

from laconic.cli.signals import FAILED, Signals

LEVELS = ("debug", "info", "warning", "error")
#: How much is logged, as an option.
Level = Annotated[
    str, typer.Option("--log", metavar="LEVEL", help="How much is logged: debug, info, warning or error.")
]
#: Seconds between two looks whether what a command runs can go on.
LOOK = 1.0


class Lasting(Protocol):
    """What a command runs: a coordinator, or an agent."""

    @property
    def trouble(self) -> str | None:
        """Why it can do nothing more before a restart; None where all is well."""
        ...


def require_level(level: str) -> None:
    """Refuse a ``--log`` that is none, before anything begins."""
    from laconic.checks import require_one_of

    require_one_of("--log", level, choices=LEVELS)


def until_stopped(one: Lasting, signals: Signals, *, hang_up: Callable[[], None] | None = None) -> str | None:
    """Wait for a signal that ends the command, and do what SIGHUP asks for; the trouble, where that comes first."""
    while (trouble := one.trouble) is None:
        came = signals.next(LOOK)
        if hang_up is not None and came == signal.SIGHUP:
            hang_up()
        elif came is not None:
            return None
    return trouble


def fail(trouble: str) -> NoReturn:
    """End the command where only a restart can help, and say why."""
    from laconic.cli.aside import aside

    aside(f"error: {trouble}")
    raise typer.Exit(FAILED)
