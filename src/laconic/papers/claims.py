"""The claims of the paper's Experiments section, and the criteria by which the program judges them: `CLAIMS`.

Each is judged per problem, paired over seeds, every algorithm at its tuned setting among those that are evidence. It is
*not tested* where the problem or one of its algorithms did not run or shows nothing, and *not judged* in a rehearsal.
Settings are tuned by regret, never by a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from laconic.experiments.conduct import Panel
from laconic.experiments.naming import TUNED, setting, symbol
from laconic.experiments.paired import FEWEST, LEVEL, Answer, all_of, at_most, ratio
from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of, held_out
from laconic.experiments.verdict import ALWAYS, APPROX, EXACT, FRACTION, LINEAR, NEAR, NEVER
from laconic.papers.evidence import evidence, that_count
from laconic.report.table import amount, number, spread

LITTLE = 0.1  # of DisKernelUCB's scalars: what counts as communicating little
NON_LINEAR = ("cosine", "mushroom", "movielens")  # where the paper has DisLinUCB worse than NKernelUCB
FIVE = (ALWAYS, EXACT, APPROX, NEVER, LINEAR)

Best = Mapping[str, Group]
Verdict = Literal["holds", "fails", "too close to tell", "not tested", "not judged"]
SIGNS = {"holds": "✓", "fails": "✗", "too close to tell": "?"}


@dataclass(frozen=True)
class Check:
    """What can be said of a claim for one choice of settings: each part of its criterion with its numbers."""

    parts: tuple[tuple[str, Answer], ...]
    remark: str = ""  # who else decides, beside those whose numbers are given

    @property
    def answer(self) -> Answer:
        """What can be said of all parts at once."""
        return all_of(answer for _, answer in self.parts)

    @property
    def numbers(self) -> str:
        """The parts in words."""
        return "; ".join(text for text, _ in self.parts)

    @property
    def judged(self) -> str:
        """The parts in words, and what can be said of them: where there are several, by a sign each."""
        if len(self.parts) == 1:
            return self.numbers + self.remark
        return "; ".join(f"{SIGNS[answer]} {text}" for text, answer in self.parts)


@dataclass(frozen=True)
class Claim:
    """What the paper says, when it holds, and whose other settings are tried where it does not."""

    key: str
    text: str
    criterion: str
    check: Callable[[Best, str], Check]
    subject: str
    about: tuple[str, ...]  # without evidence of these there is nothing to judge
    against: Callable[[str], tuple[str, ...]]  # nor without any of these, by problem
    may_fail: tuple[str, ...] = ()  # who counts also where it plays as random arms do, as that is what is claimed


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
    every, problem = best_of(panel.results), panel.results.problem
    absent = [name for name in FIVE if name not in every]
    if absent:
        return Finding(claim, "not tested", f"no finished runs of {', '.join(absent)}")
    if panel.spec.file.rehearsal:
        return Finding(claim, "not judged", claim.check(every, problem).numbers)
    best = best_of(evidence(panel, may_fail=claim.may_fail))
    missing = _missing(claim, best, problem)
    if missing:
        return Finding(claim, "not tested", f"every setting of {' and '.join(missing)} was set aside")
    check = claim.check(best, problem)
    return Finding(
        claim,
        check.answer,
        check.judged + _remark(best),
        held_out=_on_other_seeds(claim, panel),
        holds_at=() if check.answer == "holds" else tuple(_where(claim, panel, best)),
    )


def _missing(claim: Claim, best: Best, problem: str) -> list[str]:
    """Of whom there is no evidence, so that the claim cannot be judged."""
    absent = [name for name in claim.about if name not in best]
    rivals = claim.against(problem)
    return absent if any(name in best for name in rivals) else list(dict.fromkeys((*absent, *rivals)))


def _remark(best: Best) -> str:
    few = min(len(group.rows) for group in best.values()) < FEWEST
    return "; one seed, of which nothing can be told" if few else ""


def _on_other_seeds(claim: Claim, panel: Panel) -> Verdict:
    """The verdict when settings are chosen on one half of the seeds and judged on the other."""
    honest = held_out(evidence(panel, may_fail=claim.may_fail))
    best = {} if honest is None else best_of(honest.results)
    problem = panel.results.problem
    return "not tested" if _missing(claim, best, problem) else claim.check(best, problem).answer


def _where(claim: Claim, panel: Panel, best: Best) -> Iterator[str]:
    """The settings tried at which the claim holds, all of them evidence."""
    problem = panel.results.problem
    for said, settings in _alternatives(claim, panel, {**best_of(panel.results), **best}):
        kept = that_count(panel, list(settings.values()), may_fail=claim.may_fail)
        counting = {group.algorithm: group for group in kept}
        if not _missing(claim, counting, problem) and claim.check(counting, problem).answer == "holds":
            yield said


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
    rivals = sorted((best[name] for name in FIVE if name != ALWAYS and name in best), key=_regret_of)
    answers = {group.algorithm: at_most(best[ALWAYS], group, metric="regret") for group in rivals}
    least = rivals[0]
    apart = f"{least.algorithm}, {_times(least, best[ALWAYS], 'regret')}"
    text = f"regret of OneKernelUCB {_regret(best[ALWAYS])}; the smallest of the others {_regret(least)}, {apart}"
    return Check(((text, all_of(answers.values())),), remark=_others_close(answers, but=least.algorithm))


def _c2(best: Best, problem: str) -> Check:
    loud = sorted((best[ALWAYS], best[EXACT]), key=_scalars_of)
    others = sorted((best[name] for name in (APPROX, NEVER, LINEAR) if name in best), key=_scalars_of)
    answers = {
        quiet.algorithm: all_of(at_most(quiet, each, metric="scalars", strictly=True) for each in loud)
        for quiet in others
    }
    sent = ", ".join(f"{name} {_sent(best[name])}" for name in (ALWAYS, EXACT))
    most = others[-1]
    apart = f"{most.algorithm}, {_times(most, loud[0], 'scalars', of=f' those of {loud[0].algorithm}')}"
    text = f"scalars of {sent}; the most of the others {_sent(most)}, {apart}"
    return Check(((text, all_of(answers.values())),), remark=_others_close(answers, but=most.algorithm))


def _c3(best: Best, problem: str) -> Check:
    linear, exact, rival = best[LINEAR], best[EXACT], best[_better_than_linear(problem)[0]]
    share = _times(linear, exact, "scalars", of=" those of DisKernelUCB")
    sent = f"DisLinUCB sends {_sent(linear)} scalars, {share}"
    little = at_most(linear, exact, metric="scalars", factor=LITTLE)
    regret = (
        f"regret {_regret(linear)} against {_regret(rival)} of {rival.algorithm}, {_times(linear, rival, 'regret')}"
    )
    return Check(((sent, little), (regret, at_most(rival, linear, metric="regret", strictly=True))))


def _c4(best: Best, problem: str) -> Check:
    approx, exact = best[APPROX], best[EXACT]
    regret = f"regret {_regret(approx)} against {_regret(exact)} of DisKernelUCB, {_times(approx, exact, 'regret')}"
    near = at_most(approx, exact, metric="regret", factor=NEAR)
    sent = f"{_sent(approx)} scalars against {_sent(exact)}, {_times(approx, exact, 'scalars')}"
    return Check(((regret, near), (sent, at_most(approx, exact, metric="scalars", factor=FRACTION))))


def _others_close(answers: Mapping[str, Answer], *, but: str) -> str:
    """Who else decides, beside the one whose numbers are given."""
    listed = {each: [name for name, answer in answers.items() if answer == each and name != but] for each in SIGNS}
    said = [f"; {answer} against {', '.join(names)}" for answer, names in listed.items() if names and answer != "holds"]
    return "".join(said)


def _better_than_linear(problem: str) -> tuple[str, ...]:
    return (NEVER,) if problem in NON_LINEAR else (EXACT,)


def _regret_of(group: Group) -> float:
    return group.mean("regret") or 0.0


def _scalars_of(group: Group) -> float:
    return group.mean("scalars") or 0.0


def _regret(group: Group) -> str:
    return spread(group.mean("regret"), group.sd("regret"))


def _sent(group: Group) -> str:
    return amount(group.mean("scalars"))


def _times(group: Group, other: Group, metric: str, *, of: str = "") -> str:
    """How many times the other's mean, with its interval where that has bounds."""
    mine, whole = group.mean(metric) or 0.0, other.mean(metric) or 0.0
    if whole == 0:
        return "where the other has none"
    found = ratio(group, other, metric=metric)
    bounds = f" ({found})" if found is not None else f" ({LEVEL:.0%}: no bounds)" if len(group.rows) >= FEWEST else ""
    return f"{number(mine / whole)} ×{of}{bounds}"


CLAIMS = (
    Claim(
        "C1",
        text="OneKernelUCB has the smallest regret.",
        criterion="OneKernelUCB's mean regret is at most that of each of the other four algorithms.",
        check=_c1,
        subject=ALWAYS,
        about=(ALWAYS,),
        against=lambda _: (EXACT, APPROX, NEVER, LINEAR),
    ),
    Claim(
        "C2",
        text="DisKernelUCB and OneKernelUCB communicate the most.",
        criterion="Each of the two sends more scalars than each of the other three algorithms.",
        check=_c2,
        subject=APPROX,
        about=(ALWAYS, EXACT),
        against=lambda _: (APPROX, NEVER, LINEAR),
    ),
    Claim(
        "C3",
        text="DisLinUCB communicates little but fails where the reward is non-linear, worse than NKernelUCB on cosine, "
        "mushroom and movielens.",
        criterion=f"DisLinUCB sends at most {LITTLE:.0%} of DisKernelUCB's scalars, and its mean regret is larger than "
        "NKernelUCB's (on cosine, mushroom and movielens) or than DisKernelUCB's (on the other four problems). It may "
        "be as bad as random arms, as that is what is claimed.",
        check=_c3,
        subject=LINEAR,
        about=(LINEAR, EXACT),
        against=_better_than_linear,
        may_fail=(LINEAR,),
    ),
    Claim(
        "C4",
        text="ApproxDisKernelUCB has regret comparable to DisKernelUCB at a fraction of its communication.",
        criterion=f"Its mean regret is at most {NEAR:g} times DisKernelUCB's, and it sends at most {FRACTION:.0%} of "
        "DisKernelUCB's scalars.",
        check=_c4,
        subject=APPROX,
        about=(APPROX,),
        against=lambda _: (EXACT,),
    ),
)
