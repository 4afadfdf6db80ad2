"""The memory that this process may have: the machine's, or less where a group of processes has a limit."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

#: Where groups of processes have their limits, by the version of control groups, and what the file is called.
V2 = ("sys/fs/cgroup", "memory.max"), ("sys/fs/cgroup/unified", "memory.max")
V1 = (("sys/fs/cgroup/memory", "memory.limit_in_bytes"),)


def machine_memory(root: Path = Path("/")) -> int | None:
    """The bytes that this process may have, by what is found below a root folder; None where nobody says."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return min([found, *_limits(root)])


def _limits(root: Path) -> list[int]:
    """The limits of the process's group and of all groups around it; where there is none, version 1 says nearly 2⁶³."""
    files = [
        root / folder / level / name
        for folders, group in ((V2, _group(root, version=2)), (V1, _group(root, version=1)))
        for folder, name in folders
        for level in (group, *group.parents)
    ]
    said = [_text(file).strip() for file in files]
    return [int(each) for each in said if each.isdigit()]


def _group(root: Path, *, version: int) -> PurePosixPath:
    """The group that this process is in; the outermost where nobody says, or where it lies outside of what is seen."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number == "0" and not controllers) if version == 2 else ("memory" in controllers.split(",")):
            group = PurePosixPath(path.lstrip("/"))
            return PurePosixPath() if ".." in group.parts else group
    return PurePosixPath()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeError):
        return ""
