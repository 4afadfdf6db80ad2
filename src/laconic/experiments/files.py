"""Files that are replaced in one step or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from laconic.errors import OutputError


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new, never half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None


def require_writable(folder: Path) -> None:
    """Make the folder if need be, and refuse one in which no file can be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    replace_file(folder / ".writable", Path.touch)
    remove_file(folder / ".writable")  # another process may have done so


def remove_file(path: Path) -> None:
    """Remove a file if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot remove {path}: {error.strerror or error}") from None


def require_writable_file(path: Path) -> None:
    """Refuse a file that could not be written."""
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder")
    require_writable(path.absolute().parent)
