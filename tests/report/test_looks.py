from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from laconic import registry
from laconic.report import charts
from laconic.report.looks import LOOKS, MARKERS, SHAPES, SPARE, looks, markers
from tests.experiments.making import results, row


def test_every_algorithm_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(registry.names("algorithm"))


def test_lines_and_outlines_are_told_apart_without_colour() -> None:
    for one, other in combinations(LOOKS.values(), 2):
        assert one.dash != other.dash
        assert one.marker != other.marker
        assert one.colour != other.colour
    assert not {each.dash for each in LOOKS.values()} & {each.dash for each in SPARE}
    assert len({each.dash for each in SPARE}) == len(SPARE)
    assert set(SHAPES) == set(MARKERS)


def test_every_colour_is_dark_enough_on_white() -> None:
    for look in (*LOOKS.values(), *SPARE):
        red, green, blue = to_rgb(look.colour)
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.6


def test_whoever_else_is_there_an_algorithm_looks_the_same() -> None:
    assert looks(["Mine", "DisLinUCB", "Yours"])["DisLinUCB"] == looks(["DisLinUCB"])["DisLinUCB"]
    mine, yours = (looks(["Mine", "DisLinUCB", "Yours"])[name] for name in ("Mine", "Yours"))
    assert mine != yours


def test_settings_of_one_algorithm_share_its_look_and_differ_by_their_markers() -> None:
    two = results(
        row("DisKernelUCB", params={"D": 1.0}),
        row("DisKernelUCB", params={"D": 2.0}),
        row("NKernelUCB", params={}),
    )
    lines = two.plot().axes[0].get_lines()[:3]
    assert lines[0].get_color() == lines[1].get_color() == LOOKS["DisKernelUCB"].colour
    assert [line.get_marker() for line in lines] == [*markers(["A", "A"]), "None"]
    named = [text.get_text().rpartition("  ")[0] for text in two.plot().axes[0].texts]
    assert named == ["● DisKernelUCB D=1", "■ DisKernelUCB D=2", "NKernelUCB"]
    assert lines[2].get_color() == LOOKS["NKernelUCB"].colour


@pytest.mark.parametrize("names", [["LaconicUCB", "DisKernelUCB"], ["DisKernelUCB", "Random", "LaconicUCB"]])
def test_charts_and_figures_give_an_algorithm_the_same_look(names: list[str]) -> None:
    drawn = results(*(row(name, params={}) for name in names)).plot().axes[0].get_lines()
    in_charts = {name: look.colour for name, look in charts.legend(names)}
    for name, line in zip(names, drawn, strict=False):
        assert line.get_color() == LOOKS[name].colour == in_charts[name]
