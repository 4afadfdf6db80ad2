"""Joining: how an agent reaches its coordinator, and how it comes by its plan."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from laconic import registry
from laconic.algorithms import Algorithm, require_algorithm
from laconic.checks import require_whole
from laconic.errors import InputError, LinkError
from laconic.protocol.codec import MOST_BYTES
from laconic.protocol.plan import Plan
from laconic.runtimes.service import methods
from laconic.runtimes.service.authority import doubts
from laconic.runtimes.service.background import background
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.security import TLS, channel_credentials
from laconic.runtimes.service.store import Store

#: Under which name a state file notes the table of the algorithm.
TABLE = "algorithm"


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


def found_plan(
    joining: Joining, *, algorithm: Algorithm | None, dim: int | None, state: str | os.PathLike[str], wait: float
) -> tuple[Plan, bytes]:
    """The plan, and the table that it was made from where an agent was told one."""
    if (algorithm is None) is not (dim is None):
        raise InputError("algorithm and dim are given together, or neither of them to ask the coordinator")
    if algorithm is not None and dim is not None:
        require_whole("dim", dim, least=1)
        return require_algorithm(algorithm).plan(dim), b""
    table = _noted_table(state, joining.name) or _described_table(joining, wait=wait)
    known = msgspec.json.decode(table, type=_Table)
    if not known.algorithm:
        raise LinkError("the coordinator's algorithm has no table; give algorithm and dim here as there")
    return registry.algorithm_from(known.algorithm).plan(known.dim), table


class _Table(msgspec.Struct, frozen=True):
    """What an agent was told of its plan."""

    algorithm: dict[str, Any]
    dim: int


def _noted_table(state: str | os.PathLike[str], name: str) -> bytes | None:
    """What the state file of an agent that has started before says."""
    path = Path(state)
    if not path.is_file() or path.stat().st_size == 0:
        return None
    store = Store(state, role="agent", name=name)
    try:
        table = store.about(TABLE)
        if table is not None:
            with store.reading():
                msgspec.json.decode(table, type=_Table)
        return table
    finally:
        store.close()


def _described_table(joining: Joining, *, wait: float) -> bytes:
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
