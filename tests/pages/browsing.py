"""A real browser, cut off from the network, that opens a file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((found for found in map(shutil.which, BROWSERS) if found), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here; try: apt-get install chromium")


def browsed(page: Path, *, folder: Path) -> tuple[str, str]:
    """What the page is after its scripts have run, and what the browser wrote to stderr, its console among it."""
    done = subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"),
            *("--virtual-time-budget=60000", "--window-size=1400,1000", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout, done.stderr
