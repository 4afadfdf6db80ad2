"""``laconic show``: one algorithm, problem or kernel explained."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli import complete, defaults
from laconic.cli.listing import KINDS, summary

if TYPE_CHECKING:
    from laconic.registry import Kind


def show(
    name: Annotated[
        str, typer.Argument(help="As [bold]laconic list[/] shows it, in any case.", autocompletion=complete.anything)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Explain an algorithm: its equation, parameters, defaults and what it sends; also a problem or a kernel."""
    kind, listed, found = _find(name)
    page = _page(kind, listed, found)
    if as_json:
        from laconic.cli.display import as_json as to_json

        typer.echo(to_json(page))
        return
    typer.echo(_text(page))


def _find(name: str) -> tuple[Kind, str, Any]:
    from laconic import registry
    from laconic.errors import UnknownName

    every = {listed.lower(): (kind, listed) for kind in reversed(KINDS) for listed in registry.names(kind)}
    if name.strip().lower() not in every:
        raise UnknownName(f"nothing is called {name!r}; {_nearest(name.strip().lower(), every)}")
    kind, listed = every[name.strip().lower()]
    return kind, listed, registry.find(kind, listed)


def _nearest(name: str, every: dict[str, tuple[Kind, str]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, every, n=1, cutoff=0.4)
    return f"did you mean {every[near[0]][1]}?" if near else "laconic list shows all names"


def _page(kind: Kind, listed: str, found: Any) -> dict[str, Any]:
    page = {"name": listed, "kind": kind, "summary": summary(found)}
    page |= {key: getattr(found, key) for key in ("equation", "sends") if hasattr(found, key)}
    parameters = _parameters(found)
    return page | {"parameters": parameters, "compare": _in_compare(kind, listed, parameters)}


def _in_compare(kind: Kind, listed: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """What the demo takes instead of the default."""
    if kind != "algorithm":
        return {}
    stated = defaults.of(listed, problem=defaults.PROBLEM)
    numbers = [name for name, value in parameters.items() if isinstance(value, float)]
    return {name: stated[name] for name in numbers if stated.get(name, parameters[name]) != parameters[name]}


def _parameters(found: Any) -> dict[str, Any]:
    """Each parameter and its default, None where a value must be given."""
    parameters: dict[str, Any] = {}
    for name, parameter in inspect.signature(found).parameters.items():
        parameters[name] = _plain(_default(found, name, parameter))
    return parameters


def _default(found: Any, name: str, parameter: inspect.Parameter) -> Any:
    """A default made by a factory is not in the signature but in the field."""
    for field in dataclasses.fields(found) if dataclasses.is_dataclass(found) else ():
        if field.name == name and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return None if parameter.default is parameter.empty else parameter.default


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _text(page: dict[str, Any]) -> str:
    lines = [f"{page['name']} ({page['kind']})", page["summary"], ""]
    lines += [f"{title:<9} {page[key]}" for title, key in (("chooses", "equation"), ("sends", "sends")) if key in page]
    parameters = page["parameters"]
    width = max(map(len, parameters), default=0)
    lines += [""] if len(lines) > 3 else []
    lines += ["parameters"] if parameters else ["no parameters"]
    lines += [f"  {name:{width}}  {_value(name, page)}" for name in parameters]
    return "\n".join(lines)


def _value(name: str, page: dict[str, Any]) -> str:
    value = page["parameters"][name]
    stated = f" (laconic compare {defaults.PROBLEM} takes {page['compare'][name]})" if name in page["compare"] else ""
    return f"{'(needed)' if value is None else value}{stated}"
