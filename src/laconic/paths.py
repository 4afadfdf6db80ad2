"""Paths as users write them, and questions about them that no path makes fail."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from laconic.checks import require_path
from laconic.errors import InputError


def own_path(name: str, value: object) -> Path:
    """The path that was given as that argument, with ``~`` for a home; refused where there is no such home."""
    given = require_path(name, value)
    try:
        return Path(given).expanduser()
    except RuntimeError:
        home = given.partition(os.sep)[0]
        raise InputError(f"{name}={given!r}: there is no home {home} on this machine; try the whole path") from None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file; a name that no file can have is that of none."""
    with suppress(OSError, ValueError):  # too long, or with a letter that no name has
        return Path(path).is_file()
    return False


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything of that name; a name that nothing can have is that of nothing."""
    with suppress(OSError, ValueError):
        return Path(path).exists()
    return False
