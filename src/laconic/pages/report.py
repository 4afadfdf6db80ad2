"""The report: one page with figures, tables, verdicts and configuration, made of what a sweep has left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from laconic.experiments.conduct import Outcome, Panel
from laconic.experiments.naming import duration, portable
from laconic.experiments.paired import TEST
from laconic.experiments.results import Group
from laconic.experiments.tuning import best_of
from laconic.pages.drawing import Drawings, algorithms_of
from laconic.pages.placing import HOW, standing
from laconic.pages.section import chip, legend, section
from laconic.pages.setup import setup
from laconic.papers.claims import CLAIMS, Finding, findings, untested
from laconic.papers.evidence import RULE, is_rehearsal
from laconic.report.explained import frontier_explained
from laconic.report.markup import Markup, join, table, tag
from laconic.report.page import chart, document
from laconic.report.table import NOTHING, amount, number, spread


@dataclass(frozen=True)
class Subject:
    """What a report is about."""

    title: str
    about: str  # a line below the title
    profile: str
    command: str  # what makes it again
    with_claims: bool


def page(
    outcome: Outcome,
    *,
    subject: Subject,
    configurations: Mapping[str, str],
    drawings: Mapping[str, Drawings],
) -> str:
    """The whole report as HTML; of each panel there are, by name, the exact experiment file and the charts."""
    judged = {panel.spec.name: findings(panel) for panel in outcome.panels} if subject.with_claims else {}
    return document(
        _header(outcome, subject),
        _navigation(outcome, subject),
        tag(
            "main",
            _summary(outcome, subject, judged),
            *(
                section(each, judged=judged.get(each.spec.name, []), drawn=drawings[each.spec.name])
                for each in outcome.panels
            ),
            *_frontier(outcome.panels, drawings),
            _times(outcome.panels),
            setup(outcome.panels, command=subject.command, configurations=configurations),
        ),
        tag("footer", "Made by laconic. This page needs no network; tables and figures lie beside it as files."),
        title=subject.title,
    )


def _header(outcome: Outcome, subject: Subject) -> Markup:
    runs = sum(len(panel.results.rows) + len(panel.varied.rows) for panel in outcome.panels)
    facts = [
        subject.profile,
        *(f"settings that did best at {each}" for each in outcome.tuned_at),
        *dict.fromkeys(f"N = {each.results.clients}, T = {each.results.rounds}" for each in outcome.panels),
        f"{len(outcome.panels)} of {len(outcome.panels) + len(outcome.absent)} problems",
        f"{runs:,} runs",
        date.today().isoformat(),
    ]
    return tag(
        "header",
        tag(
            "div",
            tag("p", _kind(outcome, subject), class_="kicker"),
            tag("h1", subject.title),
            tag("p", portable(subject.about)),
            tag("ul", *(tag("li", fact) for fact in facts if fact), class_="facts"),
        ),
    )


def _kind(outcome: Outcome, subject: Subject) -> str:
    kind = f"{'Reproduction' if subject.with_claims else 'Experiment'} report"
    return f"{kind} · a rehearsal, which judges nothing" if is_rehearsal(outcome) else kind


def _navigation(outcome: Outcome, subject: Subject) -> Markup:
    places = [("summary", "Verdicts" if subject.with_claims and not is_rehearsal(outcome) else "Summary")]
    places += [(panel.spec.name, panel.name) for panel in outcome.panels]
    places += [("frontier", "Bytes")] if any(map(standing, outcome.panels)) else []
    places += [("time", "Time"), ("setup", "Set-up")]
    return tag("nav", tag("div", *(tag("a", text, href=f"#{place}") for place, text in places)))


def _summary(outcome: Outcome, subject: Subject, judged: Mapping[str, Sequence[Finding]]) -> Markup:
    return tag(
        "section",
        tag("h2", "Summary" if is_rehearsal(outcome) or not subject.with_claims else "What holds"),
        _rehearsal(outcome),
        _not_run(outcome),
        *((_matrix(outcome, judged), _criteria(outcome)) if subject.with_claims else ()),
        tag("h3", "Regret of the tuned algorithms"),
        tag("p", f"Mean ± standard deviation over seeds, each algorithm at {_which(outcome)}.", class_="sub"),
        _regrets(outcome.panels),
        tag("h3", "Bytes sent at these settings"),
        tag("p", "Of all encoded messages, up and down; means over seeds.", class_="sub"),
        _bytes(outcome.panels),
        id="summary",
    )


def _which(outcome: Outcome) -> str:
    sizes = "; ".join(outcome.tuned_at)
    return f"the setting that did best at {sizes}" if sizes else "its best setting"


def _not_run(outcome: Outcome) -> Markup:
    """What is missing, and how to get it."""
    notes = []
    if outcome.absent:
        listed = tag("ul", *(tag("li", tag("b", each.name), " – ", tag("code", each.why)) for each in outcome.absent))
        notes.append(tag("div", tag("p", "Not run:"), listed, class_="note"))
    if outcome.failures:
        failed = [
            f"{each.task.algorithm['name']} on {each.task.problem['name']}: {each.why}" for each in outcome.failures
        ]
        listed = tag("ul", *(tag("li", text) for text in dict.fromkeys(failed)))
        notes.append(tag("div", tag("p", f"{len(outcome.failures)} runs failed:"), listed, class_="note"))
    return join(notes)


def _matrix(outcome: Outcome, judged: Mapping[str, Sequence[Finding]]) -> Markup:
    """Problems × claims, each cell with its verdict."""
    rows = [
        (tag("a", panel.name, href=f"#{panel.spec.name}"), *map(_cell, judged[panel.spec.name]))
        for panel in outcome.panels
    ]
    rows += [(tag("span", each.name), *map(_cell, untested(each.why))) for each in outcome.absent]
    return table(["problem", *(claim.key for claim in CLAIMS)], rows, class_="matrix")


def _cell(finding: Finding) -> Markup:
    said = "a rehearsal" if finding.verdict == "not judged" else ""
    if {finding.held_out, finding.verdict} == {"holds", "fails"}:
        said = f"held-out seeds: {finding.held_out}"
    return tag("div", chip(finding), *(tag("span", said, class_="small"),) * bool(said))


def _criteria(outcome: Outcome) -> Markup:
    """The claims and when they hold, stated before any number."""
    listed = [
        tag(
            "li",
            tag("p", tag("b", claim.key), f" {claim.text}"),
            tag("p", f"Holds when: {claim.criterion}", class_="how"),
        )
        for claim in CLAIMS
    ]
    elsewhere = outcome.tuned_at
    how = (
        "Each claim is judged problem by problem, every algorithm at the γ and α with its smallest mean regret, as in "
        "the paper. “Held-out seeds” is the same verdict with γ and α chosen on the first half of the seeds and judged "
        "on the other; it is shown where it is the opposite."
        if not elsewhere
        else "Each claim is judged problem by problem, every algorithm at the γ and α that had its smallest mean "
        f"regret at other sizes ({'; '.join(elsewhere)}), where the paper chooses them at its own."
    )
    whose = "how it is judged" + (" where it is no rehearsal" if is_rehearsal(outcome) else "")
    heading = tag("h3", f"What is claimed, and {whose}")
    return join(
        [
            heading,
            *(tag("p", text) for text in (how, TEST, f"{RULE} Each section lists them.")),
            tag("ul", *listed, class_="criteria"),
        ]
    )


def _rehearsal(outcome: Outcome) -> Markup:
    """What a reader has to know before any number where nothing is judged."""
    if not is_rehearsal(outcome):
        return Markup()
    said = "This is a rehearsal and judges nothing: "
    why = "its sizes, seeds and grids are too small for any of the claims. It shows that all runs, and what comes out."
    return tag("div", tag("p", tag("b", said), why), class_="note", role="note")


def _regrets(panels: Sequence[Panel]) -> Markup:
    names = _names(panels)
    rows = []
    for panel in panels:
        best = best_of(panel.results)
        least = min((group.mean("regret") or 0.0 for group in best.values()), default=0.0)
        cells = [_regret_cell(best.get(name), least=least) for name in names]
        rows.append((tag("a", panel.name, href=f"#{panel.spec.name}"), *cells))
    return table(["problem", *names], rows)


def _regret_cell(group: Group | None, *, least: float) -> str:
    if group is None:
        return NOTHING
    text = spread(group.mean("regret"), group.sd("regret"))
    return tag("b", text) if group.mean("regret") == least else text


def _bytes(panels: Sequence[Panel]) -> Markup:
    names = _names(panels)
    rows = []
    for panel in panels:
        best = best_of(panel.results)
        cells = [amount(best[name].mean("bytes"), unit="B") if name in best else NOTHING for name in names]
        rows.append((tag("a", panel.name, href=f"#{panel.spec.name}"), *cells))
    return table(["problem", *names], rows)


def _frontier(panels: Sequence[Panel], drawings: Mapping[str, Drawings]) -> Iterator[Markup]:
    """Regret against bytes, where our own algorithm ran beside those of the paper."""
    found = [(panel, each) for panel in panels if (each := standing(panel)) is not None]
    if not found:
        return
    said = [(tag("a", panel.name, href=f"#{panel.spec.name}"), each.text) for panel, each in found]
    drawn = [one for panel, _ in found if (one := drawings[panel.spec.name].bytes) is not None]
    yield tag(
        "section",
        tag("h2", "Regret against bytes"),
        tag("p", HOW, class_="sub"),
        tag("ul", *(tag("li", tag("b", link), ": ", text) for link, text in said)),
        legend(_names(panels)),
        tag("div", *(chart(each.chart, label=each.label) for each in drawn), class_="charts"),
        tag("p", frontier_explained(tuned=True), class_="sub"),
        id="frontier",
    )


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in algorithms_of(panel.results)))


def _times(panels: Sequence[Panel]) -> Markup:
    names = _names(panels)
    rows = []
    for panel in panels:
        taken = {name: [row.seconds for row in panel.results.rows if row.algorithm == name] for name in names}
        means = [number(sum(each) / len(each)) if each else NOTHING for each in taken.values()]
        total = sum(row.seconds for row in (*panel.results.rows, *panel.varied.rows))
        rows.append((panel.name, *means, duration(total)))
    return tag(
        "section",
        tag("h2", "Time per run"),
        tag(
            "p",
            "Mean seconds of a run on one core, over all settings of the grid; the last column sums all runs.",
            class_="sub",
        ),
        table(["problem", *names, "all runs"], rows),
        id="time",
    )
