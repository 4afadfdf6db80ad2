from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laconic import (
    AllPoints,
    ApproxDisKernelUCB,
    AskServer,
    Atoms,
    Catalogue,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    EpsilonFloor,
    Gaussian,
    Greedy,
    InputError,
    LaconicUCB,
    Matern,
    Polynomial,
    Random,
    Recorded,
    Softmax,
    Theory,
    Thompson,
    __version__,
    compare,
    grid,
)
from laconic.atoms import Recipe
from laconic.errors import UnknownName
from laconic.experiments.config import ConfigFile, Experiment, read_experiment
from laconic.experiments.grid import expand
from laconic.experiments.parts import Draft, algorithm_from, has_param, problem_from, to_table, with_param
from laconic.kernels import Sum
from laconic.problems import save_recorded
from laconic.protocol.wire import Int8Wire
from laconic.uploads import Growth, WithAsk
from tests.experiments.making import Periodic, Plain, listed, unnamed

ALGORITHMS = (
    DisKernelUCB(Gaussian(0.1 + 0.2), D=7.0),
    DisKernelUCB(Sum(Gaussian(), 2.0 * Matern(nu=0.5)), alpha=Theory(S=3.0)),
    ApproxDisKernelUCB(Polynomial(degree=3), cold_start="local", qbar=2),
    LaconicUCB(digest=Atoms(Recipe(kappa=1.3))),
    LaconicUCB(digest=AllPoints(), upload=WithAsk()),
    Random(),
)


def experiment(**changed: Any) -> Experiment:
    fields: dict[str, Any] = {
        "algorithms": ALGORITHMS,
        "problem": Catalogue(dim=3, noise=0.25),
        "clients": 3,
        "rounds": 4,
        "seeds": (0, 5),
        "runtime": "loopback",
    }
    return Experiment(**fields | changed)


def read(path: Path | str) -> ConfigFile:
    return read_experiment(path, ConfigFile)


def written(tmp_path: Path, one: Experiment) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(one.to_toml(), encoding="utf-8")
    return path


def test_a_written_experiment_is_read_back_exactly(tmp_path: Path) -> None:
    file = read(written(tmp_path, experiment()))
    assert tuple(algorithm_from(table) for table in file.algorithms) == ALGORITHMS
    assert problem_from(file.problem) == Catalogue(dim=3, noise=0.25)
    assert (file.clients, file.rounds, file.seeds, file.runtime) == (3, 4, [0, 5], "loopback")


def test_every_parameter_is_spelled_out() -> None:
    text = experiment(algorithms=(DisLinUCB(),)).to_toml()
    assert all(name in text for name in ("D = 20.0", "lam = 0.1", "alpha = 0.2", "items = 30"))


def test_a_grid_is_a_list(tmp_path: Path) -> None:
    algorithm = DisKernelUCB(Gaussian(gamma=grid(0.1, 1.0)))
    file = read(written(tmp_path, experiment(algorithms=(algorithm,))))
    assert algorithm_from(file.algorithms[0]) == algorithm


def test_a_recorded_problem_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_recorded(
        tmp_path / "log.npz", Cosine(dim=2, arms=3).instance(seed=0, clients=2, rounds=2), clients=2, rounds=2
    )
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, experiment(problem=Recorded("log.npz")))
    monkeypatch.chdir("/")
    assert problem_from(read(path).problem) == Recorded(tmp_path / "log.npz")


@pytest.mark.parametrize("line", ['name = "log.npz"', 'name = "recorded"\npath = "log.npz"'])
def test_a_path_in_a_file_begins_at_the_files_folder(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    instance = Cosine(dim=2, arms=3).instance(seed=0, clients=2, rounds=2)
    save_recorded(tmp_path / "kept" / "log.npz", instance, clients=2, rounds=2)
    (tmp_path / "kept" / "own.toml").write_text(f'algorithms = [{{ name = "Random" }}]\n[problem]\n{line}\n')
    monkeypatch.chdir(tmp_path)
    assert problem_from(read("kept/own.toml").problem) == Recorded(tmp_path / "kept" / "log.npz")


def test_a_recorded_problem_that_changed_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.npz"
    save_recorded(log, Cosine(dim=2, arms=3).instance(seed=0, clients=2, rounds=2), clients=2, rounds=2)
    path = written(tmp_path, experiment(problem=Recorded(log)))
    save_recorded(log, Cosine(dim=2, arms=3).instance(seed=1, clients=2, rounds=2), clients=2, rounds=2)
    with pytest.raises(InputError, match="changed"):
        problem_from(read(path).problem)


def test_a_kernel_without_a_name_cannot_be_written() -> None:
    with pytest.raises(InputError, match="no name"):
        experiment(algorithms=(DisKernelUCB(unnamed()),)).to_toml()


@pytest.mark.parametrize(
    "text", ["", "clients = 3", "[[[", 'algorithms = []\nproblem = {name = "cosine"}\nclient = 3', "\x00"]
)
def test_a_file_that_is_no_configuration_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InputError, match=r"config\.toml"):
        read(tmp_path / "config.toml")


def test_an_unknown_parameter_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'qbar'"):
        algorithm_from({"name": "ApproxDisKernelUCB", "qba": 1.0})
    with pytest.raises(UnknownName, match="Gaussian"):
        algorithm_from({"name": "DisKernelUCB", "kernel": {"name": "Gausian"}})


def test_a_parameter_is_changed_where_it_is_found() -> None:
    assert with_param(DisKernelUCB(), "D", 3.0).D == 3.0
    assert with_param(DisKernelUCB(), "gamma", 3.0).kernel == Gaussian(3.0)
    assert with_param(DisKernelUCB(), "kernel.gamma", 3.0).kernel == Gaussian(3.0)
    assert with_param(DisKernelUCB(), "kernel", "matern").kernel == Matern()
    assert with_param(DisKernelUCB(), "alpha", "theory").alpha == Theory()
    assert with_param(DisKernelUCB(alpha=Theory()), "delta", 0.5).alpha == Theory(delta=0.5)
    assert with_param(DisKernelUCB(), "D", [1.0, 2.0]).D == grid(1.0, 2.0)


def test_a_parameter_that_nothing_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="did you mean 'gamma'"):
        with_param(DisKernelUCB(), "gama", 3.0)
    with pytest.raises(InputError, match="it has none"):
        with_param(Random(), "D", 3.0)


def test_has_param_looks_into_parts() -> None:
    assert has_param(DisKernelUCB(), "gamma")
    assert not has_param(DisLinUCB(), "gamma")


@pytest.mark.parametrize("kernel", [Periodic(period=0.5), Gaussian() * Periodic(period=0.5)], ids=["alone", "product"])
def test_a_kernel_of_another_package_is_read_back_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Any
) -> None:
    listed(monkeypatch, "kernel", Periodic=Periodic)
    algorithm = DisKernelUCB(kernel)
    file = read(written(tmp_path, experiment(algorithms=(algorithm,))))
    assert algorithm_from(file.algorithms[0]) == algorithm


def test_a_kernel_whose_parameters_cannot_be_known_is_not_written_as_if_it_had_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed(monkeypatch, "kernel", Plain=Plain)
    with pytest.raises(InputError, match="no dataclass"):
        experiment(algorithms=(DisKernelUCB(Plain(scale=2.0)),)).to_toml()


def test_a_parameter_of_another_packages_kernel_is_changed_where_it_is_found() -> None:
    assert with_param(DisKernelUCB(Periodic()), "period", 3.0) == DisKernelUCB(Periodic(3.0))
    product = with_param(DisKernelUCB(Gaussian() * Periodic()), "period", 3.0)
    assert product == DisKernelUCB(Gaussian() * Periodic(3.0))


def test_parameters_that_only_fit_together_are_changed_together() -> None:
    draft = Draft.of(ApproxDisKernelUCB(D=20.0)).changed("alpha", "theory").changed("D", 3.0)
    assert draft.made() == ApproxDisKernelUCB(D=3.0, alpha=Theory())


def test_a_draft_without_changes_is_the_value_itself() -> None:
    value = Plain()
    assert Draft.of(value).made() is value


def test_a_configuration_says_which_laconic_wrote_it(tmp_path: Path) -> None:
    compare([DisLinUCB()], problem=Catalogue(dim=2), clients=2, rounds=2, seeds=1, out=tmp_path)
    assert f"# Written by laconic {__version__}.\n" in (tmp_path / "config.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "algorithm",
    [
        LaconicUCB(delta=2.0, upload=WithAsk()),
        LaconicUCB(digest=AllPoints(), upload=Growth(0.5)),
        LaconicUCB(digest=Atoms(Recipe(kappa=1.5, cap=200))),
        DisKernelUCB(wire=Int8Wire(2.0)),
        AskServer(ranges=3.0, alpha=Theory(S=2.0)),
    ],
    ids=repr,
)
def test_digests_uploads_and_wires_are_read_back_exactly(algorithm: Any) -> None:
    table = to_table(algorithm, name=type(algorithm).__name__)
    assert algorithm_from(table) == algorithm


def test_a_digest_is_also_found_by_its_name_alone() -> None:
    assert algorithm_from({"name": "LaconicUCB", "digest": "AllPoints"}) == LaconicUCB(digest=AllPoints())
    assert with_param(LaconicUCB(), "upload", "WithAsk") == LaconicUCB(upload=WithAsk())
    with pytest.raises(InputError, match="digest cannot be 'Everything'; try one of Atoms, AllPoints"):
        with_param(LaconicUCB(), "digest", "Everything")


@pytest.mark.parametrize(
    "exploration", [Thompson(), Thompson(joint=False), Softmax(0.3), Greedy(), EpsilonFloor(Thompson(), 0.05)], ids=repr
)
def test_explorations_are_read_back_exactly(exploration: Any) -> None:
    algorithm = DisKernelUCB(exploration=exploration)
    assert algorithm_from(to_table(algorithm, name="DisKernelUCB")) == algorithm


def test_an_exploration_may_be_given_by_its_name() -> None:
    assert algorithm_from({"name": "DisLinUCB", "exploration": "thompson"}) == DisLinUCB(exploration=Thompson())
    floor = {"name": "EpsilonFloor", "of": "Greedy", "epsilon": 0.2}
    assert with_param(DisLinUCB(), "exploration", floor).exploration == EpsilonFloor(Greedy(), 0.2)
    assert with_param(DisLinUCB(exploration=Softmax()), "temperature", 0.5).exploration == Softmax(0.5)
    with pytest.raises(UnknownName, match="no exploration is called 'Tompson'; did you mean Thompson"):
        with_param(DisLinUCB(), "exploration", "Tompson")


def test_a_grid_of_explorations_unfolds() -> None:
    algorithm = DisLinUCB(exploration=grid(Greedy(), EpsilonFloor(Greedy(), grid(0.1, 0.2))))
    assert [each.exploration for _, each in expand(algorithm)] == [
        Greedy(),
        EpsilonFloor(Greedy(), 0.1),
        EpsilonFloor(Greedy(), 0.2),
    ]
