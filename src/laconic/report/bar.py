"""A progress bar in a notebook: a line of HTML that is replaced as runs finish."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

EVERY = 0.2  # seconds between two looks at most: each is a message to the browser


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@dataclass
class Bar:
    """What is shown: how much of how much is done, and a few words beside it."""

    total: int
    shown: Any = field(default=None, init=False)
    last: float = field(default=0.0, init=False)
    begun: float = field(default_factory=time.monotonic, init=False)

    def show(self, done: int, words: str) -> None:
        """Replace the line; not more often than eyes can see, but always when all is done."""
        now = time.monotonic()
        if self.shown is not None and done < self.total and now - self.last < EVERY:
            return
        self.last = now
        display = import_module("IPython.display")
        page = display.HTML(self.html(done, words))
        if self.shown is None:
            self.shown = display.display(page, display_id=True)
        else:
            self.shown.update(page)

    def html(self, done: int, words: str) -> str:
        """The line: a bar that every browser has, no style sheet and no script."""
        share = done / self.total if self.total else 1.0
        return (
            f'<progress max="{self.total}" value="{done}" style="vertical-align:middle;width:16em"></progress> '
            f"{share:.0%} &nbsp; {escape(words)} &nbsp; {time.monotonic() - self.begun:.0f} s"
        )
