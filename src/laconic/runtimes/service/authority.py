"""An authority of one's own: a local CA, and certificates for a coordinator and its agents, as files.

An agent's certificate cannot stand for a coordinator, nor the other way round.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from laconic.checks import require_name
from laconic.errors import InputError

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise InputError(
        "cryptography is not installed; try: pip install 'laconic[service]', or '.[service]' in a clone"
    ) from None

#: The name of the certificate that a coordinator shows.
COORDINATOR = "coordinator"
HOSTS = ("localhost", "127.0.0.1", "::1")
YEAR = timedelta(days=365)
#: Clocks differ: a certificate is good from a little before it was made.
SKEW = timedelta(minutes=5)
#: Authority, certificate and key of one side, each a path and what is there.
Files = Mapping[str, tuple[str | os.PathLike[str], bytes]]
Side = Literal["coordinator", "agent"]
#: What the certificate of a side is for.
PURPOSES = {"coordinator": ExtendedKeyUsageOID.SERVER_AUTH, "agent": ExtendedKeyUsageOID.CLIENT_AUTH}
T = TypeVar("T")
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
        raise InputError(f"name is {name!r}, and the TLS certificate {path} has {whose}; try TLS.of(FOLDER, {name!r})")


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
