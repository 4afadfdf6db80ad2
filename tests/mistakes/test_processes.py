"""Streams, signals and folders that fail under a process: it ends with one line or in silence, in no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
SMALL = ("compare", "cosine", "-N", "2", "-T", "3", "--seeds", "1", "-q", "-a", "DisLinUCB")
PATIENCE = 300

pytestmark = pytest.mark.skipif(os.name == "nt", reason="these are streams and signals of Unix")


def laconic(*words: str, shell: str = '"$@"', **more: Any) -> subprocess.CompletedProcess[str]:
    """The command in a shell line of its own, where ``"$@"`` stands for it."""
    line = ["bash", "-c", shell, "bash", *COMMAND, *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False, **more)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("list",), ("--help",), SMALL])
def test_a_stdout_that_is_full_is_one_line(words: tuple[str, ...], unbuffered: str) -> None:
    done = laconic(*words, shell='"$@" > /dev/full', env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: ")
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("words", [("list",), SMALL])
def test_a_stdout_that_is_closed_is_one_line(words: tuple[str, ...]) -> None:
    done = laconic(*words, shell='"$@" >&-')
    assert (done.returncode, done.stderr) == (
        2,
        "error: there is no stdout to write to; try > /dev/null instead of closing it\n",
    )


def test_a_stderr_that_is_closed_changes_nothing() -> None:
    done = laconic(*(word for word in SMALL if word != "-q"), shell='"$@" 2>&-')
    assert done.returncode == 0
    assert "DisLinUCB" in done.stdout


@pytest.mark.parametrize("words", [("list",), ("show", "LaconicUCB")])
def test_a_reader_who_has_read_enough_is_no_mistake(words: tuple[str, ...]) -> None:
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before anything is written, as Python has to start first
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE) == 0


def test_a_working_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for words in (("list",), (*SMALL, "--out", "out")):
        gone.mkdir()
        done = laconic(*words, shell='rmdir "$PWD"; "$@"', cwd=gone)
        assert (done.returncode, done.stderr) == (
            2,
            "error: the folder that this was started in is gone; try cd to another\n",
        )


@pytest.mark.parametrize("module", ["typer", "laconic.cli.compare_command", "numpy", "scipy"])
def test_ctrl_c_during_imports_is_silent(module: str) -> None:
    code = f"""
import builtins, signal
real = builtins.__import__
def pressing(name, *rest, **more):
    if name == {module!r}:
        builtins.__import__ = real
        signal.raise_signal(signal.SIGINT)
    return real(name, *rest, **more)
builtins.__import__ = pressing
from laconic.cli import main
main()
"""
    hearing: Any = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    done = subprocess.run(
        [sys.executable, "-c", code, *SMALL], capture_output=True, text=True, timeout=PATIENCE, check=False, **hearing
    )
    assert (done.returncode, done.stderr) == (130, "")


def test_sigterm_ends_processes_in_order_and_says_what_is_kept(tmp_path: Path) -> None:
    sizes = ("-N", "5", "-T", "20", "--seeds", "2000", "--set", "problem.dim=2", "--jobs", "2")
    command = [*COMMAND, "compare", "cosine", "-a", "DisLinUCB", *sizes, "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("[")  # a run has finished
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert "stopped; " in out
    assert not [line for line in err.splitlines() if not line.startswith("[")]


@pytest.mark.parametrize(("code", "told"), [("0", "warning: beware\n"), ("2", "")])
def test_warnings_are_lines_after_the_command_and_none_stand_beside_an_error(code: str, told: str) -> None:
    script = f"""
import warnings
import laconic.cli as cli
def answered(arguments):
    warnings.warn("beware", stacklevel=1)
    warnings.warn("beware", stacklevel=2)
    return {code}
cli._answered = answered
cli.main([])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (int(code), told)


def test_what_a_service_warns_of_is_logged_at_once_and_not_when_it_ends() -> None:
    script = """
import sys, warnings
import laconic.cli as cli
from laconic.runtimes.service.jsonlines import log_to_stderr
def answered(arguments):
    log_to_stderr()
    warnings.warn("beware", stacklevel=1)
    print("later", file=sys.stderr)
    return 0
cli._answered = answered
cli.main([])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    logged, later = done.stderr.splitlines()
    assert {"level": "warning", "event": "beware", "category": "UserWarning"}.items() <= json.loads(logged).items()
    assert later == "later"
