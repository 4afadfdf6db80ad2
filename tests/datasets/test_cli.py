import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from laconic.cli.data_command import app
from laconic.datasets import DATASETS, LicenceNotAccepted
from laconic.errors import LaconicError
from tests.datasets.samples import some_ratings, written

MOVIES = some_ratings(header="userId,movieId,rating,timestamp")


def data_command(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_list_names_every_data_set_with_its_terms(data: Path) -> None:
    written(data / "magic04.data", "x")
    text = data_command("list").stdout
    for dataset in DATASETS.values():
        assert dataset.name in text
        assert dataset.licence.name in text
    assert f"✓ magic     {DATASETS['magic'].title}" in text
    assert f"· yelp      {DATASETS['yelp'].title}" in text


def test_list_as_json_says_what_is_here_and_how_to_get_the_rest(data: Path) -> None:
    written(data / "magic04.data", "x")
    page = json.loads(data_command("list", "--json").stdout)
    assert page["folder"] == str(data)
    assert page["datasets"]["magic"]["files"] == [str(data / "magic04.data")]
    assert "laconic data fetch ml-25m --accept-licence" in page["datasets"]["ml-25m"]["get"]


def test_list_shows_a_broken_archive_among_the_others(data: Path) -> None:
    written(data / "ml-25m.zip", b"PK\x03\x04")
    page = json.loads(data_command("list", "--json").stdout)["datasets"]
    assert "damaged zip" in page["ml-25m"]["get"]
    assert set(page) == set(DATASETS)


def test_path_prints_the_folder_or_the_files(data: Path) -> None:
    assert data_command("path").stdout.strip() == str(data)
    assert json.loads(data_command("path", "--json").stdout) == {"folder": str(data)}
    written(data / "shuttle.trn", "x")
    written(data / "shuttle.tst", "x")
    assert data_command("path", "shuttle").stdout.split() == [str(data / "shuttle.trn"), str(data / "shuttle.tst")]
    assert isinstance(data_command("path", "magic").exception, LaconicError)


@pytest.mark.parametrize("flag", ["--accept-licence", "--accept-license"])
def test_import_shows_the_licence_and_takes_its_acceptance(data: Path, tmp_path: Path, flag: str) -> None:
    file = str(written(tmp_path / "ratings.csv", MOVIES))
    refused = data_command("import", "movielens", file)
    assert isinstance(refused.exception, LicenceNotAccepted)
    assert "MovieLens 25M: research use, no redistribution, https://" in refused.stderr
    imported = data_command("import", "movielens", file, flag, "--json")
    assert json.loads(imported.stdout) == {
        "name": "ml-25m",
        "files": [str(data / "ml-25m" / "ratings.csv")],
        "fresh": True,
        "missing": [],
        "licence": DATASETS["ml-25m"].licence.name,
        "terms": DATASETS["ml-25m"].licence.url,
    }
    assert "imported" in data_command("import", "movielens", file, flag).stdout


def test_fetch_says_when_there_is_nothing_to_do(data: Path) -> None:
    written(data / "ml-1m" / "ratings.dat", some_ratings(separator="::"))
    assert data_command("fetch", "ml-1m").stdout.startswith("ml-1m was here already: ")
    assert not json.loads(data_command("fetch", "ml-1m", "--json").stdout)["fresh"]


def test_fetch_without_a_network_ends_in_one_line() -> None:
    failed = data_command("fetch", "magic", "--mirror", "http://127.0.0.1:1")
    assert isinstance(failed.exception, LaconicError)
    assert "laconic data import magic FILE" in str(failed.exception)
