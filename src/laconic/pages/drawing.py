"""The charts of one experiment, from its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from laconic.arrays import Floats
from laconic.experiments.conduct import Panel
from laconic.experiments.frontier import WAITING, on_the_line
from laconic.experiments.naming import setting, symbol
from laconic.experiments.results import Group, Results
from laconic.experiments.tuning import best_of
from laconic.report import charts
from laconic.report.charts import Chart, Record
from laconic.report.explained import frontier_explained
from laconic.report.figures import Band

POINTS = 100  # of a curve: more than a chart of a page can show
DIGITS = 5
DECADE = 10.0  # lines whose ends differ by more are drawn on a log axis
PLAIN = {"qbar": "qbar"}  # few fonts can put a bar on a q

Best = Mapping[str, Group]


@dataclass(frozen=True)
class Drawn:
    """A chart and what it shows, in words."""

    chart: Chart
    label: str
    note: str = ""  # what stands below it


@dataclass(frozen=True)
class Drawings:
    """The charts of one experiment."""

    main: Sequence[Drawn]
    sensitivity: Sequence[Drawn]
    bytes: Drawn | None = None  # regret against them


def draw(panel: Panel) -> Drawings:
    """All charts of an experiment."""
    return Drawings(main=_main_charts(panel), sensitivity=_sensitivity_charts(panel), bytes=_against_bytes(panel))


def _main_charts(panel: Panel) -> list[Drawn]:
    """Regret, communication, syncs, the dictionary's growth and the frontier."""
    best, names = best_of(panel.results), algorithms_of(panel.results)
    drawn = (
        _regret(best, names),
        _communication(best, names),
        _syncs(best, names),
        _dictionary(best, names),
        _frontier(panel.results, best, names),
    )
    return [each for each in drawn if each is not None]


def _sensitivity_charts(panel: Panel) -> list[Drawn]:
    """Regret, and below it scalars, against each parameter that was varied."""
    parameters = list(dict.fromkeys(each.parameter for each, _ in panel.variations()))
    return [_against(panel, parameter, quantity) for quantity in ("regret", "scalars") for parameter in parameters]


def algorithms_of(results: Results) -> list[str]:
    """The algorithms in the order of the file."""
    return list(dict.fromkeys(row.algorithm for row in results.rows))


def _regret(best: Best, names: Sequence[str]) -> Drawn:
    chart = charts.over_time(_curves(best.values(), "regret"), names=names, title="Cumulative regret")
    return Drawn(chart, "Cumulative regret against t, mean and standard deviation over seeds")


def _communication(best: Best, names: Sequence[str]) -> Drawn | None:
    talking = [group for group in best.values() if group.mean("scalars")]
    if not talking:
        return None
    ends = [group.mean("scalars") or 0.0 for group in talking]
    log = max(ends) > DECADE * min(ends)
    title = f"Scalars sent{' (log)' if log else ''}"
    chart = charts.over_time(_curves(talking, "scalars", log=log), names=names, title=title, log=log, whole=True)
    return Drawn(chart, "Scalars sent against t, mean and standard deviation over seeds")


def _syncs(best: Best, names: Sequence[str]) -> Drawn | None:
    """Without those that sync after every interaction: theirs would be the diagonal."""
    some = [group for group in best.values() if 0 < (group.mean("syncs") or 0.0) < group.rows[0].curve.t[-1]]
    if not some:
        return None
    ends = [group.mean("syncs") or 0.0 for group in some]
    log = max(ends) > DECADE * min(ends)
    curves = _curves(some, "syncs", log=log)
    chart = charts.over_time(curves, names=names, title=f"Syncs{' (log)' if log else ''}", log=log, whole=True)
    return Drawn(chart, "Syncs so far against t")


def _dictionary(best: Best, names: Sequence[str]) -> Drawn | None:
    with_one = [group for group in best.values() if group.mean("dictionary")]
    if not with_one:
        return None
    chart = charts.over_time(_curves(with_one, "dictionary"), names=names, title="Dictionary size |S|", whole=True)
    return Drawn(chart, "Size of the dictionary against t")


def _curves(groups: Iterable[Group], metric: str, *, log: bool = False) -> list[Record]:
    return [record for group in groups for record in _curve(group, metric, log=log)]


def _curve(group: Group, metric: str, *, log: bool) -> Iterator[Record]:
    runs: Floats = np.array([getattr(row.curve, metric) for row in group.rows], dtype=np.float64)
    t = group.rows[0].curve.t
    kept = np.unique(np.linspace(0, len(t) - 1, min(len(t), POINTS)).round().astype(np.int64))
    band = Band.of(runs)
    for index in kept:
        mean, sd = float(band.mean[index]), float(band.sd[index])
        floor = 0.5 * mean if log else 0.0  # a log axis has no room for more
        yield {
            "algorithm": group.algorithm,
            "t": int(t[index]),
            "mean": _short(mean),
            "low": _short(max(mean - sd, floor)),
            "high": _short(mean + sd),
        }


def _frontier(results: Results, best: Best, names: Sequence[str]) -> Drawn | None:
    points, levels = _points(results, best, cost="scalars")
    if not points:
        return None
    title = "Regret against communication, all settings"
    chart = charts.frontier(points, levels=levels, names=names, title=title)
    said = frontier_explained(cost="scalars", tuned=True)
    return Drawn(chart, f"Regret against scalars sent. {said}", note=said)


def _against_bytes(panel: Panel) -> Drawn | None:
    """All settings that choose without a round trip."""
    best, names = best_of(panel.results), algorithms_of(panel.results)
    points, levels = _points(panel.results, best, cost="bytes")
    if not points:
        return None
    chart = charts.frontier(points, levels=levels, names=names, title=panel.name, cost="bytes")
    return Drawn(chart, f"{panel.name}: regret against bytes sent. {frontier_explained(tuned=True)}")


def _points(results: Results, best: Best, *, cost: str) -> tuple[list[Record], list[Record]]:
    """What is drawn as dots, with those marked that are on the line, and what sends nothing."""
    groups = [group for group in results.groups if group.algorithm not in WAITING]
    marked = zip(groups, on_the_line(groups, cost=cost), strict=True)
    points = [
        _point(group, cost) | {"tuned": _is_best(group, best), "best": on_it}
        for group, on_it in marked
        if group.mean(cost)
    ]
    silent = replace(results, rows=tuple(row for group in groups if not group.mean(cost) for row in group.rows))
    return points, [_point(group, cost) for group in best_of(silent).values()]


def _is_best(group: Group, best: Best) -> bool:
    return best[group.algorithm].params == group.params


def _against(panel: Panel, parameter: str, quantity: str) -> Drawn:
    letter = PLAIN.get(parameter, symbol(parameter))
    draw_it = charts.regret_against if quantity == "regret" else charts.scalars_against
    title = f"{quantity.capitalize()}{' (log)' if quantity == 'scalars' else ''} against {letter}"
    names = algorithms_of(panel.results)
    chart = draw_it(list(_around(panel, parameter)), parameter=letter, names=names, title=title)
    return Drawn(chart, f"{title}, the tuned settings and variations of them")


def _around(panel: Panel, parameter: str) -> Iterator[Record]:
    """Of each algorithm its tuned setting and the variations, in order of the parameter."""
    best = best_of(panel.results)
    varied = [(each, group) for each, group in panel.variations() if each.parameter == parameter]
    for name in dict.fromkeys(each.name for each, _ in varied):
        groups = [best[name], *(group for each, group in varied if each.name == name)]
        for group in sorted(groups, key=lambda each: _number(each, parameter)):
            regret, sd = group.mean("regret") or 0.0, group.sd("regret") or 0.0
            yield _point(group) | {
                "value": _number(group, parameter),
                "low": _short(max(regret - sd, 0.0)),
                "high": _short(regret + sd),
                "base": group is best[name],
            }


def _number(group: Group, parameter: str) -> float:
    found = group.params[parameter]
    assert isinstance(found, int | float)  # only numbers are varied
    return float(found)


def _point(group: Group, cost: str = "scalars") -> Record:
    return {
        "algorithm": group.algorithm,
        "setting": setting(group.params),
        "regret": _short(group.mean("regret") or 0.0),
        cost: _short(group.mean(cost) or 0.0),
    }


def _short(number: float) -> float:
    """Digits that nobody sees would make the page large."""
    return float(f"{number:.{DIGITS}g}")
