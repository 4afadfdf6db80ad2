"""What a report may be read for elsewhere: no folders of the machine that made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from laconic.experiments.naming import portable


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('csv = "/home/me/my data/birds.csv"', 'csv = "birds.csv"'),
        ("csv=/home/me/birds.csv, clusters=20", "csv=birds.csv, clusters=20"),
        (
            "58,000 rows of /srv/data/shuttle.trn and /srv/data/shuttle.tst",
            "58,000 rows of shuttle.trn and shuttle.tst",
        ),
        ("rows of /srv/archives/uci.zip!magic04.data in 20 clusters", "rows of uci.zip!magic04.data in 20 clusters"),
        (r"rows of C:\Users\me\birds.csv", "rows of birds.csv"),
        ("from ~/papers/a.toml", "from a.toml"),
        ("see https://archive.org/data/magic.html", "see https://archive.org/data/magic.html"),
        ("a fresh arm's variance k/λ, and config/x.toml", "a fresh arm's variance k/λ, and config/x.toml"),
        ("laconic reproduce li2022 --out DIR", "laconic reproduce li2022 --out DIR"),
    ],
)
def test_files_are_known_by_their_names(text: str, left: str) -> None:
    assert portable(text) == left


def test_the_datas_folder_is_said_in_words_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path / "no data"))
    said = f"magic: no magic04.data in {tmp_path / 'no data'}; rows of {tmp_path / 'no data' / 'x.data'}"
    assert portable(said) == "magic: no magic04.data in the data folder; rows of x.data"
