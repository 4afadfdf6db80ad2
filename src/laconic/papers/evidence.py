"""What counts as evidence: a setting that never synced, or that plays as random arms do, shows nothing of a claim."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from laconic.experiments.conduct import Outcome, Panel
from laconic.experiments.paired import FEWEST, at_most
from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of
from laconic.experiments.verdict import ALWAYS, APPROX, EXACT, LEAN, LINEAR

RANDOM = "Random"
SHARING = (ALWAYS, EXACT, APPROX, LINEAR, LEAN)  # those that are there to sync
NEVER_SYNCED = "never synced on any seed"
LIKE_RANDOM = "no better than random arms, as far as can be told"
RULE = (
    "Settings that never synced on any seed, or whose regret is not below that of random arms by the same test, are "
    "set aside: they are no evidence, for or against."
)


@dataclass(frozen=True)
class Aside:
    """A setting that does not count, and why."""

    group: Group
    why: str
    tuned: bool  # whether it has its algorithm's smallest regret


def is_rehearsal(outcome: Outcome) -> bool:
    """Whether what ran is too small to judge anything by."""
    return any(panel.spec.file.rehearsal for panel in outcome.panels)


def set_aside(panel: Panel) -> list[Aside]:
    """The settings of a problem, varied ones included, that are no evidence."""
    random, best = _random(panel.results), best_of(panel.results)
    every = (*panel.results.groups, *panel.varied.groups)
    found = [(group, why) for group in every if (why := _why(group, random=random))]
    return [Aside(group, why, tuned=best[group.algorithm].params == group.params) for group, why in found]


def that_count(panel: Panel, groups: Sequence[Group], *, may_fail: Collection[str] = ()) -> list[Group]:
    """Those of the groups that are evidence; algorithms that may fail count where they play as random arms do."""
    random = _random(panel.results)
    reasons = [(group, _why(group, random=random)) for group in groups]
    return [group for group, why in reasons if not why or (why == LIKE_RANDOM and group.algorithm in may_fail)]


def evidence(panel: Panel, *, may_fail: Collection[str] = ()) -> Results:
    """The results of a problem without the settings that are set aside."""
    kept = {id(row) for group in that_count(panel, panel.results.groups, may_fail=may_fail) for row in group.rows}
    return replace(panel.results, rows=tuple(row for row in panel.results.rows if id(row) in kept))


def _random(results: Results) -> Group | None:
    return best_of(results).get(RANDOM)


def _why(group: Group, *, random: Group | None) -> str:
    """Why a setting does not count; nothing where it does."""
    if group.algorithm in SHARING and not any(group.values("syncs")):
        return NEVER_SYNCED
    if random is None or group.algorithm == RANDOM or len(random.rows) < FEWEST:
        return ""
    return "" if at_most(group, random, metric="regret", strictly=True) == "holds" else LIKE_RANDOM
