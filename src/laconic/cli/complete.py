"""Names that the shell completes."""

from __future__ import annotations


def algorithms(incomplete: str) -> list[str]:
    """Algorithms whose names begin as the last of a comma-separated list does."""
    from laconic import registry  # only when the shell asks

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in registry.names("algorithm") if name.lower().startswith(last.lower())]


def problems(incomplete: str) -> list[str]:
    """Problems whose names begin so."""
    from laconic import registry

    return [name for name in registry.names("problem") if name.lower().startswith(incomplete.lower())]


def kernels(incomplete: str) -> list[str]:
    """Kernels whose names begin so."""
    from laconic import registry

    return [name for name in registry.names("kernel") if name.lower().startswith(incomplete.lower())]


def anything(incomplete: str) -> list[str]:
    """Everything that ``laconic show`` explains."""
    return [*algorithms(incomplete), *problems(incomplete), *kernels(incomplete)]
