"""Run many schedules: ``python -m laconic.testing.simulation --schedules 10000 --workers 2``."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentError, ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NoReturn

from laconic.checks import seen
from laconic.runtimes.threads import one_thread
from laconic.testing.simulation.failure import SimulationFailure
from laconic.testing.simulation.planted import BUGS
from laconic.testing.simulation.running import simulate
from laconic.testing.simulation.shrink import shrunk
from laconic.testing.simulation.subjects import SUBJECTS

#: So many schedules are run before the next line of progress.
BATCH = 25
#: More processes than this are no use on any machine that there is.
MOST_WORKERS = 256
#: Where nobody watches a terminal, progress is said so many times.
LINES = 10
#: A planted bug must be found within so many schedules.
PATIENCE = 500
#: So many failures are shrunk and shown.
SHOWN = 3


class OneLine(ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Say what was wrong; the caller knows how to end."""
        raise ArgumentError(None, message)


def _at_least(least: int) -> Callable[[str], int]:
    """Reads a whole number that is not too small."""

    def read(text: str) -> int:
        if not text.removeprefix("-").isdecimal() or int(text) < least:
            raise ArgumentTypeError(
                f"must be a whole number of at least {least}, not {seen(text)}; try {max(least, 1)}"
            )
        return int(text)

    return read


def main(given: list[str] | None = None) -> int:
    """Run schedules, or look for planted bugs; 1 when an invariant does not hold or a bug was not found."""
    parser = OneLine(prog="python -m laconic.testing.simulation", description=__doc__)
    parser.add_argument("--schedules", type=_at_least(1), default=1000, help="how many, over all algorithms")
    parser.add_argument("--workers", type=_at_least(1), default=1, help=f"how many processes, up to {MOST_WORKERS}")
    parser.add_argument("--first", type=_at_least(0), default=0, help="the first seed")
    parser.add_argument("--algorithm", choices=sorted(SUBJECTS), action="append", help="only this one")
    parser.add_argument("--planted", action="store_true", help="look for planted bugs instead")
    try:
        options = parser.parse_args(given)
        if options.workers > MOST_WORKERS:
            raise ArgumentError(None, f"--workers must be up to {MOST_WORKERS}, not {options.workers}")
    except ArgumentError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    names = options.algorithm or list(SUBJECTS)
    with one_thread():  # beside other work several would spin in wait for each other
        if options.planted:
            return _look_for_bugs(options.first)
        return _soak(names, schedules=options.schedules, first=options.first, workers=options.workers)


def _soak(names: list[str], *, schedules: int, first: int, workers: int) -> int:
    begun, failed = time.monotonic(), []
    done = dict.fromkeys(names, 0)
    progress = Progress(total=schedules)
    with ProcessPoolExecutor(workers) as pool:
        batches = list(_batches(names, schedules=schedules, first=first))
        for (name, seeds), failures in zip(batches, pool.map(_failures, batches), strict=True):
            done[name] += len(seeds)
            failed += [(name, seed) for seed in failures]
            progress.say(sum(done.values()), failed=len(failed))
    progress.end()
    for name, count in done.items():
        bad = [seed for each, seed in failed if each == name]
        print(f"{name:26} {count:7} schedules, {len(bad)} failed {bad[:20] if bad else ''}")
    for name, seed in failed[:SHOWN]:
        print(f"\n{_explained(name, seed)}")
    print(f"{time.monotonic() - begun:.0f} seconds")
    return 1 if failed else 0


def _batches(names: list[str], *, schedules: int, first: int) -> Iterator[tuple[str, range]]:
    """Seeds of each algorithm in turn; all algorithms meet the same seeds."""
    each = -(-schedules // len(names))
    left = schedules
    for start in range(first, first + each, BATCH):
        for name in names:
            count = min(BATCH, first + each - start, left)
            left -= count
            if count > 0:
                yield name, range(start, start + count)


def _failures(batch: tuple[str, range]) -> list[int]:
    """Which of some seeds fail."""
    name, seeds = batch
    with one_thread():  # a process of the pool begins with as many as the machine has
        return [seed for seed in seeds if _failure(name, seed) is not None]


def _failure(name: str, seed: int) -> SimulationFailure | None:
    try:
        simulate(SUBJECTS[name], seed=seed)
    except SimulationFailure as failure:
        return failure
    return None


def _explained(name: str, seed: int) -> SimulationFailure | None:
    """The failure of a seed, with as few events as it takes."""
    failure = _failure(name, seed)
    return None if failure is None else shrunk(SUBJECTS[name], failure)


class Progress:
    """How far schedules have come: a line that is written over on a terminal, and elsewhere one for each tenth."""

    def __init__(self, *, total: int) -> None:
        self.total, self.begun, self.said = total, time.monotonic(), 0
        self.watched = sys.stdout.isatty()

    def say(self, done: int, *, failed: int) -> None:
        """Say how many are done, if it is worth a line."""
        line = f"{done} of {self.total} schedules, {failed} failed, {time.monotonic() - self.begun:.0f} s"
        if self.watched:
            print(f"\r{line}", end="", flush=True)
        elif done * LINES // self.total > self.said:
            self.said = done * LINES // self.total
            print(line, flush=True)

    def end(self) -> None:
        """What follows begins on a line of its own."""
        if self.watched:
            print()


def _look_for_bugs(first: int) -> int:
    missed = 0
    for bug, (plant, name) in BUGS.items():
        with plant():
            failures = (_failure(name, seed) for seed in range(first, first + PATIENCE))
            found = next((failure for failure in failures if failure is not None and failure.is_of_an_invariant), None)
        # what fails without the bug as well says nothing of it
        missed += (is_missed := found is None or _failure(name, found.seed) is not None)
        where = "" if found is None else f"after {found.seed - first + 1} schedules of {name}: {found.broken}"
        print(f"{bug:30} {'not found' if is_missed else 'found'} {where}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
