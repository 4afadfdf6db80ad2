"""Lock files: one process holds a state file, and one that is forked from it does not.

The lock file beside it says who holds it. Where locks of this kind do not touch those of SQLite, which is so on Linux,
the state file itself is locked too: it may have a second name by a hard link, and somebody may remove the lock file.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from laconic.errors import StateError, StateInUse

if sys.platform != "win32":  # no such locks there
    import fcntl


#: How a file of SQLite begins.
_HEADER = b"SQLite format 3\0"


class LockFile:
    """The right to a state file, held until it is released or the process ends, however it ends."""

    def __init__(self, state: Path) -> None:
        if sys.platform == "win32":
            raise StateError("state files need the locks of POSIX; run this on Linux or macOS, or in a container")
        self._state, self._holder = state, os.getpid()
        self._handles: list[int] = []
        try:
            self._take(f"{state}.lock")
            self._say_who()
        except BaseException:
            self.release()
            raise

    def take_state(self) -> None:
        """Hold the state file itself, which is made where there is none; its owner alone may read a new one."""
        self._take(str(self._state))

    def _take(self, path: str) -> None:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(
                f"cannot write {path}: {error.strerror}; try a directory that is there and may be written to"
            ) from None
        if path == str(self._state) and sys.platform != "linux":
            os.close(handle)
            return
        self._handles.append(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateInUse(
                f"{self._state} is in use by process {self._said()}; stop that, or give each process a state file and"
                " a name of its own"
            ) from None

    def _said(self) -> str:
        """Who holds it, where the lock file says that: whoever found that free has written there since."""
        is_other = len(self._handles) == 1
        return (is_other and os.pread(self._handles[0], 20, 0).decode(errors="replace").strip()) or "another"

    def _say_who(self) -> None:
        with suppress(OSError):  # it is said for readers; a full disk need not keep anyone from the file
            os.ftruncate(self._handles[0], 0)
            os.pwrite(self._handles[0], f"{self._holder}\n".encode(), 0)

    @property
    def is_held(self) -> bool:
        """Whether this process holds it."""
        return bool(self._handles) and os.getpid() == self._holder

    def require_held(self) -> None:
        """Refuse a process that was forked from the holder, and anyone after the release."""
        if os.getpid() != self._holder:
            raise StateInUse(
                f"{self._state} is held by process {self._holder}, from which this one was forked; join in each"
                " process after the fork, with a state file and a name of its own"
            )
        if not self._handles:
            raise StateError(f"{self._state} was closed here; open it anew")

    def lost(self) -> str | None:
        """What became of the state file since it was taken, where that shows; None where it is as it was."""
        if len(self._handles) < 2:  # it is not held
            return None
        held = self._handles[1]
        try:
            is_there = os.path.samestat(self._state.stat(), os.fstat(held))
        except OSError:
            return "was removed, or moved away,"
        if not is_there:
            return "was replaced"
        return None if os.pread(held, len(_HEADER), 0) == _HEADER else "was overwritten"

    def release(self) -> None:
        """Let another process have it; a forked one, which has copies of the handles, only lets go of these.

        SQLite must have closed the state file: what it has locked there goes with any handle that this process closes.
        """
        handles, self._handles = self._handles, []
        for handle in handles:
            if os.getpid() == self._holder:
                fcntl.flock(handle, fcntl.LOCK_UN)  # for copies of the handle in other processes too
            os.close(handle)
