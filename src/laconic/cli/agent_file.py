"""The file of an agent beside an application: whom it joins, as whom, and where it listens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from laconic.cli.federation import TLSFiles, require_tls, tls_of
from laconic.experiments.config import read_toml
from laconic.experiments.parts import algorithm_from
from laconic.runtimes.service.agent import Agent
from laconic.runtimes.service.ages import WEEK
from laconic.runtimes.service.pages import UNIX
from laconic.runtimes.service.sidecar import MOST_BODY, OWNER_ALONE, Sidecar, require_listen, require_mode


class AgentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The layout of the file."""

    address: str
    name: str
    state: str
    listen: str
    insecure: bool = False
    tls: TLSFiles | None = None
    origins: list[str] = msgspec.field(default_factory=list)
    body_bytes: int = MOST_BODY
    socket_mode: str = OWNER_ALONE
    group_commit: float = 0.0
    forget_after: float = WEEK
    log_decisions: int = 0
    algorithm: dict[str, Any] | None = None
    dim: int | None = None


@dataclass(frozen=True)
class AgentSettings:
    """A file that was read, and where from: its paths are relative to that."""

    file: AgentFile
    folder: Path

    async def join(self) -> Agent:
        """The agent, linking in the background."""
        file = self.file
        return await Agent.join_async(
            file.address,
            name=file.name,
            state=self.folder / file.state,
            insecure=file.insecure,
            tls=tls_of(file.tls, folder=self.folder),
            algorithm=None if file.algorithm is None else algorithm_from(file.algorithm),
            dim=file.dim,
            group_commit=file.group_commit,
            forget_after=file.forget_after,
            log_decisions=file.log_decisions,
        )

    @property
    def waits_for(self) -> str:
        """What its start, under way, waits for: a state file is made when the plan is known."""
        if self.file.algorithm is not None or (self.folder / self.file.state).exists():
            return "opening the state file"
        return "waiting for the coordinator, which says the plan"

    def sidecar(self, agent: Agent) -> Sidecar:
        """Its sidecar, ready to start."""
        listen, file = self.file.listen, self.file
        if listen.startswith(UNIX):
            listen = f"{UNIX}{self.folder / listen.removeprefix(UNIX)}"
        return Sidecar(
            agent,
            listen=listen,
            origins=frozenset(file.origins),
            body_bytes=file.body_bytes,
            socket_mode=file.socket_mode,
        )


def read_agent(path: Path) -> AgentSettings:
    """The agent in a TOML file; refused with advice where it makes no sense."""
    settings = AgentSettings(read_toml(path, AgentFile), folder=path.absolute().parent)
    require_mode(settings.file.socket_mode, listen=require_listen(settings.file.listen))
    require_tls(path, settings.file.tls, insecure=settings.file.insecure)
    return settings
