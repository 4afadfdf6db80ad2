"""The installed command as a process of its own: exit codes, streams, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from laconic import Results

COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
SMALL = ["--clients", "3", "--rounds", "4", "--seeds", "1", "--set", "problem.dim=2"]


def laconic(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "nowhere.npz"),
        ("compare", "--clients", "many"),
        ("compare", "--nonsense"),
        ("dance",),
        ("show", "x"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = laconic(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_the_package_run_as_a_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "laconic", "show", "nonesuch"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", laconic("show", "nonesuch").stderr)


def test_a_comparison_prints_json_and_nothing_else_and_exits_with_0(tmp_path: Path) -> None:
    done = laconic("compare", "-a", "DisLinUCB", *SMALL, "--json", "--out", str(tmp_path))
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"][0]["algorithm"] == "DisLinUCB"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pty")
def test_what_a_terminal_is_told_of_a_long_comparison_is_not_on_stdout() -> None:
    ours, theirs = os.openpty()
    long = ["--clients", "50", "--rounds", "100", "--seeds", "1", "--set", "problem.dim=2", "--json"]
    with subprocess.Popen(
        [*COMMAND, "compare", "-a", "DisLinUCB", *long], stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b"".join(_read(ours))
        out, _ = process.communicate(timeout=300)
    os.close(ours)
    assert json.loads(out)["rows"][0]["algorithm"] == "DisLinUCB"
    assert b"estimated time: " in shown


def _read(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal until nobody has it open."""
    with suppress(OSError):  # Linux tells the end so
        while part := os.read(terminal, 4096):
            yield part


def test_help_and_version_are_quick_to_come_and_say_the_exit_codes() -> None:
    code = "import sys; from laconic.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "Exit codes" in done.stdout
    loaded = set(done.stdout.rsplit("\n", 2)[-2].split())
    assert not loaded & {"numpy", "scipy", "matplotlib", "pyarrow"}
    assert laconic("--version").stdout.startswith("laconic ")


def test_a_reader_that_stops_reading_sees_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" list | true', "bash", *COMMAND], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to a process")
def test_ctrl_c_leaves_the_finished_runs_saved_and_exits_with_130(tmp_path: Path) -> None:
    sizes = ["--clients", "5", "--rounds", "20", "--seeds", "2000", "--set", "problem.dim=2"]
    command = [*COMMAND, "compare", "-a", "DisLinUCB,NKernelUCB", *sizes, "--out", str(tmp_path)]
    # a shell starts background jobs deaf to SIGINT, and what they start inherits that
    hearing: Any = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **hearing) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("[")  # a run has finished
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    saved = Results.from_parquet(tmp_path / "results.parquet")
    assert len(saved.rows) >= 1
    runs = "1 run" if len(saved.rows) == 1 else f"{len(saved.rows)} runs"
    assert f"stopped; {runs} had finished" in out
