"""Where LaconicUCB stands: whether one of the paper's algorithms has both no more regret and no more bytes."""

from __future__ import annotations

from dataclasses import dataclass

from laconic.experiments.frontier import WAITING, dominates
from laconic.experiments.results import Group
from laconic.experiments.tuning import best_of
from laconic.report.table import amount, spread
from laconic.reproduction.conduct import Panel

OURS = "LaconicUCB"
HOW = (
    f"Every algorithm at its tuned setting, without those that need a round trip a decision. {OURS} is non-dominated "
    "when none of the others has both no more regret and no more bytes."
)


@dataclass(frozen=True)
class Standing:
    """Who beats LaconicUCB in both on one problem, and who in one of them."""

    problem: str
    mine: Group
    beaten_by: tuple[Group, ...]
    less_regret: tuple[Group, ...]
    fewer_bytes: tuple[Group, ...]

    @property
    def verdict(self) -> str:
        """In two words."""
        return "dominated" if self.beaten_by else "non-dominated"

    @property
    def text(self) -> str:
        """In a sentence, with numbers."""
        if self.beaten_by:
            return f"{OURS} ({_cost(self.mine)}) is dominated by {_listed(self.beaten_by)}."
        others = [
            f"{what}: {_listed(groups)}"
            for what, groups in (("with less regret", self.less_regret), ("with fewer bytes", self.fewer_bytes))
            if groups
        ]
        return f"{OURS} is non-dominated: {'; '.join([_cost(self.mine), *others])}."


def standing(panel: Panel) -> Standing | None:
    """How LaconicUCB stands on a problem; None where it or all others did not run."""
    best = best_of(panel.results)
    mine = best.pop(OURS, None)
    rivals = [group for name, group in best.items() if name not in WAITING]
    if mine is None or not rivals:
        return None
    beaten_by = tuple(group for group in rivals if dominates(group, mine))
    regret, sent = mine.mean("regret") or 0.0, mine.mean("bytes") or 0.0
    return Standing(
        panel.results.problem,
        mine=mine,
        beaten_by=beaten_by,
        less_regret=tuple(group for group in rivals if (group.mean("regret") or 0.0) < regret),
        fewer_bytes=tuple(group for group in rivals if (group.mean("bytes") or 0.0) < sent),
    )


def _listed(groups: tuple[Group, ...]) -> str:
    return ", ".join(f"{group.algorithm} ({_cost(group)})" for group in groups)


def _cost(group: Group) -> str:
    sent = group.mean("bytes") or 0.0
    regret = spread(group.mean("regret"), group.sd("regret"))
    return f"regret {regret} for {amount(sent, unit='B') if sent else 'no bytes'}"
