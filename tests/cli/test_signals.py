"""Signals reach a command that waits for them, whichever of its threads the system gives them to."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import signal, threading
from laconic.cli.signals import heard

def other():
    for each in (signal.SIGHUP, signal.SIGTERM):
        signal.pthread_kill(threading.get_ident(), each)

with heard(signal.SIGHUP, signal.SIGTERM) as signals:
    print(signals.next(0.01))
    threading.Timer(0.2, other).start()
    print(signals.next(), signals.next())
signal.raise_signal(signal.SIGTERM)  # as by somebody who is impatient
print("ended")
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads here get no signals of their own")
def test_a_signal_that_another_thread_gets_is_heard_too_and_none_is_lost() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["None", str(int(signal.SIGHUP)), str(int(signal.SIGTERM)), "ended"], ran.stderr
    assert ran.returncode == 0
