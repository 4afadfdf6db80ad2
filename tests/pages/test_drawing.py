"""The line of a frontier is the non-dominated set, by another route than the one that draws it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import AskServer, DisKernelUCB, Gaussian, NKernelUCB
from laconic.pages.drawing import draw
from tests.pages.making import laconic, panel, runs_of

pytest.importorskip("altair", reason="the report's charts need laconic[paper]")

COSTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def chart_data(*pairs: tuple[int, int], asking: bool = False) -> list[tuple[str, list[Any], list[Any]]]:
    """Of both frontiers the cost, the dots and the levels."""
    rows = [
        row
        for place, (regret, sent) in enumerate(pairs)
        for row in runs_of(DisKernelUCB(Gaussian(gamma=1.0 + place)), regret=regret, scalars=sent)
    ]
    extra = runs_of(AskServer(), regret=0.5, scalars=1) if asking else []
    drawings = draw(panel(*rows, *extra, *runs_of(NKernelUCB(), regret=8.0, scalars=0)))
    charts = [each.chart for each in (*drawings.main, drawings.bytes) if each is not None]
    named = [(key, data) for chart in charts for key, data in chart.data.items()]
    levels = [list(data) for key, data in named if key.endswith("_levels")]
    dots = [list(data) for key, data in named if any("best" in each for each in data)]
    return list(zip(("scalars", "bytes"), dots, levels[: len(dots)], strict=False))


@settings(max_examples=25, deadline=None)
@given(COSTS)
def test_filled_dots_are_those_that_a_search_over_budgets_finds(pairs: list[tuple[int, int]]) -> None:
    for cost, dots, levels in chart_data(*pairs):
        size = 1 if cost == "scalars" else 8
        every = [(regret, sent * size) for regret, sent in (*pairs, (8, 0))]
        within = [[each for each in every if each[1] <= budget * size] for budget in range(10)]
        wanted = {min(each) for each in within if each}  # the least regret for a budget, and the least cost of that
        filled = {(each["regret"], each[cost]) for each in dots if each["best"]}
        assert filled == {each for each in wanted if each[1] > 0}
        assert min(each["regret"] for each in levels) == min(regret for regret, sent in every if sent == 0)


def test_a_setting_with_more_regret_than_one_that_sends_nothing_is_not_on_the_line() -> None:
    for _, dots, _ in chart_data((9, 3), (7, 5)):
        assert [each["best"] for each in dots] == [False, True]


def test_those_that_ask_at_every_decision_are_neither_drawn_nor_on_the_line() -> None:
    for _, dots, _ in chart_data((7, 5), asking=True):
        assert [(each["algorithm"], each["best"]) for each in dots] == [("DisKernelUCB", True)]


def test_lines_and_dots_are_explained_below_the_figure() -> None:
    rows = [*runs_of(DisKernelUCB(), regret=9.0, scalars=9), *laconic(regret=9.0, scalars=4)]
    drawings = draw(panel(*rows))
    notes = [each.note for each in drawings.main if each.note]
    assert len(notes) == 1
    for word in ("Each dot", "Filled dots", "non-dominated", "Hollow", "broken line", "horizontal line", "Large dots"):
        assert word in notes[0]
    assert drawings.bytes is not None
    assert "The broken line" in drawings.bytes.label
    assert "LaconicUCB" in {each["algorithm"] for each in drawings.bytes.chart.data["of_cosine"]}
