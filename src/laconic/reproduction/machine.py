"""On what a report was made: versions of packages, and the machine."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from threadpoolctl import threadpool_info

PACKAGES = ("laconic", "numpy", "scipy", "scikit-learn", "msgspec", "pyarrow", "joblib", "ray", "altair")


def versions() -> dict[str, str]:
    """Python, the packages that decide results, and the linear algebra behind them."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    blas = {f"{each['internal_api']} {each['version']}" for each in threadpool_info() if each["user_api"] == "blas"}
    return found | {"BLAS": ", ".join(sorted(blas))}


def hardware() -> str:
    """Processor, cores and system in a line."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if sys.platform == "linux" and listed.exists():
        for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
