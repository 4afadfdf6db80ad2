"""Comparisons that are killed, with ``kill -9``, and called again: of a notebook's classes, and as a command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from laconic import Results
from laconic.experiments.results import Row

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")

JOBS, RUNS = 2, 12
COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
NOTEBOOK = """
import json, os, signal, sys
from dataclasses import dataclass

import numpy as np

from laconic import Catalogue, DisKernelUCB, Gaussian, compare
from laconic.experiments.runner import Begun, Finished

out, diary, killed_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
WIDTH = 2.0


def kernel(X, Y):
    return np.exp(-WIDTH * ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


@dataclass(frozen=True)
class Mine(DisKernelUCB):
    D: float = 2.0


@dataclass(frozen=True)
class Shop:
    items: int = 20

    def instance(self, *, seed, clients, rounds):
        with open(diary, "a") as file:  # who opens an instance plays it
            file.write(f"{seed}\\n")
        return Catalogue(dim=3, items=self.items, arms=5).instance(seed=seed, clients=clients, rounds=rounds)


def progress(event):
    if isinstance(event, Begun):
        print(json.dumps({"known": len(event.known)}), flush=True)
    if isinstance(event, Finished) and event.done == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)


algorithms = [Mine(), Mine(kernel), Mine(Gaussian(0.5), lam=0.5)]
results = compare(algorithms, problem=Shop(), clients=10, rounds=60, seeds=4, jobs=2, out=out, progress=progress)
print(json.dumps({"rows": len(results.rows)}), flush=True)
"""


def kept(folder: Path) -> dict[str, int]:
    """The finished runs that are there, each with when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "runs").glob("*.parquet")}


def rows(folder: Path) -> list[Row]:
    return [replace(row, seconds=0.0) for row in Results.from_parquet(folder / "results.parquet").rows]


def called(notebook: Path, out: Path, *, killed_at: int = 0) -> tuple[int, list[dict[str, int]]]:
    """What a process that runs the notebook left: its exit code and what it said."""
    arguments = [sys.executable, str(notebook), str(out), f"{out}-diary", str(killed_at)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, timeout=300, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_comparison_of_a_notebooks_classes_that_was_killed_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.py"
    notebook.write_text(NOTEBOOK)
    code, _ = called(notebook, tmp_path / "killed", killed_at=5)
    assert code == -signal.SIGKILL
    before = kept(tmp_path / "killed")
    assert 5 <= len(before) < RUNS
    code, said = called(notebook, tmp_path / "killed")
    assert code == 0
    assert said[0]["known"] >= len(before)  # a worker may have ended its run when nobody was there any more
    assert said[1] == {"rows": RUNS}
    assert kept(tmp_path / "killed").items() >= before.items()  # what had finished was not made again
    opened = (tmp_path / "killed-diary").read_text().splitlines()
    assert len(opened) <= RUNS + JOBS + 2  # at most those under way twice, and each call tries the problem out
    assert called(notebook, tmp_path / "whole")[0] == 0
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")


def test_code_that_was_edited_meanwhile_is_another_comparison(tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.py"
    notebook.write_text(NOTEBOOK)
    called(notebook, tmp_path / "out", killed_at=1)
    before = kept(tmp_path / "out")
    notebook.write_text(NOTEBOOK.replace("WIDTH = 2.0", "WIDTH = 1.0").replace("D: float = 2.0", "D: float = 3.0"))
    arguments = [sys.executable, str(notebook), str(tmp_path / "out"), str(tmp_path / "diary"), "0"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert re.search(
        r"InputError: .* finished runs of another comparison \(one is Mine on Shop, .*try another out", done.stderr
    )
    assert kept(tmp_path / "out") == before


def test_a_command_that_was_killed_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    arguments = [
        "-a",
        "DisKernelUCB,NKernelUCB,ApproxDisKernelUCB",
        "--clients",
        "10",
        "--rounds",
        "60",
        "--seeds",
        "4",
    ]
    command = [*COMMAND, "compare", "catalogue", *arguments, "--jobs", str(JOBS), "--out"]
    with subprocess.Popen([*command, str(tmp_path / "killed")], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(4)]
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert said[-1].startswith("[ 4/12] ")
    before = kept(tmp_path / "killed")
    again = subprocess.run(
        [*command, str(tmp_path / "killed")], capture_output=True, text=True, timeout=300, check=True
    )
    first, *others = again.stderr.splitlines()
    assert first.endswith("of 12 runs are there already")
    assert int(first.split()[0]) + len(others) == RUNS
    assert int(first.split()[0]) >= len(before) >= 4
    assert kept(tmp_path / "killed").items() >= before.items()
    subprocess.run([*command, str(tmp_path / "whole"), "-q"], check=True, capture_output=True, timeout=300)
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
