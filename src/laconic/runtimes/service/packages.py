"""Packages of the ``service`` extra, or an error that says how to install them."""

from __future__ import annotations

from laconic.errors import InputError

try:
    import grpc
    import grpc.aio
except ImportError:
    raise InputError(
        "grpcio is not installed; try: pip install 'laconic[service]', or '.[service]' in a clone"
    ) from None

__all__ = ["grpc"]
