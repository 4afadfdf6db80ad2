"""The frontier: who is beaten by whom, what is swept, and that a sweep goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import AskServer, Cosine, DisKernelUCB, Frontier, LaconicUCB, Matern, Results, Theory, frontier, grid
from laconic.errors import InputError, OutputError
from laconic.experiments.config import ConfigFile, read_experiment
from laconic.experiments.folder import RUNS
from laconic.experiments.frontier import BEST, BUT_FOR_WAITING, knobs, points_of
from laconic.experiments.parts import algorithm_from
from laconic.experiments.results import Row
from laconic.experiments.runner import Begun, Finished
from laconic.protocol.wire import FLOATS
from tests.experiments.making import results, row

SMALL: dict[str, Any] = {"clients": 3, "rounds": 4, "seeds": 2, "jobs": 1}


def made(*pairs: tuple[float, int], algorithm: str = "DisKernelUCB") -> list[Row]:
    return [
        row(algorithm, params={"D": float(place)}, regret=regret, bytes=sent)
        for place, (regret, sent) in enumerate(pairs)
    ]


def marks(*rows: Row) -> list[str]:
    return [point.mark for point in points_of(results(*rows))]


def test_a_setting_is_beaten_by_one_that_loses_no_more_and_sends_no_more() -> None:
    assert marks(*made((10, 100), (10, 200), (12, 100), (12, 50), (9, 300))) == [BEST, "", "", BEST, BEST]


def test_settings_with_the_same_regret_and_bytes_do_not_beat_each_other() -> None:
    assert marks(*made((10, 100), (10, 100))) == [BEST, BEST]


def test_one_that_sends_nothing_is_beaten_only_by_less_regret_for_nothing() -> None:
    assert marks(*made((30, 0), (20, 10), (25, 0))) == ["", BEST, BEST]


def test_a_setting_that_only_those_with_round_trips_beat_has_a_sign_of_its_own() -> None:
    asking = row("AskServer", params={}, regret=9.0, bytes=90)
    assert marks(*made((10, 100), (11, 200)), asking) == [BUT_FOR_WAITING, "", BEST]
    beaten = row("AskServer", params={}, regret=11.0, bytes=110)
    assert marks(*made((10, 100)), beaten) == [BEST, ""]


def test_the_legend_explains_the_signs_that_stand_in_the_table() -> None:
    asking = row("AskServer", params={}, regret=9.0, bytes=90)
    plain, waited = (repr(Frontier(results(*rows))) for rows in (made((10, 100)), [*made((10, 100)), asking]))
    assert BEST in plain
    assert BUT_FOR_WAITING not in plain
    assert waited.count(BUT_FOR_WAITING) == 2  # beside the setting, and in the legend


def test_what_sends_nothing_sends_0_bytes() -> None:
    (cells,) = Frontier(results(*made((10, 0)))).table().rows
    assert cells[2] == "0 B"


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_the_best_are_those_that_a_search_over_budgets_finds(pairs: list[tuple[int, int]]) -> None:
    points = points_of(results(*made(*[(float(regret), sent) for regret, sent in pairs])))
    found = {(point.regret, point.bytes) for point in points if point.mark}
    budgets = range(7)
    wanted = set()
    for budget in budgets:  # the least regret within a budget, and the fewest bytes for that regret
        within = [(regret, sent) for regret, sent in pairs if sent <= budget]
        if within:
            wanted.add(min(within))
    assert found == {(float(regret), float(sent)) for regret, sent in wanted}


def test_means_over_seeds_are_compared() -> None:
    one = [row("A", params={}, seed=seed, regret=regret, bytes=100) for seed, regret in enumerate((1.0, 9.0))]
    other = [row("B", params={}, seed=seed, regret=6.0, bytes=100) for seed in (0, 1)]
    first, second = points_of(results(*one, *other))
    assert (first.regret, first.mark) == (5.0, BEST)
    assert first.sd == pytest.approx(np.sqrt(32))
    assert (second.mark, second.beaten_by) == ("", ("A",))


def test_every_algorithm_is_swept_over_its_wires_and_knobs() -> None:
    settings = knobs()
    assert len(set(map(repr, settings))) == len(settings)
    every_wire: set[tuple[str, Any]] = {("wire", name) for name in (*FLOATS, "int8")}
    turned: dict[str, set[tuple[str, Any]]] = {
        "LaconicUCB": {("delta", LaconicUCB().delta), ("delta", 8.0)},
        "DisKernelUCB": {*every_wire, ("together", False), ("D", 80.0)},
        "ApproxDisKernelUCB": {("wire", "paper"), ("wire", "compact"), ("D", 2.0), ("qbar", 1.0)},
        "DisLinUCB": {("wire", "compact"), ("D", 5.0)},
        "OneKernelUCB": every_wire,
        "NKernelUCB": set(),
        "AskServer": set(),
    }
    assert {type(each).__name__ for each in settings} == set(turned)
    for name, tried in turned.items():
        alike = [each for each in settings if type(each).__name__ == name]
        for knob, value in tried:
            assert any(getattr(each, knob) == value for each in alike), (name, knob)
    assert {type(each.digest).__name__ for each in settings if isinstance(each, LaconicUCB)} == {"Atoms", "AllPoints"}


def test_kernel_lambda_and_alpha_go_to_all_that_have_them() -> None:
    for each in knobs(kernel=Matern(), lam=0.5, alpha=Theory()):
        assert getattr(each, "kernel", Matern()) == Matern()
        assert (getattr(each, "lam", None), getattr(each, "alpha", None)) == (0.5, Theory())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Frontier]:
    folder = tmp_path_factory.mktemp("frontier")
    return folder, frontier(Cosine(dim=3, arms=4), **SMALL, out=folder)


def test_the_whole_sweep_fits_a_terminal_and_leaves_its_files(whole: tuple[Path, Frontier]) -> None:
    folder, found = whole
    assert max(map(len, repr(found).splitlines())) <= 80
    assert {path.name for path in folder.iterdir()} == {
        *("runs", "results.parquet", "config.toml", "figure.png", "figure.svg")
    }
    assert len(list((folder / "runs").iterdir())) == len(found.results.rows) == 2 * len(knobs())
    assert Results.from_parquet(folder / "results.parquet").rows == found.results.rows
    written = [algorithm_from(table) for table in read_experiment(folder / "config.toml", ConfigFile).algorithms]
    assert written == knobs()


def test_what_needs_a_round_trip_is_named_and_not_on_the_line(whole: tuple[Path, Frontier]) -> None:
    _, found = whole
    assert [point.label for point in found.points if point.waits] == ["AskServer"]
    assert "AskServer" not in {point.family for point in found.best}
    sent, lost = zip(*((point.bytes, point.regret) for point in found.best), strict=True)
    assert list(sent) == sorted(sent)
    assert list(lost) == sorted(lost, reverse=True)


def test_the_same_call_goes_on_where_it_was(whole: tuple[Path, Frontier]) -> None:
    folder, found = whole
    some = sorted((folder / "runs").iterdir())[:3]
    for path in some:
        path.unlink()
    seen: list[object] = []
    again = frontier(Cosine(dim=3, arms=4), **SMALL, out=folder, watch=seen.append)
    assert sum(isinstance(each, Finished) for each in seen) == 3
    assert [len(each.known) for each in seen if isinstance(each, Begun)] == [len(found.results.rows) - 3]
    assert [(p.label, p.regret, p.bytes) for p in again.points] == [(p.label, p.regret, p.bytes) for p in found.points]


def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    algorithms: list[Any] = [DisKernelUCB(D=grid(1.0, 9.0)), AskServer()]
    one, two = (
        frontier(Cosine(dim=3), algorithms=algorithms, clients=3, rounds=4, seeds=1, jobs=jobs) for jobs in (1, 2)
    )
    assert [(p.label, p.regret, p.bytes) for p in one.points] == [(p.label, p.regret, p.bytes) for p in two.points]


def test_what_cannot_run_is_refused_before_anything_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="clients"):
        frontier("cosine", clients=0)
    with pytest.raises(InputError, match="did you mean cosine"):
        frontier("cosin")
    with pytest.raises(InputError, match="jobs must be"):
        frontier("cosine", jobs=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make"):
        frontier("cosine", out=tmp_path / "file" / "deep")
    assert RUNS not in {path.name for path in tmp_path.iterdir()}


def test_the_figure_has_a_marker_a_family_and_a_level_for_what_sends_nothing(whole: tuple[Path, Frontier]) -> None:
    figure = whole[1].plot()
    (legend,) = figure.legends
    named = [text.get_text().partition(",")[0] for text in legend.get_texts()]
    assert "LaconicUCB all points" in named
    assert "NKernelUCB" not in named
    (axes,) = figure.axes
    assert any(text.get_text().startswith("NKernelUCB sends nothing") for text in axes.texts)
    markers = [handle.get_marker() for handle in legend.legend_handles[:-1]]  # type: ignore[union-attr]
    assert len(set(markers)) == len(markers)
