"""What is said beside the results, on stderr: it is no reason to end when nobody can read it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def aside(message: str) -> None:
    """Print a line on stderr; where that cannot be written, nothing more is said there."""
    try:
        print(message, file=sys.stderr)
    except (OSError, ValueError):  # full, gone, or closed
        hush()


def hush() -> None:
    """Let what is said on stderr go nowhere from now on."""
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for as long as the process lives


def is_terminal() -> bool:
    """Whether somebody watches stderr, which may have been closed."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False
