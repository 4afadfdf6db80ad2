"""Who may talk to whom: mutual TLS between agents and coordinator, or plaintext on one machine if one asks for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from laconic.checks import seen
from laconic.errors import InputError
from laconic.runtimes.service.examining import Side, require_fitting
from laconic.runtimes.service.hosts import is_host, is_loopback
from laconic.runtimes.service.packages import grpc

PORTS = range(1, 2**16)


@dataclass(frozen=True)
class TLS:
    """The files of one side: the authority that vouches for the other, and this side's certificate and key.

    They are read again whenever a link is made, so that renewed files are taken up by themselves.

    Args:
        authority: File of the certificate authority that vouches for the other side, in PEM form.
        certificate: File of this side's certificate, in PEM form. An agent's has its name as common name; a
            coordinator's has the hosts at which agents reach it.
        key: File of this side's private key, in PEM form.
    """

    authority: str | os.PathLike[str]
    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]

    @classmethod
    def of(cls, directory: str | os.PathLike[str], name: str) -> TLS:
        """The files that ``laconic certs`` makes for a name: ca.crt, NAME.crt and NAME.key.

        Args:
            directory: Folder in which they are.
            name: Name of an agent, or coordinator for the coordinator.
        """
        folder = Path(directory)
        return cls(authority=folder / "ca.crt", certificate=folder / f"{name}.crt", key=folder / f"{name}.key")

    def read(self) -> tuple[bytes, bytes, bytes]:
        """What is in them now: authority, certificate and key.

        Raises:
            InputError: A file cannot be read, or is not in PEM form.
        """
        return _read("authority", self.authority), _read("certificate", self.certificate), _read("key", self.key)

    def usable(self, *, side: Side) -> tuple[bytes, bytes, bytes]:
        """What is in them now, which that side can use.

        Args:
            side: coordinator, or agent.

        Raises:
            InputError: A file cannot be read, or the three do not fit each other or that side.
        """
        authority, certificate, key = found = self.read()
        files = {
            "authority": (self.authority, authority),
            "certificate": (self.certificate, certificate),
            "key": (self.key, key),
        }
        require_fitting(files, side=side)
        return found


def _read(what: str, path: str | os.PathLike[str]) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the TLS {what} {path}: {error.strerror}; `laconic certs` makes such files"
        ) from None
    if b"-----BEGIN" not in data:
        raise InputError(f"the TLS {what} {path} is not in PEM form; `laconic certs` makes files that are")
    return data


def require_certificates(tls: object) -> None:
    """The files of one side, or None."""
    if tls is not None and not isinstance(tls, TLS):
        raise InputError(f"tls must be a TLS, not {seen(tls)}; try tls=TLS.of('certs', 'edge-17')")


def require_address(name: str, address: object, *, insecure: bool) -> str:
    """HOST:PORT, and a host on this machine where nothing is encrypted."""
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not (host and colon and port.isascii() and port.isdigit() and (int(port) in PORTS or port == "0")):
        raise InputError(f"{name} must be HOST:PORT, not {address!r}; try {name}='127.0.0.1:7443'")
    if not is_host(host):
        raise InputError(f"{name} is {address!r}, which names no host; try {name}='127.0.0.1:{port}'")
    if insecure and not is_loopback(host):
        raise InputError(
            f"{name} is {address}, and without TLS only this machine may be talked to; "
            "give certificates (`laconic certs` makes them), or try 127.0.0.1"
        )
    return f"{host}:{port}"


def channel_credentials(tls: TLS) -> grpc.ChannelCredentials:
    """What an agent shows, and whom it believes."""
    authority, certificate, key = tls.usable(side="agent")
    return grpc.ssl_channel_credentials(root_certificates=authority, private_key=key, certificate_chain=certificate)


def server_credentials(tls: TLS) -> grpc.ServerCredentials:
    """What a coordinator shows and whom it lets in; files that have changed are read again for new links."""
    last = [tls.usable(side="coordinator")]

    def configured() -> grpc.ServerCertificateConfiguration:
        authority, certificate, key = last[0]
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=authority)

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        try:
            now = tls.usable(side="coordinator")
        except InputError:  # in the middle of being replaced
            return None
        if now == last[0]:
            return None
        last[0] = now
        return configured()

    return grpc.dynamic_ssl_server_credentials(configured(), renewed, require_client_authentication=True)


def name_in(context: grpc.aio.ServicerContext) -> str | None:
    """The name in the certificate of who is at the other end, empty where it has none; None without a certificate."""
    about = context.auth_context()
    found = list(about.get("x509_common_name", ()))
    if found:
        return str(found[0], errors="replace")
    return "" if b"ssl" in about.get("transport_security_type", ()) else None
