"""What stands beside the code says what the code says: the README, the citation, the changes."""

from __future__ import annotations

import re
from pathlib import Path

from laconic import __version__, defaults
from laconic.experiments.folder import CERTIFICATES, CONFIG, FIGURES, RESULTS
from laconic.experiments.results import HEADERS
from laconic.report.table import Table

ROOT = Path(__file__).parent.parent


def demo() -> list[str]:
    """The lines that the README shows below ``make demo``."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^\$ make demo\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)
    assert shown
    return shown[1].splitlines()


def cells(line: str) -> tuple[str, ...]:
    return tuple(re.split(r"\s{2,}", line))


def test_the_demos_table_is_laid_out_as_the_command_lays_it_out() -> None:
    caption, headers, rule, *rows, without = demo()[: 4 + len(defaults.ALGORITHMS)]
    shown = cells(headers)
    left_out = tuple(each for each in HEADERS if each not in shown)
    assert shown == tuple(each for each in HEADERS if each not in left_out)
    assert [cells(row)[0] for row in rows] == list(defaults.ALGORITHMS)
    table = Table(headers=shown, rows=tuple(map(cells, rows)), caption=caption, left_out=left_out)
    assert table.text().splitlines() == [caption, headers, rule, *rows, without]


def test_the_demos_caption_states_the_default_sizes() -> None:
    sizes = f"{defaults.CLIENTS} clients, {defaults.LONG_ROUNDS} rounds, mean ± sd over {defaults.SEEDS} seeds"
    assert demo()[0].startswith(f"{defaults.PROBLEM}, d=")
    assert demo()[0].endswith(sizes)


def test_the_demos_verdicts_and_files_follow_the_table() -> None:
    blank, *verdicts, wrote = demo()[4 + len(defaults.ALGORITHMS) :]
    assert blank == ""
    assert verdicts[0].startswith("✓ LaconicUCB")
    assert len(verdicts) == 5
    assert {verdict[:2] for verdict in verdicts} <= {"✓ ", "? "}  # three seeds leave some of it open
    assert wrote == f"wrote {', '.join(f'demo/{name}' for name in (RESULTS, CONFIG, *FIGURES, *CERTIFICATES))}"


def test_the_citation_and_the_changes_name_this_version_and_the_paper() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert "title: Communication Efficient Distributed Learning for Kernelized Contextual Bandits\n" in citation
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
