"""Lock files: one process holds a state file, and one that is forked from it does not."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from laconic.errors import StateError, StateInUse

if sys.platform != "win32":  # no such locks there
    import fcntl


class LockFile:
    """The right to a state file, held until it is released or the process ends, however it ends."""

    def __init__(self, state: Path) -> None:
        if sys.platform == "win32":
            raise StateError("state files need the locks of POSIX; run this on Linux or macOS, or in a container")
        self._state, self._holder = state, os.getpid()
        try:
            self._handle: int | None = os.open(f"{state}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(
                f"cannot write {state}.lock: {error.strerror}; try a directory that is there and may be written to"
            ) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 20, 0).decode(errors="replace").strip() or "another"
            os.close(self._handle)
            raise StateInUse(
                f"{state} is in use by process {holder}; stop that, or give each process a state file and a name of"
                " its own"
            ) from None
        with suppress(OSError):  # who holds it is said for readers; a full disk need not keep anyone from that
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{self._holder}\n".encode(), 0)

    @property
    def is_held(self) -> bool:
        """Whether this process holds it."""
        return self._handle is not None and os.getpid() == self._holder

    def require_held(self) -> None:
        """Refuse a process that was forked from the holder, and anyone after the release."""
        if os.getpid() != self._holder:
            raise StateInUse(
                f"{self._state} is held by process {self._holder}, from which this one was forked; join in each"
                " process after the fork, with a state file and a name of its own"
            )
        if self._handle is None:
            raise StateError(f"{self._state} was closed here; open it anew")

    def release(self) -> None:
        """Let another process have it; a forked one, which has a copy of the handle, only lets go of that."""
        handle, self._handle = self._handle, None
        if handle is not None:
            if os.getpid() == self._holder:
                fcntl.flock(handle, fcntl.LOCK_UN)  # for copies of the handle in other processes too
            os.close(handle)
