import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from laconic.datasets import DATASETS, LicenceNotAccepted, MissingData, fetch, find, import_file, require
from laconic.datasets.known import Part
from laconic.datasets.streams import content_hash
from laconic.errors import OutputError, ProblemError
from tests.datasets.samples import (
    REAL,
    compressed,
    gzipped,
    md5,
    needs_real_data,
    sha256,
    some_ratings,
    written,
    zipped,
)

TELESCOPE = b"".join(b"%d,%d,g\n" % (n, n * n) for n in range(50))
TRAINING, TEST = b"50 21 77 2\n" * 99, b"55 0 81 4\n" * 33
MOVIES = some_ratings(header="userId,movieId,rating,timestamp").encode()
OLD_MOVIES = some_ratings(separator="::").encode()
MOVIES_ZIP = zipped({"ml-25m/README.txt": b"hello", "ml-25m/ratings.csv": MOVIES})


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class CutShort(BaseHTTPRequestHandler):
    """Promises more than it sends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(MOVIES_ZIP)))
        self.end_headers()
        self.wfile.write(MOVIES_ZIP[:100])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _small_editions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets with the names of the real ones and the checksums of small files."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    small = {
        "magic": replace(DATASETS["magic"], parts=(Part(("magic04.data",), sha256(TELESCOPE)),)),
        "shuttle": replace(
            DATASETS["shuttle"],
            parts=(Part(("shuttle.trn",), sha256(TRAINING)), Part(("shuttle.tst",), sha256(TEST))),
        ),
        "ml-25m": replace(DATASETS["ml-25m"], md5=md5(MOVIES_ZIP)),
    }
    for name, dataset in small.items():
        monkeypatch.setitem(DATASETS, name, dataset)


def served(handler: type | partial[Quiet]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return tmp_path / "published"


@pytest.fixture
def mirror(published: Path) -> Iterator[str]:
    published.mkdir()
    yield from served(partial(Quiet, directory=str(published)))


@pytest.fixture
def cutting_mirror() -> Iterator[str]:
    yield from served(CutShort)


class Count:
    """A progress bar that counts."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.closed = False

    def update(self, amount: int, /) -> None:
        self.done += amount

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self.closed = True


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def everything(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def test_a_download_is_unpacked_checked_and_kept(data: Path, mirror: str, published: Path) -> None:
    written(published / "magic+gamma+telescope.zip", zipped({"magic04.data": TELESCOPE, "magic04.names": b"x"}))
    bar = Count()
    arrival = fetch("magic", mirror=mirror, bar=bar)
    assert arrival.fresh
    assert arrival.files == (data / "magic04.data",)
    assert files(data) == ["magic04.data"]
    assert (data / "magic04.data").read_bytes() == TELESCOPE
    assert bar.closed
    assert bar.done == bar.total == (published / "magic+gamma+telescope.zip").stat().st_size


def test_unix_compress_in_a_download_is_undone(data: Path, mirror: str, published: Path) -> None:
    archive = zipped({"shuttle.trn.Z": compressed(TRAINING), "shuttle.tst": TEST})
    written(published / "statlog+shuttle.zip", archive)
    fetch("shuttle", mirror=mirror)
    assert (data / "shuttle.trn").read_bytes() == TRAINING
    assert files(data) == ["shuttle.trn", "shuttle.tst"]


def test_movielens_is_downloaded_only_once_its_terms_are_accepted(data: Path, mirror: str, published: Path) -> None:
    written(published / "ml-25m.zip", MOVIES_ZIP)
    with pytest.raises(LicenceNotAccepted, match=r"research use, no redistribution; read https://.*--accept-licence"):
        fetch("movielens", mirror=mirror)
    assert everything(data) == []
    assert fetch("movielens", mirror=mirror, accept_licence=True).files == (data / "ml-25m.zip",)
    assert require("movielens").sources[0].member == "ml-25m/ratings.csv"


def test_what_is_here_is_used_without_asking(data: Path) -> None:
    written(data / "ml-25m.zip", MOVIES_ZIP)
    arrival = fetch("movielens", mirror="http://127.0.0.1:1")
    assert not arrival.fresh
    assert arrival.files == (data / "ml-25m.zip",)


def test_yelp_says_where_to_get_it_by_hand() -> None:
    with pytest.raises(MissingData, match=r"get it from https://.*yelp.* then: laconic data import yelp FILE"):
        fetch("yelp", accept_licence=True)


def test_a_download_with_another_checksum_is_refused(data: Path, mirror: str, published: Path) -> None:
    written(published / "ml-25m.zip", MOVIES_ZIP + b"!")
    with pytest.raises(ProblemError, match=rf"ml-25m\.zip is not the archive .* md5 is not {md5(MOVIES_ZIP)}"):
        fetch("ml-25m", mirror=mirror, accept_licence=True)
    assert everything(data) == []


def test_a_download_whose_content_changed_is_refused(data: Path, mirror: str, published: Path) -> None:
    written(published / "magic+gamma+telescope.zip", zipped({"magic04.data": TELESCOPE[:-9]}))
    with pytest.raises(ProblemError, match=r"is not the publisher's magic04\.data"):
        fetch("magic", mirror=mirror)
    assert everything(data) == []


def test_half_a_data_set_is_not_kept(data: Path, mirror: str, published: Path) -> None:
    written(published / "statlog+shuttle.zip", zipped({"shuttle.trn.Z": compressed(TRAINING), "shuttle.tst": b"1\n"}))
    with pytest.raises(ProblemError, match=r"is not the publisher's shuttle\.tst"):
        fetch("shuttle", mirror=mirror)
    assert everything(data) == []


def test_a_page_instead_of_an_archive_is_refused(data: Path, mirror: str, published: Path) -> None:
    written(published / "magic+gamma+telescope.zip", b"<html>moved</html>")
    with pytest.raises(ProblemError, match="is a damaged zip archive"):
        fetch("magic", mirror=mirror)
    assert everything(data) == []


def test_an_archive_that_is_not_there_is_named(data: Path, mirror: str) -> None:
    with pytest.raises(ProblemError, match=r"telescope\.zip could not be downloaded \(404 .*laconic data import magic"):
        fetch("magic", mirror=mirror)
    assert everything(data) == []


def test_a_server_that_is_not_there_is_named(data: Path) -> None:
    with pytest.raises(ProblemError, match=r"could not be downloaded \(no connection\)"):
        fetch("magic", mirror="http://127.0.0.1:1")
    assert everything(data) == []


def test_a_download_that_was_cut_short_leaves_nothing(data: Path, cutting_mirror: str) -> None:
    with pytest.raises(ProblemError, match=r"ml-25m\.zip could not be downloaded|is not the archive"):
        fetch("ml-25m", mirror=cutting_mirror, accept_licence=True)
    assert everything(data) == []


@pytest.mark.parametrize("pack", [bytes, gzipped, compressed], ids=["plain", "gzip", "compress"])
def test_an_imported_file_is_known_by_its_content(data: Path, tmp_path: Path, pack: type[bytes]) -> None:
    import_file("magic", written(tmp_path / "whatever", pack(TELESCOPE)))
    assert (data / "magic04.data").read_bytes() == TELESCOPE


def test_parts_can_be_imported_one_after_the_other(data: Path, tmp_path: Path) -> None:
    first = import_file("shuttle", written(tmp_path / "shuttle.trn.Z", compressed(TRAINING)))
    assert first.missing == ("shuttle.tst",)
    assert find("shuttle") is None
    assert import_file("shuttle", written(tmp_path / "b", TEST)).missing == ()
    assert files(data) == ["shuttle.trn", "shuttle.tst"]


def test_the_publishers_archive_can_be_imported(data: Path, tmp_path: Path) -> None:
    archive = zipped({"shuttle.trn.Z": compressed(TRAINING), "shuttle.tst": TEST})
    assert len(import_file("shuttle", written(tmp_path / "downloads.zip", archive)).files) == 2
    import_file("movielens", written(tmp_path / "movies.zip", MOVIES_ZIP), accept_licence=True)
    assert files(data) == ["ml-25m.zip", "shuttle.trn", "shuttle.tst"]


@pytest.mark.parametrize(
    ("name", "content", "becomes"),
    [
        ("movielens", MOVIES, "ml-25m/ratings.csv"),
        ("movielens", gzipped(MOVIES), "ml-25m/ratings.csv.gz"),
        ("movielens", OLD_MOVIES, "ml-1m/ratings.dat"),
        ("ml-1m", gzipped(OLD_MOVIES), "ml-1m/ratings.dat.gz"),
        ("yelp", some_ratings(separator="\t").encode(), "yelp/user_business.dat"),
        ("yelp", b'{"user_id":"a","business_id":"b","stars":4.0}\n', "yelp/yelp_academic_dataset_review.json"),
    ],
)
def test_ratings_out_of_their_archive_are_told_by_their_form(
    data: Path, tmp_path: Path, name: str, content: bytes, becomes: str
) -> None:
    file = written(tmp_path / "downloaded", content)
    with pytest.raises(LicenceNotAccepted):
        import_file(name, file)
    assert everything(data) == []
    import_file(name, file, accept_licence=True)
    assert files(data) == [becomes]
    assert require(name).sources[0].path == data / becomes


BAD_IMPORTS = [
    ("magic", TELESCOPE[:-9], r"downloaded is not the publisher's magic04\.data"),
    ("magic", gzipped(TELESCOPE)[:-20], r"downloaded is damaged or cut short"),
    ("magic", MOVIES_ZIP, r"downloaded holds no magic04\.data"),
    ("shuttle", zipped({"shuttle.trn": TRAINING}), r"downloaded holds no shuttle\.tst"),
    ("movielens", MOVIES_ZIP[:-30], r"downloaded is not the publisher's ml-25m\.zip: its md5 is"),
    ("movielens", MOVIES.replace(b"u3,i3,", b"u3,i3,x"), r"downloaded:\d+: rating 'x\d' is not a number"),
    ("movielens", gzipped(OLD_MOVIES)[:-20], "downloaded is damaged or cut short"),
    ("movielens", b"title,genre\nx,y\n", "downloaded:1: fewer than three fields"),
    ("ml-25m", OLD_MOVIES, r"downloaded holds ratings, but not as ratings\.csv does"),
    ("yelp", OLD_MOVIES, r"downloaded holds ratings, but not as yelp_academic_dataset_review\.json does"),
    ("yelp", b'{"user_id":"a","business_id":"b","stars":"four"}\n', "downloaded:1: Expected `float`"),
    ("yelp", MOVIES_ZIP, r"downloaded is an archive; try unpacking"),
    ("yelp", b"", "downloaded is empty"),
]


@pytest.mark.parametrize(("name", "content", "says"), BAD_IMPORTS)
def test_a_bad_import_is_refused_and_leaves_the_cache_unharmed(
    data: Path, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    written(data / "magic04.data", b"what was here before")
    with pytest.raises(ProblemError, match=says) as refused:
        import_file(name, written(tmp_path / "downloaded", content), accept_licence=True)
    assert str(tmp_path / "downloaded") in str(refused.value)
    assert "\n" not in str(refused.value)
    assert everything(data) == [data / "magic04.data"]
    assert (data / "magic04.data").read_bytes() == b"what was here before"


def test_a_file_that_would_never_be_read_is_refused(data: Path, tmp_path: Path) -> None:
    written(data / "ml-25m" / "ratings.csv", MOVIES)
    with pytest.raises(ProblemError, match=r"ml-25m is here already as .*ratings\.csv; try removing that first"):
        import_file("movielens", written(tmp_path / "movies.zip", MOVIES_ZIP), accept_licence=True)


def test_a_folder_and_a_missing_file_are_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="is a folder"):
        import_file("magic", tmp_path)
    with pytest.raises(ProblemError, match="no file"):
        import_file("magic", tmp_path / "nothing")


def test_nothing_is_written_to_a_read_only_folder(data: Path, tmp_path: Path) -> None:
    data.chmod(0o555)
    with pytest.raises(OutputError, match="read-only"):
        import_file("magic", written(tmp_path / "m", TELESCOPE))
    data.chmod(0o755)
    assert everything(data) == []


@needs_real_data
def test_the_pins_are_those_of_the_real_files(
    data: Path, mirror: str, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("LACONIC_DATA", str(data))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert REAL is not None
    for name in ("magic", "mushroom", "shuttle"):
        dataset = DATASETS[name]
        real = {part.file: (REAL / part.file).read_bytes() for part in dataset.parts}
        written(published / str(dataset.archive), zipped(real))
        fetch(name, mirror=mirror)
        for part, source in zip(dataset.parts, require(name).sources, strict=True):
            assert content_hash(source) == part.sha256
