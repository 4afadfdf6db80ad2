"""The memory that a process may have: the machine's, or less where its group of processes has a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from laconic.runtimes.memory_limits import machine_memory

WHOLE = machine_memory()
OWN, GROUPS, LEGACY = "proc/self/cgroup", "sys/fs/cgroup", "sys/fs/cgroup/memory"


def found(root: Path, files: dict[str, str]) -> int | None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return machine_memory(root)


def test_the_machine_has_memory_and_nothing_else_is_said_where_there_are_no_groups(tmp_path: Path) -> None:
    assert WHOLE is not None
    assert WHOLE > 10**8
    assert found(tmp_path, {OWN: "0::/\n", f"{GROUPS}/memory.max": "max\n"}) == found(tmp_path / "none", {})


def test_in_a_container_the_outermost_group_that_it_sees_has_the_limit(tmp_path: Path) -> None:
    assert found(tmp_path, {OWN: "0::/\n", f"{GROUPS}/memory.max": "1000\n"}) == 1000


@pytest.mark.parametrize("limited", ["user.slice/run-1.scope", "user.slice"])
def test_the_groups_own_limit_counts_and_that_of_each_it_is_in(tmp_path: Path, limited: str) -> None:
    files = {OWN: "0::/user.slice/run-1.scope\n", f"{GROUPS}/user.slice/run-1.scope/memory.max": "max\n"}
    assert found(tmp_path, files | {f"{GROUPS}/{limited}/memory.max": "3000\n"}) == 3000


def test_of_several_limits_the_least_counts(tmp_path: Path) -> None:
    files = {OWN: "0::/a/b\n", f"{GROUPS}/a/b/memory.max": "5000", f"{GROUPS}/a/memory.max": "4000"}
    assert found(tmp_path, files) == 4000


def test_groups_of_version_one_say_it_in_files_of_their_own(tmp_path: Path) -> None:
    own = "12:cpu,cpuacct:/jobs\n5:memory:/jobs/7\n0::/\n"
    none = f"{2**63 - 4096}\n"  # which is how version 1 says that there is no limit
    files = {OWN: own, f"{LEGACY}/jobs/7/memory.limit_in_bytes": none, f"{LEGACY}/memory.limit_in_bytes": none}
    assert found(tmp_path, files) == machine_memory(tmp_path / "none")
    assert found(tmp_path, {f"{LEGACY}/jobs/memory.limit_in_bytes": "6000\n"}) == 6000


def test_a_group_outside_of_what_is_seen_has_the_outermost_limit(tmp_path: Path) -> None:
    assert found(tmp_path, {OWN: "0::/../../b\n", f"{GROUPS}/memory.max": "7000\n"}) == 7000


def test_a_group_of_another_process_says_nothing(tmp_path: Path) -> None:
    files = {OWN: "0::/mine\n", f"{GROUPS}/others/memory.max": "10\n", f"{GROUPS}/mine/memory.max": "8000\n"}
    assert found(tmp_path, files) == 8000
