from __future__ import annotations

from pathlib import Path

import pytest

from laconic import InputError
from laconic.experiments import spec as spec_module
from laconic.experiments.parts import algorithm_from
from laconic.experiments.spec import Profile, read_spec
from laconic.experiments.tasks import id_of
from tests.pages.making import SMALL, write_small


def test_grids_unfold_into_settings(tmp_path: Path) -> None:
    experiment = read_spec(write_small(tmp_path / "small.toml")).experiment()
    assert len(experiment.algorithms) == 2 + 2 + 2 + 1 + 2 + 1
    assert (experiment.clients, experiment.rounds, experiment.seeds) == (4, 5, (0, 1))


def test_a_profile_changes_sizes_and_narrows_grids_and_nothing_else(tmp_path: Path) -> None:
    spec = read_spec(write_small(tmp_path / "small.toml"))
    profile = Profile(about="", clients=2, seeds=[7], grid={"gamma": [4.0], "alpha": [0.5]})
    experiment = spec.under(profile).experiment()
    assert (experiment.clients, experiment.rounds, experiment.seeds) == (2, 5, (7,))
    assert [getattr(each, "alpha", None) for each in experiment.algorithms] == [0.5] * 6
    assert {each.kernel.gamma for each in experiment.algorithms if hasattr(each, "kernel")} == {4.0}
    assert {each.D for each in experiment.algorithms if hasattr(each, "D")} == {1.0}


def test_what_is_written_is_read_back_as_the_same_experiment(tmp_path: Path) -> None:
    spec = read_spec(write_small(tmp_path / "small.toml"))
    experiment = spec.experiment()
    again = read_spec(write_small(tmp_path / "again.toml", text=spec.written(experiment)))
    assert again.experiment() == experiment
    assert again.sensitivity() == spec.sensitivity()


def test_the_id_is_that_of_the_content_and_not_of_the_text(tmp_path: Path) -> None:
    def identity(text: str) -> str:
        return id_of(read_spec(write_small(tmp_path / "small.toml", text=text)).experiment())

    assert identity("# a remark\n" + SMALL.replace("D = 1.0", "D = 1.0  # as it was")) == identity(SMALL)
    assert identity(SMALL.replace("rounds = 5", "rounds = 6")) != identity(SMALL)
    assert identity(SMALL.replace("dim = 3", "dim = 2")) != identity(SMALL)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 5", "turns = 5", "unknown field `turns`"),
        ("qbar = [1.0]", "q = [1.0]", "sensitivity to q, which ApproxDisKernelUCB has not"),
        ("qbar = [1.0]", "qbar = 1.0", "takes a list of numbers"),
        ("qbar = [1.0]", "qbar = [-1.0]", "qbar"),
        ('algorithm = "ApproxDisKernelUCB"', 'algorithm = "Random"', "not among the algorithms of the file"),
        ('algorithm = "ApproxDisKernelUCB"', 'algorithm = "Aprox"', "did you mean ApproxDisKernelUCB"),
    ],
)
def test_a_mistake_in_a_file_is_found_before_anything_runs(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_spec(write_small(tmp_path / "small.toml", text=SMALL.replace(old, new)))


def test_the_tables_of_a_file_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def counting(table: dict[str, object]) -> object:
        read.append(table)
        return algorithm_from(table)

    monkeypatch.setattr(spec_module, "algorithm_from", counting)
    spec = read_spec(write_small(tmp_path / "small.toml"))
    spec.written(spec.experiment())
    spec.sensitivity()
    assert len(read) == len(spec.file.algorithms)
