"""Every test of data has a cache of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is LACONIC_DATA, with the prepared problems elsewhere."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LACONIC_DATA", str(folder))
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path / "cache"))
    return folder
