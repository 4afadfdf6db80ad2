"""Packages of the ``data`` extra, imported when first needed."""

from __future__ import annotations

from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from laconic.errors import InputError

PACKAGES = ("sklearn", "pooch", "platformdirs", "unlzw3")


class MissingExtra(InputError):
    """A package of an extra is not installed."""


def extra(module: str) -> Any:
    """The module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise _missing(module.partition(".")[0]) from None


def version_of(distribution: str) -> str:
    """The installed version, without importing anything."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise _missing(distribution) from None


def absent_packages() -> list[str]:
    """Which packages of the extra are not installed, none of them imported."""
    return [name for name in PACKAGES if find_spec(name) is None]


def _missing(package: str) -> MissingExtra:
    return MissingExtra(f"{package} is not installed; try: pip install 'laconic[data]', or '.[data]' in a clone")
