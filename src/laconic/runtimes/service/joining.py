"""Joining: how an agent reaches its coordinator, and how it comes by its plan."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from laconic import registry
from laconic.algorithms import Algorithm, require_algorithm
from laconic.checks import require_at_least, require_name, require_number, require_path, require_positive, require_whole
from laconic.errors import InputError, LinkError
from laconic.protocol.codec import MOST_BYTES
from laconic.protocol.plan import Plan
from laconic.runtimes.service import methods
from laconic.runtimes.service.ages import WEEK
from laconic.runtimes.service.background import background
from laconic.runtimes.service.examining import doubts, require_own
from laconic.runtimes.service.packages import grpc
from laconic.runtimes.service.security import TLS, channel_credentials, require_address, require_certificates
from laconic.runtimes.service.store import Store

log = logging.getLogger("laconic.agent")
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
            return grpc.aio.insecure_channel(self.address, options=[*options, methods.NO_PROXY])
        return grpc.aio.secure_channel(self.address, channel_credentials(self.tls), options=options)

    def explained(self, error: grpc.aio.AioRpcError) -> str:
        """What went wrong, in a line, with what is wrong with the certificate where that may be why."""
        details = " ".join((error.details() or "").split())
        said = f"{error.code().name.lower().replace('_', ' ')}: {details[:400]}"
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            return said
        if self.tls is None:  # who wants TLS closes what does not begin with it
            return f"{said}; if that side has tls, give tls here too" if "Socket closed" in details else said
        authority, certificate, _ = self.tls.read()
        why = doubts(certificate, authority)
        return said if why is None else f"{said}; {why}"


@dataclass(frozen=True, kw_only=True)
class Start:
    """What `Agent.join` is given, checked; what its fields mean is said there."""

    address: str
    name: str
    state: str | os.PathLike[str]
    tls: TLS | None = None
    insecure: bool = False
    algorithm: Algorithm | None = None
    dim: int | None = None
    seed: int | None = None
    group_commit: float = 0.0
    forget_after: float = WEEK
    log_decisions: int = 0
    wait: float = 30.0

    def __post_init__(self) -> None:
        require_name("name", self.name)
        require_path("state", self.state)
        require_at_least("group_commit", self.group_commit, least=0)
        require_positive("forget_after", self.forget_after)
        require_whole("log_decisions", self.log_decisions, least=0)
        require_at_least("wait", self.wait, least=0)
        if self.seed is not None:
            require_number("seed", self.seed, bits=64)
        self._check_link()
        self._check_plan()

    def _check_link(self) -> None:
        require_certificates(self.tls)
        if (self.tls is None) is not bool(self.insecure):
            raise InputError(
                "give tls, as in TLS.of('certs', name), or insecure=True to talk to this machine in plaintext"
            )
        if self.tls is not None:  # refused here rather than in the background
            _, certificate, _ = self.tls.usable(side="agent")
            require_own(self.name, certificate, path=self.tls.certificate)
        require_address("address", self.address, insecure=self.insecure)

    def _check_plan(self) -> None:
        if (self.algorithm is None) is not (self.dim is None):
            raise InputError("algorithm and dim are given together, or neither of them to ask the coordinator")
        if self.algorithm is not None:
            require_whole("dim", self.dim, least=1)
            require_algorithm(self.algorithm)

    @property
    def joining(self) -> Joining:
        """Whom it joins, and how."""
        address = require_address("address", self.address, insecure=self.insecure)
        return Joining(address=address, name=self.name, tls=self.tls)

    def known(self) -> bytes | None:
        """The table of the algorithm that the state file notes, empty where it is given; None: it is to be asked."""
        return b"" if self.algorithm is not None else _noted_table(self.state, self.name)

    def asked(self) -> Future[bytes]:
        """The table that the coordinator tells, once it answers; cancelling it gives up."""
        background().require_links("give algorithm and dim to begin without one")
        return background().start(_described_table(self.joining, wait=self.wait))

    def plan(self, table: bytes) -> Plan:
        """The plan that was given, or that a table says."""
        if self.algorithm is not None and self.dim is not None:
            return self.algorithm.plan(self.dim)
        known = msgspec.json.decode(table, type=_Table)
        if not known.algorithm:
            raise LinkError("the coordinator's algorithm has no table; give algorithm and dim here as there")
        told: Plan = registry.algorithm_from(known.algorithm).plan(known.dim)
        return told


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


async def _described_table(joining: Joining, *, wait: float) -> bytes:
    """What the coordinator says about its algorithm, as a state file notes it."""
    described = methods.described(await _described(joining, wait))
    return msgspec.json.encode({"algorithm": described.algorithm, "dim": described.dim})


async def _described(joining: Joining, wait: float) -> bytes:
    until = asyncio.get_running_loop().time() + wait
    pause, last = joining.first_wait, ""
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
                # Who is not let in would begin, and stay alone.
                is_denied = error.code() is grpc.StatusCode.PERMISSION_DENIED
                advice = "" if is_denied else "; give algorithm and dim to begin without it"
                raise LinkError(
                    f"the coordinator at {joining.address} did not say which algorithm it runs "
                    f"({joining.explained(error)}){advice}"
                ) from None
            if (why := joining.explained(error)) != last:
                last = why
                log.info("not told the algorithm yet", extra={"agent": joining.name, "reason": why})
        await asyncio.sleep(pause)
        pause = min(2 * pause, 2.0)
