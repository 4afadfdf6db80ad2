"""A frontier says below itself how it is to be read, in the same words as figure and in a report."""

from __future__ import annotations

import numpy as np

from laconic.report.explained import frontier_explained
from laconic.report.frontier_figure import Dot, regret_against_bytes

DOTS = (
    Dot("N", algorithm="N", label="N", bytes=0.0, regret=30.0, sd=0.0, marked=True),
    Dot("A", algorithm="A", label="A", bytes=100.0, regret=20.0, sd=1.0, marked=True),
    Dot("A", algorithm="A", label="A", bytes=200.0, regret=25.0, sd=1.0, marked=False),
    Dot("B", algorithm="B", label="B", bytes=300.0, regret=10.0, sd=1.0, marked=True),
)
ASKING = Dot("Ask", algorithm="Ask", label="Ask", bytes=50.0, regret=5.0, sd=0.0, marked=False, waits=True)


def below(*dots: Dot) -> str:
    return " ".join(str(regret_against_bytes(dots, title="what").get_supxlabel()).split())


def test_a_figure_explains_its_dots_its_line_and_its_levels() -> None:
    assert below(*DOTS) == frontier_explained()
    for word in ("Each dot", "Filled dots", "non-dominated", "Hollow dots", "broken line", "horizontal line"):
        assert word in below(*DOTS)


def test_what_is_not_there_is_not_explained() -> None:
    assert "ask the server" not in below(*DOTS)
    assert "ask the server" in below(*DOTS, ASKING)
    assert "tuned" not in below(*DOTS)
    assert frontier_explained(cost="scalars", tuned=True).count("scalars") == 2


def test_the_line_goes_through_what_is_marked_and_sends_something() -> None:
    figure = regret_against_bytes(DOTS, title="what")
    (line,) = (each for each in figure.axes[0].lines if each.get_drawstyle() == "steps-post")
    assert np.asarray(line.get_xydata()).tolist() == [[100.0, 20.0], [300.0, 10.0]]
