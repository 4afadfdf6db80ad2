"""Examining certificates, whoever made them: what is wrong with files, which TLS by itself would not say."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from laconic.errors import InputError
from laconic.runtimes.service.crypto import (
    ExtendedKeyUsageOID,
    InvalidSignature,
    NameOID,
    UnsupportedAlgorithm,
    serialization,
    x509,
)

#: Authority, certificate and key of one side, each a path and what is there.
Files = Mapping[str, tuple[str | os.PathLike[str], bytes]]
Side = Literal["coordinator", "agent"]
#: What the certificate of a side is for.
PURPOSES = {"coordinator": ExtendedKeyUsageOID.SERVER_AUTH, "agent": ExtendedKeyUsageOID.CLIENT_AUTH}
T = TypeVar("T")


def expiry(path: str | os.PathLike[str]) -> datetime:
    """Until when a certificate is good."""
    return x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc


def require_fitting(files: Files, *, side: Side) -> None:
    """Files that TLS can use: by itself it would not say what is wrong with them.

    A certificate that says what it is for must be for this side; one that others made may say nothing.
    """
    _loaded(x509.load_pem_x509_certificates, "authority", files)
    own = _loaded(x509.load_pem_x509_certificates, "certificate", files)[0]
    key = _loaded(_key, "key", files)
    if _public(own.public_key()) != _public(key.public_key()):
        raise InputError(
            f"the TLS key {files['key'][0]} is not that of the certificate {files['certificate'][0]}; give the two that"
            " were made together"
        )
    purposes = _purposes(own)
    if purposes and not purposes & {PURPOSES[side], ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}:
        raise InputError(
            f"the TLS certificate {files['certificate'][0]} cannot stand for {side}s, and nobody would believe it;"
            " `laconic certs` makes one for each"
        )


def _loaded(load: Callable[[bytes], T], what: str, files: Files) -> T:
    path, data = files[what]
    try:
        return load(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"the TLS {what} {path} cannot be read: {' '.join(str(error).split())[:200]};"
            " `laconic certs` makes such files"
        ) from None


def _key(data: bytes) -> Any:
    return serialization.load_pem_private_key(data, password=None)


def _public(key: Any) -> bytes:
    return bytes(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))


def _purposes(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    """What a certificate says that it is for; nothing where it does not say."""
    try:
        return {*certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value}
    except (x509.ExtensionNotFound, ValueError):
        return set()


def require_own(name: str, certificate: bytes, *, path: str | os.PathLike[str]) -> None:
    """A certificate that says this name: a coordinator knows an agent by it, and refuses any other."""
    subject = x509.load_pem_x509_certificate(certificate).subject
    said = next((str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)), None)
    if said != name:
        whose = "no name" if said is None else f"the name {said!r}"
        raise InputError(
            f"name is {name!r}, and the TLS certificate {path} has {whose}; "
            f"give that name, or the certificate and key of {name!r}"
        )


def doubts(certificate: bytes, authority: bytes) -> str | None:
    """Why the other end may not believe a certificate; a link that it refuses only says that it was closed."""
    try:
        own, root = (x509.load_pem_x509_certificate(each) for each in (certificate, authority))
    except ValueError as error:
        return f"the certificate cannot be read: {error}"
    if own.not_valid_after_utc < datetime.now(UTC):
        return f"the certificate expired on {own.not_valid_after_utc:%Y-%m-%d}; try `laconic certs --renew`"
    if own.not_valid_before_utc > datetime.now(UTC):
        return "the certificate is not good yet; look at the clock of this machine"
    try:
        own.verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature):
        return "the certificate is not of the authority that is believed here; try one that the coordinator believes"
    return None
