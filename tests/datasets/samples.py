"""Files that the tests of data make themselves, and where the real ones are when somebody has them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def _real() -> Path | None:
    given = os.environ.get("LACONIC_DATA")
    folders = ([Path(given)] if given else []) + [BESIDE]
    return next((folder for folder in folders if (folder / "magic04.data").is_file()), None)


REAL = _real()
needs_real_data = pytest.mark.skipif(
    REAL is None, reason=f"needs the real data: set LACONIC_DATA, or put the files in {BESIDE}"
)


def compressed(data: bytes) -> bytes:
    """What Unix compress could have written: nine-bit literals, the table cleared before it outgrows nine bits."""
    packed = bytearray(b"\x1f\x9d\x90")
    for start in range(0, len(data), 247):
        block = data[start : start + 247]
        codes = [*block, 256] if len(block) == 247 else [*block]  # 248 codes of nine bits end on a byte
        bits = sum(code << (9 * place) for place, code in enumerate(codes))
        packed += bits.to_bytes((9 * len(codes) + 7) // 8, "little")
    return bytes(packed)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def written(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def some_ratings(*, users: int = 30, items: int = 40, separator: str = ",", header: str = "") -> str:
    """Every user rates every third item or so, from 1 to 5, some of it liked and some not."""
    rows = [
        separator.join(
            (f"u{user}", f"i{item}", str(1 + (user**2 * 7 + item**2 * 3 + user * item) % 11 % 5), "978300760")
        )
        for user in range(users)
        for item in range(items)
        if (user + item) % 3 == 0
    ]
    return "\n".join([header, *rows] if header else rows) + "\n"
