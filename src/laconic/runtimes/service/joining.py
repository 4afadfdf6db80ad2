"""Joining: how an agent reaches its coordinator, and what it asks before it has a plan."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from laconic.errors import LinkError
from laconic.protocol.codec import MOST_BYTES
from laconic.runtimes.service import methods
from laconic.runtimes.service.authority import doubts
from laconic.runtimes.service.background import background
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.security import TLS, channel_credentials


@dataclass(frozen=True)
class Joining:
    """Where a coordinator is, and as whom to come to it; ``tls`` None for plaintext on this machine."""

    address: str
    name: str
    tls: TLS | None
    most_bytes: int = MOST_BYTES
    first_wait: float = 0.2  # seconds before a second attempt; it doubles from there
    longest_wait: float = 30.0

    def channel(self) -> grpc.aio.Channel:
        """A new connection, with the certificates as they are now."""
        options = methods.settings(self.most_bytes)
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options=options)
        return grpc.aio.secure_channel(self.address, channel_credentials(self.tls), options=options)

    def explained(self, error: grpc.aio.AioRpcError) -> str:
        """What went wrong, in a line, with what is wrong with the certificate where that may be why."""
        details = " ".join((error.details() or "").split())
        said = f"{error.code().name.lower().replace('_', ' ')}: {details[:400]}"
        if self.tls is None or error.code() is not grpc.StatusCode.UNAVAILABLE:
            return said
        authority, certificate, _ = self.tls.read()
        why = doubts(certificate, authority)
        return said if why is None else f"{said}; {why}"


def described_plan(joining: Joining, *, wait: float) -> bytes:
    """What the coordinator says about its algorithm, as a state file notes it."""
    background().require_links("give algorithm and dim to begin without one")
    described = methods.described(background().run(_described(joining, wait)))
    return msgspec.json.encode({"algorithm": described.algorithm, "dim": described.dim})


async def _described(joining: Joining, wait: float) -> bytes:
    until = asyncio.get_running_loop().time() + wait
    pause = joining.first_wait
    while True:
        try:
            async with joining.channel() as channel:
                method = channel.unary_unary(methods.path(methods.SERVICE, methods.DESCRIBE))
                left = max(0.1, until - asyncio.get_running_loop().time())
                data: bytes = await method(b"", timeout=left)
                return data
        except grpc.aio.AioRpcError as error:
            final = error.code() in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
            if final or asyncio.get_running_loop().time() + pause > until:
                raise LinkError(
                    f"the coordinator at {joining.address} did not say which algorithm it runs "
                    f"({joining.explained(error)}); give algorithm and dim to begin without it"
                ) from None
        await asyncio.sleep(pause)
        pause = min(2 * pause, 2.0)
