"""What stands beside the code says what the code says: the README, the citation, the changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from laconic import __version__, defaults
from laconic.experiments.folder import CERTIFICATES, CONFIG, FIGURES, RESULTS
from laconic.experiments.results import HEADERS
from laconic.report.table import Table, amount

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


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_says_how_to_cite_as_the_citation_file_does() -> None:
    (entries,) = re.findall(r"^```bibtex\n(.*?)^```$", readme(), flags=re.DOTALL | re.MULTILINE)
    assert entries in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")  # for readers of the site alone
    fields = re.findall(r"^  (\w+) += \{+(.*?)\}+,?$", entries, flags=re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert ("version", __version__) in fields
    for name in ("booktitle", "note", "license"):
        assert dict(fields)[name] in citation
    paper, project = (value for name, value in fields if name == "title")
    assert f"title: {paper}\n" in citation
    assert project.startswith("laconic")
    for author in dict(fields[:2])["author"].split(" and "):
        family, given = author.split(", ")
        assert f"- family-names: {family}\n        given-names: {given}\n" in citation


def number(cell: str) -> float:
    """The mean in a cell such as ``1,268 ± 32 (α=1)`` or ``14.5 M``."""
    found = re.match(r"([\d.,]+)(?: ([kM]))?", cell)
    assert found, cell
    return float(found[1].replace(",", "")) * {None: 1.0, "k": 1e3, "M": 1e6}[found[2]]


def reproduced(title: str) -> dict[str, dict[str, float]]:
    """A table of docs/reproduction.md, by problem and algorithm."""
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    found = re.search(rf"^\*\*{title}\*\*.*?\n\n(\|.*?)\n\n", page, flags=re.DOTALL | re.MULTILINE)
    assert found
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines())
    return {row[0]: dict(zip(header[1:], map(number, row[1:]), strict=True)) for row in rows}


def test_the_readme_says_where_the_papers_claim_holds_as_the_reproduction_found_it() -> None:
    regret, sent = reproduced("Regret"), reproduced("Bytes")
    ratio = r" ([\d.]+) × \|"
    shown = re.findall(rf"^\| (?:come back|new each time) \| (\w+) \|{4 * ratio}$", readme(), re.MULTILINE)
    assert {problem for problem, *_ in shown} == set(regret)
    for problem, *said in shown:
        found = [
            each[problem][who] / each[problem]["Dis"] for who in ("Approx", "LaconicUCB") for each in (regret, sent)
        ]
        for text, value in zip(said, found, strict=True):  # of figures that are rounded in the page
            step = 10.0 ** -len(text.partition(".")[2])
            assert float(text) == pytest.approx(value, rel=0.01, abs=0.6 * step)


def test_the_readme_says_what_its_snippet_finds_and_that_the_recommended_method_wins() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", readme(), flags=re.DOTALL | re.MULTILINE)
    (snippet,) = [each for each in blocks if "best = " in each]
    namespace: dict[str, Any] = {}
    exec(snippet, namespace)
    ours, raw, alone = namespace["best"].groups
    said = [f"{each.mean('regret'):.1f} ± {each.sd('regret'):.1f}" for each in (ours, raw, alone)]
    sent = [amount(each.mean("bytes"), unit="B") for each in (ours, raw)]
    assert (
        f"{ours.algorithm} then has a regret of {said[0]} for {sent[0]}, {raw.algorithm} {said[1]} for {sent[1]}, "
        f"and {alone.algorithm}, which sends nothing, {said[2]}."
    ) in readme()
    assert ours.mean("regret") < raw.mean("regret") < alone.mean("regret")
    assert ours.mean("bytes") < raw.mean("bytes") / 10
