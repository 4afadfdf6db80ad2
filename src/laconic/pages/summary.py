"""The report's main numbers as Markdown, for those who quote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from laconic.experiments.conduct import Outcome, Panel
from laconic.experiments.naming import TUNED, setting
from laconic.experiments.paired import TEST
from laconic.experiments.results import Group
from laconic.experiments.tuning import best_of, held_out
from laconic.pages.drawing import algorithms_of
from laconic.pages.placing import HOW, standing
from laconic.papers.claims import CLAIMS, Finding, findings, untested
from laconic.papers.evidence import RULE, is_rehearsal, set_aside
from laconic.report.table import NOTHING, amount, number, spread


def summary(outcome: Outcome, *, with_claims: bool) -> str:
    """Verdicts, regret, communication and time, problem by problem."""
    parts = [
        *(
            f"**Each algorithm at the setting that did best at {sizes}.** No grid was run."
            for sizes in outcome.tuned_at
        ),
        *(_verdicts(outcome) if with_claims else ()),
        _by_algorithm(outcome.panels, "Regret, tuned: mean ± sd over seeds (γ, α)", _regret),
        _by_algorithm(outcome.panels, "Scalars sent at the tuned setting", lambda group: amount(group.mean("scalars"))),
        _by_algorithm(
            outcome.panels, "Bytes sent at the tuned setting", lambda group: amount(group.mean("bytes"), unit="B")
        ),
        *_standings(outcome.panels),
        *_honest(outcome.panels),
        _by_algorithm(
            outcome.panels, "Seconds of a run at the tuned setting", lambda group: number(group.mean("seconds"))
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _standings(panels: Sequence[Panel]) -> list[str]:
    found = [each for panel in panels if (each := standing(panel)) is not None]
    lines = [f"- {each.problem}: {each.text}" for each in found]
    return [f"Regret against bytes. {HOW}", "\n".join(lines)] if lines else []


def _verdicts(outcome: Outcome) -> list[str]:
    found = [(panel.name, findings(panel)) for panel in outcome.panels]
    found += [(each.name, untested(each.why)) for each in outcome.absent]
    rows = [(problem, *(each.verdict for each in judged)) for problem, judged in found]
    details = [
        f"- {problem}, {each.claim.key}: {each.verdict}. {each.numbers}.{_where(each)}"
        for problem, judged in found
        for each in judged
        if each.verdict != "not tested"
    ]
    criteria = [f"- **{claim.key}** {claim.text} *Holds when:* {claim.criterion}" for claim in CLAIMS]
    return [
        *_rehearsal(outcome),
        "\n".join(criteria),
        f"{TEST} {RULE}",
        _table(["problem", *(claim.key for claim in CLAIMS)], rows),
        "\n".join(details),
        *([] if is_rehearsal(outcome) else _set_aside(outcome.panels)),
    ]


def _set_aside(panels: Sequence[Panel]) -> list[str]:
    """One line for each problem and reason with the settings that are no evidence."""
    lines = []
    for panel in panels:
        reasons: dict[str, list[str]] = {}
        for each in set_aside(panel):
            reasons.setdefault(each.why, []).append(f"{each.group.algorithm} {setting(each.group.params)}".rstrip())
        lines += [f"- {panel.name}, {why}: {'; '.join(settings)}" for why, settings in reasons.items()]
    return ["Set aside, as no evidence:", "\n".join(lines)] if lines else []


def _rehearsal(outcome: Outcome) -> list[str]:
    return ["**A rehearsal: it judges nothing.**"] if is_rehearsal(outcome) else []


def _where(finding: Finding) -> str:
    if finding.verdict in ("holds", "not judged"):
        return ""
    return f" Holds at: {'; '.join(finding.holds_at)}." if finding.holds_at else " Holds at no other setting tried."


def _regret(group: Group) -> str:
    chosen = setting(group.params, names=TUNED)
    return spread(group.mean("regret"), group.sd("regret")) + (f" ({chosen})" if chosen else "")


def _honest(panels: Sequence[Panel]) -> list[str]:
    """Regret on seeds that had no say in the settings, of problems on which there was something to choose."""
    rows = []
    names = _names(panels)
    for panel in panels:
        honest = held_out(panel.results)
        if honest is not None:
            best = best_of(honest.results)
            rows.append((panel.name, *(_regret(best[name]) if name in best else NOTHING for name in names)))
    title = "Regret on held-out seeds (γ, α chosen on the others)"
    return [f"{title}\n\n{_table(['problem', *names], rows)}"] if rows else []


def _by_algorithm(panels: Sequence[Panel], title: str, cell: Callable[[Group], str]) -> str:
    names = _names(panels)
    best = [(panel.name, best_of(panel.results)) for panel in panels]
    rows = [(problem, *(cell(each[name]) if name in each else NOTHING for name in names)) for problem, each in best]
    return f"{title}\n\n{_table(['problem', *names], rows)}"


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in algorithms_of(panel.results)))


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
