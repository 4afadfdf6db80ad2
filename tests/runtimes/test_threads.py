"""A run keeps to one set of BLAS threads, and a process that serves to one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from laconic import Cosine, DisKernelUCB, run
from laconic.runtimes.threads import SAID, _numpys_own


def threads() -> dict[str, int]:
    return {each["filepath"]: each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@dataclass
class Watching:
    """An instance that looks at the threads while it is played."""

    inner: Any
    seen: list[dict[str, int]] = field(default_factory=list)

    @property
    def dim(self) -> int:
        return int(self.inner.dim)

    def instance(self, **sizes: Any) -> Watching:
        self.inner = Cosine(dim=3, arms=4).instance(**sizes)
        return self

    def round(self, index: int) -> Any:
        self.seen.append(threads())
        return self.inner.round(index)


def test_numpys_own_blas_has_one_thread_while_a_run_lasts_and_scipys_keeps_its_own() -> None:
    own = _numpys_own()
    if own is None:
        pytest.skip("numpy and scipy share one BLAS library here")
    numpys = {each["filepath"] for each in own.info()}
    watching = Watching(Cosine(dim=3, arms=4).instance(seed=0, clients=2, rounds=2))
    with threadpool_limits(limits=2):
        before = threads()
        run(DisKernelUCB(), watching, clients=2, rounds=2)
        assert threads() == before
    assert len(watching.seen) == 3  # two rounds, and the first of them before that, for the kernel to be tried
    for seen in watching.seen:
        assert all(seen[path] == 1 for path in numpys)
        assert all(seen[path] == before[path] for path in seen.keys() - numpys)
        assert seen.keys() - numpys


def limited() -> dict[str, int]:
    with threadpool_limits(limits=1):
        return threads()


def test_runs_in_several_threads_leave_the_library_as_it_was() -> None:
    with threadpool_limits(limits=2):
        before = threads()
        with ThreadPoolExecutor(4) as pool:
            play = partial(run, DisKernelUCB(), Cosine(dim=3, arms=4), clients=3)
            futures = [pool.submit(play, rounds=5 + n) for n in range(8)]
            assert all(future.result().rounds >= 5 for future in futures)
            assert threads() == before  # while the pool's threads are there


def test_other_threads_may_still_limit_theirs_after_a_run() -> None:
    run(DisKernelUCB(), Cosine(dim=3, arms=4), clients=2, rounds=2)
    with ThreadPoolExecutor(1) as pool:
        assert set(pool.submit(limited).result().values()) == {1}


LOOKING = """
import json
from threadpoolctl import threadpool_info, threadpool_limits
from laconic.runtimes.threads import one_thread

def threads():
    return sorted(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")

import laconic.linalg
with threadpool_limits(limits=3):
    before = threads()
    with one_thread():
        during = threads()
    print(json.dumps([before, during, threads()]))
"""


@pytest.mark.parametrize("said", [None, "3"])
def test_a_process_that_serves_has_one_blas_thread_unless_its_environment_says_otherwise(said: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in SAID}
    environment |= {} if said is None else {"OPENBLAS_NUM_THREADS": said}
    answer = subprocess.run([sys.executable, "-c", LOOKING], env=environment, check=True, stdout=subprocess.PIPE)
    before, during, after = json.loads(answer.stdout)
    assert before
    assert during == (before if said else [1] * len(before))
    assert after == before
