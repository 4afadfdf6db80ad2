"""Names that the shell completes; what was typed keeps its case, as names are taken in any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laconic.registry import Kind


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
    others = [*problems(incomplete), *kernels(incomplete), *_matching("exploration", incomplete)]
    return [*algorithms(incomplete), *others]


def _matching(kind: Kind, typed: str) -> list[str]:
    from laconic import registry  # only when the shell asks

    return [typed + name[len(typed) :] for name in registry.names(kind) if name.lower().startswith(typed.lower())]
