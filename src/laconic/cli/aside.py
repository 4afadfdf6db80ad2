"""What is said beside the results, on stderr: it is no reason to end when nobody can read it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import TextIO

from laconic.terminal import shown


def aside(message: str) -> None:
    """Print lines on stderr; where that cannot be written, nothing more is said there."""
    try:
        print(fitted(shown(message, in_lines=True), stream=sys.stderr), file=sys.stderr)
    except (OSError, ValueError):  # full, gone, or closed
        hush()


def fitted(message: str, *, stream: TextIO | None) -> str:
    """A line as it is for a file or a pipe; on a terminal that is too narrow for it, its words stay whole."""
    if stream is None or not stream.isatty():
        return message
    from laconic.report.table import wrapped

    return wrapped(message, width=get_terminal_size().columns)


def hush() -> None:
    """Let what is said on stderr go nowhere from now on."""
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for as long as the process lives


def is_terminal() -> bool:
    """Whether somebody watches stderr, which may have been closed."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False
