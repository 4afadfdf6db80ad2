from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from laconic.report.figures import Band, Line, regret_and_communication, save, spread_out

T = np.arange(1, 51)


def line(label: str, *, regret: float, scalars: float) -> Line:
    runs = np.array([[0.9], [1.1]]) * T / T[-1]
    return Line(label=label, t=T, regret=Band.of(regret * runs), scalars=Band.of(scalars * runs))


def figure(*lines: Line) -> Figure:
    return regret_and_communication(lines, title="what was played")


def texts(drawn: Figure) -> list[str]:
    return [text.get_text() for axes in drawn.axes for text in axes.texts]


def test_a_band_is_mean_and_sd_over_seeds() -> None:
    band = Band.of(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert band.mean.tolist() == [2.0, 2.0]
    assert band.sd.tolist() == [pytest.approx(2**0.5), 0.0]


def test_a_single_seed_has_a_band_of_no_width() -> None:
    assert Band.of(np.array([[1.0, 2.0]])).sd.tolist() == [0.0, 0.0]


def test_every_line_is_named_with_its_last_value_in_both_panels() -> None:
    shown = texts(figure(line("A", regret=90.0, scalars=7e6), line("B", regret=500.0, scalars=6e5)))
    assert shown == ["A  90.0", "B  500", "A  7.00 M", "B  600 k"]


def test_who_sends_nothing_is_noted_rather_than_lost_on_the_log_axis() -> None:
    drawn = figure(
        line("A", regret=90.0, scalars=7e6), line("N", regret=5.0, scalars=0.0), line("B", regret=5.0, scalars=5e5)
    )
    assert drawn.axes[1].get_yscale() == "log"
    assert "N  sends nothing" in texts(drawn)


def test_communication_of_one_size_has_a_linear_axis() -> None:
    drawn = figure(line("A", regret=90.0, scalars=7e6), line("B", regret=5.0, scalars=3e6))
    assert drawn.axes[1].get_yscale() == "linear"


@pytest.mark.filterwarnings("error")
def test_nobody_sending_anything_draws_without_a_warning(tmp_path: Path) -> None:
    save(figure(line("N", regret=0.0, scalars=0.0)), tmp_path / "f.png", kind="png")
    assert (tmp_path / "f.png").stat().st_size > 0


def test_a_run_of_one_step_draws(tmp_path: Path) -> None:
    one = Line(label="A", t=np.array([1]), regret=Band.of(np.ones((1, 1))), scalars=Band.of(np.ones((1, 1))))
    save(figure(one), tmp_path / "f.svg", kind="svg")
    assert (tmp_path / "f.svg").stat().st_size > 0


def test_many_lines_have_a_legend_instead_of_crowded_labels() -> None:
    drawn = figure(*(line(f"A gamma={i}", regret=i + 1.0, scalars=10.0) for i in range(12)))
    assert texts(drawn) == []
    assert len(drawn.legends[0].get_texts()) == 12


def test_many_lines_still_say_who_sends_nothing() -> None:
    drawn = figure(*(line(f"A gamma={i}", regret=i + 1.0, scalars=10.0 * (i > 3)) for i in range(12)))
    assert drawn.axes[1].get_title(loc="left") == "Scalars sent; nothing by A gamma=0, A gamma=1 and 2 more"


def test_the_same_lines_give_the_same_files(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save(figure(line("A", regret=90.0, scalars=7e6)), tmp_path / name, kind="svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_notebooks_can_show_it() -> None:
    shown = figure(line("A", regret=90.0, scalars=7e6))._repr_png_()  # type: ignore[attr-defined]
    assert shown.startswith(b"\x89PNG")


@given(st.lists(st.floats(0, 1), max_size=8))
def test_labels_never_overlap_and_keep_their_order(wanted: list[float]) -> None:
    placed = spread_out(wanted, gap=0.06)
    pairs = sorted(zip(placed, wanted, strict=True))
    assert all(b - a >= 0.06 - 1e-5 for (a, _), (b, _) in pairwise(pairs))
    assert [w for _, w in pairs] == sorted(wanted)
    assert all(place >= 0 for place in placed)


def test_labels_with_room_stay_where_they_belong() -> None:
    assert spread_out([0.9, 0.1, 0.5], gap=0.06) == [0.9, 0.1, 0.5]
