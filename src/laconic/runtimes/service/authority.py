"""An authority of one's own: a local CA, and certificates for a coordinator and its agents, as files.

An agent's certificate cannot stand for a coordinator, nor the other way round.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from laconic.checks import require_name
from laconic.errors import InputError
from laconic.runtimes.service.crypto import NameOID, ec, hashes, serialization, x509
from laconic.runtimes.service.examining import PURPOSES

#: The name of the certificate that a coordinator shows.
COORDINATOR = "coordinator"
HOSTS = ("localhost", "127.0.0.1", "::1")
YEAR = timedelta(days=365)
#: Clocks differ: a certificate is good from a little before it was made.
SKEW = timedelta(minutes=5)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
#: A part of a machine's name, between dots; networks of containers have names with underscores.
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)


def certify(
    folder: str | os.PathLike[str],
    names: Sequence[str],
    *,
    hosts: Sequence[str] = HOSTS,
    valid: timedelta = YEAR,
    renew: bool = False,
) -> list[Path]:
    """Make NAME.crt and NAME.key for each name, and the authority if there is none; the files that are new.

    ``hosts`` are those under which agents reach the coordinator. A certificate that is there stays, unless it is to be
    renewed; the coordinator's new one has the hosts of the old one too. Keys are for their owner alone to read.
    """
    directory = Path(folder)
    for name in names:
        _require_file_name(name)
    for host in hosts:
        _require_host(host)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = [] if (directory / "ca.crt").exists() else _begin(directory)
    certificate, key = _authority(directory)
    for name in names:
        if renew or not (directory / f"{name}.crt").exists():
            known = [*hosts, *_hosts_in(directory / f"{name}.crt")]
            made += _issue(directory, name, hosts=known, valid=valid, authority=(certificate, key))
    return made


def require_told_hosts(folder: str | os.PathLike[str], hosts: Sequence[str]) -> None:
    """Refuse hosts that the coordinator's certificate lacks, where that one stays as it is: nobody would be told."""
    for host in hosts:
        _require_host(host)
    known = set(map(_same, _hosts_in(Path(folder) / f"{COORDINATOR}.crt")))
    lacking = [host for host in hosts if _same(host) not in known]
    if lacking:
        renewal = " ".join(
            ["laconic certs", shlex.quote(str(folder)), "--renew", *(f"--host {host}" for host in lacking)]
        )
        raise InputError(
            f"the certificate of the coordinator in {folder} would stay without the host {', '.join(lacking)}, "
            f"which needs a new one; try `{renewal}`"
        )


def _same(host: str) -> str:
    """A host in the one way of all in which it may be written."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower()


def _require_file_name(name: str) -> None:
    require_name("name", name)
    if not set(name) <= _LETTERS or name.startswith(".") or name == "ca" or len(name) > 64:
        raise InputError(f"{name!r} cannot name a certificate; try up to 64 letters, digits, '-', '_' and '.'")


def _require_host(host: str) -> None:
    """A name or an address under which a machine can be reached, in the letters that certificates have."""
    if _is_address(host) or _is_machine(host):
        return
    try:
        plain = host.encode("idna").decode()
    except UnicodeError:
        plain = ""
    if not host.isascii() and _is_machine(plain):
        raise InputError(
            f"host {host!r} has letters that no certificate holds; try {plain!r}, here and in the address of agents"
        )
    raise InputError(
        f"host {host!r} is no name or address of a machine; try bandit.internal, 10.0.0.7 or fd00::7, without a port"
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_machine(host: str) -> bool:
    labels = host.removeprefix("*.").split(".")
    return len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def _begin(directory: Path) -> list[Path]:
    """A new authority."""
    if (directory / "ca.key").exists():
        raise InputError(f"{directory}/ca.key is there and ca.crt is not; put ca.crt back, or try another directory")
    key = ec.generate_private_key(ec.SECP256R1())
    name = _common_name(f"laconic authority {secrets.token_hex(4)}")
    builder = _builder(name, issuer=name, key=key.public_key(), valid=10 * YEAR)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs=True), critical=True)
    return _written(directory, "ca", builder.sign(key, hashes.SHA256()), key)


def _authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes())
        key = serialization.load_pem_private_key((directory / "ca.key").read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise InputError(f"the authority in {directory} cannot be read: {error}; try another directory") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{directory}/ca.key was not made by laconic; try another directory")
    return certificate, key


def _issue(
    directory: Path,
    name: str,
    *,
    hosts: Sequence[str],
    valid: timedelta,
    authority: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
) -> list[Path]:
    issuer, signing = authority
    is_server = name == COORDINATOR
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_common_name(name), issuer=issuer.subject, key=key.public_key(), valid=valid)
    purpose = PURPOSES["coordinator" if is_server else "agent"]
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    )
    if is_server:
        known = [*dict.fromkeys([COORDINATOR, *hosts])]
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(each) for each in known]), critical=False)
    return _written(directory, name, builder.sign(signing, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    end = now + valid
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - SKEW)
        .not_valid_after(end)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    return x509.IPAddress(ipaddress.ip_address(host)) if _is_address(host) else x509.DNSName(host)


def _hosts_in(path: Path) -> list[str]:
    """The hosts that a certificate is for; none where it is not there or cannot be read, as it is made anew then."""
    try:
        extensions = x509.load_pem_x509_certificate(path.read_bytes()).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return []
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def _written(directory: Path, name: str, made: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> list[Path]:
    """Both files, the key first: whoever finds the new certificate finds its key."""
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    paths = [directory / f"{name}.key", directory / f"{name}.crt"]
    _replace(paths[0], encoded, mode=0o600)
    _replace(paths[1], made.public_bytes(serialization.Encoding.PEM), mode=0o644)
    return paths


def _replace(path: Path, data: bytes, *, mode: int) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    draft.replace(path)
