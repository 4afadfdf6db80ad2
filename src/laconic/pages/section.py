"""The report's section of one experiment: verdicts, charts, tables and sensitivity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from laconic.experiments.conduct import Panel
from laconic.experiments.naming import TUNED, portable, setting, symbol, tuned_over, value
from laconic.experiments.results import Group
from laconic.experiments.sensitivity import LEFT_OUT
from laconic.experiments.tuning import HeldOut, best_of, held_out
from laconic.pages.drawing import Drawings, Drawn, algorithms_of
from laconic.papers.claims import SIGNS, Finding
from laconic.papers.evidence import Aside, set_aside
from laconic.report import charts
from laconic.report.looks import SHAPES, Look
from laconic.report.markup import Markup, folded, table, tag
from laconic.report.page import chart
from laconic.report.table import NOTHING, amount, count, number, spread

MOST_PLACES = 6  # settings at which a claim holds, beyond which they are only counted
MARKS = {**SIGNS, "not tested": "–", "not judged": "○"}
SENT = ("scalars", "bytes", "messages", "syncs", "dictionary", "s per run")


def section(panel: Panel, *, judged: Sequence[Finding], drawn: Drawings) -> Markup:
    """All that is said of one experiment."""
    results = panel.results
    figure = f"{panel.spec.file.figure} · " if panel.spec.file.figure else ""
    notes = map(portable, getattr(panel.experiment.problem, "notes", ()))
    return tag(
        "section",
        tag("h2", f"{figure}{panel.name}"),
        tag("p", " ".join(f"{each}." for each in (results.title(), *_called(panel), *notes)), class_="sub"),
        *((_claims(judged), *_set_aside(panel)) if judged else ()),
        legend(algorithms_of(results)),
        _charts(drawn.main, class_="charts main"),
        tag("h3", "Each algorithm at its tuned setting"),
        *_tuned(panel),
        _all_settings(panel),
        *_sensitivity(panel, drawn.sensitivity),
        id=panel.spec.name,
    )


def _called(panel: Panel) -> Iterator[str]:
    """What the file calls the experiment, where that is another name: said here, and used nowhere else."""
    if panel.spec.title != panel.name:
        yield f"{'The paper' if panel.spec.file.paper else 'The file'} calls it {panel.spec.title}"


def _charts(drawn: Sequence[Drawn], *, class_: str) -> Markup:
    return tag("div", *(chart(each.chart, label=each.label, note=each.note) for each in drawn), class_=class_)


def _claims(judged: Sequence[Finding]) -> Markup:
    return tag("ul", *map(_claim, judged), class_="claims")


def _claim(finding: Finding) -> Markup:
    details = []
    if finding.held_out not in ("not tested", finding.verdict):
        details.append(f"With γ and α chosen on other seeds: {finding.held_out}.")
    if finding.verdict in ("fails", "too close to tell"):
        details.append(_places(finding.holds_at))
    if finding.verdict == "not judged":
        details.append("A rehearsal judges nothing.")
    return tag(
        "li",
        tag("b", finding.claim.key),
        chip(finding),
        tag("p", finding.numbers),
        *(tag("p", " ".join(details), class_="detail"),) * bool(details),
    )


def _places(holds_at: Sequence[str]) -> str:
    if not holds_at:
        return "It holds at no other setting tried."
    shown, more = holds_at[:MOST_PLACES], len(holds_at) - MOST_PLACES
    listed = f"{'; '.join(shown)}{f'; and {more} more' if more > 0 else ''}"
    return f"Looked for afterwards, it holds at: {listed}."


def _set_aside(panel: Panel) -> Iterator[Markup]:
    """Which settings are no evidence, and why."""
    aside = [] if panel.spec.file.rehearsal else set_aside(panel)
    if not aside:
        return
    reasons = dict.fromkeys(each.why for each in aside)
    counted = ", ".join(f"{sum(each.why == why for each in aside)} {why}" for why in reasons)
    rows = [(each.group.algorithm, _told(each), each.why) for each in aside]
    listed = table(("algorithm", "setting", "why"), rows, class_="short")
    yield folded(f"Set aside, as no evidence: {counted}", listed)


def _told(aside: Aside) -> str:
    chosen = setting(aside.group.params) or NOTHING
    return f"{chosen} (its smallest regret)" if aside.tuned else chosen


def legend(names: Sequence[str]) -> Markup:
    """How each algorithm's lines and points look."""
    return tag("ul", *(_entry(*each) for each in charts.legend(names)), class_="legend")


def _entry(name: str, look: Look) -> Markup:
    line = Markup(
        f'<svg width="34" height="12" viewBox="0 -6 34 12" aria-hidden="true"><path d="M0,0H34" stroke="{look.colour}" '
        f'stroke-width="2.4" stroke-dasharray="{" ".join(map(str, look.dash))}"/><path d="{SHAPES[look.shape]}" '
        f'fill="{look.colour}" transform="translate(17) scale(4.6)"/></svg>'
    )
    return tag("li", line, name)


def _tuned(panel: Panel) -> Iterator[Markup]:
    names = tuned_over(panel.results)
    honest = held_out(panel.results)
    headers = ("algorithm", *map(symbol, names), "regret", *(["regret, held out"] if honest else []), *SENT)
    yield table(headers, [_row(group, names, honest) for group in panel.results.tuned("regret").groups])
    if honest is not None:
        chosen, reported = (_seeds(seeds) for seeds in (honest.chosen_on, honest.reported_on))
        text = f"“Regret, held out”: settings chosen on {chosen} alone, regret on {reported}."
        yield tag("p", text, class_="sub")


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {' and '.join(map(str, seeds))}"


def _row(group: Group, names: Sequence[str], honest: HeldOut | None) -> tuple[str, ...]:
    return (
        group.algorithm,
        *(value(group.params, name) for name in names),
        spread(group.mean("regret"), group.sd("regret")),
        *([_elsewhere(group.algorithm, honest)] if honest else []),
        *_sent(group),
        number(group.mean("seconds")),
    )


def _elsewhere(algorithm: str, honest: HeldOut) -> str:
    """The regret on the seeds that had no say in the setting."""
    group = best_of(honest.results).get(algorithm)
    return NOTHING if group is None else spread(group.mean("regret"), group.sd("regret"))


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
    names = tuned_over(panel.results)
    rows = [
        (
            group.algorithm,
            setting(group.params, names=names or TUNED) or NOTHING,
            spread(group.mean("regret"), group.sd("regret")),
            _plus_minus(group, "scalars"),
            count(group.mean("syncs")),
            count(group.mean("dictionary")),
            number(group.mean("seconds")),
        )
        for group in panel.results.groups
    ]
    headers = ("algorithm", "setting", "regret", "scalars", "syncs", "dictionary", "s per run")
    return folded(f"All {len(rows)} settings", table(headers, rows))


def _sensitivity(panel: Panel, drawn: Sequence[Drawn]) -> Iterator[Markup]:
    if not panel.study.variations and not panel.study.left_out:
        return
    yield tag("h3", f"Sensitivity to {', '.join(_varied_names(panel))}")
    how = "One parameter at a time, around each algorithm's tuned setting, which the large points show."
    yield tag("p", how, class_="sub")
    yield legend(list(dict.fromkeys(each.name for each, _ in panel.variations())))
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
    yield folded("Numbers of the sensitivity study", table(headers, rows))
    if panel.study.left_out:
        left_out = "; ".join(
            f"{each.name} with {symbol(each.parameter)}={each.value:g}" for each in panel.study.left_out
        )
        yield tag("p", f"Left out: {left_out}, as {LEFT_OUT}.", class_="sub")


def _varied_names(panel: Panel) -> list[str]:
    return list(dict.fromkeys(symbol(each.parameter) for each in panel.study.variations))


def chip(finding: Finding) -> Markup:
    """A verdict as coloured words with a sign."""
    class_ = f"chip {finding.verdict.replace(' ', '-')}"
    return tag("span", f"{MARKS[finding.verdict]} {finding.verdict}", class_=class_, title=finding.numbers)
