"""Cores: one run on all of them through BLAS, or as many runs side by side as there are cores, one BLAS thread each."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.cases import RunCase
from benchmarks.result import Result
from laconic.runtimes import run

#: By these BLAS libraries learn how many threads to use.
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(threads: int) -> dict[str, str]:
    """The environment of a process with so many BLAS threads."""
    return os.environ | dict.fromkeys(VARIABLES, str(threads))


@dataclass(frozen=True)
class Threads:
    """One run, and as many as there are cores, with one BLAS thread each and with all."""

    name: str
    case: RunCase

    @property
    def summary(self) -> str:
        """One line for ``--list``."""
        return f"one run or one a core, one BLAS thread each or all: {self.case.summary}"

    def measure(self, *, quick: bool, repeat: int | None) -> list[Result]:
        """Seconds of a run when so many are done at once, against those of one alone on one thread."""
        case = self.case.at(clients=self.case.quick[0], rounds=self.case.quick[1]) if quick else self.case
        cores = os.cpu_count() or 1
        results: list[Result] = []
        for runs, threads in ((1, 1), (cores, 1), (1, cores), (cores, cores))[: 2 if quick else 4]:
            cpu, seconds = min(_side_by_side(case, runs=runs, threads=threads) for _ in range(repeat or 1))
            first = results[0].seconds if results else seconds / runs
            results.append(self._result(case, runs, threads, cpu=cpu / runs, seconds=seconds / runs, first=first))
        return results

    def _result(self, case: RunCase, runs: int, threads: int, *, cpu: float, seconds: float, first: float) -> Result:
        words = f"{'one run' if runs == 1 else f'{runs} runs at once'}, {threads} thread{'s' * (threads > 1)} each"
        return Result(
            name=f"{self.name}: {words}",
            against="seconds a run, 1 and 1",
            cpu=cpu,
            seconds=seconds,
            floor=first,
            ratio=seconds / first,
            interactions=case.clients * case.rounds,
            details={"runs": runs, "threads": threads},
        )


def _side_by_side(case: RunCase, *, runs: int, threads: int) -> tuple[float, float]:
    """CPU seconds of all runs, and seconds until the last is done, all starting together."""
    processes = multiprocessing.get_context("spawn")
    barrier, answers = processes.Barrier(runs + 1), processes.SimpleQueue()
    children = [processes.Process(target=_play, args=(case, threads, barrier, answers)) for _ in range(runs)]
    for child in children:
        child.start()
    barrier.wait()
    begun = time.perf_counter()
    cpu = sum(answers.get() for _ in range(runs))
    seconds = time.perf_counter() - begun
    for child in children:
        child.join()
    return cpu, seconds


def _play(case: RunCase, threads: int, barrier: Any, answers: Any) -> None:
    with threadpool_limits(threads, user_api="blas"):
        run(case.algorithm, case.problem, clients=2, rounds=2)  # imports
        barrier.wait()
        begun = time.process_time()
        run(case.algorithm, case.problem, clients=case.clients, rounds=case.rounds)
        answers.put(time.process_time() - begun)
