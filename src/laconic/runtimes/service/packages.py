"""Packages of the ``service`` extra, or an error that says how to install them."""

from __future__ import annotations

import os

from laconic.errors import InputError

# What the library writes to stderr by itself is no log that anybody could read; errors reach us as values.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
try:
    import grpc
    import grpc.aio
except ImportError:
    raise InputError(
        "grpcio is not installed; try: pip install 'laconic[service]', or '.[service]' in a clone"
    ) from None

__all__ = ["grpc"]
