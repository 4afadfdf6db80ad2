import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from laconic.datasets import MissingData, Source, data_dir, find, prepared_dir, require, unavailable
from laconic.datasets import extras as extras_module
from laconic.datasets.cache import workshop
from laconic.datasets.extras import MissingExtra, extra, version_of
from laconic.datasets.known import DATASETS, EDITIONS, editions
from laconic.datasets.prepared import Arrays, prepared
from laconic.errors import InputError, OutputError, ProblemError, UnknownName
from tests.datasets.samples import REAL, needs_real_data, written, zipped


def test_the_folder_is_the_one_that_the_environment_names(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_dir() == data
    monkeypatch.delenv("LACONIC_DATA")
    assert data_dir() == Path(os.environ["LACONIC_CACHE"]) / "data"
    monkeypatch.delenv("LACONIC_CACHE")
    assert data_dir().parts[-2:] == ("laconic", "data")


def test_prepared_problems_never_lie_among_the_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prepared_dir() == data.parent / "cache" / "prepared"
    monkeypatch.setenv("LACONIC_CACHE", str(data / "inside"))
    assert prepared_dir() is None


def test_every_data_set_has_its_terms_and_a_pinned_checksum_or_a_reason() -> None:
    for dataset in DATASETS.values():
        assert dataset.licence.url.startswith("https://")
        pinned = dataset.md5 is not None or all(part.sha256 for part in dataset.parts)
        assert pinned or dataset.url is None  # Yelp hands its files out by hand and changes them
    assert {name for names in EDITIONS.values() for name in names} <= set(DATASETS)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"there is no data set 'mushrom'; did you mean mushroom\?"):
        editions("mushrom")
    assert editions("MAGIC")[0].name == "magic"


@pytest.mark.parametrize("name", ["magic04.data", "magic04.data.gz", "magic04.data.Z"])
def test_a_file_dropped_into_the_folder_is_found(data: Path, name: str) -> None:
    written(data / name, b"x")
    found = find("magic")
    assert found is not None
    assert found.sources == (Source(data / name),)


def test_the_publishers_archive_dropped_into_the_folder_is_found(data: Path) -> None:
    written(data / "statlog+shuttle.zip", zipped({"shuttle.trn.Z": b"", "shuttle.tst": b"", "shuttle.doc": b""}))
    members = [source.member for source in require("shuttle").sources]
    assert members == ["shuttle.trn.Z", "shuttle.tst"]


def test_a_data_set_with_a_part_missing_is_missing(data: Path) -> None:
    written(data / "shuttle.trn", b"x")
    assert find("shuttle") is None
    with pytest.raises(MissingData, match=r"shuttle: no shuttle\.tst in .*; try: laconic data fetch shuttle"):
        require("shuttle")


def test_movielens_is_the_larger_edition_where_both_are_present(data: Path) -> None:
    assert find("movielens") is None
    written(data / "ml-1m" / "ratings.dat.gz", b"x")
    assert require("movielens").dataset.name == "ml-1m"
    written(data / "ml-25m.zip", zipped({"ml-25m/ratings.csv": b"x"}))
    assert require("movielens").dataset.name == "ml-25m"


def test_the_full_yelp_comes_before_a_subset(data: Path) -> None:
    written(data / "yelp" / "user_business.dat.gz", b"x")
    assert require("yelp").sources[0].path.name == "user_business.dat.gz"
    written(data / "yelp_academic_dataset_review.json", b"x")
    assert require("yelp").sources[0].path.name == "yelp_academic_dataset_review.json"


def test_what_is_missing_says_how_to_get_it() -> None:
    for name in (*DATASETS, *EDITIONS):
        says = unavailable(name)
        assert says is not None
        assert f"laconic data import {name} FILE" in says
        assert ("--accept-licence" in says) is editions(name)[0].licence.asks


def test_an_archive_that_is_none_is_named(data: Path) -> None:
    written(data / "ml-25m.zip", b"PK\x03\x04 and no more")
    with pytest.raises(ProblemError, match=r"ml-25m\.zip is a damaged zip archive"):
        find("movielens")
    assert "is a damaged zip archive" in str(unavailable("movielens"))
    written(data / "ml-25m.zip", zipped({"tags.csv": b"x"}))
    with pytest.raises(ProblemError, match=r"ml-25m\.zip holds no ratings\.csv"):
        find("movielens")


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'laconic\[data\]'"):
        extra("no_such_package.cluster")
    with pytest.raises(InputError, match="no-such-package is not installed"):
        version_of("no-such-package")
    monkeypatch.setattr(extras_module, "PACKAGES", ("no_such_package",))
    advice = "pip install 'laconic[data]', or '.[data]' in a clone"
    assert unavailable("magic") == f"magic: no_such_package not installed; try: {advice}"


@needs_real_data
def test_the_shared_folder_is_a_valid_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(REAL))
    assert [name for name in ("magic", "mushroom", "shuttle", "movielens", "yelp") if unavailable(name)] == []


class Maker:
    """Counts how often a problem is prepared."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Arrays:
        self.calls += 1
        return {"x": np.arange(3.0), "name": np.array("é")}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(written(tmp_path / "file.csv", "1,2,3\n"))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cache" / "prepared"
    assert not list((tmp_path / "data").rglob("*"))  # whatever happened, nothing went among the data


def get(source: Source, maker: Maker, **options: object) -> Arrays:
    return prepared("kind", sources=(source,), options=options, make=maker)


def test_a_problem_is_prepared_once(source: Source, kept: Path) -> None:
    maker = Maker()
    first, second = get(source, maker, k=20), get(source, maker, k=20)
    assert maker.calls == 1
    np.testing.assert_array_equal(first["x"], second["x"])
    assert str(second["name"]) == "é"
    assert len(list(kept.iterdir())) == 1


def test_other_options_or_another_content_prepare_anew(source: Source, tmp_path: Path, kept: Path) -> None:
    maker = Maker()
    get(source, maker, k=20)
    get(source, maker, k=21)
    written(source.path, "1,2,4\n")
    os.utime(source.path, ns=(1, 1))
    get(source, maker, k=20)
    assert maker.calls == 3


def test_a_copy_with_the_same_content_is_the_same_problem(source: Source, tmp_path: Path, kept: Path) -> None:
    maker = Maker()
    get(source, maker)
    get(Source(written(tmp_path / "elsewhere" / "copy.csv", source.path.read_bytes())), maker)
    assert maker.calls == 1


def test_a_damaged_prepared_problem_is_made_anew(source: Source, kept: Path) -> None:
    maker = Maker()
    get(source, maker)
    file = next(kept.iterdir())
    written(file, file.read_bytes()[:50])
    get(source, maker)
    get(source, maker)
    assert maker.calls == 2


def test_a_disk_that_takes_no_cache_costs_time_only(source: Source, kept: Path) -> None:
    kept.mkdir(parents=True)
    kept.chmod(0o555)
    maker = Maker()
    for _ in range(2):
        assert get(source, maker)["x"].tolist() == [0.0, 1.0, 2.0]
    assert maker.calls == 2
    kept.chmod(0o755)


def test_a_read_only_folder_is_left_alone_even_by_root(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    with pytest.raises(OutputError, match="is read-only; try another LACONIC_DATA"), workshop(folder):
        pass
    folder.chmod(0o755)


def test_a_workshop_leaves_nothing_behind(tmp_path: Path) -> None:
    def stopped() -> None:
        with workshop(tmp_path / "new") as place:
            written(place / "half", b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list((tmp_path / "new").iterdir()) == []
