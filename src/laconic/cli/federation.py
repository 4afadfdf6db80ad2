"""The file of a federation: what is learnt, where it is served, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from laconic.algorithms import Algorithm
from laconic.checks import require_names
from laconic.errors import InputError
from laconic.experiments.config import read_toml
from laconic.experiments.parts import algorithm_from
from laconic.protocol.roster import Patience
from laconic.runtimes.service.coordinator import Coordinator, Limits, Serving
from laconic.runtimes.service.security import TLS


class TLSFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths, from the folder of the file."""

    authority: str
    certificate: str
    key: str


class PatienceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a sync waits, and how many must be present."""

    seconds: float = 30.0
    quorum: int = 1


class LimitsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a coordinator takes."""

    members: int = Limits.members
    links: int = Limits.links
    message_bytes: int = Limits.message_bytes


class FederationFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The layout of the file."""

    algorithm: dict[str, Any]
    dim: int
    state: str
    bind: str = Serving.bind
    http: str | None = None
    insecure: bool = False
    names: list[str] | None = None
    gone: list[str] = msgspec.field(default_factory=list)
    members: list[str] = msgspec.field(default_factory=list)
    tls: TLSFiles | None = None
    patience: PatienceFile = msgspec.field(default_factory=PatienceFile)
    limits: LimitsFile = msgspec.field(default_factory=LimitsFile)


#: What a coordinator that runs takes from its file again, and what it takes once, when its state file is made.
READ_AGAIN, READ_ONCE = ("names", "gone"), ("members",)


def differing(one: msgspec.Struct, other: msgspec.Struct, *, within: str = "") -> list[str]:
    """The keys in which two files of one layout differ, those of tables with the names of these."""
    found: list[str] = []
    for name in one.__struct_fields__:
        here, there = getattr(one, name), getattr(other, name)
        if isinstance(here, msgspec.Struct) and isinstance(there, msgspec.Struct):
            found += differing(here, there, within=f"{within}{name}.")
        elif here != there:
            found.append(f"{within}{name}")
    return found


@dataclass(frozen=True)
class Federation:
    """A file that was read, and where from: its paths are relative to that."""

    file: FederationFile
    folder: Path
    algorithm: Algorithm

    @property
    def serving(self) -> Serving:
        """Where and for whom it is served."""
        file = self.file
        return Serving(
            bind=file.bind,
            http=file.http,
            insecure=file.insecure,
            tls=tls_of(file.tls, folder=self.folder),
            allowed=None if file.names is None else frozenset(file.names),
            gone=frozenset(file.gone),
            members=tuple(file.members),
            patience=Patience(seconds=file.patience.seconds, quorum=file.patience.quorum),
            limits=Limits(
                members=file.limits.members, links=file.limits.links, message_bytes=file.limits.message_bytes
            ),
        )

    def coordinator(self) -> Coordinator:
        """The coordinator, ready to start."""
        plan = self.algorithm.plan(self.file.dim)
        return Coordinator(
            plan, state=self.folder / self.file.state, serving=self.serving, algorithm=self.file.algorithm
        )


def tls_of(files: TLSFiles | None, *, folder: Path) -> TLS | None:
    """The files of one side, with paths from a folder."""
    if files is None:
        return None
    return TLS(authority=folder / files.authority, certificate=folder / files.certificate, key=folder / files.key)


def require_tls(path: Path, files: TLSFiles | None, *, insecure: bool) -> None:
    """A file that has certificates, or says that plaintext is wanted, and not both."""
    if files is None and not insecure:
        raise InputError(
            f"{path} has no [tls]; give authority, certificate and key there (`laconic certs` makes them), or "
            "insecure = true at the top of the file to talk in plaintext on this machine"
        )
    if files is not None and insecure:
        raise InputError(f"{path} has [tls] and insecure = true, which exclude each other; leave one out")


def read_federation(path: Path) -> Federation:
    """The federation in a TOML file; refused with advice where it makes no sense."""
    file = read_toml(path, FederationFile)
    if file.dim < 1:
        raise InputError(f"{path}: dim is {file.dim}; give the number of features of an arm, as in dim = 20")
    require_tls(path, file.tls, insecure=file.insecure)
    require_names("gone", file.gone)
    require_names("names", file.names or ())  # by its key: to Serving they are those that are allowed
    federation = Federation(file, folder=path.absolute().parent, algorithm=algorithm_from(file.algorithm))
    _ = federation.serving  # refused now, with all that is wrong with it
    return federation
