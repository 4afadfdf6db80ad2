"""Where LaconicUCB stands: whether one of the paper's algorithms has both no more regret and no more bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laconic.experiments.conduct import Panel
from laconic.experiments.frontier import WAITING
from laconic.experiments.paired import Answer, all_of, at_most
from laconic.experiments.results import Group
from laconic.experiments.tuning import best_of
from laconic.experiments.verdict import LEAN as OURS
from laconic.papers.evidence import RANDOM, that_count
from laconic.report.table import amount, spread

HOW = (
    "Every algorithm at its tuned setting, without those that need a round trip for every decision. "
    f"{OURS} is dominated where another has both no more regret and no more bytes, and non-dominated where none has, "
    "by the test of the claims: paired over seeds, at 95%."
)


@dataclass(frozen=True)
class Standing:
    """Who beats LaconicUCB in both on one problem, and what each of them costs."""

    problem: str
    mine: Group
    rivals: Mapping[str, Group]
    beaten_by: Mapping[str, Answer]  # of each rival, whether it has no more regret and no more bytes
    judged: bool  # False in a rehearsal, and where its own setting is no evidence

    @property
    def verdict(self) -> str:
        """In a few words."""
        if not self.judged:
            return "not judged"
        if "holds" in self.beaten_by.values():
            return "dominated"
        return "too close to tell" if "too close to tell" in self.beaten_by.values() else "non-dominated"

    @property
    def text(self) -> str:
        """In a sentence, with numbers."""
        if self.verdict == "dominated":
            return f"{OURS} ({_cost(self.mine)}) is dominated by {self._listed(self._who('holds'))}."
        if self.verdict == "too close to tell":
            rivals = self._listed(self._who("too close to tell"))
            return f"{OURS} ({_cost(self.mine)}): too close to tell whether it is dominated by {rivals}."
        said = "is non-dominated" if self.judged else "is not judged"
        return f"{OURS} {said}: {'; '.join([_cost(self.mine), *self._better()])}."

    def _who(self, answer: Answer) -> list[str]:
        return [name for name, each in self.beaten_by.items() if each == answer]

    def _better(self) -> list[str]:
        """Who is better in one of the two, by its mean."""
        found = (
            (what, [name for name, group in self.rivals.items() if _mean(group, metric) < _mean(self.mine, metric)])
            for what, metric in (("with less regret", "regret"), ("with fewer bytes", "bytes"))
        )
        return [f"{what}: {self._listed(names)}" for what, names in found if names]

    def _listed(self, names: Sequence[str]) -> str:
        return ", ".join(f"{name} ({_cost(self.rivals[name])})" for name in names)


def standing(panel: Panel) -> Standing | None:
    """How LaconicUCB stands on a problem; None where it or all others did not run."""
    best = best_of(panel.results)
    mine = best.pop(OURS, None)
    rivals = {name: group for name, group in best.items() if name not in (*WAITING, RANDOM)}
    if mine is None or not rivals:
        return None
    return Standing(
        panel.results.problem,
        mine=mine,
        rivals=rivals,
        beaten_by={name: _beats(group, mine) for name, group in rivals.items()},
        judged=not panel.spec.file.rehearsal and bool(that_count(panel, [mine])),
    )


def _beats(rival: Group, mine: Group) -> Answer:
    """Whether it has no more of both; what is the same in both on every seed beats nobody."""
    answers = [at_most(rival, mine, metric=metric) for metric in ("regret", "bytes")]
    same = all(_mean(rival, metric) == _mean(mine, metric) for metric in ("regret", "bytes"))
    return "fails" if same else all_of(answers)


def _mean(group: Group, metric: str) -> float:
    return group.mean(metric) or 0.0


def _cost(group: Group) -> str:
    sent = group.mean("bytes") or 0.0
    regret = spread(group.mean("regret"), group.sd("regret"))
    return f"regret {regret} for {amount(sent, unit='B') if sent else 'no bytes'}"
