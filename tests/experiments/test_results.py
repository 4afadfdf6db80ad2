from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from laconic import Algorithm, Catalogue, DisKernelUCB, InputError, LaconicUCB, Results, __version__, run
from laconic.errors import OutputError
from laconic.experiments.frames import columns
from laconic.experiments.grid import Params
from laconic.experiments.results import POINTS, Curve, labels
from laconic.runtimes.trace import Recorder, Run
from tests.experiments.making import results, row

TWO_SETTINGS = results(
    row("DisKernelUCB", seed=0, regret=10.0, params={"D": 5.0}),
    row("DisKernelUCB", seed=0, regret=8.0, params={"D": 20.0}, scalars=50),
    row("DisKernelUCB", seed=1, regret=12.0, params={"D": 5.0}),
    row("DisKernelUCB", seed=1, regret=9.0, params={"D": 20.0}, scalars=70),
    row("NKernelUCB", seed=0, regret=30.0, params={}),
)


def test_a_group_has_mean_and_sd_over_seeds() -> None:
    first = TWO_SETTINGS.groups[0]
    assert first.mean("regret") == 11.0
    assert first.sd("regret") == pytest.approx(2**0.5)


def test_one_seed_has_no_sd() -> None:
    assert TWO_SETTINGS.groups[-1].sd("regret") is None


def test_labels_name_only_what_differs() -> None:
    assert [group.label for group in TWO_SETTINGS.groups] == ["DisKernelUCB D=5", "DisKernelUCB D=20", "NKernelUCB"]


def test_the_repr_is_a_table() -> None:
    shown = repr(TWO_SETTINGS).splitlines()
    assert shown[0].startswith("cosine, d=4: 10 clients, 10 rounds")
    assert shown[1].split() == ["algorithm", "regret", "scalars", "bytes", "syncs", "dictionary", "seconds"]
    assert shown[3].startswith("DisKernelUCB D=5")
    assert "11.0 ± 1.4" in shown[3]
    assert shown[-2].split()[2] == "0"
    assert "–" in shown[-2]
    assert shown[-1] == "not shown, for want of room in 80 columns: messages"


def test_the_notebook_table_escapes_what_it_shows() -> None:
    html = results(row("<b>Mine</b>"))._repr_html_()
    assert "&lt;b&gt;Mine" in html
    assert html.startswith("<table>")


def test_results_without_runs_say_so() -> None:
    assert "no run has finished" in repr(results())
    with pytest.raises(InputError, match="nothing to plot"):
        results().plot()


def test_tuned_keeps_the_best_mean_setting_of_each_algorithm() -> None:
    tuned = TWO_SETTINGS.tuned("regret")
    assert [one.params for one in tuned.rows] == [{"D": 20.0}, {"D": 20.0}, {}]


def test_tuned_says_the_setting_that_it_chose_and_by_what(tmp_path: Path) -> None:
    tuned = TWO_SETTINGS.tuned("regret")
    assert [group.label for group in tuned.groups] == ["DisKernelUCB D=20", "NKernelUCB"]
    caption, _, _, *lines, _ = repr(tuned).splitlines()
    assert caption.endswith("tuned by regret")
    assert [line.split("  ")[0] for line in lines] == ["DisKernelUCB D=20", "NKernelUCB"]
    assert "DisKernelUCB D=20" in tuned._repr_html_()
    assert [text.get_text().split("  ")[0] for text in tuned.plot().axes[0].texts] == [
        "DisKernelUCB D=20",
        "NKernelUCB",
    ]
    tuned.to_parquet(tmp_path / "r.parquet")
    assert Results.from_parquet(tmp_path / "r.parquet") == tuned


def test_tuned_twice_still_says_it() -> None:
    assert [group.label for group in TWO_SETTINGS.tuned().tuned("bytes").groups] == ["DisKernelUCB D=20", "NKernelUCB"]


def test_where_there_was_no_choice_nothing_is_said_of_one() -> None:
    only = results(row("A"), row("B"))
    assert repr(only.tuned()) == repr(only)


def test_tuned_by_another_metric_may_choose_otherwise() -> None:
    assert TWO_SETTINGS.tuned("scalars").rows[0].params == {"D": 5.0}


def test_tuned_refuses_what_is_no_metric() -> None:
    with pytest.raises(InputError, match="regret"):
        TWO_SETTINGS.tuned("regrets")


def test_plot_returns_a_figure() -> None:
    assert isinstance(TWO_SETTINGS.plot(), Figure)


def test_parquet_gives_back_the_same_results(tmp_path: Path) -> None:
    TWO_SETTINGS.to_parquet(tmp_path / "r.parquet")
    assert Results.from_parquet(tmp_path / "r.parquet") == TWO_SETTINGS
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


def test_parquet_keeps_every_digit_and_type(tmp_path: Path) -> None:
    odd = results(
        row("A", regret=0.1 + 0.2, scalars=2**59, dictionary=7, params={"x": 1, "y": 1.0, "z": None, "w": True})
    )
    odd.to_parquet(tmp_path / "r.parquet")
    back = Results.from_parquet(tmp_path / "r.parquet")
    assert back == odd
    assert [type(value) for value in back.rows[0].params.values()] == [int, float, type(None), bool]


def test_results_that_differ_in_one_point_of_a_curve_are_not_equal() -> None:
    one, other = row("A"), row("A")
    other.curve.regret[0] += 1e-12
    assert results(one) != results(other)


MIXED = results(
    row("A", seed=3, params={"kernel": "Gaussian", "gamma": 1, "alpha": 0.5, "wide": True, "qbar": "inf", "seed": 7}),
    row("B", seed=4, params={"gamma": 0.5, "alpha": "Theory", "wide": False, "qbar": 0.3}, dictionary=12),
    row("C", seed=5, params={}),
)


def test_a_frame_has_a_line_a_run_and_a_column_a_parameter() -> None:
    found = columns(MIXED)
    first, params = ["problem", "clients", "rounds", "algorithm"], ["kernel", "gamma", "alpha", "wide", "qbar"]
    assert list(found)[:11] == [*first, *params, "params.seed", "seed"]
    assert [found[name] for name in params] == [
        ["Gaussian", None, None],
        [1.0, 0.5, None],
        ["0.5", "Theory", None],
        [True, False, None],
        [float("inf"), 0.3, None],
    ]
    assert (found["seed"], found["params.seed"], found["dictionary"]) == ([3, 4, 5], [7, None, None], [None, 12, None])
    assert {len(column) for column in found.values()} == {3}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_pandas_and_polars_take_results_with_a_column_a_parameter(package: str) -> None:
    pytest.importorskip(package, reason=f"{package} makes the frame; try: pip install {package}")
    frame = getattr(MIXED, f"to_{package}")()
    assert list(frame.columns) == list(columns(MIXED))
    assert list(frame["seed"]) == [3, 4, 5]
    assert list(frame["gamma"])[:2] == [1.0, 0.5]
    again = getattr(TWO_SETTINGS, f"to_{package}")()
    assert [float(regret) for regret in again["regret"]] == [one.regret for one in TWO_SETTINGS.rows]
    assert len(getattr(results(), f"to_{package}")()) == 0


def test_polars_and_arrow_also_take_results_as_they_are() -> None:
    polars = pytest.importorskip("polars", reason="polars makes the frame; try: pip install polars")
    frame = polars.DataFrame(TWO_SETTINGS)
    assert frame["curve_t"].to_list()[0] == [1, 2, 3, 4]


@pytest.mark.parametrize(("package", "other"), [("pandas", "to_polars()"), ("polars", "to_pandas()")])
def test_a_package_that_is_missing_is_named_with_what_to_try(
    monkeypatch: pytest.MonkeyPatch, package: str, other: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"{package} is not installed; try: pip install {package}") as refused:
        getattr(MIXED, f"to_{package}")()
    assert other in str(refused.value)


def test_arrow_reads_results_as_they_are() -> None:
    table = pa.table(TWO_SETTINGS)
    assert table.column("regret").to_pylist() == [10.0, 8.0, 12.0, 9.0, 30.0]
    assert table.column("curve_t")[0].as_py() == [1, 2, 3, 4]


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.parquet"):
        Results.from_parquet(tmp_path / "nothing.parquet")


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_text("not parquet")
    with pytest.raises(InputError, match="not a Parquet file"):
        Results.from_parquet(tmp_path / "r.parquet")


def test_somebody_elses_parquet_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "r.parquet")
    with pytest.raises(InputError, match="no results of laconic"):
        Results.from_parquet(tmp_path / "r.parquet")


def test_writing_into_no_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        TWO_SETTINGS.to_parquet(tmp_path / "absent" / "r.parquet")


@pytest.mark.parametrize("algorithm", [DisKernelUCB(D=1.0), LaconicUCB()])
def test_a_curve_ends_where_its_run_ends(algorithm: Algorithm) -> None:
    one = run(algorithm, Catalogue(dim=2, items=6, arms=3), clients=4, rounds=50)
    curve = Curve.of(one)
    assert curve.t[-1] == 200
    assert curve.regret[-1] == pytest.approx(one.regret)
    assert curve.scalars[-1] == one.scalars


def test_a_curve_counts_a_sync_from_its_own_step_on() -> None:
    one = run(DisKernelUCB(D=1.0), Catalogue(dim=2, items=6, arms=3), clients=4, rounds=5)
    first = int(one.sync_steps[0])
    at = dict(zip(Curve.of(one).t.tolist(), Curve.of(one).scalars.tolist(), strict=True))
    assert at.get(first - 1, 0) == 0
    assert at[first] == one.scalars_at_sync[0]


def test_a_long_run_has_a_thinned_curve() -> None:
    one = run(DisKernelUCB(D=1e9), Catalogue(dim=1, items=2, arms=1), clients=2, rounds=400)
    curve = Curve.of(one)
    assert len(curve.t) <= POINTS
    assert (curve.t[0], curve.t[-1]) == (1, 800)
    assert (np.diff(curve.t) > 0).all()


class LateSize:
    """A belief that says |S| only from some sync on, as when exact sharing turns into Nyström."""

    def __init__(self, size: int | None) -> None:
        self.dictionary_size = size


def recorded(*sizes: int | None) -> Run:
    recorder = Recorder(DisKernelUCB().plan(2), clients=2, rounds=len(sizes))
    for index, size in enumerate(sizes):
        recorder.sync_done(2 * index + 2, LateSize(size))  # type: ignore[arg-type]
    return recorder.finish(algorithm=DisKernelUCB(), seed=0, rounds=len(sizes), seconds=0.1)


def test_a_dictionary_that_comes_late_is_of_size_0_until_then() -> None:
    one = recorded(None, None, 7)
    assert one.dictionary_sizes.tolist() == [0, 0, 7]
    assert Curve.of(one).dictionary.tolist() == [0, 0, 0, 0, 0, 7]
    assert one.dictionary == 7


def test_a_run_without_any_dictionary_has_no_sizes() -> None:
    assert recorded(None, None).dictionary is None
    assert recorded().dictionary is None


def test_parquet_and_arrow_hold_no_number_that_json_does_not_have(tmp_path: Path) -> None:
    odd = results(row("A", params={"qbar": float("inf")}))
    assert pa.table(odd).column("params").to_pylist() == ['{"qbar": "inf"}']
    odd.to_parquet(tmp_path / "r.parquet")
    assert Results.from_parquet(tmp_path / "r.parquet").rows[0].params == {"qbar": "inf"}


def test_a_parquet_file_says_what_wrote_it(tmp_path: Path) -> None:
    TWO_SETTINGS.to_parquet(tmp_path / "r.parquet")
    writer = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"laconic.writer"])
    assert (writer["laconic"], writer["numpy"]) == (__version__, np.__version__)
    assert writer["blas"]


def test_a_run_is_shown_in_one_line() -> None:
    one = run(DisKernelUCB(D=1.0), Catalogue(dim=2, items=6, arms=3), clients=4, rounds=5, seed=3)
    shown = repr(one)
    assert shown.startswith("<Run DisKernelUCB: seed 3, 4 clients, 5 rounds; ")
    assert f"{one.scalars:,} scalars sent, {one.syncs} syncs" in shown
    assert "\n" not in shown
    assert "dictionary" not in shown
    assert "7 in the dictionary" in repr(recorded(7))


def test_a_notebook_shows_a_run_as_a_few_lines() -> None:
    html = recorded(7)._repr_html_()
    assert html.startswith("<b>DisKernelUCB</b>, seed 0<ul>")
    assert "<li>7 in the dictionary</li>" in html


def test_labels_name_a_part_and_its_settings_only_where_a_rival_has_others() -> None:
    atoms, finer, points = "Atoms(tolerance=0.005)", "Atoms(tolerance=0.001)", "AllPoints()"
    two: list[tuple[str, Params]] = [("LaconicUCB", {"digest": atoms}), ("LaconicUCB", {"digest": points})]
    assert labels(two) == ["LaconicUCB digest=Atoms", "LaconicUCB digest=AllPoints"]
    three: list[tuple[str, Params]] = [*two, ("LaconicUCB", {"digest": finer})]
    assert labels(three) == [f"LaconicUCB digest={digest}" for digest in (atoms, "AllPoints", finer)]
