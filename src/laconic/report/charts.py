"""Charts for pages, in Vega-Lite by Altair: one definition gives the interactive chart, the PNG and the SVG.

They take plain records. What a record holds is said by each function; ``algorithm`` is always its line's name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from laconic.errors import InputError
from laconic.report.figures import COLOURS, FAINT, INK

Record = dict[str, Any]
Chart = Any  # of altair, whose own types are too many to check

HEIGHT, WIDTH = 260, 380  # of one chart; its width in a page is that of its place
MUTED = "#6B7280"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [4, 2, 1, 2, 1, 2])
#: The same look for an algorithm in every chart; others take what is left.
LOOKS = {
    "OneKernelUCB": (COLOURS[0], DASHES[0]),
    "DisKernelUCB": (COLOURS[2], DASHES[1]),
    "ApproxDisKernelUCB": (COLOURS[1], DASHES[0]),
    "NKernelUCB": (COLOURS[3], DASHES[3]),
    "DisLinUCB": (COLOURS[4], DASHES[2]),
    "Random": ("#9CA3AF", DASHES[4]),
}


def over_time(records: Sequence[Record], *, title: str, log: bool = False, step: bool = False) -> Chart:
    """Lines with bands against t, of records with t, mean, low and high; hovering reads all lines at one t."""
    alt = _altair()
    names = _names(records)
    if log:
        records = [each for each in records if each["low"] > 0]
    y = alt.Y("mean:Q", title=None, scale=_scale(log), axis=alt.Axis(format="~s" if log or step else ",~r"))
    base = alt.Chart(alt.Data(values=list(records)), title=title).encode(
        x=alt.X("t:Q", title="interaction t", axis=alt.Axis(format=",d", tickCount=5)), color=_colour(names)
    )
    shape = "step-after" if step else "linear"
    band = base.mark_area(opacity=0.14, interpolate=shape).encode(
        y=alt.Y("low:Q", scale=_scale(log), title=None), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=1.9, interpolate=shape).encode(y=y, strokeDash=_dash(names))
    number = ",.3~s" if log or step else ",.1f"
    return _finished(alt.layer(band, line, _reader(base, names, number=number, name=_identifier(title))))


def frontier(points: Sequence[Record], *, levels: Sequence[Record], title: str) -> Chart:
    """Regret against scalars of every setting; those that send nothing are levels.

    Points have scalars, regret, setting, tuned and best (on the frontier); levels have regret, setting and label.
    """
    alt = _altair()
    names = _names([*points, *levels])
    base = alt.Chart(alt.Data(values=list(points)), title=title)
    x = alt.X("scalars:Q", title="scalars sent (log)", scale=_scale(True), axis=alt.Axis(format="~s", tickCount=5))
    y = alt.Y("regret:Q", title="regret", scale=alt.Scale(zero=False), axis=alt.Axis(format=",~r"))
    front = (
        base.transform_filter("datum.best")
        .mark_line(interpolate="step-after", color=MUTED, strokeDash=[3, 3], strokeWidth=1)
        .encode(x=x, y=y, order="scalars:Q")
    )
    dots = base.mark_point(filled=True, strokeWidth=1.2).encode(
        x=x,
        y=y,
        color=_colour(names),
        opacity=alt.condition("datum.tuned", alt.value(1.0), alt.value(0.55)),
        size=alt.condition("datum.tuned", alt.value(150), alt.value(46)),
        stroke=alt.condition("datum.tuned", alt.value(INK), alt.value(None)),
        tooltip=_about_point(),
    )
    return _finished(alt.layer(_level_lines(levels, names), front, dots))


def paths(points: Sequence[Record], *, title: str) -> Chart:
    """How regret and scalars move as one parameter does, of records with scalars, regret, value, order and base."""
    alt = _altair()
    names = _names(points)
    base = alt.Chart(alt.Data(values=list(points)), title=title)
    x = alt.X("scalars:Q", title="scalars sent (log)", scale=_scale(True), axis=alt.Axis(format="~s", tickCount=4))
    y = alt.Y("regret:Q", title="regret", scale=alt.Scale(zero=False, padding=14), axis=alt.Axis(format=",~r"))
    line = base.mark_line(strokeWidth=1.2, opacity=0.6).encode(x=x, y=y, color=_colour(names), order="order:Q")
    dots = base.mark_point(filled=True, opacity=1).encode(
        x=x,
        y=y,
        color=_colour(names),
        size=alt.condition("datum.base", alt.value(120), alt.value(48)),
        tooltip=_about_point(),
    )
    text = base.mark_text(dy=-10, fontSize=10, font=FONT, color=INK).encode(x=x, y=y, text="label:N")
    return _finished(alt.layer(line, dots, text))


def legend(names: Sequence[str]) -> list[tuple[str, str, Sequence[int]]]:
    """Each name with its colour and dashes, for a legend beside the charts."""
    return [(name, *_look(name, index)) for index, name in enumerate(names)]


def in_page(chart: Chart) -> str:
    """The chart as JSON for the page's script, as wide as its place and without a legend."""
    spec = chart.to_dict(validate=False)
    spec["width"] = "container"
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def draw(rows: Sequence[Sequence[Chart]], path: Path, *, kind: Literal["png", "svg"], title: str) -> None:
    """Charts in rows as one file, with a common legend."""
    alt = _altair()
    sheet = alt.vconcat(*(alt.hconcat(*row) for row in rows)).properties(
        title=alt.TitleParams(title, anchor="start", fontSize=15, font=FONT, offset=12, color=INK)
    )
    spec = sheet.configure(**config(), background="white").to_dict(validate=False)
    _show_legend(spec)
    converter = _package("vl_convert")
    if kind == "png":
        path.write_bytes(converter.vegalite_to_png(spec, scale=2))
    else:
        path.write_text(converter.vegalite_to_svg(spec), encoding="utf-8")


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one text, so that a page needs no network."""
    bundle: str = _package("vl_convert").javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _identifier(title: str) -> str:
    """A name that tells apart the pointers of charts on one sheet."""
    return "at_" + "".join(letter if letter.isalnum() else "_" for letter in title)


def _reader(base: Chart, names: Sequence[str], *, number: str, name: str) -> Chart:
    """A rule that follows the pointer and tells every line's mean."""
    alt = _altair()
    here = alt.selection_point(
        name=name, nearest=True, on="pointerover", fields=["t"], empty=False, clear="pointerout"
    )
    values = [alt.Tooltip(each, type="quantitative", format=number) for each in names]
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


def _level_lines(levels: Sequence[Record], names: Sequence[str]) -> Chart:
    alt = _altair()
    base = alt.Chart(alt.Data(values=list(levels)))
    rule = base.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(
        y="regret:Q", color=_colour(names), tooltip=[alt.Tooltip("algorithm:N"), alt.Tooltip("setting:N")]
    )
    text = base.mark_text(align="left", x=4, dy=-5, fontSize=10, font=FONT, color=MUTED).encode(
        y="regret:Q", text="label:N"
    )
    return alt.layer(rule, text)


def _about_point() -> list[Any]:
    alt = _altair()
    return [
        alt.Tooltip("algorithm:N"),
        alt.Tooltip("setting:N"),
        alt.Tooltip("regret:Q", format=",.1f"),
        alt.Tooltip("scalars:Q", format=".3~s"),
    ]


def _names(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(str(each["algorithm"]) for each in records))


def _look(name: str, index: int) -> tuple[str, Sequence[int]]:
    return LOOKS.get(name, (COLOURS[(index + 5) % len(COLOURS)], DASHES[index % len(DASHES)]))


def _colour(names: Sequence[str]) -> Any:
    alt = _altair()
    colours = [_look(name, index)[0] for index, name in enumerate(names)]
    return alt.Color("algorithm:N", legend=None, scale=alt.Scale(domain=list(names), range=colours))


def _dash(names: Sequence[str]) -> Any:
    alt = _altair()
    dashes = [list(_look(name, index)[1]) for index, name in enumerate(names)]
    return alt.StrokeDash("algorithm:N", legend=None, scale=alt.Scale(domain=list(names), range=dashes))


def _scale(log: bool) -> Any:
    alt = _altair()
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=True)


def _show_legend(spec: Any) -> None:
    """Charts of a page share a legend outside; those of a file bring it along."""
    if isinstance(spec, dict):
        for channel in ("color", "strokeDash"):
            if isinstance(spec.get(channel), dict) and spec[channel].get("legend", 0) is None:
                spec[channel] = spec[channel] | {"legend": {"title": None, "orient": "bottom", "symbolType": "stroke"}}
        for inner in spec.values():
            _show_legend(inner)
    elif isinstance(spec, list):
        for inner in spec:
            _show_legend(inner)


def _finished(chart: Chart) -> Chart:
    return chart.properties(width=WIDTH, height=HEIGHT)


def config() -> dict[str, Any]:
    """Fonts, colours and lines of all charts."""
    axis = {"labelColor": MUTED, "titleColor": MUTED, "labelFont": FONT, "titleFont": FONT, "titleFontWeight": "normal"}
    lines = {"gridColor": FAINT, "domainColor": "#9CA3AF", "tickColor": "#9CA3AF", "tickSize": 4, "labelFontSize": 11}
    return {
        "axis": axis | lines | {"titleFontSize": 11},
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "labelFont": FONT,
            "labelFontSize": 12,
            "labelColor": INK,
            "symbolStrokeWidth": 2.4,
            "labelLimit": 240,
        },
        "title": {"font": FONT, "fontSize": 13, "fontWeight": 600, "color": INK, "anchor": "start", "offset": 10},
        "view": {"stroke": None},
    }


def _altair() -> Any:
    return _package("altair")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"{name} is not installed; try: pip install 'laconic[paper]'") from None


def require_charts() -> None:
    """Refuse to start what could not be drawn at its end."""
    for name in ("altair", "vl_convert"):
        _package(name)
