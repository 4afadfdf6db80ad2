"""Files that are replaced in one step or not at all, and folders that one comparison at a time writes to."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from laconic.errors import InputError, OutputError
from laconic.paths import is_there

if sys.platform != "win32":  # no such locks there
    import fcntl

#: What stands here is a device, or a handle that somebody else holds.
DEVICES = ("/dev/", "/proc/")


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new, never half of it.

    Of a link the file that it leads to is replaced; what is no file, such as a device or a pipe, is written through.
    """
    try:
        if is_special(path):
            _write_through(path, write)
            return
        path = path.resolve()
        beside = _beside(path)
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


def _write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Make the file elsewhere and copy it into what is there: a pipe has no places to go back to, as writers may."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        write(made)
        with made.open("rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)


def is_special(path: Path) -> bool:
    """Whether a path leads to something that is neither a file nor a folder, and must not be replaced by a file."""
    if str(path.absolute()).startswith(DEVICES):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there yet, or what is wrong shows when it is written
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this comparison alone: two would mix their files."""
    require_writable(folder)
    if sys.platform == "win32":  # no such locks there
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)  # the folder itself, so that no file is left in it
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"{folder} is in use by another comparison that is under way; wait for it, or try another out"
            ) from None
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # for copies of the handle in other processes too
    finally:
        os.close(handle)


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
    """Remove a file if it is there; a link or a device is somebody else's, and stays."""
    try:
        if not (path.is_symlink() or is_special(path)):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot remove {path}: {error.strerror or error}") from None


def require_writable_file(path: Path) -> None:
    """Refuse a file that could not be written."""
    require_places(path.parent, files=[path.name])
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise OutputError(f"cannot write {path}: it is not there, or may not be written to")
        return
    require_writable(path.resolve().parent)
    try:
        with suppress(FileNotFoundError):
            _beside(path).lstat()
    except OSError as error:  # too long a name
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None
