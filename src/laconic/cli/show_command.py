"""``laconic show``: one algorithm, problem, kernel, exploration, digest or upload rule explained."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated, Any

import typer

from laconic import described
from laconic.cli import complete, nameable
from laconic.cli.list_command import summary

#: How alike a name must be to what was typed to be offered in its place.
ALIKE = 0.7


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="As [bold]laconic list[/] shows it, in any case.",
            autocompletion=complete.anything,
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, others of that name under the key [bold]also[/].")
    ] = False,
) -> None:
    """Explain an algorithm: equation, parameters, defaults, what it sends.

    It explains a problem, a kernel, an exploration, a digest and an upload rule too.
    """
    first, *others = (_page(*found) for found in _find(name.strip()))
    if as_json:
        from laconic.cli.display import as_json as to_json

        typer.echo(to_json(first | ({"also": others} if others else {})))
        return
    typer.echo("\n\n".join(map(_text, (first, *others))))


def _find(name: str) -> list[tuple[nameable.Named, str, Any]]:
    """Everything of that name, whatever its case; a problem and a kernel may share one, spelled alike comes first."""
    from laconic.errors import UnknownName

    every = [(kind, listed) for kind in nameable.KINDS for listed in nameable.names(kind)]
    alike = [(kind, listed) for kind, listed in every if listed.lower() == name.lower()]
    if not alike:
        raise UnknownName(f"nothing is called {name!r}; {_nearest(name, [listed for _, listed in every])}")
    alike.sort(key=lambda each: each[1] != name)
    return [(kind, listed, nameable.find(kind, listed)) for kind, listed in alike]


def _nearest(name: str, every: list[str]) -> str:
    """What may have been meant: a parameter of something that can be shown, or a name that is nearly the same."""
    from difflib import get_close_matches

    owners = _owners(name)
    if owners:
        return f"it is a parameter of {', '.join(owners)}; try laconic show {owners[0]}"
    by_lower = {listed.lower(): listed for listed in reversed(every)}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=ALIKE)
    return f"did you mean {by_lower[near[0]]}?" if near else "laconic list shows all names"


def _owners(name: str) -> list[str]:
    """What has a parameter of that name."""
    found = [(listed, nameable.find(kind, listed)) for kind in nameable.KINDS for listed in nameable.names(kind)]
    return [listed for listed, each in found if name.lower() in map(str.lower, _parameters(each))]


def _page(kind: nameable.Named, listed: str, found: Any) -> dict[str, Any]:
    page = {"name": listed, "kind": kind, "summary": summary(found)}
    page |= {key: getattr(found, key) for key in ("equation", "sends") if hasattr(found, key)}
    parameters = _parameters(found)
    said = described.inherited(found)
    meanings = {name: said[name] for name in parameters if name in said}
    return page | {"parameters": parameters, "needed": _needed(found), "meanings": meanings}


def _parameters(found: Any) -> dict[str, Any]:
    """Each parameter and its default, None where there is none."""
    parameters: dict[str, Any] = {}
    for name, parameter in inspect.signature(found).parameters.items():
        parameters[name] = _plain(_default(found, name, parameter))
    return parameters


def _needed(found: Any) -> list[str]:
    """The parameters that must be given."""
    own = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    made = {field.name for field in own if field.default_factory is not dataclasses.MISSING}
    signature = inspect.signature(found).parameters.items()
    return [name for name, each in signature if each.default is each.empty and name not in made]


def _default(found: Any, name: str, parameter: inspect.Parameter) -> Any:
    """A default made by a factory is not in the signature but in the field."""
    for field in dataclasses.fields(found) if dataclasses.is_dataclass(found) else ():
        if field.name == name and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return None if parameter.default is parameter.empty else parameter.default


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _text(page: dict[str, Any]) -> str:
    lines = [*_wrapped(f"{page['name']} ({page['kind']})"), *_wrapped(page["summary"]), ""]
    for title, key in (("chooses", "equation"), ("sends", "sends")):
        lines += _wrapped(page[key], first=f"{title:<9} ") if key in page else []
    lines += [""] if lines[-1] else []
    lines += ["parameters"] if page["parameters"] else ["no parameters"]
    for name, value in page["parameters"].items():
        lines += _wrapped("(needed)" if name in page["needed"] else str(value), first=f"  {name}  ")
        lines += _wrapped(page["meanings"].get(name, ""), first="      ")
    return "\n".join(lines)


def _wrapped(text: str, *, first: str = "") -> list[str]:
    """Lines that fit a terminal; further ones stand below the first word."""
    from laconic.report.table import hanging

    return (first + hanging(text, indent=len(first))).split("\n") if text else []
