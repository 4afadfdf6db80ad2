"""What certificates need of the package cryptography, or an error that says how to install it."""

from __future__ import annotations

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

__all__ = [
    "ExtendedKeyUsageOID",
    "InvalidSignature",
    "NameOID",
    "UnsupportedAlgorithm",
    "ec",
    "hashes",
    "serialization",
    "x509",
]
