"""Files that are replaced in one step or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from laconic.errors import OutputError
from laconic.paths import is_there


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new, never half of it."""
    beside = _beside(path)
    try:
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None


def _beside(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}.{os.getpid()}")


def require_writable(folder: Path) -> None:
    """Make the folder if need be, and refuse one in which no file can be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    replace_file(folder / ".writable", Path.touch)
    remove_file(folder / ".writable")  # another process may have done so


def require_places(folder: Path, *, files: Iterable[str] = (), folders: Iterable[str] = ()) -> None:
    """Refuse a folder in which something stands where files or folders are to be, now rather than when all is done."""
    for name in files:
        if is_there(folder / name) and (folder / name).is_dir():
            raise OutputError(f"cannot write {folder / name}: it is a folder; try another place")
    for name in folders:
        if is_there(folder / name) and not (folder / name).is_dir():
            raise OutputError(f"cannot write into {folder / name}: it is no folder; try another place")


def remove_file(path: Path) -> None:
    """Remove a file if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot remove {path}: {error.strerror or error}") from None


def require_writable_file(path: Path) -> None:
    """Refuse a file that could not be written."""
    require_places(path.parent, files=[path.name])
    require_writable(path.absolute().parent)
    try:
        _beside(path).exists()
    except OSError as error:  # too long a name
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
