"""What every command's help is made of: its docstring, and the exit codes below it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from typing import Any, TypeVar

import typer

EPILOG = (
    "Exit codes: 0 all went well, 2 bad input (one line on stderr says what; without the argument that it needs, a "
    "command shows its help), 130 stopped by Ctrl-C, 143 by SIGTERM; "
    "what runs until it is stopped (serve, agent, top) ends with 0, and serve and agent with 1 where only a restart "
    "can help."
)
Function = TypeVar("Function", bound=Callable[..., Any])


def command(app: typer.Typer, name: str, *, needs: bool = False) -> Callable[[Function], Function]:
    """Make a function a command of that name; one that ``needs`` an argument shows its help without any."""

    def added(function: Function) -> Function:
        said = in_paragraphs(getdoc(function) or "")
        return app.command(name, help=said, epilog=EPILOG, no_args_is_help=needs)(function)

    return added


def in_paragraphs(text: str) -> str:
    r"""A text with one line for each paragraph: a terminal breaks it where its own lines end.

    >>> in_paragraphs("It says\nlittle.\n\nIt learns.")
    'It says little.\n\nIt learns.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
