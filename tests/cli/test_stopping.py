"""The first signal ends a command; where a process is just being started, once that is known."""

from __future__ import annotations

import os
import signal

import pytest

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
