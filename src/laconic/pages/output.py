"""The folder of a sweep: report.html, and beside it results, figures, configurations and verdicts as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from laconic.errors import InputError, LaconicError
from laconic.experiments.conduct import Outcome, Panel
from laconic.experiments.files import remove_file, replace_file, require_places
from laconic.experiments.folder import RUNS
from laconic.experiments.naming import portable
from laconic.experiments.results import Results
from laconic.experiments.spec import Earlier, read_spec
from laconic.pages.drawing import Drawings, Drawn, algorithms_of, draw
from laconic.pages.placing import standing
from laconic.pages.report import Subject, page
from laconic.pages.summary import summary
from laconic.papers.claims import Finding, findings, untested
from laconic.report import charts

REPORT, SUMMARY, CLAIMS = "report.html", "summary.md", "claims.json"
CONFIGS, RESULTS, FIGURES = "config", "results", "figures"  # folders
VARIED = "-sensitivity"  # how the files of a study are called
A_ROW = 3  # charts


def require_place(out: Path) -> None:
    """Refuse a folder that holds something else where files of a sweep go."""
    require_places(out, files=(REPORT, SUMMARY, CLAIMS), folders=(RUNS, CONFIGS, RESULTS, FIGURES))


def left_in(out: Path) -> dict[str, Earlier]:
    """What an earlier sweep left in a folder, by experiment; its sensitivity studies are not among it."""
    if not (out / RESULTS).is_dir():
        what = "holds no results of laconic reproduce" if out.exists() else "is not there"
        raise InputError(f"{out} {what}; try the folder that an earlier laconic reproduce wrote")
    paths = [path for path in sorted((out / RESULTS).glob("*.parquet")) if not path.stem.endswith(VARIED)]
    return {path.stem: _earlier(path, out / CONFIGS / f"{path.stem}.toml") for path in paths}


def _earlier(results: Path, config: Path) -> Earlier:
    return Earlier(Results.from_parquet(results), rehearsal=read_spec(config).file.rehearsal)


def write(outcome: Outcome, *, out: Path, subject: Subject) -> list[Path]:
    """Write everything that a reader may want; the files, the report first."""
    outcome = _without_folders(outcome)
    configurations = {panel.spec.name: panel.spec.written(panel.experiment) for panel in outcome.panels}
    drawings = {panel.spec.name: draw(panel) for panel in outcome.panels}
    report = page(outcome, subject=subject, configurations=configurations, drawings=drawings)
    written = [_write_text(out / REPORT, report)]
    written.append(_write_text(out / SUMMARY, summary(outcome, with_claims=subject.with_claims)))
    if subject.with_claims:
        written.append(_write_text(out / CLAIMS, _json(verdicts(outcome))))
    for panel in outcome.panels:
        name = panel.spec.name
        written += _write_panel(panel, out=out, configuration=configurations[name], drawings=drawings[name])
    return written + _write_frontier(outcome, drawings=drawings, out=out, title=subject.title)


def _without_folders(outcome: Outcome) -> Outcome:
    """The same, as other machines have other folders and some readers other names."""
    absent = tuple(replace(each, why=portable(each.why)) for each in outcome.absent)
    failures = tuple(replace(each, error=LaconicError(portable(each.why))) for each in outcome.failures)
    return replace(outcome, absent=absent, failures=failures)


def verdicts(outcome: Outcome) -> list[dict[str, Any]]:
    """Every claim on every problem as plain values."""
    judged = [(panel.name, finding) for panel in outcome.panels for finding in findings(panel)]
    judged += [(each.name, one) for each in outcome.absent for one in untested(portable(each.why))]
    return [_plain(problem, finding) for problem, finding in judged]


def _plain(problem: str, finding: Finding) -> dict[str, Any]:
    return {
        "problem": problem,
        "claim": finding.claim.key,
        "text": finding.claim.text,
        "criterion": finding.claim.criterion,
        "verdict": finding.verdict,
        "numbers": finding.numbers,
        "held_out": finding.held_out,
        "holds_at": list(finding.holds_at),
    }


def _write_panel(panel: Panel, *, out: Path, configuration: str, drawings: Drawings) -> list[Path]:
    name = panel.spec.name
    written = [_write_text(out / CONFIGS / f"{name}.toml", configuration)]
    for results, ending in ((panel.results, ""), (panel.varied, VARIED)):
        path = _in(out / RESULTS, f"{name}{ending}.parquet")
        if results.rows:
            results.to_parquet(path)
            written.append(path)
        else:
            remove_file(path)  # of an earlier sweep, which had some
    for ending, drawn in (("", drawings.main), (VARIED, drawings.sensitivity)):
        path, names = out / FIGURES / f"{name}{ending}", algorithms_of(panel.results)
        if not drawn:
            remove_file(path.with_name(f"{path.name}.svg"))
            remove_file(path.with_name(f"{path.name}.png"))
        else:
            written += _write_sheet(drawn, path, names=names, title=panel.name)
    return written


def _write_frontier(outcome: Outcome, *, drawings: Mapping[str, Drawings], out: Path, title: str) -> list[Path]:
    """Regret against bytes of all problems on one sheet, where our own algorithm ran."""
    panels = [panel for panel in outcome.panels if standing(panel) is not None]
    drawn = [each for panel in panels if (each := drawings[panel.spec.name].bytes) is not None]
    names = list(dict.fromkeys(name for panel in panels for name in algorithms_of(panel.results)))
    said = f"Regret against bytes: {title}"
    return _write_sheet(drawn, out / FIGURES / "frontier", names=names, title=said) if drawn else []


def _write_sheet(drawn: Sequence[Drawn], path: Path, *, names: Sequence[str], title: str) -> list[Path]:
    rows = [[each.chart for each in drawn[start : start + A_ROW]] for start in range(0, len(drawn), A_ROW)]
    sheet = charts.sheet(rows, names=names, title=title)
    png = _in(path.parent, f"{path.name}.png")
    replace_file(png, lambda beside: beside.write_bytes(charts.to_png(sheet)))
    return [_write_text(path.parent / f"{path.name}.svg", sheet), png]


def _write_text(path: Path, text: str) -> Path:
    _in(path.parent, path.name)
    replace_file(path, lambda beside: beside.write_text(text, encoding="utf-8"))
    return path


def _in(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
