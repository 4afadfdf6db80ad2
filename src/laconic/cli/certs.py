"""``laconic certs``: a local authority, and certificates for a coordinator and agents."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from laconic import limits
from laconic.cli.options import named, whole


def certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files are, or are made.", **named())],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Agents; [bold]coordinator[/] is made in any case."),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="HOST", help="A name or address of the coordinator's machine; repeatable."),
    ] = None,
    days: Annotated[
        int,
        typer.Option(
            "--days", metavar="DAYS", help="Days for which certificates are valid.", **whole(most=limits.MOST_DAYS)
        ),
    ] = 365,
    renew: Annotated[bool, typer.Option("--renew", help="Make new ones also for names that have one.")] = False,
) -> None:
    """Make a local authority (ca.crt, ca.key), and NAME.crt and NAME.key for a coordinator and each agent.

    Keys are for their owner alone to read. Keep ca.key away from the machines of the federation.
    """
    from laconic.runtimes.service.authority import COORDINATOR, HOSTS, certify, require_told_hosts
    from laconic.runtimes.service.examining import expiry

    _require_folder(folder)
    wanted = [*dict.fromkeys([COORDINATOR, *(names or [])])]
    if renew and names:
        wanted = [*dict.fromkeys(names)]
    is_kept = COORDINATOR not in wanted or (not renew and (folder / f"{COORDINATOR}.crt").exists())
    if hosts and is_kept:
        require_told_hosts(folder, hosts)
    made = certify(folder, wanted, hosts=[*HOSTS, *(hosts or [])], valid=timedelta(days=days), renew=renew)
    for path in made:
        until = f", good until {expiry(path):%Y-%m-%d}" if path.suffix == ".crt" else ""
        typer.echo(f"{path}{until}")
    keyless = [name for name in names or [] if not (folder / f"{name}.key").exists()]
    for name in keyless:  # its key may have been moved to where it is used
        typer.echo(f"{name}.crt is there without its key, and stays; --renew {name} makes both anew.", err=True)
    if not made and not keyless:
        typer.echo("All of them are there; --renew makes new ones.", err=True)


def _require_folder(folder: Path) -> None:
    """Refuse a place in which no folder can be made, as a file is there."""
    from laconic.errors import InputError
    from laconic.paths import is_there

    for place in (folder, *folder.parents):
        if is_there(place) and not place.is_dir():
            raise InputError(f"{place} is a file; give a folder")
