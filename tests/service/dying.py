"""A process of a federation that kills itself with SIGKILL at a store of its choice; run as a script.

``dying.py WHERE AT agent ADDRESS STATE NAME FIRST COUNT [PAUSE]``: an agent that observes rewards from FIRST on
and prints each once it is acknowledged. ``dying.py WHERE AT serve FILE``: a coordinator.
With TEST_CLOCK, the name of a file, the time of day is off by the seconds in it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from laconic.runtimes.service.store import Store

#: So many rewards travel on every wire without being rounded.
DIFFERENT = 2000


def die_at(where: str, at: int) -> None:
    """Kill this process at its ``at``-th transaction: before it, within it, or after it before anything is sent."""
    writing, transaction, insert, counted = Store._writing, Store._transaction, Store._insert, [0]

    def die(now: str) -> None:
        if where == now and counted[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def written(self: Store) -> Iterator[None]:
        counted[0] += 1
        die("before")
        with writing(self):
            yield
        die("after")

    @contextmanager
    def transacted(self: Store) -> Iterator[None]:
        with transaction(self):
            yield
            die("within")

    def inserted(self: Store, rows: list[tuple[int, bytes]]) -> None:
        if where == "within" and counted[0] == at and not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")  # one statement is over before one can die within it
        insert(self, rows)
        die("within")

    Store._writing, Store._transaction = written, transacted  # type: ignore[method-assign]
    Store._insert = inserted  # type: ignore[method-assign]


def follow(clock: Path) -> None:
    """See the time of day set by as many seconds as a file says, from one moment to the next."""
    real = time.time
    time.time = lambda: real() + float(clock.read_text() or 0)


def observe(address: str, state: str, name: str, first: int, count: int, pause: float = 0.0) -> None:
    """Observe rewards and print them as they are acknowledged; flush now and then."""
    from laconic import Agent
    from laconic.errors import LinkError

    with Agent.join(address, name=name, state=state, insecure=True, seed=1) as agent:
        print("joined", flush=True)
        for reward in range(first, first + count):
            draw = np.random.default_rng(reward)
            agent.observe(agent.choose(draw.uniform(-1, 1, (4, agent.plan.belief.dim))), reward % DIFFERENT / 1024)
            print(reward, flush=True)
            time.sleep(pause)
            if reward % 4 == 0:
                try:
                    agent.flush(timeout=20.0)
                except LinkError as error:
                    print(f"# {error}", flush=True)
        print("done", flush=True)
        sys.stdin.readline()  # until it is told to end


def main() -> None:
    where, at, what, *rest = sys.argv[1:]
    die_at(where, int(at))
    if "TEST_CLOCK" in os.environ:
        follow(Path(os.environ["TEST_CLOCK"]))
    if what == "serve":
        from laconic.cli import main as laconic

        sys.argv = ["laconic", "serve", *rest]
        laconic()
    else:
        address, state, name, first, count, *pause = rest
        observe(address, state, name, int(first), int(count), *map(float, pause))


if __name__ == "__main__":
    main()
