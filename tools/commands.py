"""The page of commands, made of the help texts: ``python -m tools.commands`` writes docs/commands.md anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
OPENING = """# Commands

This page has every command with all that it takes. `laconic COMMAND --help` prints the same texts.
"""


def page() -> str:
    """All commands, as Markdown."""
    from typer.main import get_command

    from laconic.cli.application import app
    from laconic.cli.helping import EPILOG

    whole: Any = get_command(app)
    return (
        "\n".join([OPENING, _plain(EPILOG), "", *_listed(whole, "laconic"), *_explained(whole, "laconic")]).rstrip()
        + "\n"
    )


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _listed(group: Any, path: str) -> list[str]:
    """One line for each command, with a link to where it is explained."""
    rows = [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_plain(command.help).splitlines()[0]} |"
        for name, command in _commands(group, path)
    ]
    return ["| command | what it does |", "|---|---|", *rows, ""]


def _explained(group: Any, path: str) -> Iterator[str]:
    for name, command in _commands(group, path):
        taken = [each for each in command.params if not each.hidden]
        yield from (f"## {name}", "", _plain(command.help), "")
        yield from ("```sh", _usage(name, taken), "```", "")
        if taken:
            yield from ("| | |", "|---|---|", *(f"| {_written(each)} | {_meaning(each)} |" for each in taken), "")


def _usage(name: str, taken: list[Any]) -> str:
    arguments = [each for each in taken if each.param_type_name == "argument"]
    options = ["[OPTIONS]"] if len(arguments) < len(taken) else []
    return " ".join([name, *options, *(_place(each) for each in arguments)])


def _place(argument: Any) -> str:
    name = _named(argument) + ("..." if argument.nargs < 0 else "")
    return name if argument.required else f"[{name}]"


def _named(taken: Any) -> str:
    return str(taken.metavar or taken.name.upper())


def _written(taken: Any) -> str:
    """What is typed for it; a bar would end the cell of the table."""
    name = _named(taken).replace("|", "\\|")
    if taken.param_type_name == "argument":
        return f"`{name}`"
    value = "" if taken.is_flag else f" {name}"
    return ", ".join(f"`{each}{value}`" for each in (*taken.opts, *taken.secondary_opts))


def _meaning(taken: Any) -> str:
    said = " ".join(_plain(taken.help or "").split()).replace("|", "\\|")
    shown = taken.show_default and taken.default is not None and taken.default is not False
    return f"{said} Default: {taken.default}." if shown else said


def _plain(text: str) -> str:
    """A help text without its markup: what is bold there is code here."""
    text = re.sub(r"\[bold\](.*?)\[/\]", r"`\1`", text)
    text = re.sub(r"\[dim\]\\\[default: (.*?)\]\[/\]", r"Default: \1.", text, flags=re.DOTALL)
    return text.replace("\\[", "[").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
