"""What crosses a link beside the protocol's own bytes: the names of methods, a description, health, and settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from laconic.errors import RemoteProtocolError
from laconic.protocol.codec import VERSION

SERVICE = "laconic.Federation"
LINK, DESCRIBE = "Link", "Describe"
HEALTH, CHECK, WATCH = "grpc.health.v1.Health", "Check", "Watch"
#: The message of gRPC's health protocol, {status: …}: SERVING, NOT_SERVING, and SERVICE_UNKNOWN to who watches another.
SERVING, NOT_SERVING, UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
#: What is asked about: all of the server, or its one service by name ({service: …}).
ASKED = (b"", b"\x0a" + bytes([len(SERVICE)]) + SERVICE.encode())
#: Under which name a coordinator says, at the beginning of a link, how many bytes of a message it takes.
MOST_BYTES_KEY = "laconic-most-bytes"
#: Of a link in plaintext, which stays on this machine: a proxy of the environment would read it, or send it elsewhere.
NO_PROXY = ("grpc.enable_http_proxy", 0)
#: Beside a message gRPC needs a few bytes of its own.
MARGIN = 1024


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What an agent must know to make its plan: which algorithm, for arms of how many features."""

    version: int
    dim: int
    algorithm: dict[str, Any]
    fingerprint: str
    most_bytes: int

    def encoded(self) -> bytes:
        """As it is sent."""
        return msgspec.json.encode(self)


def described(data: bytes) -> Description:
    """The description in these bytes."""
    try:
        description = msgspec.json.decode(data, type=Description)
    except msgspec.MsgspecError as error:
        raise RemoteProtocolError(f"this is no description of a federation: {error}") from None
    if description.version != VERSION:
        raise RemoteProtocolError(
            f"the coordinator speaks version {description.version} of the protocol and this side {VERSION}; "
            "run the same laconic on both"
        )
    return description


def told_most_bytes(metadata: Iterable[tuple[str, str | bytes]] | None, *, otherwise: int) -> int:
    """How many bytes of a message the other side takes, where it says so and it is less than ``otherwise``."""
    said = next((value for key, value in metadata or () if key == MOST_BYTES_KEY), "")
    return min(int(said), otherwise) if isinstance(said, str) and said.isdecimal() else otherwise


def path(service: str, method: str) -> str:
    """A method as gRPC addresses it."""
    return f"/{service}/{method}"


def settings(most_bytes: int, *, alive: float = 20.0) -> list[tuple[str, int]]:
    """How gRPC is to behave: messages are bounded, and a peer that does not answer for a while counts as gone."""
    return [
        ("grpc.max_receive_message_length", most_bytes + MARGIN),
        ("grpc.max_send_message_length", most_bytes + MARGIN),
        ("grpc.keepalive_time_ms", int(alive * 1000)),
        ("grpc.keepalive_timeout_ms", int(alive * 500)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),  # pings of a quiet link are no attack
        ("grpc.so_reuseport", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
