"""Tables on terminals: no line is longer than the terminal is wide, and no word or number is split."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from laconic.cli import app
from laconic.cli.aside import fitted
from laconic.cli.display import rich_table
from laconic.report.table import Table

GRIDS = """
clients = 3
rounds = 3
problem = { name = "catalogue" }
[[algorithms]]
name = "ApproxDisKernelUCB"
lam = [0.1, 1.0]
qbar = [0.25, 1.0]
wire = ["paper", "compact"]
"""
SMALL = ("--clients", "3", "--rounds", "3", "--seeds", "2", "--quiet")
WIDE = Table(
    headers=("algorithm", "regret", "scalars", "bytes", "messages", "syncs"),
    rows=(("ApproxDisKernelUCB wire=compact D=2", "98.2 ± 16.7", "586 k", "4.77 MB", "1,510,000", "10,000"),),
    caption="what was played",
    ranks=(0, 0, 2, 0, 3, 1),
)


def table_of(*words: str) -> list[str]:
    """What a command prints up to the first line about files."""
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    return done.stdout.partition("\nwrote")[0].partition("\n✓")[0].partition("\n!")[0].splitlines()


def test_compare_leaves_columns_out_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "grids.toml").write_text(GRIDS)
    lines = table_of("compare", str(tmp_path / "grids.toml"), "--quiet")
    assert max(map(len, lines)) <= 80
    assert any("in 80 columns: messages" in line for line in lines)
    assert {"algorithm", "regret", "bytes"} <= set(lines[1].split())


def test_frontier_fits(tmp_path: Path) -> None:
    lines = table_of("frontier", "catalogue", "--algorithms", "laconicucb,nkernelucb", *SMALL, "--out", str(tmp_path))
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_live_table_fits_any_terminal_and_shortens_no_cell(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    console.print(rich_table(WIDE))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= width
    assert "…" not in printed
    for word in ("ApproxDisKernelUCB", "wire=compact", "98.2 ± 16.7", "4.77 MB", "what was played"):
        assert word in printed
    assert ("1,510,000" in printed) == (width == 120)
    assert width == 120 or ": messages" in printed


def test_status_and_top_fit_and_keep_the_names_of_members_whole() -> None:
    from laconic.cli.status import _lines
    from laconic.cli.top import Screen

    name = "a-member-with-a-name-of-more-than-forty-letters-1234567890"
    member = {"name": name, "status": "present", "observations": 123_456_789, "mean": 0.123}
    moved = {"direction": "down", "phase": "agree on dictionary", "messages": 12_345, "bytes": 1_234_567_890}
    found: dict[str, Any] = {"address": "127.0.0.1:7443", "ready": True, "state": "idle", "seconds": 12.0}
    found |= {"together": True, "epoch": 3, "dictionary": 12, "links": 1, "counters": {"syncs": 3}, "errors": []}
    found |= {"observations": 123_456_789, "members": [member], "traffic": [moved]}
    exchange = {"member": name, "why": "trigger", "time": 0.0, "number": 17, "result": "epoch 17", "bytes": 12_345_678}
    view = found | {"rewards": {"mean": 0.5}, "costs": {"sent": 1, "paper": 2, "raw": 3}}
    view |= {"atoms": None, "exchanges": [exchange]}
    console = Console(file=io.StringIO(), width=80)
    console.print(Screen(view))
    assert isinstance(console.file, io.StringIO)
    for text in ("\n".join(_lines(found)), console.file.getvalue()):
        assert max(len(line.rstrip()) for line in text.splitlines()) <= 80, text
        for word in (name, "123,456,789", "1,234,567,890"):
            assert word in text


def test_list_fits() -> None:
    assert max(map(len, table_of("list"))) <= 80


@pytest.mark.parametrize("left", ["12 min left in all", ""])
@pytest.mark.parametrize("said", ["stage 2 of 3, sensitivity", "DisKernelUCB D=2, seed 12"])
def test_bars_fit_and_what_stands_beside_them_stays_whole(said: str, left: str) -> None:
    from laconic.cli.progress import bars_of_runs

    bars = bars_of_runs()
    console = Console(file=io.StringIO(), width=80)
    bars.add_task(said, total=12_345, completed=1_234, left=left)
    console.print(bars)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= 80
    assert said in printed
    assert "1234/12345" in printed
    assert "…" not in printed
    assert left in printed


def test_a_live_display_ends_in_an_empty_line_for_what_a_terminal_shows_of_ctrl_c() -> None:
    from laconic.cli.progress import above_the_cursor, bars_of_runs

    bars = bars_of_runs()
    bars.add_task("all runs", total=18, completed=6, left="18 s left in all")
    *above, last = Console(file=io.StringIO(), width=80).render_lines(above_the_cursor(bars), pad=False)
    assert (len(above), "".join(part.text for part in last)) == (1, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_beside_the_results_splits_no_word_on_a_terminal_and_is_one_line_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = "wrote results/results.parquet, results/config.toml, results/figure.png"
    assert fitted(said, stream=io.StringIO()) == said
    lines = fitted(said, stream=Terminal()).splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == said


def test_a_table_on_a_terminal_is_that_of_a_pipe_as_wide() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(rich_table(WIDE))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().rstrip("\n") == WIDE.text(width=80)


def test_data_list_fits_and_keeps_paths_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "agaricus-lepiota.data").write_text("e,x\n")
    monkeypatch.setenv("LACONIC_DATA", str(folder))
    lines = CliRunner().invoke(app, ["data", "list"]).stdout.splitlines()
    longest = max(len(word) for line in lines for word in line.split())
    assert max(map(len, lines)) <= max(80, 12 + longest)
    assert any(line.strip() == str(folder / "agaricus-lepiota.data") for line in lines)
