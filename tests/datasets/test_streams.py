from pathlib import Path

import pytest

from laconic.datasets.cache import Source
from laconic.datasets.streams import content_hash, head, opened
from laconic.errors import ProblemError
from tests.datasets.samples import compressed, gzipped, sha256, written, zipped

TEXT = b"".join(b"%d::%d::%d::978300760\n" % (n, n * 7 % 101, n % 5 + 1) for n in range(400))


def plain(source: Source) -> bytes:
    with opened(source) as stream:
        return stream.read()


@pytest.mark.parametrize("pack", [bytes, gzipped, compressed], ids=["plain", "gzip", "compress"])
def test_packing_is_told_from_content_and_undone(tmp_path: Path, pack: type[bytes]) -> None:
    source = Source(written(tmp_path / "ratings", pack(TEXT)))
    assert plain(source) == TEXT
    assert head(source) == TEXT[: 1 << 16]
    assert content_hash(source) == sha256(TEXT)


@pytest.mark.parametrize("size", [0, 1, 246, 247, 248, 494, 495])
def test_unix_compress_is_read_to_the_last_byte(tmp_path: Path, size: int) -> None:
    assert plain(Source(written(tmp_path / "x.Z", compressed(TEXT[:size])))) == TEXT[:size]


def test_a_packed_member_of_a_zip_is_unpacked_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.zip", zipped({"folder/x.Z": compressed(TEXT), "x.gz": gzipped(TEXT)}))
    assert plain(Source(path, member="folder/x.Z")) == TEXT
    assert plain(Source(path, member="x.gz")) == TEXT


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_gzip_that_was_cut_short_is_named(tmp_path: Path, cut: float) -> None:
    packed = gzipped(TEXT)
    path = written(tmp_path / "ratings.gz", packed[: int(len(packed) * cut)])
    with pytest.raises(ProblemError, match=r"ratings\.gz is damaged or cut short"):
        plain(Source(path))


def test_a_gzip_with_a_flipped_bit_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzipped(TEXT))
    packed[-6] ^= 1  # in the checksum
    with pytest.raises(ProblemError, match=r"ratings\.gz is damaged"):
        plain(Source(written(tmp_path / "ratings.gz", bytes(packed))))


def test_a_compress_file_that_is_garbage_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"x\.Z is damaged"):
        plain(Source(written(tmp_path / "x.Z", b"\x1f\x9d\x90\xff\xff\xff")))


def test_a_zip_member_with_a_wrong_checksum_is_named(tmp_path: Path) -> None:
    packed = bytearray(zipped({"ratings.csv": TEXT}))
    packed[60] ^= 0xFF
    with pytest.raises(ProblemError, match=r"a\.zip!ratings\.csv is damaged"):
        plain(Source(written(tmp_path / "a.zip", bytes(packed)), member="ratings.csv"))


def test_a_folder_and_a_missing_file_are_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="is a folder"):
        plain(Source(tmp_path))
    with pytest.raises(ProblemError, match="No such file"):
        plain(Source(tmp_path / "nothing"))
