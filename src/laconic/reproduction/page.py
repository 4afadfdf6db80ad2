"""The report: one page with figures, tables, verdicts and configuration, made of what a sweep has left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from laconic.experiments.results import Group
from laconic.experiments.sensitivity import LEFT_OUT
from laconic.experiments.tuning import HeldOut, best_of, held_out
from laconic.report import charts
from laconic.report.markup import Markup, join, table, tag
from laconic.report.page import chart, document
from laconic.report.table import NOTHING, amount, count, number, spread
from laconic.reproduction import machine
from laconic.reproduction.claims import CLAIMS, Finding, findings, untested
from laconic.reproduction.conduct import Outcome, Panel
from laconic.reproduction.drawing import Drawings, Drawn, algorithms_of
from laconic.reproduction.naming import TUNED, duration, setting, symbol, value

MOST_PLACES = 6  # settings at which a claim holds, beyond which they are only counted
MARKS = {"reproduced": "✓", "not reproduced": "✗", "not tested": "–"}
TABLE = (
    *("algorithm", "γ", "α", "regret", "regret, held out", "scalars", "bytes", "messages", "syncs", "dictionary"),
    "s per run",
)


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
                _panel(each, judged=judged.get(each.spec.name, []), drawn=drawings[each.spec.name])
                for each in outcome.panels
            ),
            _times(outcome.panels),
            _setup(outcome, subject, configurations),
        ),
        tag("footer", "Made by laconic. This page needs no network; tables and figures lie beside it as files."),
        title=subject.title,
    )


def _header(outcome: Outcome, subject: Subject) -> Markup:
    runs = sum(len(panel.results.rows) + len(panel.varied.rows) for panel in outcome.panels)
    facts = [
        subject.profile,
        *dict.fromkeys(f"N = {each.results.clients}, T = {each.results.rounds}" for each in outcome.panels),
        f"{len(outcome.panels)} of {len(outcome.panels) + len(outcome.absent)} problems",
        f"{runs:,} runs",
        date.today().isoformat(),
    ]
    return tag(
        "header",
        tag(
            "div",
            tag("p", "Reproduction report", class_="kicker"),
            tag("h1", subject.title),
            tag("p", subject.about),
            tag("ul", *(tag("li", fact) for fact in facts if fact), class_="facts"),
        ),
    )


def _navigation(outcome: Outcome, subject: Subject) -> Markup:
    places = [("summary", "Verdicts" if subject.with_claims else "Summary")]
    places += [(panel.spec.name, panel.results.problem) for panel in outcome.panels]
    places += [("time", "Time"), ("setup", "Set-up")]
    return tag("nav", tag("div", *(tag("a", text, href=f"#{place}") for place, text in places)))


def _summary(outcome: Outcome, subject: Subject, judged: Mapping[str, Sequence[Finding]]) -> Markup:
    return tag(
        "section",
        tag("h2", "What holds" if subject.with_claims else "Summary"),
        _not_run(outcome),
        *((_matrix(outcome, judged), _criteria()) if subject.with_claims else ()),
        tag("h3", "Regret of the tuned algorithms"),
        tag("p", "Mean ± standard deviation over seeds, each algorithm at its best γ and α.", class_="sub"),
        _regrets(outcome.panels),
        id="summary",
    )


def _not_run(outcome: Outcome) -> Markup:
    """What is missing, and how to get it."""
    notes = []
    if outcome.absent:
        listed = tag(
            "ul", *(tag("li", tag("b", each.spec.title), " – ", tag("code", each.why)) for each in outcome.absent)
        )
        notes.append(tag("div", tag("p", "Not run, as their data is not on this machine:"), listed, class_="note"))
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
        (tag("a", panel.spec.title, href=f"#{panel.spec.name}"), *map(_cell, judged[panel.spec.name]))
        for panel in outcome.panels
    ]
    rows += [(tag("span", each.spec.title), *map(_cell, untested(each.why))) for each in outcome.absent]
    return table(["problem", *(claim.key for claim in CLAIMS)], rows, class_="matrix")


def _cell(finding: Finding) -> Markup:
    other = ""
    if finding.held_out not in ("not tested", finding.verdict):
        other = tag("span", f"held-out seeds: {finding.held_out}", class_="small")
    return join([_chip(finding), other])


def _chip(finding: Finding) -> Markup:
    word = tag("span", f" {finding.verdict}", class_="word")
    return tag(
        "span", MARKS[finding.verdict], word, class_=f"chip {finding.verdict.replace(' ', '-')}", title=finding.numbers
    )


def _criteria() -> Markup:
    """The claims and when they count as reproduced, stated before any number."""
    listed = [
        tag(
            "li",
            tag("p", tag("b", claim.key), f" {claim.text}"),
            tag("p", f"Reproduced when: {claim.criterion}", class_="how"),
        )
        for claim in CLAIMS
    ]
    how = (
        "Each claim is judged problem by problem on means over seeds, every algorithm at the γ and α with its smallest "
        "mean regret, as in the paper. “Held-out seeds” is the same verdict with γ and α chosen on the first half of "
        "the seeds and judged on the other; it is shown where it differs."
    )
    return join(
        [tag("h3", "What is claimed, and how it is judged"), tag("p", how), tag("ul", *listed, class_="criteria")]
    )


def _regrets(panels: Sequence[Panel]) -> Markup:
    names = list(dict.fromkeys(name for panel in panels for name in algorithms_of(panel.results)))
    rows = []
    for panel in panels:
        best = best_of(panel.results)
        least = min((group.mean("regret") or 0.0 for group in best.values()), default=0.0)
        cells = [_regret_cell(best.get(name), least=least) for name in names]
        rows.append((tag("a", panel.results.problem, href=f"#{panel.spec.name}"), *cells))
    return table(["problem", *names], rows)


def _regret_cell(group: Group | None, *, least: float) -> str:
    if group is None:
        return NOTHING
    text = spread(group.mean("regret"), group.sd("regret"))
    return tag("b", text) if group.mean("regret") == least else text


def _panel(panel: Panel, *, judged: Sequence[Finding], drawn: Drawings) -> Markup:
    results = panel.results
    figure = f"{panel.spec.file.figure} · " if panel.spec.file.figure else ""
    notes = getattr(panel.experiment.problem, "notes", ())
    return tag(
        "section",
        tag("h2", f"{figure}{panel.spec.title}"),
        tag("p", f"{results.title()}. {'. '.join(notes)}{'.' if notes else ''}", class_="sub"),
        *((_claims(judged),) if judged else ()),
        _legend(algorithms_of(results)),
        _charts(drawn.main, class_="charts main"),
        tag("h3", "Each algorithm at its tuned setting"),
        *_tuned(panel),
        _all_settings(panel),
        *_sensitivity(panel, drawn.sensitivity),
        id=panel.spec.name,
    )


def _charts(drawn: Sequence[Drawn], *, class_: str) -> Markup:
    return tag("div", *(chart(each.chart, label=each.label) for each in drawn), class_=class_)


def _claims(judged: Sequence[Finding]) -> Markup:
    return tag("ul", *map(_claim, judged), class_="claims")


def _claim(finding: Finding) -> Markup:
    details = []
    if finding.held_out not in ("not tested", finding.verdict):
        details.append(f"With γ and α chosen on other seeds: {finding.held_out}.")
    if finding.verdict == "not reproduced":
        details.append(_places(finding.holds_at))
    return tag(
        "li",
        tag("b", finding.claim.key),
        _chip(finding),
        tag("p", finding.numbers),
        *(tag("p", " ".join(details), class_="detail"),) * bool(details),
    )


def _places(holds_at: Sequence[str]) -> str:
    if not holds_at:
        return "It holds at none of the settings tried."
    shown, more = holds_at[:MOST_PLACES], len(holds_at) - MOST_PLACES
    return f"It holds at: {'; '.join(shown)}{f'; and {more} more' if more > 0 else ''}."


def _legend(names: Sequence[str]) -> Markup:
    return tag("ul", *(_entry(*each) for each in charts.legend(names)), class_="legend")


def _entry(name: str, colour: str, dashes: Sequence[int]) -> Markup:
    line = Markup(
        f'<svg width="30" height="8" aria-hidden="true"><line x1="0" y1="4" x2="30" y2="4" stroke="{colour}" '
        f'stroke-width="2.6" stroke-dasharray="{" ".join(map(str, dashes))}"/></svg>'
    )
    return tag("li", line, name)


def _tuned(panel: Panel) -> Iterator[Markup]:
    honest = held_out(panel.results)
    rows = [_row(group, honest) for group in panel.results.tuned("regret").groups]
    yield table(TABLE, rows)
    if honest is not None:
        chosen, reported = (_seeds(seeds) for seeds in (honest.chosen_on, honest.reported_on))
        yield tag(
            "p",
            f"“Regret, held out”: γ and α chosen on {chosen} alone, regret on {reported}.",
            class_="sub",
        )


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {' and '.join(map(str, seeds))}"


def _row(group: Group, honest: HeldOut | None) -> tuple[str, ...]:
    other = None if honest is None else best_of(honest.results).get(group.algorithm)
    return (
        group.algorithm,
        *(value(group.params, name) for name in TUNED),
        spread(group.mean("regret"), group.sd("regret")),
        NOTHING if other is None else spread(other.mean("regret"), other.sd("regret")),
        *_sent(group),
        number(group.mean("seconds")),
    )


def _sent(group: Group) -> tuple[str, ...]:
    return (
        _plus_minus(group, "scalars"),
        amount(group.mean("bytes"), unit="B"),
        count(group.mean("messages")),
        _plus_minus(group, "syncs"),
        _plus_minus(group, "dictionary"),
    )


def _plus_minus(group: Group, metric: str) -> str:
    mean, sd = group.mean(metric), group.sd(metric)
    return amount(mean) if not sd else f"{amount(mean)} ± {amount(sd)}"


def _all_settings(panel: Panel) -> Markup:
    rows = [
        (
            group.algorithm,
            setting(group.params, names=TUNED) or NOTHING,
            spread(group.mean("regret"), group.sd("regret")),
            _plus_minus(group, "scalars"),
            count(group.mean("syncs")),
            count(group.mean("dictionary")),
            number(group.mean("seconds")),
        )
        for group in panel.results.groups
    ]
    headers = ("algorithm", "setting", "regret", "scalars", "syncs", "dictionary", "s per run")
    return _folded(f"All {len(rows)} settings", table(headers, rows))


def _sensitivity(panel: Panel, drawn: Sequence[Drawn]) -> Iterator[Markup]:
    if not panel.study.variations and not panel.study.left_out:
        return
    yield tag("h3", f"Sensitivity to {', '.join(_varied_names(panel))}")
    how = "One parameter at a time, around each algorithm's tuned γ and α; large points are the tuned settings."
    yield tag("p", how, class_="sub")
    yield _legend(list(dict.fromkeys(each.name for each, _ in panel.variations())))
    yield _charts(drawn, class_="charts")
    rows = [
        (
            f"{symbol(each.parameter)} = {each.value:g}",
            each.name,
            setting(group.params, names=TUNED),
            spread(group.mean("regret"), group.sd("regret")),
            _plus_minus(group, "scalars"),
            count(group.mean("syncs")),
            count(group.mean("dictionary")),
        )
        for each, group in panel.variations()
    ]
    headers = ("changed", "algorithm", "at", "regret", "scalars", "syncs", "dictionary")
    yield _folded("Numbers of the sensitivity study", table(headers, rows))
    if panel.study.left_out:
        left_out = "; ".join(
            f"{each.name} with {symbol(each.parameter)}={each.value:g}" for each in panel.study.left_out
        )
        yield tag("p", f"Left out: {left_out}, as {LEFT_OUT}.", class_="sub")


def _varied_names(panel: Panel) -> list[str]:
    return list(dict.fromkeys(symbol(each.parameter) for each in panel.study.variations))


def _times(panels: Sequence[Panel]) -> Markup:
    names = list(dict.fromkeys(name for panel in panels for name in algorithms_of(panel.results)))
    rows = []
    for panel in panels:
        taken = {name: [row.seconds for row in panel.results.rows if row.algorithm == name] for name in names}
        means = [number(sum(each) / len(each)) if each else NOTHING for each in taken.values()]
        total = sum(row.seconds for row in (*panel.results.rows, *panel.varied.rows))
        rows.append((panel.results.problem, *means, duration(total)))
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


def _setup(outcome: Outcome, subject: Subject, configurations: Mapping[str, str]) -> Markup:
    folded = [
        _folded(f"{panel.spec.title} – id {panel.id}", tag("pre", configurations[panel.spec.name]))
        for panel in outcome.panels
    ]
    return tag(
        "section",
        tag("h2", "Set-up"),
        tag("p", "The same page again, from the runs that are kept or anew: ", tag("code", subject.command)),
        tag("h3", "Machine and versions"),
        tag("p", machine.hardware(), class_="sub"),
        table(["package", "version"], list(machine.versions().items()), class_="short"),
        tag("h3", "Exact configuration"),
        tag("p", "Every parameter spelled out. The id is a hash of this content and of the data's."),
        *folded,
        id="setup",
    )


def _folded(summary: str, content: Markup) -> Markup:
    return tag("details", tag("summary", summary), content, class_="more")
