"""The frontier as a figure: regret against bytes, with those settings marked that no other beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from laconic.report.explained import frontier_explained
from laconic.report.figures import FAINT, INK, blank
from laconic.report.looks import looks
from laconic.report.table import amount, number

#: Of variants of an algorithm, which share its colour; of other outlines than all algorithms have.
VARIANTS = ("X", "*", "p", "h", "8", "d")
LARGE, SMALL = 62.0, 30.0
LETTERS = 150  # of a line below the figure


@dataclass(frozen=True)
class Dot:
    """A setting: what it costs, what it loses, and whether it is on the frontier's line."""

    family: str  # settings of one family have one marker
    algorithm: str  # and those of one algorithm one colour
    label: str
    bytes: float
    regret: float
    sd: float
    marked: bool
    waits: bool = False  # whether every decision needs a round trip


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str

    def handle(self, family: str) -> Line2D:
        return Line2D([], [], color=self.colour, marker=self.marker, linestyle="", markersize=6.5, label=family)


def regret_against_bytes(dots: Sequence[Dot], *, title: str) -> Figure:
    """Regret against bytes on a log axis; what sends nothing is a level, and a line joins what is marked."""
    figure = blank(9.6, 6.2)
    axes = figure.subplots()
    looks = _looks(dots)
    talking = [dot for dot in dots if dot.bytes > 0]
    _draw_line(axes, dots)
    for dot in talking:
        _draw(axes, dot, looks[dot.family])
    for dot in dots:
        if dot.bytes == 0:
            _draw_level(axes, dot, looks[dot.family].colour)
    _frame(axes, logarithmic=bool(talking))
    handles = [*(look.handle(_named(family, talking)) for family, look in _shown(looks, talking)), _line_handle()]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8.5)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=INK)
    said = fill(frontier_explained(waiting=any(dot.waits for dot in dots)), width=LETTERS)
    figure.supxlabel(said, x=0.01, ha="left", fontsize=8.5, color=INK)
    return figure


def _looks(dots: Sequence[Dot]) -> dict[str, _Look]:
    own = looks([dot.algorithm for dot in dots])
    families = {dot.family: dot.algorithm for dot in dots}
    variants = [family for family, algorithm in families.items() if family != algorithm]
    other = {family: VARIANTS[place % len(VARIANTS)] for place, family in enumerate(variants)}
    return {
        family: _Look(own[algorithm].colour, other.get(family, own[algorithm].marker))
        for family, algorithm in families.items()
    }


def _shown(looks: Mapping[str, _Look], talking: Sequence[Dot]) -> list[tuple[str, _Look]]:
    """The families that are there as markers; levels have their names beside them."""
    there = {dot.family for dot in talking}
    return [(family, look) for family, look in looks.items() if family in there]


def _named(family: str, dots: Sequence[Dot]) -> str:
    waits = any(dot.waits for dot in dots if dot.family == family)
    return f"{family},\nwith a round trip for every decision" if waits else family


def _draw(axes: Axes, dot: Dot, look: _Look) -> None:
    """Filled and large on the frontier, hollow and small beside it."""
    face = look.colour if dot.marked else "white"
    size, width, strength = (LARGE, 1.2, 1.0) if dot.marked else (SMALL, 1.1, 0.75)
    if dot.sd:
        axes.vlines(dot.bytes, dot.regret - dot.sd, dot.regret + dot.sd, color=look.colour, linewidth=0.8, alpha=0.45)
    axes.scatter(
        [dot.bytes],
        [dot.regret],
        s=size,
        marker=look.marker,
        facecolor=face,
        edgecolor=look.colour,
        linewidth=width,
        alpha=strength,
        zorder=3,
    )


def _draw_line(axes: Axes, dots: Sequence[Dot]) -> None:
    """In steps: to lose less than a marked setting does, one must send at least what the next one sends."""
    marked = sorted((dot.bytes, dot.regret) for dot in dots if dot.marked and dot.bytes > 0)
    if marked:
        sent, lost = zip(*marked, strict=True)
        axes.step(sent, lost, where="post", **_LINE)


_LINE: dict[str, Any] = {"color": INK, "linewidth": 1.1, "linestyle": (0, (4, 2)), "alpha": 0.7, "zorder": 2}


def _line_handle() -> Line2D:
    return Line2D([], [], label="non-dominated", **_LINE)


def _draw_level(axes: Axes, dot: Dot, colour: str) -> None:
    axes.axhline(dot.regret, color=colour, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    text = f"{dot.label} sends nothing: {number(dot.regret)}"
    axes.annotate(
        text,
        xy=(0.012, dot.regret),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8.5,
        color=colour,
    )


def _frame(axes: Axes, *, logarithmic: bool) -> None:
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(_bytes))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}" if axes.get_ylim()[1] > 5 else f"{y:g}"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("bytes sent, both ways (log axis)", fontsize=9.5, color=INK)
    axes.set_ylabel("cumulative regret", fontsize=9.5, color=INK)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8.5, colors=INK, length=3)


def _bytes(value: float, _: object) -> str:
    return amount(value, unit="B").replace(".00 ", " ").replace(".0 ", " ")
