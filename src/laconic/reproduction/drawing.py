"""The charts of one experiment, from its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of
from laconic.report import charts
from laconic.report.charts import Chart, Record
from laconic.report.figures import Band
from laconic.reproduction.conduct import Panel
from laconic.reproduction.naming import setting, symbol, value

POINTS = 100  # of a curve: more than a chart of a page can show
DIGITS = 5
DECADE = 10.0  # lines whose ends differ by more are drawn on a log axis


@dataclass(frozen=True)
class Drawn:
    """A chart and what it shows, in words."""

    chart: Chart
    label: str


def main_charts(panel: Panel) -> list[Drawn]:
    """Regret, communication, the frontier, syncs and the dictionary's growth."""
    best = best_of(panel.results)
    drawn = [_regret(best), _communication(best), _frontier(panel.results, best), _syncs(best), _dictionary(best)]
    return [each for each in drawn if each is not None]


def sensitivity_charts(panel: Panel) -> list[Drawn]:
    """For each parameter that was varied, the way that regret and scalars take."""
    return [
        Drawn(charts.paths(points, title=f"Changing {symbol(parameter)}"), f"Sensitivity to {symbol(parameter)}")
        for parameter in dict.fromkeys(each.parameter for each in panel.study.variations)
        if (points := list(_path(panel, parameter)))
    ]


def algorithms_of(results: Results) -> list[str]:
    """The algorithms in the order of the file."""
    return list(dict.fromkeys(row.algorithm for row in results.rows))


def _regret(best: dict[str, Group]) -> Drawn:
    chart = charts.over_time(_curves(best.values(), "regret"), title="Cumulative regret")
    return Drawn(chart, "Cumulative regret against t, mean and standard deviation over seeds")


def _communication(best: dict[str, Group]) -> Drawn | None:
    talking = [group for group in best.values() if group.mean("scalars")]
    if not talking:
        return None
    ends = [group.mean("scalars") or 0.0 for group in talking]
    log = max(ends) > DECADE * min(ends)
    title = f"Scalars sent{' (log)' if log else ''}"
    chart = charts.over_time(_curves(talking, "scalars"), title=title, log=log, step=True)
    return Drawn(chart, "Scalars sent against t, mean and standard deviation over seeds")


def _syncs(best: dict[str, Group]) -> Drawn | None:
    """Without those that sync after every interaction: theirs would be the diagonal."""
    some = [group for group in best.values() if 0 < (group.mean("syncs") or 0.0) < group.rows[0].curve.t[-1]]
    if not some:
        return None
    return Drawn(charts.over_time(_curves(some, "syncs"), title="Syncs", step=True), "Syncs so far against t")


def _dictionary(best: dict[str, Group]) -> Drawn | None:
    with_one = [group for group in best.values() if group.mean("dictionary")]
    if not with_one:
        return None
    chart = charts.over_time(_curves(with_one, "dictionary"), title="Dictionary size |S|", step=True)
    return Drawn(chart, "Size of the dictionary against t")


def _curves(groups: Iterable[Group], metric: str) -> list[Record]:
    return [record for group in groups for record in _curve(group, metric)]


def _curve(group: Group, metric: str) -> Iterator[Record]:
    runs: NDArray[np.float64] = np.array([getattr(row.curve, metric) for row in group.rows], dtype=np.float64)
    t = group.rows[0].curve.t
    kept = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).round().astype(np.int64))
    band = Band.of(runs)
    for index in kept:
        mean, sd = float(band.mean[index]), float(band.sd[index])
        yield {
            "algorithm": group.algorithm,
            "t": int(t[index]),
            "mean": _short(mean),
            "low": _short(max(mean - sd, 0.5 * mean if metric == "scalars" else 0.0)),
            "high": _short(mean + sd),
        }


def _frontier(results: Results, best: dict[str, Group]) -> Drawn | None:
    talking = [group for group in results.groups if group.mean("scalars")]
    if not talking:
        return None
    points = [_point(group) | {"tuned": best[group.algorithm].params == group.params} for group in talking]
    for point in points:
        point["best"] = not any(_dominates(other, point) for other in points)
    levels = [_point(group) | {"label": group.algorithm} for group in best.values() if not group.mean("scalars")]
    chart = charts.frontier(points, levels=levels, title="Regret against communication, all settings")
    return Drawn(chart, "Regret against scalars sent, one point a setting; large points are the tuned ones")


def _dominates(other: Record, point: Record) -> bool:
    no_worse = other["regret"] <= point["regret"] and other["scalars"] <= point["scalars"]
    return no_worse and (other["regret"], other["scalars"]) != (point["regret"], point["scalars"])


def _point(group: Group) -> Record:
    return {
        "algorithm": group.algorithm,
        "setting": setting(group.params),
        "regret": _short(group.mean("regret") or 0.0),
        "scalars": _short(group.mean("scalars") or 0.0),
    }


def _path(panel: Panel, parameter: str) -> Iterator[Record]:
    """Of each algorithm its tuned setting and the variations, in order of the parameter; on a log axis none at 0."""
    best = best_of(panel.results)
    varied = [(each, group) for each, group in panel.variations() if each.parameter == parameter]
    for name in dict.fromkeys(each.name for each, _ in varied):
        groups = [best[name], *(group for each, group in varied if each.name == name)]
        for group in sorted(groups, key=lambda each: float(each.params[parameter] or 0.0)):
            if group.mean("scalars"):
                yield _point(group) | {
                    "label": value(group.params, parameter),
                    "order": group.params[parameter],
                    "base": group is best[name],
                }


def _short(number: float) -> float:
    """Digits that nobody sees would make the page large."""
    return float(f"{number:.{DIGITS}g}")
