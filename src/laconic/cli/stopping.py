"""How a command is stopped: the first Ctrl-C or SIGTERM ends it in order, and its exit code says which one it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import typer

from laconic.cli.aside import aside


@dataclass
class Stop:
    """The signal that stopped a command, where one did."""

    number: int = signal.SIGINT
    held: bool = False  # whether a signal that comes has to wait
    waits: bool = False  # whether one does

    @property
    def code(self) -> int:
        """The exit code, as shells have it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.number

    @contextmanager
    def later(self) -> Iterator[None]:
        """A signal that comes within is heard at its end: what was begun there, as a process, is known by then."""
        self.held = True
        try:
            yield
        finally:
            self.held = False
            if self.waits:
                self.waits = False
                raise KeyboardInterrupt

    def leave(self, out: Path) -> NoReturn:
        """Say what stopping means to a job that keeps its runs in a folder, and end."""
        if out.exists():
            aside(f"stopped; finished runs are kept in {out}, and the same command goes on from there")
        else:
            aside("stopped before any run was finished")
        raise typer.Exit(self.code) from None


@contextmanager
def stoppable() -> Iterator[Stop]:
    """The first signal is a KeyboardInterrupt here; a second one would disturb the clearing up."""
    stop, both = Stop(), (signal.SIGINT, signal.SIGTERM)

    def hear(number: int, _: object) -> None:
        for each in both:
            signal.signal(each, signal.SIG_IGN)
        stop.number, stop.waits = number, stop.held
        if not stop.held:
            raise KeyboardInterrupt

    before = {each: signal.signal(each, hear) for each in both}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
