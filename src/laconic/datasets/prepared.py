"""Prepared problems kept on disk, addressed by the content of their files and by every option that shaped them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from laconic.datasets.cache import Source, file_hash, prepared_dir, workshop
from laconic.errors import OutputError, ProblemError

Arrays = Mapping[str, NDArray[Any]]
FORMAT = 1
NAMES = "names"  # the member that says which others there are


def prepared(
    kind: str, *, sources: tuple[Source, ...], options: Mapping[str, object], make: Callable[[], Arrays]
) -> Arrays:
    """The arrays that ``make`` gives for these files and options, from disk where they were made before."""
    key = {"format": FORMAT, "kind": kind, "files": [_identity(source) for source in sources], **options}
    digest = hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()
    folder = prepared_dir()
    if folder is None:
        return make()
    path = folder / f"{kind}-{digest[:32]}.npz"
    kept = _read(path)
    if kept is not None:
        return kept
    made = make()
    _write(path, made)
    return made


def combined_hash(hashes: list[str]) -> str:
    """One hash for the contents of several files."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def stamps(sources: tuple[Source, ...]) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of each file: what must stay the same for a problem in memory to be used again."""
    return tuple(_stamp(source.path) for source in sources)


def _identity(source: Source) -> list[str | None]:
    return [_hash(*_stamp(source.path)), source.member]


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise ProblemError(f"{path} cannot be read ({error.strerror})") from None
    return os.fspath(path), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)
def _hash(path: str, size: int, time: int) -> str:
    return file_hash(Path(path))


def _read(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except Exception:  # never made, or damaged, which surfaces as a dozen types: made anew either way
        return None
    names = held.pop(NAMES, None)  # contents have checksums of their own, names have not
    return held if names is not None and names.tolist() == sorted(held) else None


def _write(path: Path, arrays: Arrays) -> None:
    try:
        with workshop(path.parent) as place:
            named: dict[str, Any] = {**arrays, NAMES: np.array(sorted(arrays))}
            np.savez(place / path.name, allow_pickle=False, **named)
            (place / path.name).replace(path)
    except (OutputError, OSError):
        return  # a disk that takes no cache costs time, not results
