"""The report in a real browser, cut off from the network, on a wide page, a tablet and a phone."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from tests.pages.browsing import browsed, needs_browser

#: A window is at least 500 pixels wide, so the page is shown in a frame, as wide as the device would be. It is measured
#: after a timer and not after a painted frame: virtual time may be over before a slow machine has painted any.
FRAME = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0" width="{width}" height="900" srcdoc="{page}"></iframe>
<script>
const frame = document.querySelector("iframe");
const timer = setInterval(() => {{
  const page = frame.contentDocument;
  if (page?.body?.dataset.charts !== "drawn") return;
  clearInterval(timer);
  page.querySelectorAll("details").forEach(each => each.open = true);
  setTimeout(() => {{
    const width = page.documentElement.clientWidth;
    const inBox = each => each.closest(".scroll, pre, nav");
    const named = each => each.tagName + "." + each.className + ": " + each.textContent.slice(0, 40);
    const every = [...page.querySelectorAll("main *, header *, footer *")].filter(each => !each.closest("svg"));
    const measured = {{
      width,
      whole: page.documentElement.scrollWidth,
      out: every.filter(each => !inBox(each) && each.getBoundingClientRect().right > width + 1).map(named),
      cut: [...page.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth + 1).map(named),
      small: every.filter(each => each.tagName === "TD" && each.scrollWidth > each.clientWidth + 1).map(named),
      charts: page.querySelectorAll(".chart").length,
      drawn: page.querySelectorAll("svg.marks").length,
    }};
    document.body.dataset.measured = JSON.stringify(measured);
    frame.remove();
  }}, 100);
}}, 50);
</script>"""

pytestmark = needs_browser


def opened(page: Path, *, width: int, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What was measured on the page with everything unfolded, and what came to its console."""
    framed = folder / "framed.html"
    text = escape(page.read_text(encoding="utf-8"))
    framed.write_text(FRAME.format(width=width, page=text), encoding="utf-8")
    shown, said = browsed(framed, folder=folder)
    found = re.search(r'data-measured="(.*?)"', shown)
    assert found, said[-2000:]
    return json.loads(unescape(found[1])), [line for line in said.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_the_page_draws_every_chart_and_cuts_nothing_off(written: Path, tmp_path: Path, width: int) -> None:
    page, complaints = opened(written / "report.html", width=width, folder=tmp_path)
    assert complaints == []  # no network was asked for either
    assert page["drawn"] == page["charts"] > 0
    assert page["whole"] <= page["width"] <= width  # nothing makes the page scroll sideways
    assert page["out"] == []
    assert page["cut"] == []  # every column of every table is in sight
    assert page["small"] == []
