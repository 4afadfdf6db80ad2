"""Charts for pages, in Vega-Lite by Altair: one definition gives the interactive chart, the PNG and the SVG.

They take plain records. What a record holds is said by each function; ``algorithm`` is always its line's name, and
``names`` has those of all charts of a page or a sheet, so that a name looks the same in each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from laconic.errors import InputError
from laconic.report.figures import FAINT, INK
from laconic.report.looks import GREY as RULE
from laconic.report.looks import SHAPES, Look, looks

Record = dict[str, Any]
Altair = Any  # its own types are too many to check

WIDTH, HEIGHT, LOW, GAP = 380, 250, 190, 60  # of charts in a file; their width in a page is that of their place
MUTED = "#6B7280"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Chart:
    """A chart and its data by name, kept apart as Altair copies all that it holds at every step."""

    drawn: Altair
    data: Mapping[str, Sequence[Record]]


def over_time(
    records: Sequence[Record], *, names: Sequence[str], title: str, log: bool = False, whole: bool = False
) -> Chart:
    """Lines with bands against t, of records with t, mean, low and high; hovering reads all lines at one t.

    Whole numbers change in steps.
    """
    alt = _altair()
    shown = [each for each in records if each["low"] > 0] if log else list(records)
    shape = "step-after" if whole else "linear"
    y = _log_axis("mean", [each["mean"] for each in shown]) if log else _axis("mean", whole=whole)
    base = alt.Chart(alt.NamedData(_key(title)), title=title).encode(x=_time(), color=_colour(names))
    band = base.mark_area(opacity=0.14, interpolate=shape).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    line = base.mark_line(strokeWidth=1.9, interpolate=shape).encode(y=y, strokeDash=_dash(names))
    present = [name for name in names if any(each["algorithm"] == name for each in shown)]
    drawn = alt.layer(band, line, _reader(base, present, title=title, whole=whole))
    return _finished(drawn, {_key(title): shown})


def frontier(
    points: Sequence[Record], *, levels: Sequence[Record], names: Sequence[str], title: str, cost: str = "scalars"
) -> Chart:
    """Regret against scalars, or bytes, of every setting; those that send nothing are levels.

    Points have this cost, regret, setting, tuned and best (non-dominated: filled, and on the line); levels have regret
    and setting.
    """
    alt = _altair()
    x = _log_axis(cost, [each[cost] for each in points], x=True).title(f"{cost} sent (log)")
    y = _regret_axis(_regret_scale([each["regret"] for each in (*points, *levels)])).title("regret")
    base = alt.Chart(alt.NamedData(_key(title)), title=title).encode(x=x, y=y)
    front = base.transform_filter("datum.best").mark_line(
        interpolate="step-after", color=INK, strokeDash=[4, 3], strokeWidth=1.2
    )
    dots = base.mark_point(strokeWidth=1.4, opacity=1).encode(
        stroke=_colour(names, channel="Stroke"),
        fill=alt.condition("datum.best", _colour(names, channel="Fill"), alt.value("white")),
        shape=_shape(names),
        size=alt.condition("datum.tuned", alt.value(150), alt.value(46)),
        tooltip=_point_tooltip(cost),
    )
    lines = _level_lines(f"{_key(title)}_levels", names, y=y)
    data = {_key(title): points, f"{_key(title)}_levels": levels}
    return _finished(alt.layer(*lines, front.encode(order=f"{cost}:Q"), dots), data)


def regret_against(records: Sequence[Record], *, parameter: str, names: Sequence[str], title: str) -> Chart:
    """Regret against one parameter, of records with value, regret, low, high, scalars, setting and base."""
    alt = _altair()
    scale = _regret_scale([each[end] for each in records for end in ("low", "high")])
    base, marks = _against(records, parameter, names, title=title)
    bars = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", title=None, scale=scale), y2="high:Q")
    drawn = alt.layer(bars, *(mark.encode(y=_regret_axis(scale)) for mark in marks))
    return _finished(drawn, {_key(title): records}, height=LOW)


def scalars_against(records: Sequence[Record], *, parameter: str, names: Sequence[str], title: str) -> Chart:
    """The same with scalars, on a log axis; what sends nothing is not on it."""
    alt = _altair()
    shown = [each for each in records if each["scalars"] > 0]
    _, marks = _against(shown, parameter, names, title=title)
    y = _log_axis("scalars", [each["scalars"] for each in shown])
    return _finished(alt.layer(*(mark.encode(y=y) for mark in marks)), {_key(title): shown}, height=LOW)


def _against(
    records: Sequence[Record], parameter: str, names: Sequence[str], *, title: str
) -> tuple[Altair, list[Altair]]:
    """What both have in common: lines and points, the larger ones at the base."""
    alt = _altair()
    ticks = _ticks(sorted({each["value"] for each in records}), "~g")
    x = alt.X("value:Q", title=parameter, scale=alt.Scale(type="log", padding=14, nice=False), axis=ticks)
    base = alt.Chart(alt.NamedData(_key(title)), title=title).encode(x=x, color=_colour(names))
    line = base.mark_line(strokeWidth=1.6).encode(strokeDash=_dash(names))
    size = alt.condition("datum.base", alt.value(110), alt.value(40))
    dots = base.mark_point(filled=True, opacity=1)
    return base, [line, dots.encode(size=size, shape=_shape(names), tooltip=_point_tooltip())]


def legend(names: Sequence[str]) -> list[tuple[str, Look]]:
    """Each name with its look, for a legend beside the charts."""
    return list(looks(names).items())


def in_page(chart: Chart) -> str:
    """The chart as JSON for the page's script, as wide as its place."""
    spec = chart.drawn.to_dict(validate=False) | {"width": "container", "datasets": chart.data}
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def sheet(rows: Sequence[Sequence[Chart]], *, names: Sequence[str], title: str) -> str:
    """Charts in rows with a legend below, as SVG."""
    alt = _altair()
    heading = alt.TitleParams(title, anchor="start", fontSize=15, font=FONT, offset=14, color=INK)
    strip = _legend_strip(names, width=max(map(len, rows)) * (WIDTH + GAP))
    drawn = (alt.hconcat(*(chart.drawn for chart in row), spacing=GAP) for row in rows)
    whole = alt.vconcat(*drawn, strip, title=heading, spacing=24).configure(**config(), background="white", padding=16)
    data = {name: values for row in rows for chart in row for name, values in chart.data.items()}
    spec = whole.to_dict(validate=False)
    spec["datasets"] = spec.get("datasets", {}) | data
    return str(_package("vl_convert").vegalite_to_svg(spec))


def to_png(svg: str) -> bytes:
    """A sheet as pixels, for those who take no SVG."""
    return bytes(_package("vl_convert").svg_to_png(svg, scale=2))


@cache
def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one text, so that a page needs no network; making it takes seconds."""
    bundle: str = _package("vl_convert").javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def config() -> dict[str, Any]:
    """Fonts, colours and lines of all charts."""
    text = {"labelColor": MUTED, "titleColor": MUTED, "labelFont": FONT, "titleFont": FONT, "titleFontWeight": "normal"}
    lines = {"gridColor": FAINT, "domainColor": RULE, "tickColor": RULE, "tickSize": 4}
    return {
        "axis": text | lines | {"labelFontSize": 11, "titleFontSize": 11, "labelOverlap": "greedy"},
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "title": {"font": FONT, "fontSize": 13, "fontWeight": 600, "color": INK, "anchor": "start", "offset": 10},
        "view": {"stroke": None},
    }


def require_charts() -> None:
    """Refuse to start what could not be drawn at its end."""
    for name in ("altair", "vl_convert"):
        _package(name)


def round_numbers(lowest: float, highest: float) -> list[float]:
    """Ticks for a log axis: powers of ten, and where these are few, twice and five times them too.

    >>> round_numbers(900.0, 2e5), round_numbers(3e4, 2e5)
    ([1000.0, 10000.0, 100000.0], [50000.0, 100000.0, 200000.0])
    """
    powers = [10.0**power for power in range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)]
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = sorted(factor * power for power in powers for factor in factors)
        inside = [tick for tick in ticks if lowest <= tick <= highest]
        if len(inside) > 2:
            return inside
    return [tick for power in powers for tick in (power, 2 * power, 5 * power) if lowest / 2 <= tick <= highest * 2]


def _key(title: str) -> str:
    """What tells apart the data and pointers of charts on one sheet."""
    return "of_" + "".join(letter if letter.isalnum() else "_" for letter in title)


def _reader(base: Altair, names: Sequence[str], *, title: str, whole: bool) -> Altair:
    """A rule that follows the pointer and tells every line's mean."""
    alt = _altair()
    here = alt.selection_point(
        name=f"at_{_key(title)}", nearest=True, on="pointerover", fields=["t"], empty=False, clear="pointerout"
    )
    number = ",.3~s" if whole else ",.1f"
    values = [alt.Tooltip(name, type="quantitative", format=number) for name in names]
    return (
        base.transform_pivot("algorithm", value="mean", groupby=["t"])
        .mark_rule(strokeWidth=1)
        .encode(
            color=alt.value(MUTED),
            opacity=alt.condition(here, alt.value(0.6), alt.value(0)),
            tooltip=[alt.Tooltip("t:Q", format=",d"), *values],
        )
        .add_params(here)
    )


def _regret_axis(scale: Any) -> Any:
    alt = _altair()
    return alt.Y("regret:Q", title=None, scale=scale, axis=alt.Axis(format=",~r", tickCount=6))


def _regret_scale(values: Sequence[float]) -> Any:
    """Settings are to be told apart, so it need not begin at 0."""
    return _altair().Scale(domain=_room(values), nice=False)


def _room(values: Sequence[float]) -> list[float]:
    """A domain in which no point touches the frame."""
    margin = 0.08 * (max(values) - min(values)) or max(1.0, 0.1 * max(values))
    return [max(min(values) - margin, 0.0 if min(values) > margin / 2 else -margin), max(values) + margin]


def _level_lines(data: str, names: Sequence[str], *, y: Any) -> list[Altair]:
    alt = _altair()
    base = alt.Chart(alt.NamedData(data)).encode(y=y)
    rule = base.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(
        color=_colour(names), tooltip=[alt.Tooltip("algorithm:N"), alt.Tooltip("setting:N"), alt.Tooltip("regret:Q")]
    )
    text = base.mark_text(align="left", x=6, dy=-6, fontSize=10, font=FONT, color=MUTED).encode(text="algorithm:N")
    return [rule, text]


def _point_tooltip(cost: str = "scalars") -> list[Any]:
    alt = _altair()
    return [
        alt.Tooltip("algorithm:N"),
        alt.Tooltip("setting:N"),
        alt.Tooltip("regret:Q", format=",.1f"),
        alt.Tooltip(f"{cost}:Q", format=".3~s"),
    ]


def _legend_strip(names: Sequence[str], *, width: int) -> Altair:
    """A legend of our own: Vega's would list colours and dashes apart."""
    alt = _altair()
    entries = list(_placed(names))
    scale = alt.Scale(domain=[0, width], nice=False)
    base = alt.Chart(alt.Data(values=entries)).encode(x=alt.X("x:Q", scale=scale, axis=None), y=alt.value(10))
    line = base.mark_rule(strokeWidth=2.4).encode(
        x2="x2:Q", color=alt.Color("colour:N", scale=None), strokeDash=alt.StrokeDash("dash:N", scale=None)
    )
    text = base.mark_text(align="left", dx=38, fontSize=12, font=FONT, color=INK).encode(text="algorithm:N")
    mark = base.mark_point(filled=True, opacity=1, size=60).encode(
        x=alt.X("middle:Q", scale=scale, axis=None),
        color=alt.Color("colour:N", scale=None),
        shape=alt.Shape("shape:N", scale=None),
    )
    return alt.layer(line, mark, text).properties(width=width, height=20)


def _placed(names: Sequence[str]) -> Iterator[Record]:
    x = 0.0
    for name, look in legend(names):
        place = {"algorithm": name, "x": x, "x2": x + 32, "middle": x + 16}
        yield place | {"colour": look.colour, "dash": list(look.dash), "shape": SHAPES[look.shape]}
        x += 70 + 7.2 * len(name)


def _colour(names: Sequence[str], *, channel: str = "Color") -> Any:
    alt = _altair()
    colours = [look.colour for _, look in legend(names)]
    scale = alt.Scale(domain=list(names), range=colours)
    return getattr(alt, channel)("algorithm:N", legend=None, scale=scale)


def _dash(names: Sequence[str]) -> Any:
    alt = _altair()
    dashes = [list(look.dash) for _, look in legend(names)]
    return alt.StrokeDash("algorithm:N", legend=None, scale=alt.Scale(domain=list(names), range=dashes))


def _shape(names: Sequence[str]) -> Any:
    alt = _altair()
    shapes = [SHAPES[look.shape] for _, look in legend(names)]
    return alt.Shape("algorithm:N", legend=None, scale=alt.Scale(domain=list(names), range=shapes))


def _time() -> Any:
    alt = _altair()
    return alt.X("t:Q", title="interaction t", axis=alt.Axis(format=",d", tickCount=5), scale=alt.Scale(nice=False))


def _axis(field: str, *, whole: bool = False) -> Any:
    alt = _altair()
    axis = alt.Axis(format=",~r", tickCount=6, tickMinStep=1 if whole else 0)
    return alt.Y(f"{field}:Q", title=None, scale=alt.Scale(zero=True), axis=axis)


def _log_axis(field: str, values: Sequence[float], *, x: bool = False) -> Any:
    alt = _altair()
    ticks = round_numbers(min(values), max(values)) if values else []
    kind = alt.X if x else alt.Y
    return kind(
        f"{field}:Q",
        title=None,
        scale=alt.Scale(type="log", nice=False, padding=16 if x else 8),
        axis=_ticks(ticks, "~s"),
    )


def _ticks(values: Sequence[float], number: str) -> Any:
    return _altair().Axis(values=list(values), format=number)


def _finished(drawn: Altair, data: Mapping[str, Sequence[Record]], *, height: int = HEIGHT) -> Chart:
    return Chart(drawn.properties(width=WIDTH, height=height), data=data)


def _altair() -> Any:
    return _package("altair")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        advice = "pip install 'laconic[paper]', or '.[paper]' in a clone"
        raise InputError(f"{name} is not installed; try: {advice}") from None
