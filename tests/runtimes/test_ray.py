"""Against a real Ray on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from laconic import InputError
from laconic.experiments.conduct import conduct
from laconic.experiments.spec import read_spec
from laconic.runtimes.jobs import Here, OnRay
from tests.pages.making import rows_of, write_small

pytest.importorskip("ray", reason="Ray is not installed; try: pip install 'laconic[ray]'")


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_ray_gives_the_same_results_as_one_process(tmp_path: Path) -> None:
    spec = read_spec(write_small(tmp_path / "small.toml"))
    alone = conduct([spec], out=tmp_path / "alone", engine=Here())
    on_ray = conduct([spec], out=tmp_path / "ray", engine=OnRay(processes=2))
    assert rows_of(on_ray) == rows_of(alone)
    assert rows_of(on_ray)


@pytest.mark.filterwarnings("ignore")
def test_what_ray_has_finished_is_not_run_again(tmp_path: Path) -> None:
    spec = read_spec(write_small(tmp_path / "small.toml"))
    conduct([spec], out=tmp_path, engine=Here())
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    conduct([spec], out=tmp_path, engine=OnRay(address="there is none"))  # which it need not ask
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == before


def test_only_a_ray_that_is_started_here_has_this_machines_memory() -> None:
    assert OnRay(processes=2).shares_memory
    assert not OnRay(address="10.0.0.5:6379").shares_memory


def test_an_address_where_nobody_answers_is_refused_at_once_with_advice() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        where = OnRay(address=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(InputError, match=r"no Ray cluster at 127\.0\.0\.1:\d+: .*ray start --head"):
            list(where.results(abs, [1]))
