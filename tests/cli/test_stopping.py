"""The first signal ends a command; where a process is just being started, once that is known."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import typer

from laconic.cli.stopping import Stop, stoppable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="these are signals of Unix")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_a_keyboard_interrupt_with_its_code(number: signal.Signals, code: int) -> None:
    with stoppable() as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert stop.code == code


def test_a_signal_that_comes_while_something_is_begun_is_heard_afterwards() -> None:
    begun: list[str] = []

    def begin(stop: Stop) -> None:
        with stop.later():
            os.kill(os.getpid(), signal.SIGTERM)
            begun.append("known")

    with stoppable() as stop:
        with pytest.raises(KeyboardInterrupt):
            begin(stop)
        assert (begun, stop.code) == (["known"], 143)


def test_without_a_signal_nothing_is_heard_afterwards() -> None:
    with stoppable() as stop, stop.later():
        pass
    assert not stop.held


def test_the_handlers_of_before_are_back_at_the_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_job_that_is_stopped_names_the_folder_of_its_runs_where_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, said in ((tmp_path, f"finished runs are kept in {tmp_path}"), (tmp_path / "none", "before any run")):
        with pytest.raises(typer.Exit) as ended:
            Stop().leave(folder)
        assert ended.value.exit_code == 130
        assert said in capsys.readouterr().err.replace("\n", " ")
