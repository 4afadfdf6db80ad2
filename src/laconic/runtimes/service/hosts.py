"""Hosts: which of them is this machine, seen from itself."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, seen from itself."""
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"


def foreign(host: str, *, bound: str) -> str | None:
    """What is wrong with the Host of a request to a server bound there: on this machine alone no other name is its own.

    A page from elsewhere can have its name point to this machine, and would read what is answered.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not name or not is_loopback(bound.rpartition(":")[0]) or is_loopback(name.lower()):
        return None
    return f"the host is {host[:200]!r}, and this is served to this machine alone; try 127.0.0.1"
