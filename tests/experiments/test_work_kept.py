"""Work that is done is neither lost nor mixed: full disks, runs that fail, two at once, odd paths, renamed files."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from laconic import Catalogue, DisLinUCB, NKernelUCB, Random, Results, cli, compare, grid
from laconic.errors import InputError, OutputError
from laconic.experiments.compare import Incomplete
from laconic.experiments.files import locked, remove_file, replace_file, require_writable_file
from laconic.experiments.folder import RUNS
from laconic.problems import Log

SIZES: dict[str, Any] = {"problem": Catalogue(dim=2, items=6, arms=3), "clients": 3, "rounds": 4, "seeds": 2}
SMALL = ["--clients", "3", "--rounds", "4", "--seeds", "1", "--set", "problem.dim=2"]


@contextmanager
def full_disk(*, after: int = 2048) -> Iterator[None]:
    """No file can be longer than this, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


@dataclass(frozen=True)
class Growing:
    """A problem whose rewards grow beyond what can be computed with, where the noise is large."""

    size: float

    def instance(self, *, seed: int, clients: int, rounds: int) -> Any:
        means = np.where((np.arange(clients * rounds)[:, None] < clients) | (seed == 0), 1.0, self.size)
        arms = np.random.default_rng(seed).uniform(-1, 1, (clients * rounds, 2, 2))
        log = Log(arms, means=np.broadcast_to(means, (clients * rounds, 2)), noise=np.zeros(clients * rounds))
        return log.instance(seed=seed, clients=clients, rounds=rounds)


# (f) A full disk


def test_a_disk_that_fills_while_saving_loses_no_finished_run(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(Incomplete, match=r"not all could be kept: cannot write .*too large") as left:
        compare([DisLinUCB(), Random()], **SIZES, out=tmp_path)
    assert [row.seed for row in left.value.results.rows] == [0, 0, 1, 1]
    again = compare([DisLinUCB(), Random()], **SIZES, out=tmp_path)
    assert [row.regret for row in again.rows] == [row.regret for row in left.value.results.rows]
    assert Results.from_parquet(tmp_path / "results.parquet").rows == again.rows


def test_the_table_is_printed_where_a_figure_cannot_be_kept(tmp_path: Path) -> None:
    arguments = ["compare", "-a", "Random", *SMALL, "--out", str(tmp_path)]
    with full_disk(after=30_000):  # enough for results, which take 12 kB, and not for a figure, which takes 50
        done = CliRunner().invoke(cli.app, arguments, standalone_mode=False)
    assert "catalogue, d=2: 3 clients, 4 rounds" in done.stdout
    assert isinstance(done.exception, Incomplete)
    assert "figure.png" in str(done.exception)
    assert len(Results.from_parquet(tmp_path / "results.parquet").rows) == 1


# (g) A run that fails


def test_a_run_that_fails_takes_no_other_with_it_and_names_its_cause(tmp_path: Path) -> None:
    with pytest.raises(
        Incomplete, match=r"1 of 2 runs failed, .*Random, seed 1.* round 1: rewards must be below"
    ) as left:
        compare([Random()], problem=Growing(size=1e100), clients=3, rounds=4, seeds=2, out=tmp_path)
    assert [row.seed for row in left.value.results.rows] == [0]
    assert [row.seed for row in Results.from_parquet(tmp_path / "results.parquet").rows] == [0]


def test_the_rows_of_the_others_are_shown_before_the_error(tmp_path: Path) -> None:
    means = np.where(np.arange(12)[:, None] < 3, 1.0, 1e20) * np.ones((12, 2))  # too large for single precision only
    np.savez(
        tmp_path / "log.npz", arms=np.random.default_rng(0).uniform(-1, 1, (12, 2, 2)), means=means, noise=np.zeros(12)
    )
    chosen = ["-a", "DisKernelUCB,Random", "--set", "DisKernelUCB.dtype=float32", "--clients", "3", "--seeds", "1"]
    arguments = ["compare", str(tmp_path / "log.npz"), *chosen]
    done = CliRunner().invoke(cli.app, arguments, standalone_mode=False)
    assert isinstance(done.exception, Incomplete)
    assert "rewards must be below" in str(done.exception)
    assert "DisKernelUCB, seed 0" in str(done.exception)
    assert any(line.startswith("Random") for line in done.stdout.splitlines())
    assert not any(line.startswith("DisKernelUCB") for line in done.stdout.splitlines())
    assert "failed: DisKernelUCB, seed 0: round 1" in done.stderr


def test_a_lambda_that_cannot_work_is_named_before_anything_runs() -> None:
    with pytest.raises(InputError, match=r"lam=1e-14 is lost in the rounding .* try lam="):
        compare([NKernelUCB(lam=grid(0.1, 1e-14))], **SIZES)


# (h) Nobody reads stderr


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_stderr_that_cannot_be_written_ends_no_run(redirected: str) -> None:
    command = (
        f"{sys.executable} -c 'from laconic.cli import main; main()' compare -a Random {' '.join(SMALL)} {redirected}"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("catalogue, d=2: 3 clients, 4 rounds")


# (i) Two at once


def test_two_comparisons_do_not_write_to_one_folder_at_once(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match=r"in use by another comparison .* try another out"):
        compare([Random()], **SIZES, out=tmp_path)
    assert not (tmp_path / "config.toml").exists()
    assert len(compare([Random()], **SIZES, out=tmp_path).rows) == 2
    assert len(compare([Random(), DisLinUCB()], **SIZES, out=tmp_path).rows) == 4  # the folder was let go


def test_a_comparison_that_fails_lets_its_folder_go(tmp_path: Path) -> None:
    with pytest.raises(Incomplete):
        compare([Random()], problem=Growing(size=1e100), clients=3, rounds=4, seeds=2, out=tmp_path)
    with locked(tmp_path):
        pass


# (j) Devices, pipes and links


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    require_writable_file(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, lambda path: path.write_bytes(b"all of it"))
    reader.join()
    assert read == [b"all of it"]
    assert pipe.is_fifo()
    remove_file(pipe)
    assert pipe.is_fifo()


def test_a_link_leads_to_the_new_content_and_stays(tmp_path: Path) -> None:
    target, link, nowhere = tmp_path / "target", tmp_path / "link", tmp_path / "nowhere"
    target.write_text("old")
    link.symlink_to(target)
    nowhere.symlink_to(tmp_path / "new")
    for each in (link, nowhere):
        require_writable_file(each)
        replace_file(each, lambda path: path.write_text("new"))
        assert each.is_symlink()
    assert target.read_text() == (tmp_path / "new").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_device_is_written_through_and_never_replaced() -> None:
    for device in (Path("/dev/null"), Path("/dev/full")):
        require_writable_file(device)
    replace_file(Path("/dev/null"), lambda path: path.write_text("gone"))
    with pytest.raises(OutputError, match="/dev/full: No space left"):
        replace_file(Path("/dev/full"), lambda path: path.write_text("no room"))
    assert Path("/dev/null").is_char_device()
    assert Path("/dev/full").is_char_device()


def test_choices_go_through_a_pipe(tmp_path: Path) -> None:
    pipe, kept = tmp_path / "pipe", tmp_path / "kept.npz"
    os.mkfifo(pipe)
    reader = Thread(target=lambda: kept.write_bytes(pipe.read_bytes()))
    reader.start()
    arguments = ["compare", "-a", "Random", *SMALL, "--quiet", "--choices", str(pipe)]
    done = CliRunner().invoke(cli.app, arguments, standalone_mode=False)
    assert done.exception is None
    reader.join()
    assert np.load(kept)["Random/0"].shape == (12,)
    assert pipe.is_fifo()


# (k) A stored run under another name


def test_a_stored_run_that_was_renamed_onto_another_setting_is_made_again(tmp_path: Path) -> None:
    algorithms = [NKernelUCB(alpha=grid(0.0, 5.0))]
    before = compare(algorithms, **SIZES, out=tmp_path)
    assert len({row.regret for row in before.rows}) > 1
    stored = {path: Results.from_parquet(path).rows[0] for path in (tmp_path / RUNS).glob("*.parquet")}
    of = {(row.seed, row.params["alpha"]): path for path, row in stored.items()}
    for seed in (0, 1):
        shutil.copyfile(of[seed, 0.0], of[seed, 5.0])
    again = compare(algorithms, **SIZES, out=tmp_path)
    assert [(row.params, row.regret) for row in again.rows] == [(row.params, row.regret) for row in before.rows]
