"""Ages of decisions: they are noted now and then, and not so often that noting them is what an agent does."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from laconic import Agent, DisLinUCB
from laconic.errors import StateError
from laconic.runtimes.service import ages, housekeeping
from laconic.runtimes.service.ages import TIMES_REST, Ages
from tests.service.settling import until

ARMS = [[0.1, 0.2], [0.3, -0.4]]


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now, self.set_by = 1000.0, 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now + self.set_by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ages, "time", clock)
    return clock


def test_nothing_is_written_where_nothing_changed(clock: Clock) -> None:
    written: list[bytes] = []
    noted = Ages(None, waiting=[])
    noted.note(write=written.append)
    assert written == []
    noted.begin("1.0")
    for off in (0.0, 0.6, 0.4, 0.6, 0.0):  # as two readings of two clocks differ
        clock.now, clock.set_by = clock.now + 30.0, off
        noted.note(write=written.append)
    assert len(written) == 1
    assert msgspec.json.decode(written[0]) == {"1.0": pytest.approx(1000.0, abs=1.0)}
    noted.end("1.0")
    noted.note(write=written.append)
    noted.note(write=written.append)
    assert written[1:] == [b"{}"]


def test_a_clock_that_is_set_is_noted(clock: Clock) -> None:
    written: list[bytes] = []
    noted = Ages(None, waiting=["1.0"])
    noted.note(write=written.append)
    clock.set_by += 3600.0
    noted.note(write=written.append)
    assert [msgspec.json.decode(each)["1.0"] for each in written] == [1000.0, 4600.0]


def test_the_next_note_waits_a_hundred_times_what_the_last_one_took(clock: Clock) -> None:
    noted = Ages(None, waiting=["1.0"])

    def slow(_: bytes) -> None:
        clock.now += 1.5

    def full(_: bytes) -> None:
        clock.now += 0.5
        raise StateError("full")

    assert noted.is_due
    noted.note(write=slow)
    clock.now += TIMES_REST * 1.5 - 1.0
    assert not noted.is_due
    clock.now += 1.5
    assert noted.is_due
    noted.begin("1.1")
    with pytest.raises(StateError, match="full"):
        noted.note(write=full)
    assert not noted.is_due
    clock.now += TIMES_REST * 0.5 + 1.0
    assert noted.is_due


def test_an_agent_whose_notes_take_long_makes_few_and_one_when_it_is_closed_and_holds_up_nobody_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PAUSE", 0.01)
    monkeypatch.setattr(housekeeping, "LOOK", 0.0)
    later, rounds, notes, held = [0.0], [0], [0], [0]
    shifted = SimpleNamespace(monotonic=lambda: time.monotonic() + later[0], time=lambda: time.time() + later[0])
    monkeypatch.setattr(ages, "time", shifted)

    def joined() -> Agent:
        return Agent.join("127.0.0.1:1", name="a", state=tmp_path / "a.db", insecure=True, algorithm=DisLinUCB(), dim=2)

    with joined() as agent:
        diary, forget, note = agent._diary, agent._house.forget_old, agent._diary.note

        def encode(value: Any) -> bytes:
            held[0] += diary._brief.locked() or diary._disk.locked()
            return msgspec.json.encode(value)

        def counted() -> int:
            rounds[0] += 1
            agent.choose(ARMS)  # so that there is something to note
            return forget()

        def slow(name: str, value: bytes) -> None:
            notes[0] += 1
            note(name, value)
            later[0] += 10.0

        monkeypatch.setattr(ages, "msgspec", SimpleNamespace(json=SimpleNamespace(encode=encode)))
        monkeypatch.setattr(diary, "note", slow)
        monkeypatch.setattr(agent._house, "forget_old", counted)
        until(lambda: notes[0] == 1)
        before = rounds[0]
        until(lambda: rounds[0] > before + 20)
        assert (notes[0], held[0]) == (1, 0)
        later[0] += TIMES_REST * 10.0
        until(lambda: notes[0] == 2)
        agent.choose(ARMS)
        waiting = len(agent.pending)
    assert notes[0] == 3
    monkeypatch.undo()
    with joined() as agent:
        assert len(agent.pending) >= waiting
