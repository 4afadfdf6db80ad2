"""Hosts: which of them is this machine, seen from itself."""

from __future__ import annotations

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, seen from itself."""
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"


def is_host(host: str) -> bool:
    """Whether a text may name a host: a name of the domain system, or an address, that of IPv6 in brackets."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        if bare != host:
            return host == f"[{bare}]" and bool(ipaddress.IPv6Address(bare))
        return host.isprintable() and " " not in host and bool(host.encode("idna"))
    except ValueError:  # UnicodeError is one too
        return False


def foreign(host: str, *, bound: str) -> str | None:
    """What is wrong with the Host of a request to a server bound there: on this machine alone no other name is its own.

    A page from elsewhere can have its name point to this machine, and would read what is answered.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not name or not is_loopback(bound.rpartition(":")[0]) or is_loopback(name.lower()):
        return None
    return f"the host is {host[:200]!r}, and this is served to this machine alone; try 127.0.0.1"


def refusal(address: str) -> str:
    """Why nothing can be served at HOST:PORT, in the system's words: it is asked once more, by itself."""
    host, _, port = address.rpartition(":")
    try:
        for family, kind, _, _, where in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(where)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return "the address is not free"
