"""A hook of MkDocs: the site is read from a folder, where nothing leads to the page that a server shows for errors."""

from __future__ import annotations

from typing import Any


def on_config(config: Any) -> None:
    """Leave that page out: its links begin at the root of a server."""
    config.theme.static_templates -= {"404.html"}
