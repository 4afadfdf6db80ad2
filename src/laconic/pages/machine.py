"""On what a report was made: versions of packages, and the machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = (
    *("laconic", "numpy", "scipy", "scikit-learn", "msgspec", "pyarrow", "joblib", "threadpoolctl", "ray"),
    *("altair", "vl-convert-python", "matplotlib"),
)


def versions() -> dict[str, str]:
    """Python, the packages that decide results, and the linear algebra behind them."""
    found = {"Python": f"{platform.python_version()} ({platform.python_implementation()})"}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    blas = {_blas(each) for each in threadpool_info() if each["user_api"] == "blas"}
    return found | {"BLAS": ", ".join(sorted(blas))}


def _blas(library: dict[str, Any]) -> str:
    """Its version, and for which processor it was made or has chosen its routines."""
    made_for = f" ({library['architecture']})" if library.get("architecture") else ""
    return f"{library['internal_api']} {library['version']}{made_for}"


def hardware() -> str:
    """Processor, cores and system in a line."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.machine()}, {platform.platform()}"


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if sys.platform == "linux" and listed.exists():
        for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
