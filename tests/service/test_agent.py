"""Agents: they choose and learn whatever the network does, from many threads, and what they acknowledged they keep."""

import asyncio
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest

from laconic import Agent, ApproxDisKernelUCB, DisKernelUCB, Gaussian, LaconicUCB, NKernelUCB
from laconic.algorithms import Algorithm
from laconic.errors import InputError, LinkError, NotYetWritten, StateError, StateInUse, UnknownDecision
from laconic.protocol.client import Client
from laconic.protocol.learner import Decision
from laconic.protocol.messages import Ask, Welcome
from laconic.protocol.outcome import Outcome, Work
from laconic.protocol.records import Finished, Forgot, Record, encode_record
from laconic.protocol.restoring import restore_client, snapshot_client
from laconic.protocol.roster import Patience
from laconic.protocol.session import Wants
from laconic.runtimes.service import agent as agents
from laconic.runtimes.service import housekeeping, retrying
from laconic.runtimes.service import linking as linkings
from laconic.runtimes.service import store as stores
from laconic.runtimes.service.coordinator import Coordinator
from laconic.runtimes.service.diary import Entry
from laconic.runtimes.service.housekeeping import Housekeeping
from laconic.runtimes.service.joining import Joining
from laconic.runtimes.service.linking import Link, Linking
from laconic.runtimes.service.stamps import stamp_of
from laconic.runtimes.service.store import Store
from tests.service.settling import is_flushed, serving, settle, until

ALGORITHM = DisKernelUCB(Gaussian(1.0), D=2.0)
ARMS = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]]
NOWHERE = "127.0.0.1:1"  # where nobody listens


def lonely(folder: Path, *, name: str = "a", algorithm: Algorithm = ALGORITHM, **options: Any) -> Agent:
    """An agent whose coordinator is away."""
    state = folder / f"{name}.db"
    address = options.pop("address", NOWHERE)
    return Agent.join(address, name=name, state=state, insecure=True, algorithm=algorithm, dim=2, **options)


def coordinator(folder: Path, *, algorithm: Algorithm = ALGORITHM, **options: Any) -> Coordinator:
    own = {"name": "DisKernelUCB", "kernel": {"name": "Gaussian", "gamma": 1.0}, "D": 2.0}
    table = own if algorithm is ALGORITHM else None
    return Coordinator(algorithm.plan(2), state=folder / "c.db", serving=serving(**options), algorithm=table)


def joined(there: Coordinator, folder: Path, *, name: str = "a", algorithm: Algorithm = ALGORITHM) -> Agent:
    state = folder / f"{name}.db"
    return Agent.join(there.address, name=name, state=state, insecure=True, algorithm=algorithm, dim=2, seed=1)


def fill(agent: Agent) -> int:
    """Learn until the store refuses; how many observations were acknowledged."""
    taken = 0
    try:
        for _ in range(1000):
            agent.learn(np.tile(ARMS, (10, 1)), np.ones(30))
            taken += 30
    except StateError:
        return taken
    raise AssertionError("the store took all of it")


# -- alone -------------------------------------------------------------------------------------------------------------


def test_an_agent_works_alone_while_its_coordinator_is_away(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        for step in range(20):
            agent.observe(agent.choose(ARMS), float(step))
        status = agent.status()
        assert (status.observations, status.pending, status.linked) == (20, 0, False)
        until(lambda: "Connection refused" in (agent.status().link_error or ""))


def test_rewards_come_late_out_of_order_once_and_after_a_restart(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        first, second, third, fourth = (agent.choose(ARMS) for _ in range(4))
        agent.observe(third, 3.0)
        agent.observe(first.id, 1.0)
        with pytest.raises(InputError, match="reported before"):
            agent.observe(first, 1.0)
        assert set(agent.pending) == {second.id, fourth.id}
    with lonely(tmp_path) as agent:
        assert set(agent.pending) == {second.id, fourth.id}
        agent.observe(fourth.id, 4.0)
        agent.observe(second, 2.0)
        with pytest.raises(InputError, match="reported before"):
            agent.observe(third, 3.0)
        assert agent._diary.client.learner.history.rewards.tolist() == [3.0, 1.0, 4.0, 2.0]


def lost(agent: Agent) -> Decision:
    """A decision whose record is lost, as a kill loses it before it is written."""
    with agent._diary._disk:
        decision = agent.choose(ARMS)
        agent._diary._queue.clear()
    return decision


def test_a_decision_of_its_own_is_taken_with_its_point_though_its_record_or_its_start_was_lost(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        killed = lost(agent)
    backup = (tmp_path / "a.db").read_bytes()
    with lonely(tmp_path) as agent:
        after = agent.choose(ARMS)
    (tmp_path / "a.db").write_bytes(backup)
    with lonely(tmp_path) as agent:
        for decision in (killed, after):
            with pytest.raises(UnknownDecision):
                agent.observe(decision.id, 1.0)  # without its point
            agent.observe(decision, 1.0)
            with pytest.raises(UnknownDecision, match="reported before"):
                agent.observe(decision, 1.0)
        assert agent.status().observations == 5


def test_a_decision_that_another_agent_made_or_nobody_is_refused_and_counted_nowhere(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent, lonely(tmp_path, name="b") as other:
        made, point = other.choose(ARMS), np.array(ARMS[:1])
        known = next(iter(agent._diary.client.learner.starts))
        foreign = [made, *(replace(made, id=f"{start}.0", point=point) for start in ("deadbeef", "-1", f"{known:x}"))]
        assert known == 0
        before, numbers = snapshot_client(agent._diary.client), agent._diary.store.last
        for decision in foreign:
            with pytest.raises(UnknownDecision, match="not made by agent 'a'; report its reward to the agent that"):
                agent.observe(decision, 1.0)
        assert encode_record(snapshot_client(agent._diary.client)) == encode_record(before)
        assert agent._diary.store.last == numbers
        other.observe(made, 1.0)
        assert (agent.status().observations, other.status().observations) == (0, 1)


def test_decisions_of_a_state_file_from_before_there_were_marks_are_taken(tmp_path: Path) -> None:
    plan = ALGORITHM.plan(2)
    with closing(Store(tmp_path / "a.db", role="agent", name="a", plan=plan)) as store:
        store.append([Client(plan, seed=1, member=False, name="a").born])
        client, outcome = restore_client(store.records(), plan=plan, start=2**40 - 1)
        kept, killed = client.choose(ARMS), client.choose(ARMS)
        store.append([*outcome.keep, kept.record])
    with lonely(tmp_path) as agent:
        assert set(agent.pending) == {kept.id}
        agent.observe(kept.id, 1.0)
        agent.observe(killed, 1.0)
        assert agent.choose(ARMS).id.startswith(f"{stamp_of('a'):x}")
    assert len({stamp_of(str(each)) for each in range(100)}) == 100
    assert all(2**19 <= stamp_of(name) < 2**20 for name in ("a", "Ω", "edge-17"))


def test_a_restarted_agent_chooses_as_if_it_had_not_been(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    steps = [(rng.uniform(-1, 1, (6, 2)), rng.normal(size=6)) for _ in range(30)]

    def played(agent: Agent, part: slice) -> list[int]:
        chosen = []
        for arms, rewards in steps[part]:
            decision = agent.choose(arms)
            agent.observe(decision, float(rewards[decision.arm]))
            chosen.append(decision.arm)
        return chosen

    with lonely(tmp_path, name="whole", seed=5) as agent:
        whole = played(agent, slice(None))
    halves = []
    for part in (slice(0, 11), slice(11, 17), slice(17, None)):
        with lonely(tmp_path, name="halves", seed=5) as agent:
            halves += played(agent, part)
    assert halves == whole


def test_what_was_learnt_elsewhere_is_taken_whole_or_not_at_all(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        with pytest.raises(InputError, match="as many"):
            agent.learn(ARMS, [1.0])
        with pytest.raises(InputError, match="features"):
            agent.choose([[1.0]])
        assert agent.status().observations == 3


def test_many_threads_use_one_agent(tmp_path: Path) -> None:
    def worked(agent: Agent) -> None:
        for step in range(25):
            agent.observe(agent.choose(ARMS), float(step))

    with lonely(tmp_path) as agent:
        threads = [threading.Thread(target=worked, args=(agent,)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert agent.status().observations == 200
        assert agent.status().pending == 0
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 200


def test_decisions_older_than_a_stated_time_are_forgotten_and_counted(tmp_path: Path) -> None:
    with lonely(tmp_path, forget_after=1000.0) as agent:
        old, new = agent.choose(ARMS), agent.choose(ARMS)
        agent._house.ages._made[old.id] -= 2000.0
    with lonely(tmp_path, forget_after=1000.0) as agent:  # a restart does not make it younger
        assert agent._house.forget_old() == 1
        assert agent.status().forgotten == 1
        assert set(agent.pending) == {new.id}
        with pytest.raises(InputError):
            agent.observe(old.id, 1.0)


def test_all_decisions_that_are_too_old_are_forgotten_in_one_commit_but_those_whose_reward_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lonely(tmp_path, forget_after=1000.0) as agent:
        picks = [agent.choose(ARMS) for _ in range(50)]
        for pick in picks:
            agent._house.ages._made[pick.id] -= 2000.0
        waiting = agent.pending
        agent.observe(picks[7], 1.0)
        monkeypatch.setattr(
            Housekeeping, "pending", waiting
        )  # as if that reward had come just after this was looked at
        written: list[Sequence[Record]] = []
        append = agent._diary.store.append

        def noted(records: Sequence[Record], **options: Any) -> None:
            written.append(records)
            append(records, **options)

        monkeypatch.setattr(agent._diary.store, "append", noted)
        assert agent._house.forget_old() == agent.status().forgotten == 49
        assert [len(each) for each in written if any(isinstance(record, Forgot) for record in each)] == [49]
        assert agent.status().pending == 0


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_clock_that_is_set_makes_no_decision_older_and_a_restart_counts_from_the_time_of_day(
    step: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    with lonely(tmp_path, forget_after=1800.0) as agent:
        waiting = agent.choose(ARMS)
        monkeypatch.setattr(time, "time", lambda: now() + step)
        assert agent._house.forget_old() == 0
        assert 0.0 <= agent.pending[waiting.id] < 1800.0
    with lonely(tmp_path, forget_after=1800.0) as agent:  # its time of day was noted by the clock as it is now
        assert 0.0 <= agent.pending[waiting.id] < 1800.0
    monkeypatch.setattr(time, "time", lambda: now() + step + 3600.0)
    with lonely(tmp_path, forget_after=1800.0) as agent:
        assert 3600.0 <= agent.pending[waiting.id] < 5400.0
        assert agent._house.forget_old() == 1


def test_an_agent_is_closed_once_and_refuses_what_comes_later(tmp_path: Path) -> None:
    agent = lonely(tmp_path)
    agent.close()
    agent.close()
    with pytest.raises(StateError, match="join again"):
        agent.choose(ARMS)


def test_an_agent_whose_name_no_header_could_carry_links(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path, name="Zürich\x07\n1") as agent:
        agent.flush(timeout=20)
        assert agent.status().linked


def test_an_agent_lives_in_an_event_loop_too(tmp_path: Path) -> None:
    async def used() -> int:
        async with lonely(tmp_path) as agent:
            agent.observe(agent.choose(ARMS), 1.0)
            return agent.status().observations

    assert asyncio.run(used()) == 1


def first(folder: Path, address: str) -> Coroutine[Any, Any, Agent]:
    """A first start that asks for the algorithm."""
    return Agent.join_async(address, name="a", state=folder / "a.db", insecure=True)


def test_an_agent_joins_from_an_event_loop(tmp_path: Path) -> None:
    async def used(address: str) -> Agent:
        async with await first(tmp_path, address) as agent:
            await asyncio.to_thread(agent.observe, agent.choose(ARMS), 1.0)
            return agent

    with coordinator(tmp_path) as there:
        agent = asyncio.run(used(there.address))
    with pytest.raises(StateError, match="join again"):
        agent.choose(ARMS)


def test_a_join_that_waits_lets_the_event_loop_go_on_and_leaves_nothing_behind_when_it_is_cancelled(
    tmp_path: Path,
) -> None:
    async def given_up(listening: socket.socket) -> None:
        joining = asyncio.create_task(first(tmp_path, f"127.0.0.1:{listening.getsockname()[1]}"))
        asked, _ = await asyncio.get_running_loop().sock_accept(listening)  # somebody who says nothing
        joining.cancel()
        with asked, pytest.raises(asyncio.CancelledError):
            await joining

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        asyncio.run(given_up(listening))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_join_that_is_cancelled_while_it_opens_its_state_file_gives_it_back(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, go = threading.Event(), threading.Event()

    def slowly(*arguments: Any, **options: Any) -> stores.Store:
        opening.set()
        assert go.wait(60)
        return stores.Store(*arguments, **options)

    async def given_up() -> None:
        joining = asyncio.create_task(
            Agent.join_async(NOWHERE, name="a", state=tmp_path / "a.db", insecure=True, algorithm=ALGORITHM, dim=2)
        )
        await asyncio.to_thread(opening.wait, 60)
        for _ in range(times):
            joining.cancel()
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(go.set)
        with pytest.raises(asyncio.CancelledError):
            await joining
        monkeypatch.undo()
        lonely(tmp_path).close()

    monkeypatch.setattr(agents, "Store", slowly)
    asyncio.run(given_up())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"seed": -1}, "seed must be a whole number"),
        ({"wait": float("nan")}, "wait must be a finite number"),
        ({"wait": "x"}, "wait must be a finite number"),
        ({"address": "127.0.0.1:²"}, "address must be HOST:PORT"),
    ],
    ids=["seed", "nan", "text", "port"],
)
def test_what_an_agent_cannot_be_made_of_leaves_no_state_file(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        lonely(tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []


# Newer versions of Python warn of any fork of a process that has threads; this is about what such a fork may not do.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_second_agent_on_a_state_file_is_refused_and_so_is_a_fork(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        with pytest.raises(StateInUse, match="name of its own"):
            lonely(tmp_path)
        child = os.fork()
        if child == 0:
            try:
                agent.learn(ARMS, [1.0, 2.0, 3.0])
            except StateInUse:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        agent.learn(ARMS, [1.0, 2.0, 3.0])
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 3


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_of_an_agent_neither_chooses_nor_hangs_when_it_closes(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs, and by that the test
            try:
                agent.choose(ARMS)  # its id would be that of the next decision of the holder
            except StateInUse:
                agent.close()
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        agent.observe(agent.choose(ARMS), 1.0)
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 1


FORKING = """
import os, signal, sys, time
from laconic import Agent, DisLinUCB
from laconic.errors import LinkError

def join(name):
    state = f"{sys.argv[1]}/{name}.db"
    return Agent.join("127.0.0.1:1", name=name, state=state, insecure=True, algorithm=DisLinUCB(D=2.0), dim=2)

with join("parent") as agent:
    while "refused" not in str(agent.status().link_error):
        time.sleep(0.01)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            time.sleep(0.02)
            os._exit(len(os.listdir("/proc/self/task")))
        print("threads", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that hangs
        with join("child") as other:
            other.learn([[0.1, 0.2]], [1.0])
            print(other.status().link_error, flush=True)
            for refused in (other.flush, lambda: Agent.join("127.0.0.1:1", name="c", state="c.db", insecure=True)):
                try:
                    refused()
                except LinkError as error:
                    print(error, flush=True)
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads of a process are seen in /proc")
def test_grpc_begins_no_threads_in_a_fork_of_an_agent_and_who_joins_there_is_told_of_no_link(
    tmp_path: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    threads, told, ended = (ran.stdout.splitlines()[at] for at in (slice(0, 5), slice(5, 8), slice(8, None)))
    assert threads == ["threads 1"] * 5  # they crashed such processes now and then
    assert all("forked" in line for line in told)
    assert ended == ["ended 0"]


HELD = """
import os, signal, sys, threading
from laconic import Agent, Coordinator, DisLinUCB, Serving
from laconic.errors import StateInUse

plan, folder, code = DisLinUCB(D=2.0).plan(2), sys.argv[1], 1
serving = Serving(bind="127.0.0.1:0", insecure=True)
with Coordinator(plan, state=f"{folder}/c.db", serving=serving) as there:
    how = dict(insecure=True, algorithm=DisLinUCB(D=2.0), dim=2)
    with Agent.join(there.address, name="a", state=f"{folder}/a.db", **how) as agent:
        with agent._diary._brief:  # as if another thread chose just now
            child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs
            for asked in (lambda: agent.status(), lambda: agent.pending, agent.leave):
                try:
                    asked()
                except StateInUse:
                    print("refused", flush=True)
            code = 0
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            agent.flush()
sys.exit(code)
"""


def test_a_fork_asks_nothing_of_its_parents_agent_and_leaves_its_parents_coordinator_alone(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HELD, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["refused"] * 3


# -- durability --------------------------------------------------------------------------------------------------------


def stored(folder: Path, *, name: str = "a") -> int:
    """How many observations a state file has, as a kill at this moment would leave it."""
    import shutil

    copy = folder / "copy"
    copy.mkdir(exist_ok=True)
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"{name}.db{suffix}", copy / f"{name}.db{suffix}")
    with lonely(copy, name=name) as agent:
        return agent.status().observations


def test_observe_returns_when_its_record_is_on_disk(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        for step in range(3):
            agent.observe(agent.choose(ARMS), 1.0)
            assert stored(tmp_path) == step + 1


def test_group_commit_returns_earlier_and_a_flush_of_the_diary_makes_it_good(tmp_path: Path) -> None:
    with lonely(tmp_path, group_commit=30.0) as agent:
        with agent._diary._disk:  # nobody writes now
            agent.observe(agent.choose(ARMS), 1.0)
            assert agent.status().observations == 1
        agent._diary.write()
        assert stored(tmp_path) == 1


def test_choose_waits_neither_for_the_disk_nor_for_work_under_way(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        begun, over = threading.Event(), threading.Event()

        def slow(_: Any) -> None:
            begun.set()
            over.wait(60)

        agent._worker.begin((Work(object(), slow),))
        begun.wait(60)
        with agent._diary._disk:  # as if a commit took forever
            assert agent.choose(ARMS).arm in range(3)
        over.set()


def damaged(folder: Path, how: str) -> Path:
    """The state file of an agent that was closed, of which something was changed."""
    with lonely(folder) as agent:
        for reward in (1.0, 2.0, 3.0):
            agent.learn(ARMS[:1], [reward])
        path = agent._diary.store.path
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(how)
        connection.commit()
    return path


def test_a_state_file_whose_records_do_not_follow_on_each_other_is_refused_as_damaged(tmp_path: Path) -> None:
    path = damaged(tmp_path, "UPDATE records SET data=(SELECT data FROM records r WHERE r.number=3) WHERE number=4")
    before = path.read_bytes()
    with pytest.raises(StateError, match=rf"{path.name} is damaged .* backup"):
        lonely(tmp_path)
    assert path.read_bytes() == before


def test_a_state_file_that_notes_no_algorithm_where_it_should_is_refused_as_damaged(tmp_path: Path) -> None:
    path = damaged(tmp_path, "INSERT OR REPLACE INTO about VALUES('algorithm', x'7b7d')")
    with pytest.raises(StateError, match=rf"{path.name} is damaged .* backup"):
        Agent.join(NOWHERE, name="a", state=path, insecure=True, wait=0.0)


def limited(size: int | None) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def test_a_full_disk_is_said_and_changes_nothing_and_choosing_goes_on(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        kept = agent.choose(ARMS)
        agent.observe(kept, 1.0)
        waiting = agent.choose(ARMS)
        limited(16_384)
        try:
            count = 1 + fill(agent)
            assert agent.status().observations == count
            with pytest.raises(StateError, match="could not be written"):
                agent.observe(waiting, 2.0)
            assert agent.status().observations == count
            during = agent.choose(ARMS)
        finally:
            limited(None)
        assert during.id != waiting.id
        agent.observe(waiting, 2.0)
        agent.observe(during.id, 3.0)
        after = agent.status().observations
        assert after == count + 2
    with lonely(tmp_path) as agent:
        assert agent.status().observations == after


def test_once_a_full_disk_is_freed_an_agent_to_which_nothing_happens_is_well(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, lonely(tmp_path, address=there.address) as agent:
        agent.flush()
        agent.leave()  # a link would heal it by chance
        limited(16_384)
        try:
            count = fill(agent)
            assert not agent._diary._queue
            for _ in range(2):  # that nothing waits does not mean that there is room
                with pytest.raises(StateError, match="could not be written"):
                    agent._diary.write()
        finally:
            limited(None)
        agent._diary.write()
        assert agent._diary.failing is None
        agent._diary.compact()
    with lonely(tmp_path) as agent:
        assert agent.status().observations == count


@pytest.mark.parametrize("group_commit", [0.0, 0.05])
def test_nothing_is_acknowledged_once_the_last_is_being_written(
    group_commit: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = lonely(tmp_path, group_commit=group_commit)
    agent.learn(ARMS, [1.0, 2.0, 3.0])
    store, refused = agent._diary.store, list[str]()

    def late() -> None:  # as other threads may, which saw it open
        for event in (
            lambda: agent._diary.happen(lambda client: client.learn(ARMS, [1.0, 2.0, 3.0]), early=True),
            lambda: agent._diary.choose(ARMS),
        ):
            with pytest.raises(StateError, match="this agent was closed"):
                event()
            refused.append("refused")
        Store.close(store)

    monkeypatch.setattr(store, "close", late)
    agent.close()
    assert refused == ["refused", "refused"]
    with lonely(tmp_path) as again:
        assert again.status().observations == 3


def test_group_commit_on_a_full_disk_keeps_what_it_acknowledged_and_acknowledges_no_more(tmp_path: Path) -> None:
    with lonely(tmp_path, group_commit=0.01) as agent:
        limited(16_384)
        try:
            taken = fill(agent)
            assert agent.status().observations == taken
        finally:
            limited(None)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent._diary.write()
        assert stored(tmp_path) == taken + 3


def test_a_snapshot_is_made_though_somebody_chooses_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lonely(tmp_path) as agent:
        store, append = agent._diary.store, agent._diary.store.append
        made: list[Any] = []

        def interrupted(*given: Any, **options: Any) -> None:
            assert len(made) < 100, "it waits for a moment at which nobody chooses"
            made.append(agent.choose(ARMS))
            append(*given, **options)

        made.append(agent.choose(ARMS))
        monkeypatch.setattr(store, "append", interrupted)
        agent._diary.compact()
        monkeypatch.undo()
        assert store._first > 0
    with lonely(tmp_path) as agent:
        assert set(agent.pending) == {each.id for each in made}


def test_a_long_state_file_is_compacted_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "LEAST_BYTES", 10_000)
    with lonely(tmp_path, algorithm=NKernelUCB(Gaussian(1.0))) as agent:
        store = agent._diary.store
        waiting = agent.choose(ARMS)
        for _ in range(8):
            agent.learn(np.tile(ARMS, (100, 1)), np.ones(300))
        until(lambda: store._first > 0)
        agent.observe(waiting, 1.0)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
    with lonely(tmp_path, algorithm=NKernelUCB(Gaussian(1.0))) as agent:
        assert agent.status().observations == 2404


def test_a_snapshot_that_cannot_be_stored_is_tried_now_and_then_and_rewards_are_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 0.01)
    later, monotonic, rounds = [0.0], time.monotonic, [0]
    monkeypatch.setattr(retrying, "time", SimpleNamespace(monotonic=lambda: monotonic() + later[0]))

    def tries() -> int:
        return sum(each.msg == "a snapshot could not be stored" for each in caplog.records)

    with lonely(tmp_path) as agent:
        diary, compact = agent._diary, agent._house._compact_if_long

        def counted() -> None:
            rounds[0] += 1
            compact()

        agent.learn(np.random.default_rng(0).uniform(-1, 1, (300, 2)), np.ones(300))
        with diary._disk:
            pages = diary.store._connection.execute("PRAGMA page_count").fetchone()[0]
            diary.store._connection.execute(f"PRAGMA max_page_count={pages + 8}")
        monkeypatch.setattr(agent._house, "_compact_if_long", counted)
        monkeypatch.setattr(stores, "RECORD_BYTES", 2**60)
        until(lambda: tries() == 1)
        before = rounds[0]
        until(lambda: rounds[0] > before + 20)
        agent.observe(agent.choose(ARMS), 1.0)
        assert tries() == 1
        with diary._disk:
            diary.store._connection.execute(f"PRAGMA max_page_count={pages + 10_000}")
        later[0] += retrying.FIRST + 1
        until(lambda: diary.store._first > 0)
        assert tries() == 1
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 301


@pytest.mark.parametrize("others", [0, 2])
def test_what_waits_with_what_was_answered_is_said_to_be_kept_and_is_stored_once(others: int, tmp_path: Path) -> None:
    with lonely(tmp_path, group_commit=60.0) as agent:
        agent._link.stop()  # what happens to it waits as well
        diary = agent._diary
        diary.write()
        refused: list[StateError] = []

        def learn() -> None:
            with pytest.raises(NotYetWritten) as caught:
                diary.happen(lambda client: client.learn(ARMS, [1.0, 2.0, 3.0]))
            refused.append(caught.value)

        with diary._disk:
            thread = threading.Thread(target=learn)
            thread.start()
            until(lambda: len(diary._queue) == 1)
            agent.observe(agent.choose(ARMS), 4.0)  # answered at once, as group commit does
            append, diary.store.append = diary.store.append, _full  # type: ignore[method-assign]
            for _ in range(others):  # who come first with what they wait for
                diary._write()
        thread.join()
        assert "do not repeat it" in str(refused[0])
        diary.store.append = append  # type: ignore[method-assign]
    with lonely(tmp_path) as agent:
        assert sorted(agent._diary.client.learner.history.rewards.tolist()) == [1.0, 2.0, 3.0, 4.0]


def _full(*records: Any, **options: Any) -> None:
    raise StateError("the disk is full")


def test_an_effect_that_nobody_foresaw_to_fail_is_logged_and_keeps_nothing_from_being_stored_nor_anyone_from_hearing_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 60.0)
    failing: list[Entry] = []
    with lonely(tmp_path) as agent:
        agent._link.stop()
        perform = agent._diary._perform

        def broken(entry: Entry) -> None:
            if not failing:
                failing.append(entry)
            if failing[0] is entry:
                raise RuntimeError("by design")
            perform(entry)

        monkeypatch.setattr(agent._diary, "_perform", broken)
        agent.learn(ARMS[:1], [1.0])
        assert "by design" in str(caplog.records[-1].exc_info)
        agent.learn(ARMS[1:2], [2.0])
    with lonely(tmp_path) as agent:
        assert sorted(agent._diary.client.learner.history.rewards.tolist()) == [1.0, 2.0]


def test_what_is_written_before_somebody_waits_for_it_is_known_to_be_also_when_the_agent_was_closed_meanwhile(
    tmp_path: Path,
) -> None:
    agent = lonely(tmp_path)
    agent._link.stop()
    entry = agent._diary.enter(lambda client: client.learn(ARMS, [1.0, 2.0, 3.0]))
    agent.close()
    agent._diary.settle(entry)
    with pytest.raises(StateError, match="closed"):
        agent._diary.enter(lambda client: client.learn(ARMS, [4.0, 5.0, 6.0]))
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 3


def test_an_agent_that_cannot_be_made_leaves_no_thread_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("by design")

    monkeypatch.setattr(agents, "Housekeeping", broken)
    with pytest.raises(RuntimeError, match="by design"):
        lonely(tmp_path, name="never-made")
    assert not [each for each in threading.enumerate() if "never-made" in each.name]


def test_what_housekeeping_cannot_do_again_and_again_is_said_and_over_when_it_can_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 0.01)
    monkeypatch.setattr(housekeeping, "AGAIN", 0.01)
    failures = [0]

    def broken() -> None:
        failures[0] += 1
        assert failures[0] >= housekeeping.HOPELESS or agent.trouble is None
        raise RuntimeError("by design")

    with lonely(tmp_path) as agent:
        compact, agent._house._compact_if_long = agent._house._compact_if_long, broken  # type: ignore[method-assign]
        until(lambda: "by design" in (agent.trouble or ""))
        agent._house._compact_if_long = compact  # type: ignore[method-assign]
        until(lambda: agent.trouble is None)
        agent.observe(agent.choose(ARMS), 1.0)


# -- with a coordinator ------------------------------------------------------------------------------------------------


def test_a_new_agent_asks_for_the_algorithm_and_needs_nobody_later(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path) as there,
        Agent.join(there.address, name="a", state=tmp_path / "a.db", insecure=True) as agent,
    ):
        assert agent.plan.fingerprint == there.plan.fingerprint
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
    with Agent.join(NOWHERE, name="a", state=tmp_path / "a.db", insecure=True) as agent:
        assert agent.status().covered == 3


def test_a_new_agent_without_an_algorithm_says_that_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"did not say which algorithm.*give algorithm and dim"):
        Agent.join(NOWHERE, name="a", state=tmp_path / "a.db", insecure=True, wait=0.3)
    assert not (tmp_path / "a.db").exists()


def test_an_agent_of_another_plan_is_told_what_differs(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path, algorithm=DisKernelUCB(Gaussian(3.0), D=2.0)) as agent:
        until(lambda: "kernel.gamma" in (agent.status().link_error or ""))
        agent.observe(agent.choose(ARMS), 1.0)
        with pytest.raises(LinkError, match="gamma"):
            agent.flush(timeout=0.2)


@pytest.mark.parametrize(
    "algorithm", [ALGORITHM, ApproxDisKernelUCB(D=1.0, qbar=10.0), LaconicUCB()], ids=["exact", "approximate", "lean"]
)
def test_what_one_agent_learns_another_knows_after_flushes(algorithm: Algorithm, tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, algorithm=algorithm) as there,
        joined(there, tmp_path, algorithm=algorithm) as one,
        joined(there, tmp_path, name="b", algorithm=algorithm) as other,
    ):
        one.learn(np.tile(ARMS, (5, 1)), np.tile([0.1, 0.9, 0.2], 5))
        one.flush()
        other.flush()
        settle(there, [one, other])
        assert other.choose(ARMS).mean > 0.3
        assert one.status().shared == 15


def test_an_agent_catches_up_when_the_coordinator_comes_back(tmp_path: Path) -> None:
    there = coordinator(tmp_path)
    with there:
        port = there.address.rpartition(":")[2]
        with joined(there, tmp_path) as agent:
            agent.flush()
            there.stop()
            until(lambda: not agent.status().linked)
            agent.learn(ARMS, [1.0, 2.0, 3.0])
            with coordinator(tmp_path, bind=f"127.0.0.1:{port}") as again:
                agent.flush()
                assert again.status()["observations"] == 3
                assert again.status()["members"][0]["status"] == "present"


def test_a_newer_copy_takes_over_and_the_older_does_not_come_back_by_itself(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with coordinator(tmp_path) as there, joined(there, tmp_path) as old:
        until(lambda: old.status().linked)
        with joined(there, tmp_path / "x") as new:
            until(lambda: new.status().linked)
            until(lambda: "another link greeted under this name" in (old.status().link_error or ""))
            greeted = [row["messages"] for row in there.status()["traffic"] if row["phase"] == "greeting"]
            old.observe(old.choose(ARMS), 1.0)
            new.flush()
            assert old._link.is_resting
            assert [r["messages"] for r in there.status()["traffic"] if r["phase"] == "greeting"] == greeted
            assert new.status().linked
            old.reconnect()
            until(lambda: old.status().linked and not new.status().linked)


def test_who_leaves_counts_no_more_and_may_come_back(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        agent.leave()
        until(lambda: there.status()["members"][0]["status"] == "left")
        assert agent.choose(ARMS).arm in range(3)
        agent.reconnect()
        agent.flush()
        assert there.status()["members"][0]["status"] == "present"


def test_who_leaves_and_closes_at_once_has_left(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there:
        for number in range(8):
            with joined(there, tmp_path, name=f"job-{number}") as agent:
                agent.observe(agent.choose(ARMS), 1.0)
                agent.flush()
                for _ in range(6):
                    agent.observe(agent.choose(ARMS), 1.0)
                agent.leave()
        until(lambda: not any(member["status"] in ("present", "away") for member in there.status()["members"]))
        assert there.desk.server.hub.clients == 0


def test_who_left_though_that_is_not_yet_written_has_no_link_and_may_come_back(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path) as there,
        Agent.join(there.address, name="a", state=tmp_path / "a.db", insecure=True, group_commit=60.0) as agent,
    ):
        agent.flush()
        diary, refused = agent._diary, []

        def leave() -> None:
            try:
                agent.leave()
            except NotYetWritten as error:
                refused.append(error)

        with diary._disk:
            thread = threading.Thread(target=leave)
            thread.start()
            until(lambda: agent.status().state == "outside")
            agent.observe(agent.choose(ARMS), 1.0)
            append, diary.store.append = diary.store.append, _full  # type: ignore[method-assign]
            diary._write()
        thread.join()
        assert len(refused) == 1
        assert agent.status().linked is False
        diary.store.append = append  # type: ignore[method-assign]
        agent.reconnect()
        agent.flush()
        assert there.status()["members"][0]["status"] == "present"


def test_who_leaves_while_a_link_is_being_made_does_not_greet_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        until(lambda: agent.status().linked)
        agent.leave()
        until(lambda: agent._link._link is None)
        left, aside = threading.Event(), agent._link._aside

        async def late(*arguments: Any, **options: Any) -> Any:
            await asyncio.to_thread(agent.leave)
            monkeypatch.setattr(agent._link, "_aside", aside)
            try:
                return await aside(*arguments, **options)
            finally:
                left.set()

        monkeypatch.setattr(agent._link, "_aside", late)
        agent.reconnect()
        assert left.wait(60.0)
        until(lambda: there.links == 0)
        assert agent.status().state == "outside"
        assert [each["status"] for each in there.status()["members"]] == ["left"]
        agent.reconnect()
        agent.flush()


ENDING = """
import atexit, sys
from pathlib import Path
from laconic import Agent, Coordinator, DisKernelUCB, Serving

folder, algorithm = Path(sys.argv[1]), DisKernelUCB()
there = Coordinator(algorithm.plan(2), state=folder / "c.db", serving=Serving(bind="127.0.0.1:0", insecure=True))
there.start()
atexit.register(there.stop)
agent = Agent.join(there.address, name="a", state=folder / "a.db", insecure=True, algorithm=algorithm, dim=2)
atexit.register(agent.close)
agent.observe(agent.choose([[0.1, 0.2], [0.3, 0.4]]), 1.0)
agent.flush()
agent.choose([[0.1, 0.2], [0.3, 0.4]])
"""


def test_an_agent_that_is_closed_when_python_ends_closes_whole_and_says_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ENDING, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with Agent.join(
        NOWHERE, name="a", state=tmp_path / "a.db", insecure=True, algorithm=DisKernelUCB(), dim=2
    ) as agent:
        assert agent.status().observations == 1
        assert len(agent.pending) == 1


def test_a_greeting_that_is_answered_after_its_agent_left_makes_no_link(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        until(lambda: agent.status().linked)
        agent.leave()
        link = Link(agent._link._loop, agent._link._codec, too_large=lambda *_: None)
        welcome = Welcome(number=0, clients=1, incarnation=1, known=0, tip=0, term=1, prove=False, syncing=None)
        agent._link._taken(welcome, Outcome(dropped="this client is outside"), link)
        assert (agent.status().linked, link.was_up) == (False, False)
        assert "left" in str(agent.status().link_error)


def test_a_flush_that_nobody_answers_is_still_wanted_when_the_coordinator_comes(tmp_path: Path) -> None:
    there = coordinator(tmp_path)
    with there, joined(there, tmp_path) as agent:
        agent.flush()
        port = there.address.rpartition(":")[2]
        there.stop()
        until(lambda: not agent.status().linked)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        with pytest.raises(LinkError, match="shared later"):
            agent.flush(timeout=0.1)
        with coordinator(tmp_path, bind=f"127.0.0.1:{port}"):
            until(lambda: agent._diary.client.session.wants is Wants.NOTHING and agent.status().covered == 3)


def test_a_flush_waits_for_no_long_pause_between_links(tmp_path: Path) -> None:
    there = coordinator(tmp_path)
    with there, joined(there, tmp_path) as agent:
        agent.flush()
        agent._link._joining = replace(agent._link._joining, first_wait=600.0, longest_wait=600.0)
        there.stop()
        until(lambda: not agent.status().linked)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        with pytest.raises(LinkError, match="shared later"):
            agent.flush(timeout=1.0)  # it is tried now, in vain
        with coordinator(tmp_path, bind=there.address):
            agent.flush()
            assert agent.status().covered == 3


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of somebody who takes connections and says nothing, whom agents would wait for for an hour."""
    monkeypatch.setattr(linkings, "ANSWER", 3600.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_an_agent_that_waits_for_an_answer_closes_and_leaves_at_once(silent: str, tmp_path: Path) -> None:
    state = tmp_path / "a.db"
    with Agent.join(silent, name="a", state=state, insecure=True, algorithm=DisKernelUCB(), dim=2) as agent:
        agent.leave()
        until(lambda: agent._link._link is None and "left" in str(agent.status().link_error))
        with pytest.raises(LinkError, match="none is tried"):
            agent.flush()
        agent.reconnect()  # it is closed while it waits again
        assert agent.status().link_error == "a link is being made"


def test_who_comes_back_is_linked_as_soon_as_the_link_before_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "Joining", partial(Joining, first_wait=3600.0, longest_wait=3600.0))
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        for _ in range(5):
            until(lambda: agent.status().linked)
            agent.leave()
            agent.reconnect()
            until(lambda: agent.status().linked and not agent._link.is_resting)


def test_who_leaves_while_the_coordinator_is_away_does_not_come_back_by_itself(tmp_path: Path) -> None:
    there = coordinator(tmp_path)
    with there, joined(there, tmp_path) as agent:
        until(lambda: agent.status().linked)
        there.stop()
        until(lambda: not agent.status().linked)
        agent.leave()
        with coordinator(tmp_path, bind=there.address) as again:
            time.sleep(1.0)  # several times as long as its pauses are yet
            assert again.status()["members"][0]["status"] == "away"
            agent.reconnect()
            agent.flush()
            assert again.status()["members"][0]["status"] == "present"


def test_a_backup_that_is_taken_while_an_agent_runs_is_good(tmp_path: Path) -> None:
    with lonely(tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        (tmp_path / "backup").mkdir()
        with sqlite3.connect(tmp_path / "a.db") as running, sqlite3.connect(tmp_path / "backup/a.db") as copy:
            running.backup(copy)
        running.close()
        copy.close()
        agent.learn(ARMS, [4.0, 5.0, 6.0])
    with lonely(tmp_path / "backup") as agent:
        assert agent.status().observations == 3


def test_an_agent_that_goes_back_to_a_backup_is_told_nothing_twice_and_takes_nothing_twice(tmp_path: Path) -> None:
    with coordinator(tmp_path, algorithm=LaconicUCB()) as there:
        with joined(there, tmp_path, algorithm=LaconicUCB()) as agent:
            agent.learn(ARMS, [0.1, 0.2, 0.3])
            agent.flush()
        backup = (tmp_path / "a.db").read_bytes()
        with joined(there, tmp_path, algorithm=LaconicUCB()) as agent:
            agent.learn(ARMS, [0.4, 0.5, 0.6])
            agent.flush()
        (tmp_path / "a.db").write_bytes(backup)
        with joined(there, tmp_path, algorithm=LaconicUCB()) as agent:
            agent.learn(ARMS[:2], [0.7, 0.8])
            agent.flush()
            assert there.status()["observations"] == 5  # of this agent as it is now
            assert there.status()["log"] == 8  # what came between stays, as of one that left


def test_a_flush_is_asked_for_again_when_a_sync_went_on_without_its_agent(tmp_path: Path) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.flush()
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        session = agent._diary.client.session
        agent._diary.client.session = replace(session, wants=Wants.FLUSH, goal=3)  # as `Released` leaves it
        agent.flush()
        assert agent.status().covered == 3


@pytest.mark.parametrize("patience", [0.0, 30.0])
def test_a_flush_of_an_agent_that_leaves_meanwhile_is_said_to_be_unanswered(
    patience: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "ASK_AGAIN", patience)
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.flush()
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        happen = agent._diary.happen

        def leaving(event: Any, **options: Any) -> Any:
            outcome = happen(event, **options)
            monkeypatch.setattr(agent._diary, "happen", happen)
            agent.leave()
            return outcome

        monkeypatch.setattr(agent._diary, "happen", leaving)
        with pytest.raises(LinkError, match="not answered"):
            agent.flush()
        assert agent.status().state == "outside"


def test_a_disk_that_fills_up_in_the_middle_of_syncs_ends_the_link_and_everything_comes_later(tmp_path: Path) -> None:
    with (
        coordinator(tmp_path, patience=Patience(seconds=1.0)) as there,
        joined(there, tmp_path) as full,
        joined(there, tmp_path, name="b") as other,
    ):
        full.learn(ARMS, [1.0, 2.0, 3.0])
        full.flush()
        connection = full._diary.store._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        with full._diary._disk:
            connection.execute(f"PRAGMA max_page_count={pages}")
        for step in range(3):
            other.learn(np.random.default_rng(step).uniform(-1, 1, (400, 2)), np.full(400, float(step)))
            other.flush()
        until(lambda: full._diary.failing is not None)
        assert full.choose(ARMS).arm in range(3)
        assert full.status().observations == 3
        with full._diary._disk:
            connection.execute(f"PRAGMA max_page_count={pages + 10_000}")
        full.learn(ARMS, [4.0, 5.0, 6.0])
        full.reconnect()
        full.flush(timeout=60.0)
        until(lambda: full.status().epoch == other.status().epoch)
        assert full.status().covered == 6
    with lonely(tmp_path) as again:
        assert again.status().observations == 6


def test_work_whose_result_could_not_be_stored_is_done_again_and_flushes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        append, hand_back, refused = agent._diary.store.append, agent._worker._hand_back, threading.Event()

        def full_once(records: list[Any], **options: Any) -> None:
            is_adopted = agent.status().covered == 3 and any(isinstance(each, Finished) for each in records)
            if is_adopted and not refused.is_set():
                refused.set()
                raise StateError("the disk is full")
            append(records, **options)

        def late(work: Work, result: Any) -> tuple[Work, ...]:
            with suppress(StateError):
                agent._diary.write()  # what it is owed for is on disk before it is done, as with work that takes long
            return hand_back(work, result)

        def flushed() -> bool:
            with suppress(StateError):  # it is said for a moment
                agent.flush(timeout=60.0)
                return True
            return False

        monkeypatch.setattr(agent._diary.store, "append", full_once)
        monkeypatch.setattr(agent._worker, "_hand_back", late)
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        agent.flush()
        assert refused.wait(60.0)
        until(flushed)
        assert agent.status().covered == 3
    with lonely(tmp_path) as again:
        assert again.status().covered == 3


def test_a_mistake_of_ours_in_taking_what_came_of_work_is_said_and_flushes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done, broken = Client.done, threading.Event()

    def breaks_once(self: Client, work: Work, result: Any) -> Any:
        if broken.is_set():
            return done(self, work, result)
        broken.set()
        return 1 / 0

    monkeypatch.setattr(Client, "done", breaks_once)
    with coordinator(tmp_path) as there, joined(there, tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        until(lambda: is_flushed(agent) and agent.status().covered == 3)
        assert broken.is_set()
    assert "what came of work could not be taken" in caplog.text


def test_a_message_of_a_link_that_is_over_is_not_taken_for_one_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, held, let_go, taken = Linking._take, threading.Event(), threading.Event(), threading.Event()

    def late(self: Linking, data: bytes, link: Link) -> None:
        if held.is_set() or not isinstance(self._codec.decode(data), Ask):
            return take(self, data, link)
        held.set()
        return threading.Thread(target=take_later, args=(self, data, link), daemon=True).start()

    def take_later(*given: Any) -> None:
        let_go.wait(60.0)
        take(*given)
        taken.set()

    def asked_in_vain() -> bool:
        with suppress(LinkError):
            agent.flush(timeout=0.1)
        return held.is_set() and not agent.status().linked

    monkeypatch.setattr(Linking, "_take", late)
    there = coordinator(tmp_path)
    with there, joined(there, tmp_path) as agent:
        agent.learn(ARMS, [1.0, 2.0, 3.0])
        with suppress(LinkError):
            agent.flush(timeout=0.1)
        assert held.wait(60.0)
        there.stop()
        until(asked_in_vain)  # who sends something finds that the link is down; who takes a message does not look
        with coordinator(tmp_path, bind=there.address):
            agent.flush(timeout=60.0)
            let_go.set()
            assert taken.wait(60.0)
            agent.learn(ARMS, [4.0, 5.0, 6.0])
            agent.flush(timeout=60.0)
            assert agent.status().covered == 6


def test_numbers_of_numpy_are_taken_like_others(tmp_path: Path) -> None:
    int64: Any = np.int64
    with lonely(tmp_path, seed=int64(3), group_commit=np.float64(0.0)) as agent:
        agent.observe(agent.choose(ARMS), 1.0)
    with lonely(tmp_path) as agent:
        assert agent.status().observations == 1
    plan = ALGORITHM.plan(2)
    with Coordinator(plan, state=tmp_path / "c.db", serving=serving(), term=int64(7)) as there:
        assert there.desk.server.term == 7


def test_what_is_no_place_or_no_certificate_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    for wrong, said in (
        ({"tls": "certs"}, "tls must be a TLS"),
        ({"address": "my..host:7443"}, "names no host"),
        ({"address": "[::1:7443"}, "names no host"),
        ({"state": f"{tmp_path}/a\0b"}, "null character"),
    ):
        options = {"address": NOWHERE, "name": "a", "state": tmp_path / "a.db", "insecure": "tls" not in wrong, **wrong}
        with pytest.raises(InputError, match=said):
            Agent.join(options.pop("address"), **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_agent_in_plaintext_that_is_cut_off_at_once_is_told_that_the_other_side_may_want_tls() -> None:
    said: Any = SimpleNamespace(details=lambda: "Socket closed", code=lambda: grpc.StatusCode.UNAVAILABLE)
    joining = Joining(address=NOWHERE, name="a", tls=None)
    assert joining.explained(said).endswith("if that side has tls, give tls here too")
