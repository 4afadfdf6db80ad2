"""The claims of the paper's Experiments section, and the criteria by which the program judges them: `CLAIMS`.

Each is judged per problem by means over seeds, every algorithm at its tuned setting, and is *not tested* where the
problem or one of its algorithms did not run. Settings are tuned by regret, never by a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of, held_out
from laconic.experiments.verdict import ALWAYS, APPROX, EXACT, FRACTION, LINEAR, NEAR, NEVER
from laconic.report.table import amount, number, spread
from laconic.reproduction.conduct import Panel
from laconic.reproduction.naming import TUNED, setting, symbol

LITTLE = 0.1  # of DisKernelUCB's scalars: what counts as communicating little
NON_LINEAR = ("cosine", "mushroom", "movielens")  # where the paper has DisLinUCB worse than NKernelUCB
FIVE = (ALWAYS, EXACT, APPROX, NEVER, LINEAR)

Best = Mapping[str, Group]
Verdict = Literal["reproduced", "not reproduced", "not tested"]


@dataclass(frozen=True)
class Check:
    """Whether a claim holds for one choice of settings: each part of its criterion with the numbers that decide."""

    parts: tuple[tuple[str, bool], ...]

    @property
    def holds(self) -> bool:
        """Whether all parts do."""
        return all(fulfilled for _, fulfilled in self.parts)

    @property
    def numbers(self) -> str:
        """The parts in words; where there are several, with a sign for which of them hold."""
        if len(self.parts) == 1:
            return self.parts[0][0]
        return "; ".join(f"{'✓' if fulfilled else '✗'} {text}" for text, fulfilled in self.parts)


@dataclass(frozen=True)
class Claim:
    """What the paper says, when it counts as reproduced, and whose other settings are tried where it fails."""

    key: str
    text: str
    criterion: str
    check: Callable[[Best, str], Check]
    subject: str
    needs: tuple[str, ...] = FIVE


@dataclass(frozen=True)
class Finding:
    """A claim on one problem."""

    claim: Claim
    verdict: Verdict
    numbers: str
    held_out: Verdict = "not tested"
    holds_at: tuple[str, ...] = ()


def findings(panel: Panel) -> list[Finding]:
    """Every claim judged by the results of one problem."""
    return [_find(claim, panel) for claim in CLAIMS]


def untested(why: str) -> list[Finding]:
    """Every claim on a problem that did not run."""
    return [Finding(claim, "not tested", why) for claim in CLAIMS]


def _find(claim: Claim, panel: Panel) -> Finding:
    best = best_of(panel.results)
    absent = [name for name in claim.needs if name not in best]
    if absent:
        return Finding(claim, "not tested", f"no finished runs of {', '.join(absent)}")
    problem = panel.results.problem
    check = claim.check(best, problem)
    return Finding(
        claim,
        "reproduced" if check.holds else "not reproduced",
        check.numbers,
        held_out=_on_other_seeds(claim, panel),
        holds_at=() if check.holds else tuple(_where(claim, panel, best)),
    )


def _on_other_seeds(claim: Claim, panel: Panel) -> Verdict:
    """The verdict when settings are chosen on one half of the seeds and judged on the other."""
    honest = held_out(panel.results)
    best = {} if honest is None else best_of(honest.results)
    if any(name not in best for name in claim.needs):
        return "not tested"
    return "reproduced" if claim.check(best, panel.results.problem).holds else "not reproduced"


def _where(claim: Claim, panel: Panel, best: Best) -> Iterator[str]:
    """The settings tried at which the claim holds."""
    for said, settings in _alternatives(claim, panel, best):
        if claim.check(settings, panel.results.problem).holds:
            silent = [name for name in (EXACT, APPROX) if not _mean(settings[name], "syncs")]
            yield f"{said} (where {' and '.join(silent)} never synced)" if silent else said


def _alternatives(claim: Claim, panel: Panel, best: Best) -> Iterator[tuple[str, Best]]:
    """All at one setting; the claim's subject at another of its own; one parameter changed for all, or for it."""
    yield from _shared_settings(panel.results)
    for group in panel.results.groups:
        if group.algorithm == claim.subject and group.params != best[claim.subject].params:
            yield (
                f"{claim.subject} at {setting(group.params, names=TUNED)}, the others tuned",
                {**best, claim.subject: group},
            )
    varied = _varied(panel)
    for (parameter, value), groups in varied.items():
        name = f"{symbol(parameter)}={value:g}"
        if len(groups) > 1 and set(groups) >= {each for each in FIVE if parameter in best[each].params}:
            yield f"all with {name}, γ and α as tuned", {**best, **groups}
        elif claim.subject in groups:
            yield f"{claim.subject} with {name}, the others tuned", {**best, claim.subject: groups[claim.subject]}


def _shared_settings(results: Results) -> Iterator[tuple[str, Best]]:
    """Every algorithm at the same γ and α, as far as it has them."""
    tried = {key: dict.fromkeys(g.params[key] for g in results.groups if key in g.params) for key in TUNED}
    for gamma in tried["gamma"]:
        for alpha in tried["alpha"]:
            same = {"gamma": gamma, "alpha": alpha}
            groups = {g.algorithm: g for g in results.groups if all(g.params.get(k, v) == v for k, v in same.items())}
            if set(groups) >= set(FIVE):
                yield f"all at γ={gamma:g}, α={alpha:g}", groups


def _varied(panel: Panel) -> dict[tuple[str, float], dict[str, Group]]:
    """The groups of the sensitivity study by what was changed."""
    found: dict[tuple[str, float], dict[str, Group]] = {}
    for variation, group in panel.variations():
        found.setdefault((variation.parameter, variation.value), {})[variation.name] = group
    return found


def _c1(best: Best, problem: str) -> Check:
    rival = min((best[name] for name in FIVE if name != ALWAYS), key=lambda group: _mean(group, "regret"))
    behind = _mean(rival, "regret") - _mean(best[ALWAYS], "regret")
    apart = "as much" if behind == 0 else f"{number(abs(behind))} {'more' if behind > 0 else 'less'}"
    others = f"the smallest of the others {_regret(rival)}, {rival.algorithm}: {apart}"
    return Check(((f"regret of OneKernelUCB {_regret(best[ALWAYS])}; {others}", behind >= 0),))


def _c2(best: Best, problem: str) -> Check:
    least = min((best[ALWAYS], best[EXACT]), key=lambda group: _mean(group, "scalars"))
    most = max((best[name] for name in (APPROX, NEVER, LINEAR)), key=lambda group: _mean(group, "scalars"))
    sent = ", ".join(f"{name} {_sent(best[name])}" for name in (ALWAYS, EXACT))
    numbers = f"scalars of {sent}; the most of the others {_sent(most)}, {most.algorithm}"
    return Check(((numbers, _mean(least, "scalars") > _mean(most, "scalars")),))


def _c3(best: Best, problem: str) -> Check:
    linear, exact, rival = best[LINEAR], best[EXACT], best[NEVER if problem in NON_LINEAR else EXACT]
    little = _mean(linear, "scalars") <= LITTLE * _mean(exact, "scalars")
    sent = f"DisLinUCB sends {_sent(linear)} scalars, {_share(linear, exact)} of DisKernelUCB's"
    worse = _mean(linear, "regret") > _mean(rival, "regret")
    return Check(((sent, little), (f"regret {_regret(linear)} against {_regret(rival)} of {rival.algorithm}", worse)))


def _c4(best: Best, problem: str) -> Check:
    approx, exact = best[APPROX], best[EXACT]
    near = _mean(approx, "regret") <= NEAR * _mean(exact, "regret")
    regret = f"regret {_regret(approx)} against {_regret(exact)} of DisKernelUCB ({_ratio(approx, exact)})"
    fraction = _mean(approx, "scalars") <= FRACTION * _mean(exact, "scalars")
    sent = f"{_sent(approx)} scalars against {_sent(exact)} ({_share(approx, exact)})"
    return Check(((regret, near), (sent, fraction)))


def _mean(group: Group, metric: str) -> float:
    return group.mean(metric) or 0.0


def _regret(group: Group) -> str:
    return spread(group.mean("regret"), group.sd("regret"))


def _sent(group: Group) -> str:
    return amount(group.mean("scalars"))


def _ratio(group: Group, other: Group) -> str:
    whole = _mean(other, "regret")
    return f"{_mean(group, 'regret') / whole:.2f} ×" if whole > 0 else "of none"


def _share(group: Group, other: Group) -> str:
    whole = _mean(other, "scalars")
    return f"{_mean(group, 'scalars') / whole:.1%}" if whole > 0 else "of none"


CLAIMS = (
    Claim(
        "C1",
        text="OneKernelUCB has the smallest regret.",
        criterion="None of the other four algorithms has a smaller mean regret than OneKernelUCB.",
        check=_c1,
        subject=ALWAYS,
    ),
    Claim(
        "C2",
        text="DisKernelUCB and OneKernelUCB communicate the most.",
        criterion="Each of the two sends more scalars than each of the other three algorithms.",
        check=_c2,
        subject=APPROX,
    ),
    Claim(
        "C3",
        text="DisLinUCB communicates little but fails where the reward is non-linear, worse than NKernelUCB on cosine, "
        "mushroom and movielens.",
        criterion=f"DisLinUCB sends at most {LITTLE:.0%} of DisKernelUCB's scalars, and its mean regret is larger than "
        "NKernelUCB's (on cosine, mushroom and movielens) or than DisKernelUCB's (on the other four problems).",
        check=_c3,
        subject=LINEAR,
    ),
    Claim(
        "C4",
        text="ApproxDisKernelUCB has regret comparable to DisKernelUCB at a fraction of its communication.",
        criterion=f"Its mean regret is at most {NEAR:g} times DisKernelUCB's, and it sends at most {FRACTION:.0%} of "
        "DisKernelUCB's scalars.",
        check=_c4,
        subject=APPROX,
    ),
)
