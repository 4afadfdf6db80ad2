"""A comparison in a notebook shows a bar; elsewhere it is silent."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from laconic import Cosine, compare
from laconic.report.bar import Bar, is_notebook

PROBLEM = Cosine(dim=2, arms=3)


class Page:
    """Stands in for the browser: what IPython would send to it, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.HTML = str

    def display(self, page: str, *, display_id: bool) -> Page:
        assert display_id
        self.seen.append(page)
        return self

    def update(self, page: str) -> None:
        self.seen.append(page)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    shown = Page()
    display: Any = shown
    ipython: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_comparison_in_a_notebook_has_a_bar_that_ends_full(page: Page) -> None:
    compare(["DisLinUCB", "Random"], problem=PROBLEM, clients=2, rounds=3, seeds=2)
    assert page.seen[0].startswith('<progress max="24" value="0"')
    assert '<progress max="24" value="24"' in page.seen[-1]
    assert "100% &nbsp; 4 of 4 runs &nbsp;" in page.seen[-1]


def test_a_bar_shows_runs_of_other_processes_too(page: Page) -> None:
    compare("DisLinUCB", problem=PROBLEM, clients=2, rounds=3, seeds=2, jobs=2)
    assert '<progress max="12" value="12"' in page.seen[-1]


def test_who_watches_otherwise_sees_no_bar(page: Page) -> None:
    events: list[object] = []
    compare("DisLinUCB", problem=PROBLEM, clients=2, rounds=3, seeds=1, progress=events.append)
    assert events
    assert page.seen == []


def test_what_a_bar_says_is_text_and_no_markup() -> None:
    assert "&lt;b&gt;" in Bar(total=2).html(1, "<b>")


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_notebook()
    terminal: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert not is_notebook()
