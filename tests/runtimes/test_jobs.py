from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laconic import InputError
from laconic.runtimes.jobs import Here, OnRay, Processes, WorkersLost, engine

# Workers import what they run: this is code of a module that they can find.
HANGING = """
import sys, time
from laconic.runtimes.jobs import Processes

def main():
    results = Processes(2).results(time.sleep, [0.0, 600.0])
    next(results)
    print("one is done", flush=True)
    next(results)

if __name__ == "__main__":
    main()
"""


def test_every_engine_gives_every_result_with_its_place() -> None:
    wanted = list(enumerate([0, 1, 4, 9]))
    items = [-0, -1, -4, -9]
    assert list(Here().results(abs, items)) == wanted
    assert sorted(Processes(2).results(abs, items)) == wanted


def test_one_process_needs_no_other() -> None:
    assert engine(jobs=1) == Here()
    assert engine(jobs=3) == Processes(3)
    assert engine("ray", address="there:6379") == OnRay(address="there:6379")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dask", {}, "engine cannot be 'dask'; try one of joblib, ray"),
        ("joblib", {"jobs": 0}, "jobs must be a whole number of at least 1"),
        ("joblib", {"address": "there:6379"}, "try --engine ray"),
        ("ray", {"address": "there:6379", "jobs": 2}, "try it without --jobs"),
    ],
)
def test_an_engine_that_is_not_there_is_refused_with_advice(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        engine(name, **options)


def test_jobs_run_on_one_thread_each() -> None:
    for where in (Here(), Processes(2)):
        for _, threads in where.results(_threads, [None, None]):
            assert set(threads) == {1}


def _threads(_: object) -> list[int]:
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info()]


def test_a_worker_that_is_ended_from_outside_is_reported_with_advice() -> None:
    with pytest.raises(WorkersLost, match="finished runs are kept"):
        list(Processes(2).results(os._exit, [1, 1]))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    process = subprocess.Popen([sys.executable, str(tmp_path / "hanging.py")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "one is done\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)  # its end is seen only when the last worker has let go of the pipe
