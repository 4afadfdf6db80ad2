"""Tables on terminals: no line is longer than the terminal is wide, and no word or number is split."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from laconic.cli import app
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
    assert any(line.startswith("without messages") for line in lines)
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
    assert width == 120 or "without messages" in printed
