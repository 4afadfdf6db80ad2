"""Threads: one set of them for a run.

numpy and scipy bring a BLAS library each, and the threads of one spin for a while in wait for more work when the other
begins: a run that uses both in turn is slower on two threads than on one. All large products and solves of beliefs go
through scipy's, so numpy's is kept to one thread while a run lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, cast

from threadpoolctl import ThreadpoolController


class _Limit:
    """The limit on numpy's BLAS, which a process has once: the first run sets it, the last one undoes it."""

    def __init__(self) -> None:
        self._lock, self._runs, self._set = Lock(), 0, cast(Any, None)

    def begin(self) -> None:
        with self._lock:
            self._runs += 1
            numpys = _numpys_own()
            if self._runs == 1 and numpys is not None:
                self._set = numpys.limit(limits=1)

    def end(self) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0 and self._set is not None:
                self._set.restore_original_limits()
                self._set = None


_limit = _Limit()


@contextmanager
def one_set_of_threads() -> Iterator[None]:
    """While this lasts numpy's own BLAS has one thread; scipy's keeps those that it has."""
    _limit.begin()
    try:
        yield
    finally:
        _limit.end()


@cache
def _numpys_own() -> ThreadpoolController | None:
    """The BLAS that only numpy uses; None where scipy uses the same."""
    controller = ThreadpoolController()
    blas = [each["filepath"] for each in controller.info() if each["user_api"] == "blas"]
    own = [path for path in blas if any(part.startswith("numpy") for part in Path(path).parts)]
    return controller.select(filepath=own) if own and len(own) < len(blas) else None
