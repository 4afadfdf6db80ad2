"""Packages of the ``service`` extra, or an error that says how to install them."""

from __future__ import annotations

import os

from laconic.errors import InputError

# What the library writes to stderr by itself is no log that anybody could read; errors reach us as values.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# A process that is forked while an agent is open gets no link whatever gRPC does for it; what that does, threads begun
# anew in the child, crashes the child now and then, though nobody there may ever ask for a link.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
try:
    import grpc
    import grpc.aio
except ImportError:
    raise InputError(
        "grpcio is not installed; try: pip install 'laconic[service]', or '.[service]' in a clone"
    ) from None

__all__ = ["grpc"]
