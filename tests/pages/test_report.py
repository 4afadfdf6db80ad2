from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import msgspec
import pytest

from laconic import Results
from laconic.datasets import data_dir
from laconic.experiments.conduct import Outcome
from laconic.experiments.grid import params
from laconic.experiments.naming import symbol
from laconic.experiments.parts import name_of
from laconic.experiments.results import short
from laconic.experiments.spec import read_spec
from laconic.report.table import NOTHING
from tests.pages.making import rows_of, subject


@pytest.fixture(scope="module")
def page(written: Path) -> str:
    return (written / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def words(page: str) -> str:
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)


def test_the_page_loads_nothing_from_elsewhere_and_forbids_it(page: str, words: str) -> None:
    assert not re.search(r"<(link|iframe|img)\b|\bsrc=", words)
    assert not re.search(r'href="(?!#)', words)
    assert "default-src &#x27;none&#x27;" in page


def test_every_panel_has_its_charts(page: str) -> None:
    charts = [json.loads(each) for each in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    titles = [str(chart["layer"][0].get("title") or chart.get("title")) for chart in charts]
    assert len(charts) == 5 + 2 * 2 + 1  # regret, scalars, frontier, syncs, dictionary; qbar and λ; bytes
    assert all(any(chart["datasets"].values()) for chart in charts), titles


def test_the_page_states_claims_criteria_and_verdicts(words: str) -> None:
    for text in (
        "C1",
        "C4",
        "Holds when:",
        "paired t interval",
        "held out",
        "Exact configuration",
        "numpy",
        "Time per run",
    ):
        assert text in words


@pytest.mark.usefixtures("written")  # skipped where the charts' packages are missing
def test_a_rehearsal_says_so_on_top_and_in_every_cell(outcome: Outcome, tmp_path: Path) -> None:
    from laconic.pages.output import write

    panels = [
        replace(each, spec=replace(each.spec, file=msgspec.structs.replace(each.spec.file, rehearsal=True)))
        for each in outcome.panels
    ]
    write(replace(outcome, panels=tuple(panels)), out=tmp_path, subject=subject())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index("which judges nothing") < page.index("<h2>")
    assert "This is a rehearsal and judges nothing" in page
    assert (
        len(re.findall(r'class="chip not-judged"[^>]*>○ not judged</span><span class="small">a rehearsal', page)) == 4
    )
    assert page.count("A rehearsal judges nothing.") == 4
    assert not re.search(r'class="chip (holds|fails|too-close-to-tell)"', page)
    assert "LaconicUCB is not judged" in page
    assert "A rehearsal: it judges nothing" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_what_is_missing_is_named_with_the_way_to_get_it(words: str) -> None:
    assert "<b>magic</b> – <code>magic: no magic04.data in the data folder" in words
    assert "laconic data fetch magic" in words
    assert words.count("not tested") == 4


def test_no_folder_of_this_machine_is_named(written: Path, page: str) -> None:
    told = [page, *((written / name).read_text(encoding="utf-8") for name in ("summary.md", "claims.json"))]
    for folder in ("/home/someone", str(Path.home()), str(data_dir()), str(written)):
        assert not any(folder in text for text in told), folder
    assert "laconic run a.toml" in page


def test_a_problem_has_one_name_in_every_table_link_and_chart(words: str, page: str) -> None:
    section = re.search(r'<section id="small">.*?</section>', words, flags=re.DOTALL)
    assert section
    assert "<h2>Figure 0 · cosine</h2>" in section[0]
    assert words.count("a &lt; b") == 2  # what the paper calls it, and the exact file
    assert len(re.findall(r'<a href="#small">cosine</a>', words)) == 5
    assert "MagicTelescope" not in page


def test_the_configuration_has_all_that_decides_a_result(words: str, outcome: Outcome) -> None:
    panel = outcome.panels[0]
    setup = words[words.index('<section id="setup">') :]
    for algorithm in panel.experiment.algorithms:
        row = re.search(rf'<th scope="row">{name_of(algorithm, kind="algorithm")}</th>.*?</tr>', setup)
        assert row
        for name, value in params(algorithm).items():
            plain = unescape(row[0]).replace("\N{NO-BREAK SPACE}", " ")
            said = re.search(rf"[>;] ?{symbol(name)} = ([^;<]*)", plain)
            assert said, name
            assert (NOTHING if value is None else short(value)) in said[1].split(", ") or name == "digest"
    for needed in (
        panel.id,
        platform.platform(),
        "0, 1",
        "lockstep",
        "numpy",
        "BLAS",
        "wire = paper",
        "wire = float64",
    ):
        assert needed in setup
    assert panel.spec.written(panel.experiment) in unescape(setup)


def test_every_cell_knows_its_header_so_that_rows_can_be_stacked(words: str) -> None:
    for shown in re.findall(r"<table.*?</table>", words, flags=re.DOTALL):
        headers = [unescape(re.sub(r"<.*?>", "", each)) for each in re.findall(r'<th scope="col">(.*?)</th>', shown)]
        for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", shown, flags=re.DOTALL):
            assert [unescape(each) for each in re.findall(r'<td data-label="(.*?)">', row)] == headers[1:]


def test_text_is_escaped(words: str) -> None:
    assert "A &lt;paper&gt;" in words
    assert "a &lt; b" in words
    assert "a < b" not in words


def test_results_lie_beside_the_page_and_hold_every_run(written: Path, outcome: Outcome) -> None:
    grid = Results.from_parquet(written / "results" / "small.parquet")
    varied = Results.from_parquet(written / "results" / "small-sensitivity.parquet")
    assert len(grid.rows) + len(varied.rows) == len(rows_of(outcome))


def test_figures_lie_beside_the_page_as_png_and_svg(written: Path) -> None:
    for name in ("small", "small-sensitivity"):
        assert (written / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (written / "figures" / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_configuration_beside_the_page_is_the_experiment_that_ran(written: Path, outcome: Outcome) -> None:
    assert read_spec(written / "config" / "small.toml").experiment() == outcome.panels[0].experiment


def test_verdicts_lie_beside_the_page_as_json(written: Path) -> None:
    found = json.loads((written / "claims.json").read_text(encoding="utf-8"))
    assert {each["problem"] for each in found} == {"cosine", "magic"}
    assert {each["claim"] for each in found} == {"C1", "C2", "C3", "C4"}
    assert all(each["criterion"] and each["numbers"] for each in found)


def test_the_main_numbers_lie_beside_the_page_as_markdown(written: Path) -> None:
    text = (written / "summary.md").read_text(encoding="utf-8")
    assert "| problem | C1 | C2 | C3 | C4 |" in text
    assert "| magic | not tested | not tested | not tested | not tested |" in text
    assert "Regret on held-out seeds" in text
