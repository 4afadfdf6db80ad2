"""Bytes of a file as they were before packing, with damage reported in one line."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, cast

from laconic.datasets.cache import Source
from laconic.datasets.extras import extra
from laconic.errors import LaconicError, ProblemError

GZIP = b"\x1f\x8b"
COMPRESS = b"\x1f\x9d"
ZIP = b"PK\x03\x04"
HEAD = 1 << 16


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The plain bytes of a source as a stream; what breaks while it is read is said to be that file's."""
    try:
        with ExitStack() as stack:
            raw = _raw(source, stack)
            yield _plain(raw, stack)
    except LaconicError:  # some are OSErrors too, and say already what is wrong
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise ProblemError(f"{source} is damaged or cut short ({_line(error)}); try downloading it again") from None
    except IsADirectoryError:
        raise ProblemError(f"{source} is a folder; try one of the files in it") from None
    except OSError as error:
        raise ProblemError(f"{source} cannot be read ({error.strerror or _line(error)})") from None


def head(source: Source) -> bytes:
    """The first bytes of the plain content."""
    with opened(source) as stream:
        return stream.read(HEAD)


def magic(source: Source, *, size: int = 4) -> bytes:
    """The first bytes as they lie on disk."""
    try:
        with source.path.open("rb") as stream:
            return stream.read(size)
    except IsADirectoryError:
        raise ProblemError(f"{source} is a folder; try one of the files in it") from None
    except OSError as error:
        raise ProblemError(f"{source} cannot be read ({error.strerror})") from None


def content_hash(source: Source) -> str:
    """The sha256 of the plain content."""
    digest = hashlib.sha256()
    with opened(source) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _raw(source: Source, stack: ExitStack) -> BinaryIO:
    if source.member is None:
        return stack.enter_context(source.path.open("rb"))
    archive = stack.enter_context(zipfile.ZipFile(source.path))
    try:
        return cast(BinaryIO, stack.enter_context(archive.open(source.member)))
    except (RuntimeError, KeyError) as error:  # locked with a password, packed in an unknown way, or not there
        raise zipfile.BadZipFile(_line(error)) from None


def _plain(raw: BinaryIO, stack: ExitStack) -> BinaryIO:
    buffered = stack.enter_context(io.BufferedReader(cast(io.RawIOBase, raw)))
    start = buffered.peek(4)[:4]
    if start.startswith(GZIP):
        return cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=buffered)))
    if start.startswith(COMPRESS):
        return io.BytesIO(_unpack(buffered.read()))
    return cast(BinaryIO, buffered)


def _unpack(packed: bytes) -> bytes:
    try:
        unpacked: bytes = extra("unlzw3").unlzw(packed)
    except ValueError as error:
        raise EOFError(str(error)) from None
    return unpacked


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
