"""Threads of BLAS: one set of them for a run, and one thread for a process that serves or plays schedules of faults.

numpy and scipy bring a BLAS library each, and the threads of one spin for a while in wait for more work when the other
begins: a run that uses both in turn is slower on two threads than on one. All large products and solves of beliefs go
through scipy's, so numpy's is kept to one thread while a run lasts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock

from threadpoolctl import ThreadpoolController

#: Whoever sets one of these has said how many threads BLAS is to have.
SAID = (
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "OMP_NUM_THREADS",
)
_first = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """While this lasts every BLAS of the process has one thread, unless the environment says how many.

    A process that serves has threads of its own for what can be done side by side. Those of BLAS spin in wait for more
    work between the small matrices of an exchange, and take the cores from whoever has some.
    """
    if any(os.environ.get(name) for name in SAID):
        yield
        return
    import_module("laconic.linalg")  # what is not loaded yet cannot be limited
    with ThreadpoolController().limit(limits=1):
        yield


@contextmanager
def one_set_of_threads() -> Iterator[None]:
    """While this lasts numpy's own BLAS has one thread; scipy's keeps those that it has.

    A process has its BLAS once: of runs in several threads the first sets the limit, and that thread alone undoes it.
    """
    numpys = _numpys_own()
    if numpys is None or not _first.acquire(blocking=False):
        yield
        return
    try:
        with numpys.limit(limits=1):
            yield
    finally:
        _first.release()


@cache
def _numpys_own() -> ThreadpoolController | None:
    """The BLAS that only numpy uses; None where scipy uses the same."""
    controller = ThreadpoolController()
    blas = [each["filepath"] for each in controller.info() if each["user_api"] == "blas"]
    own = [path for path in blas if any(part.startswith("numpy") for part in Path(path).parts)]
    return controller.select(filepath=own) if own and len(own) < len(blas) else None
