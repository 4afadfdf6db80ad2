"""Figures: regret and communication against t, as a reader with any eyes can read them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from laconic.arrays import Floats, Ints
from laconic.report.looks import LETTERS, Look, looks, markers
from laconic.report.table import amount, number

INK, FAINT = "#222222", "#DDDDDD"
MOST_LABELS = 8  # beyond, labels at the lines' ends would crowd: a legend below takes over
EVERY = 0.09  # of a panel's diagonal there is a marker
DECADES = 10.0  # communication that spans more than this factor is drawn on a log axis


@dataclass(frozen=True)
class Band:
    """A mean over seeds and its standard deviation, point by point; zero for a single seed."""

    mean: Floats
    sd: Floats

    @classmethod
    def of(cls, runs: Floats) -> Band:
        """The band of runs (seeds × points)."""
        sd = runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(runs.shape[1])
        return cls(mean=runs.mean(axis=0), sd=sd)


@dataclass(frozen=True)
class Line:
    """One algorithm with one setting, in both panels."""

    label: str
    t: Ints
    regret: Band
    scalars: Band
    algorithm: str = ""  # whose look it has; that of its label where nothing is said

    @property
    def drawn_as(self) -> str:
        """Whose look it has."""
        return self.algorithm or self.label


@dataclass(frozen=True)
class _Drawn:
    """A line's look and what stands at its end; settings of one algorithm differ by their markers."""

    line: Line
    own: Look
    marker: str

    @property
    def colour(self) -> str:
        return self.own.colour

    @property
    def name(self) -> str:
        return f"{LETTERS[self.marker]} {self.line.label}" if self.marker else self.line.label

    @property
    def look(self) -> dict[str, Any]:
        return {"color": self.colour, **line_style(self.own, self.marker), "linewidth": 1.8, "solid_capstyle": "round"}


def line_style(own: Look, marker: str) -> dict[str, Any]:
    """Dashes, and here and there a marker."""
    marked: dict[str, Any] = {"marker": marker, "markevery": EVERY, "markersize": 5} if marker else {}
    return {"linestyle": own.dashes, **marked}


class Shown(Figure):
    """A figure that notebooks show without pyplot having been imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def regret_and_communication(lines: Sequence[Line], *, title: str) -> Figure:
    """Two panels that share t: cumulative regret, and scalars sent so far."""
    figure = blank(12.5, 4.6)
    regret, sent = figure.subplots(1, 2)
    names = [line.drawn_as for line in lines]
    own = looks(names)
    drawn = [
        _Drawn(line, own=own[name], marker=marker)
        for line, name, marker in zip(lines, names, markers(names), strict=True)
    ]
    _draw_regret(regret, drawn)
    _draw_communication(sent, drawn)
    for axes in (regret, sent):
        frame(axes, last=max(int(line.t[-1]) for line in lines))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=INK)
    if len(lines) > MOST_LABELS:
        handles = [axis_line for axis_line in regret.get_lines() if not axis_line.get_label().startswith("_")]
        figure.legend(handles=handles, loc="outside lower left", ncols=4, frameon=False, fontsize=8.5)
    return figure


def save(figure: Figure, path: Any, *, kind: Literal["png", "svg"]) -> None:
    """Write the figure so that the same results give the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "laconic"}):
        figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})


def blank(width: float, height: float) -> Figure:
    """A figure to draw on, of so many inches."""
    figure = Shown(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw_regret(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    for each in drawn:
        t, band = each.line.t, each.line.regret
        axes.plot(t, band.mean, label=each.line.label, **each.look)
        axes.fill_between(t, band.mean - band.sd, band.mean + band.sd, color=each.colour, alpha=0.15, linewidth=0)
    axes.set_title("Cumulative regret", loc="left", fontsize=10.5, color=INK)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    if axes.get_ylim()[1] < 5:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    _label_ends(axes, [(each, float(each.line.regret.mean[-1]), number(_last(each.line.regret))) for each in drawn])


def _draw_communication(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    talking = [each for each in drawn if _last(each.line.scalars) > 0]
    logarithmic = _spans_decades([each.line.scalars for each in talking])
    for each in talking:
        t, band = each.line.t, each.line.scalars
        mean = np.where(band.mean > 0, band.mean, np.nan) if logarithmic else band.mean
        low = np.maximum(band.mean - band.sd, mean * 0.5) if logarithmic else np.maximum(band.mean - band.sd, 0)
        axes.plot(t, mean, drawstyle="steps-post", **each.look)
        axes.fill_between(t, low, band.mean + band.sd, step="post", color=each.colour, alpha=0.15, linewidth=0)
    _scale_communication(axes, logarithmic=logarithmic)
    if len(drawn) > MOST_LABELS:
        _note_silent(axes, [each.line.label for each in drawn if _last(each.line.scalars) == 0])
    _label_ends(axes, [(each, _last(each.line.scalars), _sent(each)) for each in drawn])


def _scale_communication(axes: Axes, *, logarithmic: bool) -> None:
    axes.set_title(f"Scalars sent{' (log axis)' if logarithmic else ''}", loc="left", fontsize=10.5, color=INK)
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=8))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(_tick))


def _note_silent(axes: Axes, names: Sequence[str]) -> None:
    """In the title, where the labels that would say it had no room."""
    if names:
        listed = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        axes.set_title(f"{axes.get_title(loc='left')}; nothing by {listed}", loc="left", fontsize=10.5, color=INK)


def _tick(value: float, _: object) -> str:
    """10 M rather than 10.0 M: ticks are round numbers."""
    return amount(value).replace(".00 ", " ").replace(".0 ", " ")


def _last(band: Band) -> float:
    return float(band.mean[-1])


def _sent(each: _Drawn) -> str:
    return amount(_last(each.line.scalars)) if _last(each.line.scalars) > 0 else "sends nothing"


def _spans_decades(bands: Sequence[Band]) -> bool:
    """Whether a linear axis would flatten somebody: the ends differ by more than a factor."""
    ends = [_last(band) for band in bands]
    return bool(ends) and max(ends) > DECADES * min(ends)


def frame(axes: Axes, *, last: int, along: str = "interaction t") -> None:
    """Axes as all panels have them, from 0 to the last number of what runs along them."""
    axes.set_xlim(0, last)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.set_xlabel(along, fontsize=9.5, color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK, length=3)


def _label_ends(axes: Axes, ends: Sequence[tuple[_Drawn, float, str]]) -> None:
    """Each line's name and last value beside its end, moved apart where they would overlap."""
    if len(ends) > MOST_LABELS:
        return
    axes.autoscale_view()
    to_fraction = axes.transData + axes.transAxes.inverted()
    floor = axes.get_ylim()[0]
    wanted = [float(to_fraction.transform((0, max(value, floor)))[1]) for _, value, _ in ends]
    for (each, _, value), at, y in zip(ends, wanted, spread_out(wanted, gap=0.062), strict=True):
        axes.annotate(
            f"{each.name}  {value}",
            xy=(1.0, at),
            xytext=(1.045, y),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color=each.colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": each.colour, "linewidth": 0.7, "shrinkA": 1, "relpos": (0, 0.5)},
        )


def spread_out(wanted: Sequence[float], *, gap: float) -> list[float]:
    """Positions in the same order, at least a gap apart, moved as little as need be and kept above 0.

    >>> spread_out([0.5, 0.5], gap=0.1)
    [0.45, 0.55]
    """
    order = np.argsort(wanted, kind="stable")
    clusters: list[list[float]] = []  # the wanted places of labels that touch
    for index in order:
        clusters.append([wanted[index]])
        while len(clusters) > 1 and _bottom(clusters[-1], gap) - _top(clusters[-2], gap) < gap - 1e-12:
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    placed = [_bottom(cluster, gap) + gap * i for cluster in clusters for i in range(len(cluster))]
    result = [0.0] * len(placed)
    for index, place in zip(order, placed, strict=True):
        result[index] = round(place, 6)
    return result


def _bottom(cluster: Sequence[float], gap: float) -> float:
    return max(0.0, sum(cluster) / len(cluster) - gap * (len(cluster) - 1) / 2)


def _top(cluster: Sequence[float], gap: float) -> float:
    return _bottom(cluster, gap) + gap * (len(cluster) - 1)
