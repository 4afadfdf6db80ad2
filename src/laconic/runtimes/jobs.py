"""Jobs: many runs side by side, in this process, in several (joblib) or on a cluster (Ray), with the same results.

Every job runs with one BLAS thread, so that sums are added in one order wherever it runs. Ray is driven directly:
its joblib backend hands over nothing before all is done, and a finished run must be saved at once.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from laconic.checks import require_one_of, require_whole
from laconic.errors import InputError, LaconicError
from laconic.limits import MOST_JOBS

ENGINES = ("joblib", "ray")
PASSED_ON = ("LACONIC_DATA", "LACONIC_CACHE")  # to the workers of a cluster
KNOCK = 10.0  # seconds for a cluster to answer at all
PATIENCE = 1.0  # seconds between a worker's looks at whether the process that started it still lives

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkersLost(LaconicError):
    """A process that ran jobs is gone, perhaps as memory ran out; what had finished is kept.

    Start the same comparison again, with fewer ``jobs`` where memory ran out.
    """


class Engine(Protocol):
    """Where jobs run."""

    @property
    def slots(self) -> int:
        """How many jobs run at the same time."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether jobs run in this process, so that one can look on."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether jobs run on this machine, and so write the files that this process reads."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether all jobs run on this machine, and so in the memory that it has."""
        ...

    def session(self) -> AbstractContextManager[object]:
        """Keeps what is costly to start between several sets of jobs."""
        ...

    def results(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """The task of every item with the item's place, in the order in which they finish."""
        ...


def engine(name: str = "joblib", *, jobs: int | None = None, address: str | None = None) -> Engine:
    """The engine of that name; without ``jobs`` it takes every core there is.

    >>> engine(jobs=1)
    Here()
    """
    require_one_of("engine", name, choices=ENGINES)
    if jobs is not None:
        require_whole("jobs", jobs, least=1, most=MOST_JOBS)
    if name == "ray":
        if address is not None and jobs is not None:
            raise InputError("a cluster at an address has cores of its own; try it without --jobs")
        return OnRay(address=address, processes=jobs)
    if address is not None:
        raise InputError("an address is that of a Ray cluster; try --engine ray with it")
    wanted = jobs or cores()
    return Here() if wanted == 1 else Processes(wanted)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Here:
    """One job after the other, in this process."""

    slots: int = 1
    is_here: ClassVar[bool] = True
    is_local: ClassVar[bool] = True
    shares_memory: ClassVar[bool] = True

    def session(self) -> AbstractContextManager[object]:
        """Nothing to start."""
        return nullcontext()

    def results(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """In order."""
        for place, item in enumerate(items):
            yield _on_one_thread(task, place, item)

    def __repr__(self) -> str:
        return "Here()"


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, by joblib, which hands over also what a notebook defines."""

    slots: int
    is_here: ClassVar[bool] = False
    is_local: ClassVar[bool] = True
    shares_memory: ClassVar[bool] = True

    def session(self) -> AbstractContextManager[object]:
        """joblib keeps its processes by itself."""
        return nullcontext()

    def results(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """As they finish; the generator's end, however it comes, stops the processes."""
        joblib = import_module("joblib")
        work = joblib.delayed(_in_worker)
        parent = os.getpid()
        # It replaces a worker that has grown by some hundred MB, as exact beliefs do; no job is lost by that.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        try:
            with joblib.parallel_config(backend="loky", n_jobs=self.slots, inner_max_num_threads=1):
                parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
                with _stopped_quietly(
                    parallel(work(task, place, item, parent) for place, item in enumerate(items))
                ) as ends:
                    yield from ends
        except Exception as error:
            explained = _explained(error)
            if explained is None:
                raise
            raise explained from None


@contextmanager
def _stopped_quietly(results: Any) -> Iterator[Iterator[Any]]:
    """Results as they come; when no more are wanted joblib warns of what it cancels, which is what was asked for."""
    try:
        yield (each for each in results)
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*still being processed by the workers", category=UserWarning)
            results.close()


@dataclass(frozen=True)
class OnRay:
    """A Ray cluster: the one at the address, else one started here and stopped afterwards."""

    address: str | None = None
    processes: int | None = None
    is_here: ClassVar[bool] = False
    is_local: ClassVar[bool] = False

    @property
    def slots(self) -> int:
        """As many as the cluster has cores; before it is connected, those of this machine."""
        ray = _package("ray", extra="ray")
        return int(ray.cluster_resources().get("CPU", 1)) if ray.is_initialized() else self.processes or cores()

    @property
    def shares_memory(self) -> bool:
        """Where Ray is started here; nobody knows on which nodes of another cluster jobs will meet."""
        return self.address is None and not _package("ray", extra="ray").is_initialized()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Whatever is connected meanwhile is disconnected at the end, unless somebody else had connected before."""
        ray = _package("ray", extra="ray")
        others = ray.is_initialized()
        try:
            yield
        finally:
            if not others:
                ray.shutdown()

    def results(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """As they finish; the cluster is connected when there is something to do for it."""
        ray = _package("ray", extra="ray")
        if items and not ray.is_initialized():
            self._connect(ray)
        remote = ray.remote(_on_one_thread)
        waiting = [remote.remote(task, place, item) for place, item in enumerate(items)]
        try:
            while waiting:
                done, waiting = ray.wait(waiting)
                yield from ray.get(done)
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.RaySystemError) as error:
            raise WorkersLost(f"a Ray worker is gone ({_first_line(error)}); finished runs are kept") from None

    def _connect(self, ray: Any) -> None:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        options: dict[str, Any] = {"runtime_env": {"env_vars": passed}} if passed else {}
        if self.address is None:
            options |= {"num_cpus": self.processes or cores(), "include_dashboard": False}
        try:
            _knock(self.address)
            ray.init(address=self.address or "local", logging_level="ERROR", log_to_driver=False, **options)
        except (OSError, ValueError, RuntimeError) as error:
            where = self.address or "this machine"
            raise InputError(
                f"no Ray cluster at {where}: {_first_line(error)}; try ray start --head there, "
                "and RAY_AUTH_MODE=token here if it asks for a token"
            ) from None


def _knock(address: str | None) -> None:
    """Ray would try for minutes to reach an address where nobody answers."""
    host, _, port = (address or "").rpartition("//")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=KNOCK).close()


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _on_one_thread(task: Callable[[Item], Result], place: int, item: Item) -> tuple[int, Result]:
    with threadpool_limits(limits=1):
        return place, task(item)


def _explained(error: Exception) -> LaconicError | None:
    """What goes wrong between processes, in our words; None for an error of the task itself."""
    pools = import_module("joblib.externals.loky.process_executor")
    if isinstance(error, pools.TerminatedWorkerError):
        return WorkersLost(
            "a process that ran jobs was ended from outside, perhaps as memory ran out; "
            "finished runs are kept: start again, with fewer processes at a time (jobs)"
        )
    if isinstance(error, pools.BrokenProcessPool) or type(error).__name__ == "PicklingError":
        return InputError(f"a job cannot be handed to another process: {_first_line(error)}; try jobs=1")
    return None


def _in_worker(task: Callable[[Item], Result], place: int, item: Item, parent: int) -> tuple[int, Result]:
    """In a process of its own: Ctrl-C is the parent's to handle, and its death ends this process too."""
    with suppress(ValueError):  # only a main thread may
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != parent:  # what it had queued is nobody's any more
        os._exit(1)
    if not any(thread.name == "follow" for thread in threading.enumerate()):
        threading.Thread(target=_follow, args=(parent,), name="follow", daemon=True).start()
    return _on_one_thread(task, place, item)


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os._exit(1)


def _package(name: str, *, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        advice = f"pip install 'laconic[{extra}]', or '.[{extra}]' in a clone"
        raise InputError(f"{name} is not installed; try: {advice}") from None
