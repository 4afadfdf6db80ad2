"""What stands where a problem is named: a file or a folder that the command does not take is refused by its kind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from zipfile import is_zipfile

#: Files that ``compare`` and ``frontier`` take, and those of ``suggest``.
PLAYED, SAMPLED = (".npz", ".parquet", ".toml"), (".npz", ".csv", ".parquet")


def require_taken(given: str, *, by: str, kinds: Sequence[str]) -> None:
    """Refuse what is there and cannot be taken, and say what to try; what is not there may be a name."""
    from laconic import registry
    from laconic.errors import InputError
    from laconic.paths import is_there

    if not given.strip() or not is_there(given) or given.strip().lower() in registry.names("problem"):
        return
    path = Path(given)
    if path.is_dir():
        raise InputError(f"{given} is a folder; try {_in_folder(path, kinds=kinds)}")
    if path.suffix.lower() not in kinds and not (os.sep in given and is_zipfile(path)):
        what = f"{path.suffix} files" if path.suffix else "such files"
        raise InputError(f"{given} is a file, and laconic {by} takes no {what}; try {_instead(given, kinds=kinds)}")


def _in_folder(folder: Path, *, kinds: Sequence[str]) -> str:
    """The configuration that an earlier run has left there, where one can be taken."""
    from laconic.experiments.folder import CONFIG

    return str(folder / CONFIG) if ".toml" in kinds and (folder / CONFIG).is_file() else _any_of(kinds)


def _instead(given: str, *, kinds: Sequence[str]) -> str:
    """The command that takes such a file, or what this one takes."""
    kind = Path(given).suffix.lower()
    takers = (("suggest", SAMPLED), ("compare", PLAYED))
    other = next((command for command, taken in takers if kind in taken), None)
    return _any_of(kinds) if other is None else f"laconic {other} {given}"


def _any_of(kinds: Sequence[str]) -> str:
    *others, last = kinds
    return f"a name that laconic list shows, or a file that ends in {', '.join(others)} or {last}"
