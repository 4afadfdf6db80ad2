"""A page that needs nothing but itself: style, scripts and charts are inside, and it may not call the network."""

from __future__ import annotations

import json
from pathlib import Path

from laconic.report import charts
from laconic.report.markup import Markup, join, tag

HERE = Path(__file__).parent
# Whatever tries to load something from elsewhere is refused by the browser; Vega makes functions from expressions.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:"


def chart(drawn: charts.Chart, *, label: str, note: str = "") -> Markup:
    """A place for a chart, which the page's script fills, and what is to be said below it."""
    spec = tag("script", Markup(charts.in_page(drawn)), type="application/json")
    plot = tag("div", class_="plot", role="img", aria_label=label)
    below = (tag("figcaption", note),) * bool(note)
    return tag("figure", plot, spec, *below, class_="chart")


def document(*body: str, title: str) -> str:
    """The whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", Markup(_text("page.css"))),
    )
    look = json.dumps(charts.config(), ensure_ascii=False)
    scripts = join(
        [
            tag("script", Markup(charts.script())),
            tag("script", Markup(f"const LOOK = {look};\n{_text('page.js')}")),
        ]
    )
    return f'<!doctype html>\n<html lang="en">{head}{tag("body", *body, scripts)}</html>\n'


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
