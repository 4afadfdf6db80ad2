"""Another version of this repository beside this one: its files, and what it says to a script."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from benchmarks.threads import environment

HERE = Path(__file__).resolve().parents[1]

#: How a script begins; it knows no more of laconic than both versions have.
BEGINNING = """
import dataclasses, json, sys, time
import laconic
from laconic.runtimes import run

def made(table):
    kind = getattr(laconic, table["name"])
    known = {field.name for field in dataclasses.fields(kind)}
    stated = {key: value for key, value in table.items() if key in known}
    return kind(**{key: made(value) if isinstance(value, dict) else value for key, value in stated.items()})

given = json.loads(sys.stdin.read())
"""


def parts(value: Any) -> dict[str, Any]:
    """Numbers, words and the kernel of a value, as a table; its other parts are those that a version has by itself."""
    found: dict[str, Any] = {"name": type(value).__name__}
    for field in dataclasses.fields(value):
        part = getattr(value, field.name)
        if field.name == "kernel":
            found["kernel"] = parts(part)
        elif isinstance(part, int | float | str):
            found[field.name] = part
    return found


def answered(script: str, given: str, checkout: Path) -> str:
    """What a script prints that is given a text, as a process of its own with one BLAS thread."""
    env = environment(threads=1) | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", BEGINNING + script]
    return subprocess.run(command, check=True, input=given, stdout=subprocess.PIPE, text=True, env=env).stdout


@contextmanager
def unpacked(revision: str) -> Iterator[Path]:
    """A folder with that commit's files."""
    command = ["git", "-C", str(HERE), "archive", "--format=zip", revision, "src"]
    packed = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if packed.returncode:
        raise typer.BadParameter(f"git has no commit {revision!r} here")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder)
        yield Path(folder)
