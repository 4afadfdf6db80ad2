"""``laconic status``: how a coordinator stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from http.client import HTTPResponse

#: A coordinator has so many seconds to answer, and so many bytes for it; a thousand members take some hundred thousand.
SECONDS, MOST_BYTES = 10.0, 2**26


def status(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The coordinator's HTTP address.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show how a coordinator stands: members, newest belief, traffic, last errors."""
    from laconic.cli.display import as_json as to_json

    found = fetched(address)
    typer.echo(to_json(found) if as_json else "\n".join(_lines(found)))


def fetched(
    address: str, *, path: str = "/status", drawn: Callable[[dict[str, Any]], object] | None = None
) -> dict[str, Any]:
    """What the coordinator at an HTTP address says about itself; what cannot be ``drawn`` is said by something else."""
    import json
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    from laconic.errors import InputError, LinkError
    from laconic.runtimes.service.hosts import is_loopback

    address = address.removeprefix("http://").removesuffix("/")  # as a browser shows it
    host, _, port = address.rpartition(":")
    if "/" in address or not host or not (port.isascii() and port.isdigit()):
        raise InputError(f"the address must be HOST:PORT, not {address!r}; try 127.0.0.1:7444")
    # A proxy of the environment is for other machines: asked for this one it would look at its own.
    opener = build_opener(ProxyHandler({})) if is_loopback(host) else build_opener()
    try:
        with opener.open(f"http://{address}{path}", timeout=SECONDS) as answer:  # the scheme is ours
            found = json.loads(_read(answer))
    except HTTPException:  # what is there speaks something else: most likely gRPC, to agents
        raise LinkError(f"what answers at {address} speaks no HTTP; try the http address of the coordinator") from None
    except (URLError, OSError, ValueError, RecursionError) as error:
        # urllib puts its own error around one of the system, which says it shorter.
        why = getattr(getattr(error, "reason", error), "strerror", None) or error
        raise LinkError(f"no coordinator answers at {address}: {why}; try the http address of its file") from None
    try:
        (drawn or _lines)(found)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise LinkError(
            f"what answers at {address} is no coordinator, or of another version; try the http address of its file"
        ) from None
    return dict(found)


def _read(answer: HTTPResponse) -> bytes:
    """A body, which neither lasts for ever nor grows without end."""
    until, parts, size = time.monotonic() + SECONDS, list[bytes](), 0
    while part := answer.read1(2**16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES or time.monotonic() > until:
            raise ValueError("its answer does not end")
    return b"".join(parts)


def newest_in(found: dict[str, Any]) -> str:
    """The newest belief that a coordinator gives, by its number and how many points it has."""
    if found["together"]:
        points = "" if found["dictionary"] is None else f", dictionary {found['dictionary']}"
        return f"epoch {found['epoch']}{points}"
    return f"version {found['version']}" + ("" if found["atoms"] is None else f", {found['atoms']} atoms")


def _lines(said: dict[str, Any]) -> list[str]:
    from laconic.report.table import Table, wrapped
    from laconic.terminal import all_shown

    found: Any = all_shown(said)
    ready = "ready" if found["ready"] else "not ready"
    lines = [
        f"{found['address']}: {ready}, {found['state']}, up {found['seconds']:,.0f} s",
        f"{newest_in(found)}, {found['counters']['syncs']:,} syncs since the start, "
        f"{found['observations']:,} observations, {found['links']} link{'' if found['links'] == 1 else 's'}",
    ]
    members = tuple((each["name"], each["status"], f"{each['observations']:,}") for each in found["members"])
    traffic = tuple(
        (f"{row['phase']}, {row['direction']}", f"{row['messages']:,}", f"{row['bytes']:,}") for row in found["traffic"]
    )
    lines += ["", Table(("member", "status", "observations"), rows=members).text()]
    lines += ["", Table(("phase and direction", "messages", "bytes"), rows=traffic).text()]
    return [*map(wrapped, lines[:2]), *lines[2:], *(wrapped(f"! {error}") for error in found["errors"])]
