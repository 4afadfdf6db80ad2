"""All that has a name: the kinds that other packages add to, and the parts that an algorithm takes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from laconic.registry import Kind

Part = Literal["digest", "upload"]
Named = Literal["algorithm", "problem", "kernel", "exploration", "digest", "upload"]
KINDS: tuple[Named, ...] = get_args(Named)


def names(kind: Kind | Part) -> list[str]:
    """The names of a kind, ours first."""
    from laconic import registry  # numpy comes with it

    return list(_parts(kind)) if kind == "digest" or kind == "upload" else registry.names(kind)


def find(kind: Kind | Part, name: str) -> Any:
    """The class of a name that is listed."""
    from laconic import registry

    return _parts(kind)[name] if kind == "digest" or kind == "upload" else registry.find(kind, name)


def _parts(kind: Part) -> dict[str, Any]:
    from laconic.experiments.parts import BY_NAME, OTHERS

    return {name: OTHERS[name] for name in BY_NAME[kind]}
