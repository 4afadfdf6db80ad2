"""Data sets that arrive, by download or by hand: checked first, then put in place whole, or not at all."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from laconic.datasets.cache import (
    MissingData,
    Source,
    data_dir,
    file_hash,
    find,
    find_part,
    how_to_get,
    install,
    member_of,
    workshop,
)
from laconic.datasets.extras import extra
from laconic.datasets.known import Dataset, Part, editions
from laconic.datasets.layout import short
from laconic.datasets.streams import GZIP, ZIP, content_hash, head, magic, opened
from laconic.datasets.triples import read_triples
from laconic.errors import OutputError, ProblemError
from laconic.paths import is_file, is_there, own_path

CHUNK = 1 << 17
TIMEOUT = 60  # seconds without a byte


DOUBLED = b"::"
# What requests raises, in words.
REASONS = {
    "ConnectionError": "no connection",
    "ConnectTimeout": "no answer",
    "ReadTimeout": "no answer",
    "ChunkedEncodingError": "cut short on the way",
    "SSLError": "its certificate is not trusted",
    "ProxyError": "the proxy refused",
}
# How a publisher's file of ratings is told from others.
STYLES = {
    "ratings.csv": ",",
    "ratings.dat": "::",
    "user_business.dat": "\t",
    "yelp_academic_dataset_review.json": "json",
}


class Bar(Protocol):
    """What shows how far a download is, as pooch drives it."""

    total: int

    def update(self, amount: int, /) -> None:
        """So many bytes more."""
        ...

    def reset(self) -> None:
        """From the start again."""
        ...

    def close(self) -> None:
        """Done."""
        ...


class LicenceNotAccepted(ProblemError):
    """The publisher's terms must be accepted first."""


@dataclass(frozen=True)
class Arrival:
    """What a download or an import left in the cache."""

    dataset: Dataset
    files: tuple[Path, ...]
    fresh: bool  # False: it was there already
    missing: tuple[str, ...] = ()  # files that the data set still lacks


def fetch(name: str, *, accept_licence: bool = False, mirror: str | None = None, bar: Bar | None = None) -> Arrival:
    """Download a data set unless it is here already; ``mirror`` is an address that has the same archives."""
    dataset = editions(name)[0]
    found = find(dataset.name)
    if found is not None:
        return Arrival(dataset, tuple(source.path for source in found.sources), fresh=False)
    if dataset.url is None:
        raise MissingData(how_to_get(name))
    _require_acceptance(dataset, accept_licence)
    url = dataset.url if mirror is None else f"{mirror.rstrip('/')}/{dataset.archive}"
    with workshop(data_dir()) as place:
        archive = _download(url, dataset=dataset, place=place, bar=bar)
        return Arrival(dataset, _unpacked(archive, dataset, place=place), fresh=True)


def import_file(name: str, file: str | Path, *, accept_licence: bool = False) -> Arrival:
    """Copy a file that was got by other means into the cache, once it has proved to be the publisher's."""
    path = own_path("file", file)
    dataset = edition_of(name, path)
    _require_acceptance(dataset, accept_licence)
    zipped = magic(Source(path)).startswith(ZIP)
    with workshop(data_dir()) as place:
        if not zipped:
            files: tuple[Path, ...] = (_placed(path, dataset, place=place),)
        elif dataset.url is None:
            raise ProblemError(f"{path} is an archive; try unpacking it and importing {dataset.parts[0].file}")
        else:
            files = _unpacked(_checked_archive(path, dataset, place=place), dataset, place=place)
    missing = tuple(part.file for part in dataset.parts if find_part(dataset, part) is None)
    return Arrival(dataset, files, fresh=True, missing=missing)


def _require_acceptance(dataset: Dataset, accepted: bool) -> None:
    if dataset.licence.asks and not accepted:
        raise LicenceNotAccepted(
            f"{dataset.title.partition(',')[0]}: {dataset.licence.name}; read {dataset.licence.url}"
            " and repeat with --accept-licence if you accept"
        )


def _download(url: str, *, dataset: Dataset, place: Path, bar: Bar | None) -> Path:
    pooch = extra("pooch")
    pooch.get_logger().setLevel("WARNING")
    known = None if dataset.md5 is None else f"md5:{dataset.md5}"
    by_hand = f"laconic data import {dataset.name} FILE"
    try:
        downloader = pooch.HTTPDownloader(progressbar=bar or False, chunk_size=CHUNK, timeout=TIMEOUT)
        got = pooch.retrieve(url, known_hash=known, fname=dataset.archive, path=place, downloader=downloader)
    except OSError as error:  # what requests raises is one, too
        raise ProblemError(f"{url} could not be downloaded ({_reason(error)}); try again, or: {by_hand}") from None
    except ValueError:
        raise ProblemError(
            f"{url} is not the archive it should be: its md5 is not {dataset.md5}; try again, or: {by_hand}"
        ) from None
    return Path(got)


def _reason(error: OSError) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    kind = type(error).__name__
    return REASONS.get(kind) or error.strerror or f"{kind}: {short(str(error))}"


def _unpacked(archive: Path, dataset: Dataset, *, place: Path) -> tuple[Path, ...]:
    """Put an archive, or the parts in it, into the cache."""
    sources = [member_of(archive, part.file) for part in dataset.parts]
    if dataset.archive is not None and dataset.keeps_archive:
        return (install(archive, dataset.archive),)
    made = [_copy_plain(source, part, place=place) for source, part in zip(sources, dataset.parts, strict=True)]
    return tuple(install(path, part.name) for path, part in zip(made, dataset.parts, strict=True))


def _copy_plain(source: Source, part: Part, *, place: Path) -> Path:
    """The plain content of a source, which must be what is pinned."""
    target = place / part.file
    digest = hashlib.sha256()
    with opened(source) as stream, target.open("wb") as copy:
        while block := stream.read(CHUNK):
            digest.update(block)
            _append(copy, block)
    if digest.hexdigest() != part.sha256:
        raise ProblemError(
            f"{source} is not the publisher's {part.file}: its content has sha256 {digest.hexdigest()[:12]}…,"
            f" not {str(part.sha256)[:12]}…"
        )
    return target


def _append(copy: BinaryIO, block: bytes) -> None:
    try:
        copy.write(block)
    except OSError as error:  # not to be taken for trouble with what is read
        raise OutputError(f"{data_dir()} cannot be written to ({error.strerror})") from None


def edition_of(name: str, file: str | Path) -> Dataset:
    """Which data set a file belongs to, where a name stands for several."""
    candidates = editions(name)
    path = own_path("file", file)
    if not is_file(path):
        raise ProblemError(f"{path} is a folder; try one of the files in it" if is_there(path) else f"no file {path}")
    if len(candidates) == 1:
        return candidates[0]
    if magic(Source(path)).startswith(ZIP):
        md5 = file_hash(path, "md5")
        return next((each for each in candidates if each.md5 == md5), candidates[0])
    doubled = DOUBLED in head(Source(path)).partition(b"\n")[0]
    return next(each for each in candidates if each.parts[0].file.endswith(".dat") is doubled)


def _checked_archive(path: Path, dataset: Dataset, *, place: Path) -> Path:
    if not dataset.keeps_archive:
        return path  # each part in it is checked on its own
    copy = _copied(path, place)
    md5 = file_hash(copy, "md5")
    if md5 != dataset.md5:
        raise ProblemError(
            f"{path} is not the publisher's {dataset.archive}: its md5 is {md5}, not {dataset.md5};"
            f" try downloading it again, or compare ratings --set problem.file={path.name}"
        )
    _refuse_hidden(dataset, data_dir() / str(dataset.archive))
    return copy


def _placed(path: Path, dataset: Dataset, *, place: Path) -> Path:
    """Put one file of a data set into the cache."""
    if dataset.parts[0].sha256 is None:
        return _placed_ratings(path, dataset, place=place)
    found = content_hash(Source(path))
    part = next((each for each in dataset.parts if each.sha256 == found), None)
    if part is None:
        wanted = " or ".join(f"{each.file} (sha256 {str(each.sha256)[:12]}…)" for each in dataset.parts)
        raise ProblemError(f"{path} is not the publisher's {wanted}: its content has sha256 {found[:12]}…")
    return install(_copy_plain(Source(path), part, place=place), part.name)


def _placed_ratings(path: Path, dataset: Dataset, *, place: Path) -> Path:
    """There is no pinned hash for a file out of its archive: it must read well from the first line to the last."""
    copy = _copied(path, place)
    try:
        style = read_triples(Source(copy)).style
    except ProblemError as error:
        raise ProblemError(str(error).replace(str(copy), str(path))) from None
    name = next((name for name in dataset.parts[0].names if style == STYLES[name.rpartition("/")[2]]), None)
    if name is None:
        raise ProblemError(f"{path} holds ratings, but not as {dataset.parts[0].file} does; try ratings(file) for it")
    name += ".gz" if magic(Source(copy)).startswith(GZIP) else ""
    _refuse_hidden(dataset, data_dir() / name)
    return install(copy, name)


def _copied(path: Path, place: Path) -> Path:
    copy = place / path.name
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        raise OutputError(f"{path} cannot be copied to {data_dir()} ({error.strerror})") from None
    return copy


def _refuse_hidden(dataset: Dataset, target: Path) -> None:
    """Refuse a file that would never be read, because another of the same data set comes first."""
    current = find_part(dataset, dataset.parts[0])
    if current is not None and current.path != target:
        raise ProblemError(f"{dataset.name} is here already as {current}; try removing that first")
