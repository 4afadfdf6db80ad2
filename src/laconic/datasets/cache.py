"""Where data sets lie on this machine, and how files get there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from laconic.datasets.extras import absent_packages, extra
from laconic.datasets.known import Dataset, Part, editions
from laconic.errors import OutputError, ProblemError
from laconic.paths import is_file, own_path

DATA = "LACONIC_DATA"
CACHE = "LACONIC_CACHE"
WRITABLE = 0o222
PACKED = ("", ".gz", ".Z")


class MissingData(ProblemError):
    """A data set is not on this machine; the message says how to get it."""


@dataclass(frozen=True)
class Source:
    """A file, or a member of a zip archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}!{self.member}"


@dataclass(frozen=True)
class Found:
    """A data set that is on this machine: one source a part, in order."""

    dataset: Dataset
    sources: tuple[Source, ...]


def data_dir() -> Path:
    """Where data sets lie: ``LACONIC_DATA``, or else the platform's cache folder."""
    given = os.environ.get(DATA)
    return own_path(DATA, given) if given else _cache_root() / "data"


def prepared_dir() -> Path | None:
    """Where prepared problems lie: never among the data; None when there is no such place."""
    folder = _cache_root() / "prepared"
    return None if folder.resolve().is_relative_to(data_dir().resolve()) else folder


def find(name: str) -> Found | None:
    """The first edition of a data set that is complete on this machine."""
    for dataset in editions(name):
        sources = tuple(find_part(dataset, part) for part in dataset.parts)
        if None not in sources:
            return Found(dataset, tuple(each for each in sources if each is not None))
    return None


def require(name: str) -> Found:
    """The same, or an error that says which files are missing and how to get them."""
    found = find(name)
    if found is None:
        raise MissingData(how_to_get(name))
    return found


def find_part(dataset: Dataset, part: Part) -> Source | None:
    """A file of a data set: plain, packed, or in the publisher's archive."""
    folder = data_dir()
    for name in part.names:
        for ending in PACKED:
            path = folder / f"{name}{ending}"
            if is_file(path):
                return Source(path)
    if dataset.archive is None or not is_file(folder / dataset.archive):
        return None
    return member_of(folder / dataset.archive, part.file)


def member_of(archive: Path, file: str) -> Source:
    """The member of a zip archive with this file name, in whatever folder, plain or packed."""
    wanted = {f"{file}{ending}" for ending in PACKED}
    for member in zip_members(archive):
        if PurePosixPath(member).name in wanted:
            return Source(archive, member=member)
    raise ProblemError(f"{archive} holds no {file}; try the publisher's archive")


def zip_members(archive: Path) -> list[str]:
    """The files in a zip archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return [each.filename for each in opened.infolist() if not each.is_dir()]
    except zipfile.BadZipFile as error:
        raise ProblemError(f"{archive} is a damaged zip archive ({error}); try downloading it again") from None
    except OSError as error:
        raise ProblemError(f"{archive} cannot be read ({error.strerror or error})") from None


def how_to_get(name: str) -> str:
    """Which files of a data set are missing here, and the commands that bring them."""
    dataset = editions(name)[0]
    missing = [part.file for part in dataset.parts if find_part(dataset, part) is None]
    others = [other.parts[0].file for other in editions(name)[1:]]
    what = " and ".join(missing) + "".join(f" (or {other})" for other in others)
    accept = " --accept-licence" if dataset.licence.asks else ""
    by_hand = f"laconic data import {name} FILE{accept}"
    if dataset.url is None:
        return f"{name}: no {what} in {data_dir()}; get it from {dataset.page}, then: {by_hand}"
    return f"{name}: no {what} in {data_dir()}; try: laconic data fetch {name}{accept} (or offline: {by_hand})"


def unavailable(name: str) -> str | None:
    """Why a data set cannot be used here and what to do about it; None when it can."""
    absent = absent_packages()
    if absent:
        return f"{name}: {', '.join(absent)} not installed; try: pip install 'laconic[data]', or '.[data]' in a clone"
    try:
        return how_to_get(name) if find(name) is None else None
    except ProblemError as error:  # something is there, and it is broken
        return f"{name}: {error}"


def file_hash(path: Path, algorithm: str = "sha256") -> str:
    """The hash of a file as it lies on disk."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, algorithm).hexdigest()
    except OSError as error:
        raise ProblemError(f"{path} cannot be read ({error.strerror})") from None


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """A folder for half-made files on the disk of the cache, gone afterwards whatever happens."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not folder.stat().st_mode & WRITABLE:  # root could write all the same, but was not meant to
            raise OutputError(f"{folder} is read-only; try another {DATA}")
        place = Path(tempfile.mkdtemp(prefix=".laconic-", dir=folder))
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{folder} cannot be written to ({error.strerror}); try another {DATA}") from None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def install(made: Path, name: str) -> Path:
    """Move a finished file to its place in the data folder, replacing in one step what was there."""
    target = data_dir() / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made.replace(target)
    except OSError as error:
        raise OutputError(f"{target} cannot be written ({error.strerror}); try another {DATA}") from None
    return target


def _cache_root() -> Path:
    given = os.environ.get(CACHE)
    return own_path(CACHE, given) if given else Path(extra("platformdirs").user_cache_dir("laconic", appauthor=False))
