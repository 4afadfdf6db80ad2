from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from laconic import Results
from laconic.cli import app
from laconic.experiments.conduct import conduct
from laconic.experiments.results import Row
from laconic.experiments.spec import read_spec
from laconic.papers import library
from laconic.runtimes.jobs import Here
from tests.pages.making import SMALL, rows_of, write_small

pytest.importorskip("altair", reason="the report's charts need laconic[paper]")
pytest.importorskip("vl_convert", reason="the report's charts need laconic[paper]")

COMMAND = [sys.executable, "-c", "from laconic.cli import main; main()"]
LONGER = SMALL.replace("seeds = [0, 1]", f"seeds = {list(range(4))}")
PAPER = """
title = "A small paper"
authors = "Nobody"
venue = "Nowhere"
[profiles.quick]
about = "tiny"
rounds = 3
"""


def rows_in(folder: Path) -> list[Row]:
    paths = sorted((folder / "results").glob("*.parquet"))
    return [replace(row, seconds=0.0) for path in paths for row in Results.from_parquet(path).rows]


@pytest.fixture
def small_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paper with one figure that can run and one whose data is not here."""
    folder = tmp_path / "papers"
    (folder / "small").mkdir(parents=True)
    (folder / "small.toml").write_text(PAPER)
    write_small(folder / "small" / "figure-1-cosine.toml")
    text = SMALL.replace('name = "cosine"\ndim = 3\narms = 4', 'name = "magic"')
    write_small(folder / "small" / "figure-2-magic.toml", text=text)
    monkeypatch.setattr(library, "FOLDER", folder)
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path / "no data"))


@pytest.mark.usefixtures("small_paper")
def test_reproduce_runs_what_it_can_names_what_is_missing_and_exits_with_0(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "small", "--out", str(tmp_path / "out"), "-j", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    assert "magic: no magic04.data" in done.output
    assert "laconic data fetch magic" in done.output
    assert "not tested" in done.output
    assert "\nC1  OneKernelUCB has the smallest regret.\n" in done.output
    assert max(map(len, done.stdout.partition("\nnot run")[0].splitlines())) <= 80
    assert (tmp_path / "out" / "report.html").exists()
    assert {row.algorithm for row in rows_in(tmp_path / "out")} >= {"OneKernelUCB", "DisLinUCB"}


@pytest.mark.usefixtures("small_paper")
def test_a_rehearsal_says_that_it_judges_nothing_and_prints_no_verdicts(tmp_path: Path) -> None:
    paper = tmp_path / "papers" / "small.toml"
    paper.write_text(PAPER + "rehearsal = true\n")
    done = CliRunner().invoke(app, ["reproduce", "small", "--out", str(tmp_path / "out"), "-j", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    assert (
        "\na rehearsal judges no claim; at the paper's sizes, or half of them, these are judged:\nC1  OneKernelUCB"
        in done.output
    )
    assert not re.search(r"not judged +not judged", done.output)


@pytest.mark.usefixtures("small_paper")
def test_reproduce_of_nothing_that_is_here_is_a_mistake_and_leaves_no_report(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "small", "--only", "magic", "--out", str(tmp_path / "out"), "-q"])
    assert done.exit_code != 0
    assert "laconic data fetch magic" in str(done.exception)
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.fixture(scope="module")
def tuned_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of the small paper's figure leaves for others to be tuned by."""
    folder = tmp_path_factory.mktemp("tuned")
    for name in ("results", "config"):
        (folder / name).mkdir()
    spec = read_spec(write_small(folder / "figure-1-cosine.toml"))
    (panel,) = conduct([spec], out=folder / "runs", engine=Here()).panels
    panel.results.to_parquet(folder / "results" / "figure-1-cosine.parquet")
    (folder / "config" / "figure-1-cosine.toml").write_text(panel.spec.written(panel.experiment))
    return folder


@pytest.fixture
def tuned(small_paper: None, tuned_once: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    for name in ("results", "config"):
        shutil.copytree(tuned_once / name, tmp_path / "tuned" / name)
    return tmp_path / "tuned"


def test_reproduce_runs_only_what_did_best_in_another_folder(tuned: Path, tmp_path: Path) -> None:
    rows = Results.from_parquet(tuned / "results" / "figure-1-cosine.parquet").tuned("regret").rows
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["reproduce", "small", "--tuned-in", str(tuned), "--out", str(out), "-j", "1", "-q"])
    assert done.exit_code == 0, done.output
    assert "not run: magic: no results of it in tuned" in done.stdout
    said = "each algorithm at the setting that did best at N = 4, T = 5, seeds 0, 1; no grid was run"
    assert said in " ".join(done.stdout.split())
    assert {(row.algorithm, *row.params.items()) for row in rows_in(out)} == {
        (row.algorithm, *row.params.items()) for row in rows
    }
    assert {path.name for path in (out / "results").iterdir()} == {"figure-1-cosine.parquet"}
    report, summary = ((out / name).read_text() for name in ("report.html", "summary.md"))
    assert "--tuned-in ANOTHER" in report
    assert "settings that did best at N = 4, T = 5, seeds 0, 1" in report
    assert "held out" not in report.lower().replace("-", " ")
    assert "held-out" not in summary
    assert "Each algorithm at the setting that did best at N = 4" in summary


def test_settings_of_a_rehearsal_judge_nothing_at_any_size(tuned: Path, tmp_path: Path) -> None:
    config = tuned / "config" / "figure-1-cosine.toml"
    config.write_text(config.read_text().replace("rounds =", "rehearsal = true\nrounds =", 1))
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["reproduce", "small", "--tuned-in", str(tuned), "--out", str(out), "-j", "1", "-q"])
    assert "a rehearsal judges no claim" in done.stdout
    assert {each["verdict"] for each in json.loads((out / "claims.json").read_text())} <= {"not judged", "not tested"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--tuned-in", "{}/none"], "none is not there"),
        (["--tuned-in", "{}/out"], "try another --out"),
        (["--tuned-in", "{}/tuned", "--only", "cosine,magic"], "has no results of magic; try"),
        (["--tuned-in", "{}/empty"], "has no results of cosine, magic; try"),
        (["--tuned-in", "{}/tuned", "--profile", "other"], "they have another gamma;"),
    ],
)
@pytest.mark.usefixtures("tuned")
def test_a_folder_to_be_tuned_by_that_does_not_serve_is_refused(tmp_path: Path, given: list[str], said: str) -> None:
    (tmp_path / "empty" / "results").mkdir(parents=True)
    (tmp_path / "papers" / "small.toml").write_text(
        f'{PAPER}[profiles.other]\nabout = ""\ngrid = {{ gamma = [7.0, 8.0] }}\n'
    )
    places = [each.format(tmp_path) for each in given]
    done = CliRunner().invoke(app, ["reproduce", "small", "-q", "--out", str(tmp_path / "out"), *places])
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_paper")
def test_reproduce_prints_json_and_nothing_else(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["reproduce", "small", "--only", "cosine", "--out", str(tmp_path / "out"), "-j", "1", "--json", "-q"]
    )
    said = json.loads(done.stdout)
    assert {each["claim"] for each in said["claims"]} == {"C1", "C2", "C3", "C4"}
    assert said["absent"] == []
    assert all(Path(path).exists() for path in said["files"])


def _until(process: subprocess.Popen[str], start: str) -> None:
    """Read until a line begins so."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        if line.startswith(start):
            return
        said.append(line)
    pytest.fail("it ended with: " + "".join(said))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_in_the_middle_and_started_again_it_ends_as_if_undisturbed(tmp_path: Path) -> None:
    file = write_small(tmp_path / "small.toml", text=LONGER)
    arguments = [*COMMAND, "run", str(file), "-j", "2", "--out"]
    process = subprocess.Popen([*arguments, str(tmp_path / "killed")], stderr=subprocess.PIPE, text=True)
    _until(process, "[ 6/")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "killed" / "runs").glob("*.parquet")}
    assert len(kept) >= 6
    subprocess.run([*arguments, str(tmp_path / "killed"), "-q"], check=True, capture_output=True, timeout=300)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "killed" / "runs").glob("*.parquet")}
    assert after.items() >= kept.items()  # what had finished was not run again
    whole = conduct([read_spec(file)], out=tmp_path / "whole", engine=Here())
    assert sorted(rows_in(tmp_path / "killed"), key=str) == sorted(rows_of(whole), key=str)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to a process")
def test_ctrl_c_says_that_the_same_command_goes_on_and_exits_with_130(tmp_path: Path) -> None:
    file = write_small(tmp_path / "small.toml", text=SMALL.replace("seeds = [0, 1]", f"seeds = {list(range(200))}"))
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), "-j", "2", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until(process, "[")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "li2023"], "there is li2022"),
        (["reproduce", "li2022", "--profile", "double"], "quick, half, paper"),
        (["run", "nowhere.toml", "--out", "x"], "cannot read nowhere.toml"),
        (["reproduce", "li2022", "--engine", "dask"], "joblib, ray"),
    ],
)
def test_a_mistake_is_answered_with_advice_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []
