"""What results keep of a digest's certificates, and the figure of them."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laconic import AllPoints, Cosine, DisKernelUCB, Gaussian, InputError, LaconicUCB, Results, Run, compare, run
from laconic.atoms import Reason
from laconic.experiments import storage
from laconic.experiments.certified import QUANTITIES, SUMMARY, Certified
from laconic.experiments.config import Experiment
from laconic.experiments.folder import CERTIFICATES, FIGURES
from laconic.experiments.results import Row
from laconic.experiments.tasks import Store, tasks_of
from laconic.report.certificates import PANELS
from laconic.runtimes.trace import Download
from tests.experiments.making import results, row

LEAN = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=0.1)
SIZES: dict[str, Any] = {"clients": 4, "rounds": 40}


@cache
def lean() -> Run:
    return run(LEAN, Cosine(dim=3), **SIZES)


def row_of(played: Run) -> Row:
    return Row.of(played, algorithm="LaconicUCB", params={})


def download(version: int, **more: Any) -> Download:
    figures = {"e_lo": -0.5, "e_hi": 0.5, "kappa": 1.1, "beta": 0.1, "d_eff": 3.0}
    about = {"step": 1, "client": 0, "length": 10 * version, "raw": False, "atoms": 5}
    return Download(version=version, **(about | figures | more))


def test_a_row_sums_up_what_its_runs_downloads_were_certified_to_be() -> None:
    said, versions = row_of(lean()).as_dict(), lean().versions
    compressed = {each.version: each for each in versions if not each.raw}
    assert said["versions"] == len({each.version for each in versions})
    assert said["atoms"] == compressed[max(compressed)].atoms
    assert said["d_eff"] == max(versions, key=lambda each: each.version).d_eff
    assert said["kappa"] == pytest.approx(sum(each.kappa for each in compressed.values()) / len(compressed))
    assert said["kappa_max"] == max(each.kappa for each in compressed.values())
    assert said["e_hi"] == max(each.e_hi for each in compressed.values())
    assert said["beta"] == max(each.beta for each in compressed.values())
    assert said["fallbacks"] == sum(each.raw for each in versions) == sum(said["fallback_reasons"].values())


def test_a_run_says_why_points_went_as_they_are() -> None:
    assert {each.why for each in lean().versions if not each.raw} == {""}
    reasons = {each.why for each in lean().versions if each.raw}
    assert str(Reason.SHARE) in reasons
    assert reasons <= {str(Reason.SHARE), "points as they are take fewer bytes"}
    everything = run(replace(LEAN, digest=AllPoints()), Cosine(dim=3), clients=3, rounds=5)
    assert {each.why for each in everything.versions} == {"the plan sends all points"}


def test_both_runtimes_say_the_same_of_every_download() -> None:
    assert run(LEAN, Cosine(dim=3), **SIZES, runtime="loopback").versions == lean().versions


def test_a_version_that_some_were_sent_as_points_has_the_certificate_of_the_others() -> None:
    raw = {"raw": True, "atoms": 0, "e_lo": 0.0, "e_hi": 0.0, "kappa": 1.0, "beta": 0.0}
    found = Certified.of([download(2, **raw, why="short"), download(2), download(1, **raw, why="few"), download(3)])
    assert found.number.tolist() == [1, 2, 3]
    assert found.raw.tolist() == [1, 1, 0]
    assert found.atoms.tolist() == [0, 5, 5]
    assert found.kappa.tolist() == [1.0, 1.1, 1.1]
    assert found.reasons == {"short": 1, "few": 1}


def test_where_nothing_is_certified_every_figure_is_missing() -> None:
    alone = run(DisKernelUCB(D=1.0, together=False), Cosine(dim=2), clients=2, rounds=3)
    assert alone.versions
    for played in (alone, run(DisKernelUCB(D=1.0), Cosine(dim=2), clients=2, rounds=3)):
        said = row_of(played).as_dict()
        assert [said[name] for name in SUMMARY] == [None] * len(SUMMARY)


def test_where_all_points_went_as_they_are_there_are_fallbacks_and_no_inflation() -> None:
    played = run(replace(LEAN, digest=AllPoints()), Cosine(dim=3), clients=3, rounds=5)
    said = row_of(played).as_dict()
    assert (said["fallbacks"], said["kappa"], said["atoms"]) == (len(played.versions), None, None)
    assert said["d_eff"] > 0


# Files


def test_parquet_keeps_versions_and_what_they_come_to(tmp_path: Path) -> None:
    kept = results(row_of(lean()), row("DisKernelUCB"))
    kept.to_parquet(tmp_path / "r.parquet")
    assert Results.from_parquet(tmp_path / "r.parquet") == kept
    table = pa.table(kept)
    assert table.column("kappa_max").to_pylist() == [kept.rows[0].as_dict()["kappa_max"], None]
    assert table.column("version_atoms")[0].as_py() == kept.rows[0].certified.atoms.tolist()
    assert table.column("version_atoms")[1].as_py() == []


def test_results_that_differ_in_one_certificate_are_not_equal() -> None:
    one, other = row_of(lean()), row_of(lean())
    other.certified.kappa[-1] += 1e-12
    assert results(one) != results(other)


def test_files_from_before_certificates_are_read(tmp_path: Path) -> None:
    table = storage.to_arrow(results(row("A")))
    about = table.schema.metadata[storage.KEY].replace(b'"format": 3', b'"format": 1')
    older = table.drop_columns([*SUMMARY, *(f"version_{name}" for name in QUANTITIES)])
    pq.write_table(older.replace_schema_metadata({storage.KEY: about}), tmp_path / "r.parquet")
    assert Results.from_parquet(tmp_path / "r.parquet") == results(row("A"))


def test_a_stored_run_has_its_versions_when_a_sweep_is_resumed(tmp_path: Path) -> None:
    experiment = Experiment(
        algorithms=(DisKernelUCB(),), problem=Cosine(dim=3), seeds=(0,), runtime="lockstep", **SIZES
    )
    task, store = tasks_of(experiment, name="small")[0], Store(tmp_path)
    made = replace(row_of(lean()), algorithm="DisKernelUCB")
    store.save(task, made, about=results())
    loaded = Store(tmp_path).load(task)
    assert loaded is not None
    assert loaded.certified == made.certified
    assert len(loaded.certified) > 0


# The figure


def test_the_figure_has_a_panel_for_each_quantity_and_a_line_for_each_run() -> None:
    second = replace(row_of(lean()), seed=1)
    drawn = results(row_of(lean()), second, row("DisKernelUCB")).plot_certificates()
    *panels, names = drawn.axes
    assert [axes.get_title(loc="left") for axes in panels] == list(PANELS.values())
    assert [len(axes.get_lines()) for axes in panels] == [2] * len(PANELS)
    legend = names.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["LaconicUCB"]


def test_lines_run_over_the_versions_that_say_something() -> None:
    certified = row_of(lean()).certified
    panels = dict(zip(PANELS, results(row_of(lean())).plot_certificates().axes, strict=False))
    kappa, d_eff = (panels[name].get_lines()[0] for name in ("kappa", "d_eff"))
    assert np.array_equal(d_eff.get_xdata(), certified.length)
    assert np.array_equal(kappa.get_ydata(), certified.kappa[certified.atoms > 0])


def test_without_versions_there_is_no_such_figure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no algorithm has versions"):
        results(row("A")).plot_certificates()
    compare(DisKernelUCB(), problem=Cosine(dim=2), clients=2, rounds=3, seeds=1, out=tmp_path)
    assert not any((tmp_path / name).exists() for name in CERTIFICATES)


def test_a_folder_has_the_figure_where_there_are_versions(tmp_path: Path) -> None:
    compare(LEAN, problem=Cosine(dim=3), clients=2, rounds=3, seeds=1, out=tmp_path)
    assert all((tmp_path / name).stat().st_size for name in (*FIGURES, *CERTIFICATES))
