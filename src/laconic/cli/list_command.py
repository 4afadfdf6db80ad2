"""``laconic list``: algorithms, problems, kernels, explorations and their like, one line each."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from laconic.cli import nameable


def list_all(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: name → line, by kind.")] = False,
) -> None:
    """List algorithms, problems, kernels, explorations, digests and upload rules, with those of installed packages."""
    found = {f"{kind}s": _lines(kind) for kind in nameable.KINDS}
    if as_json:
        from laconic.cli.display import as_json as to_json

        typer.echo(to_json(found))
        return
    from laconic.report.table import hanging

    width = max(len(name) for lines in found.values() for name in lines)
    for kind, lines in found.items():
        typer.echo(kind)
        for name, line in lines.items():
            typer.echo(f"  {name:{width}}  {hanging(line, indent=width + 4)}")
    typer.echo("\nlaconic show NAME explains one of them; laconic compare PROBLEM plays a problem.")


def _lines(kind: nameable.Named) -> dict[str, str]:
    from laconic.errors import InputError  # numpy comes with it

    lines = {}
    for name in nameable.names(kind):
        try:
            lines[name] = summary(nameable.find(kind, name))
        except InputError as error:  # another package's; the others are listed all the same
            lines[name] = f"({error})"
    return lines


def summary(kind: object) -> str:
    """The first sentence of a class's documentation, without the marks of code that only pages show as such."""
    return (inspect.getdoc(kind) or "").partition("\n")[0].replace("`", "")
