"""The environment of a clone runs the source in this folder, whatever pip has done to it since."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A python that has only what a folder holds, and notes what pip is asked for.
PYTHON = """#!/bin/sh
if [ "$1" = -m ]; then echo "$@" >> "{log}"; exit 0; fi
cd "{root}" && exec env PYTHONPATH="{packages}" "{python}" -Sc "$2"
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(("linked", "asked"), [(True, 0), (False, 1)])
def test_make_venv_notices_that_pip_has_replaced_the_link(tmp_path: Path, linked: bool, asked: int) -> None:
    venv, log, packages = tmp_path / "venv", tmp_path / "log", ROOT / "src"
    if not linked:  # as pip install . leaves it: a copy
        packages = tmp_path / "packages"
        (packages / "laconic").mkdir(parents=True)
        (packages / "laconic" / "__init__.py").touch()
    (venv / "bin").mkdir(parents=True)
    log.touch()
    python = venv / "bin" / "python"
    python.write_text(PYTHON.format(log=log, root=ROOT, packages=packages, python=sys.executable))
    python.chmod(0o755)
    made = ["make", f"VENV={venv}", "-o", str(venv / ".installed"), "venv"]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    calls = log.read_text().splitlines()
    assert len(calls) == asked, (calls, done.stdout, done.stderr)
    assert all("install" in call and call.endswith("-e .") for call in calls)


def test_what_readers_are_told_to_install_from_a_clone_stays_linked_to_it() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for command in re.findall(r"pip install[^`\n#]*", page.read_text(encoding="utf-8")):
            assert re.search(r"['\s]\.", command) is None or " -e " in command, f"{page.name}: {command}"
