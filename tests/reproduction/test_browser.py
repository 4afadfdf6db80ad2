"""The report in a real browser, cut off from the network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for found in map(shutil.which, BROWSERS) if found), None)
MEASURE = """<script>window.addEventListener("load", () => {
  document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
})</script>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here; try: apt-get install chromium")


def opened(page: Path, *, width: int, profile: Path) -> tuple[str, list[str]]:
    """The page as the browser has made it, and what came to its console."""
    measured = page.with_name(f"at-{width}.html")
    before, end, after = page.read_text(encoding="utf-8").rpartition("</body>")
    measured.write_text(f"{before}{MEASURE}{end}{after}", encoding="utf-8")
    done = subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"),
            *("--virtual-time-budget=60000", f"--window-size={width},900", "--dump-dom", measured.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_draws_every_chart_without_network_and_without_complaint(
    written: Path, tmp_path: Path, width: int
) -> None:
    page, complaints = opened(written / "report.html", width=width, profile=tmp_path)
    assert complaints == []
    assert 'data-charts="drawn"' in page
    assert len(re.findall(r'<svg[^>]*class="marks"', page)) == page.count('class="chart"') > 0
    assert 'data-wide="false"' in page  # nothing sticks out to the right
