"""Ctrl-C may come anywhere: what was acknowledged is stored once, and what was interrupted at most once."""

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import Agent, DisKernelUCB, Gaussian
from laconic.runtimes.service import housekeeping
from laconic.runtimes.service.diary import Diary
from laconic.runtimes.service.store import Store
from laconic.runtimes.service.uninterrupted import Scribe

ARMS = np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]])


def lonely(folder: Path, **options: Any) -> Agent:
    algorithm = DisKernelUCB(Gaussian(1.0), D=2.0)
    state = folder / "a.db"
    return Agent.join("127.0.0.1:1", name="a", state=state, insecure=True, algorithm=algorithm, dim=2, **options)


def rewards(agent: Agent) -> list[float]:
    return sorted(agent._diary.client.learner.history.rewards.tolist())


def before_it(method: Callable[..., Any]) -> Callable[..., Any]:
    def interrupted(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    return interrupted


def after_it(method: Callable[..., Any]) -> Callable[..., Any]:
    def interrupted(*arguments: Any, **options: Any) -> Any:
        method(*arguments, **options)
        raise KeyboardInterrupt

    return interrupted


@pytest.mark.parametrize("when", [before_it, after_it])
@pytest.mark.parametrize(("owner", "name"), [(Store, "append"), (Store, "_insert"), (Diary, "_written")])
@pytest.mark.parametrize("group_commit", [0.0, 60.0])
def test_an_interrupt_while_records_are_written_loses_and_doubles_nothing(
    group_commit: float, owner: type, name: str, when: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 60.0)  # its thread is none that signals interrupt, nor is the link's

    def learn(agent: Agent) -> None:
        agent.learn(ARMS[:1], [3.0])
        agent._diary.write()

    with lonely(tmp_path, group_commit=group_commit) as agent:
        agent._link.stop()
        agent.observe(agent.choose(ARMS), 1.0)
        agent.observe(agent.choose(ARMS), 2.0)
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, when(getattr(owner, name)))
            with pytest.raises(KeyboardInterrupt):
                learn(agent)
        agent.observe(agent.choose(ARMS), 4.0)
        assert rewards(agent) in ([1.0, 2.0, 4.0], [1.0, 2.0, 3.0, 4.0])
        seen = rewards(agent)
        agent._diary.write()
    with lonely(tmp_path) as agent:
        assert rewards(agent) == seen


def test_an_interrupt_within_a_transaction_ends_it(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        store = agent._diary.store

        def beside(connection: sqlite3.Connection) -> None:
            raise KeyboardInterrupt

        with agent._diary._disk, pytest.raises(KeyboardInterrupt):
            store.append([agent._diary.client.born], beside=beside)
        agent.observe(agent.choose(ARMS), 1.0)
    with lonely(tmp_path) as agent:
        assert rewards(agent) == [1.0]


@pytest.fixture
def hearing() -> Iterator[None]:
    """Hear Ctrl-C, to which a shell makes deaf what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hearing")
def test_an_interrupt_while_an_agent_is_closed_lets_go_of_its_file_only_when_what_waits_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 60.0)
    append, close, closed, overlapped = Store.append, Store.close, threading.Event(), []

    def slow(store: Store, *arguments: Any, **options: Any) -> None:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        overlapped.append(closed.wait(0.5))
        append(store, *arguments, **options)

    def noted(store: Store) -> None:
        closed.set()
        close(store)

    agent = lonely(tmp_path, group_commit=60.0)
    agent._link.stop()  # which would write what waits
    agent.observe(agent.choose(ARMS), 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "append", slow)
        patched.setattr(Store, "close", noted)
        with pytest.raises(KeyboardInterrupt):
            agent._diary.close()
    agent.close()
    assert overlapped == [False]
    with lonely(tmp_path) as agent:
        assert rewards(agent) == [1.0]


def test_what_the_main_thread_asks_of_a_scribe_that_has_ended_is_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scribe, found = Scribe("a"), []
    scribe.start()
    scribe.end()
    late = threading.Thread(target=lambda: found.append(scribe.call(lambda: 7)), daemon=True)
    monkeypatch.setattr(threading, "main_thread", lambda: late)
    late.start()
    late.join(10.0)
    assert found == [7]


#: Interrupts itself again and again while it observes; on stdout are the rewards that were acknowledged.
INTERRUPTED = """
import random, signal, sys, time
import numpy as np
from laconic import Agent, DisKernelUCB, Gaussian

ARMS = np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]])
drawn, acknowledged, interrupts, number = random.Random(0), [], 0, 0

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
plan = {"algorithm": DisKernelUCB(Gaussian(1.0), D=2.0), "dim": 2, "group_commit": float(sys.argv[2])}
agent = Agent.join("127.0.0.1:1", name="a", state=sys.argv[1], insecure=True, **plan)
end = time.monotonic() + 2.5
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, drawn.uniform(1e-4, 6e-3))
        for _ in range(100):  # what Python calls by itself, as when it frees something, swallows some
            number += 1
            agent.observe(agent.choose(ARMS), float(number))
            acknowledged.append(float(number))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
agent.observe(agent.choose(ARMS), 0.0)
agent.close()
print(interrupts, 0.0, *acknowledged)
"""


@pytest.mark.parametrize("group_commit", [0.0, 0.05])
def test_signals_at_any_time_lose_nothing_that_was_acknowledged(group_commit: float, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "a.db"), str(group_commit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    interrupts, *acknowledged = map(float, done.stdout.split())
    with lonely(tmp_path) as agent:
        stored = rewards(agent)
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)
    assert interrupts > 20
