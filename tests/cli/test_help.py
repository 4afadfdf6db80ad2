"""Help texts: every command's has whole paragraphs and its exit codes, and names arguments in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from laconic.cli import app


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


ALL = list(commands(get_command(app)))


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_a_help_text_has_whole_paragraphs_exit_codes_and_arguments_in_capitals(
    path: tuple[str, ...], command: Any
) -> None:
    assert not re.search(r"[^\n]\n[^\n]", command.help)
    shown = CliRunner().invoke(app, [*path, "--help"]).stdout
    assert "Exit codes: 0 all went well" in shown
    usage = next(line for line in shown.splitlines() if "Usage:" in line).partition(" ".join(path))[2]
    arguments = re.findall(r"[\[{]([^\]}]+)[\]}]", usage.replace("[OPTIONS]", ""))
    assert all(each[0].isupper() for each in arguments), usage
    assert "<str>" not in shown.partition("─ Options ─")[2]
