"""Names that the shell completes; what was typed keeps its case, as names are taken in any."""

from __future__ import annotations

from laconic.cli import nameable


def algorithms(incomplete: str) -> list[str]:
    """Algorithms for the last place of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _matching("algorithm", last)]


def problems(incomplete: str) -> list[str]:
    """Problems whose names begin so."""
    return _matching("problem", incomplete)


def kernels(incomplete: str) -> list[str]:
    """Kernels whose names begin so."""
    return _matching("kernel", incomplete)


def anything(incomplete: str) -> list[str]:
    """Everything that ``laconic show`` explains."""
    return [name for kind in nameable.KINDS for name in _matching(kind, incomplete)]


def _matching(kind: nameable.Named, typed: str) -> list[str]:
    return [typed + name[len(typed) :] for name in nameable.names(kind) if name.lower().startswith(typed.lower())]
