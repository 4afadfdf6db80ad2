from __future__ import annotations

from pathlib import Path

import pytest

from laconic.experiments.conduct import Outcome, conduct
from laconic.experiments.spec import read_spec
from laconic.runtimes.jobs import Here
from tests.pages.making import write_small


@pytest.fixture(scope="session")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A small sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    spec = read_spec(write_small(folder / "small.toml"))
    return conduct([spec], out=folder, engine=Here())


@pytest.fixture(scope="session")
def written(outcome: Outcome, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its report."""
    pytest.importorskip("altair", reason="the report's charts need laconic[paper]")
    pytest.importorskip("vl_convert", reason="the report's charts need laconic[paper]")
    from laconic.pages.output import write
    from tests.pages.making import subject, with_absent

    folder = tmp_path_factory.mktemp("report")
    write(with_absent(outcome), out=folder, subject=subject())
    return folder
