"""The report: a table for people, JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.result import Result

HEADINGS = ("", "CPU s", "wall s", "floor s", "ratio", "against", "peak", "µs/interaction", "m", "target", "")


def table(results: list[Result]) -> Table:
    """Results as a table, a line each."""
    drawn = Table(*HEADINGS, box=None, header_style="bold")
    for column, heading in zip(drawn.columns, HEADINGS, strict=True):
        column.justify = "left" if heading in ("", "against", "target") else "right"
        column.no_wrap = True
    for result in results:
        drawn.add_row(*_cells(result))
    return drawn


def markdown(results: list[Result]) -> str:
    """Results as a table for a page."""
    lines = ["| " + " | ".join(HEADINGS[:-1]) + " |", "|---" + "|---:" * 4 + "|---|---:|---:|---:|---|"]
    lines += ["| " + " | ".join(_cells(result)[:-1]).replace("|A|", "arms") + " |" for result in results]
    return "\n".join(lines)


def _cells(result: Result) -> list[str]:
    verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[result.met]
    return [
        result.name,
        _number(result.cpu),
        _number(result.seconds),
        _number(result.floor),
        _number(result.ratio),
        result.against,
        "" if result.peak is None else f"{result.peak:.2f} GB",
        _number(result.per_interaction),
        str(result.details.get("dictionary") or ""),
        "; ".join(map(str, result.targets)),
        verdict,
    ]


def _number(value: float | None) -> str:
    """Three digits, never an exponent."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.001 else f"{value:.6f}"


def document(results: list[Result], *, quick: bool) -> dict[str, Any]:
    """Results with the machine that they hold for."""
    return {"machine": machine(), "quick": quick, "results": [result.as_dict() for result in results]}


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the program."""
    packages = ("laconic", "numpy", "scipy")
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "blas": _blas(),
    } | {name: version(name) for name in packages}


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _blas() -> list[str]:
    import scipy.linalg  # noqa: F401  # brings its own
    from threadpoolctl import threadpool_info

    fields = ("internal_api", "version", "architecture")
    return [" ".join(str(pool.get(name, "")) for name in fields) for pool in threadpool_info()]


def as_json(content: dict[str, Any]) -> str:
    """JSON that people can read too."""
    return json.dumps(content, indent=2, ensure_ascii=False)
