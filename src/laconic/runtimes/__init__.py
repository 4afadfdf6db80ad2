"""Runtimes: what moves messages between clients and server."""

from laconic.runtimes.one_run import RUNTIMES, run
from laconic.runtimes.trace import Run

__all__ = ["RUNTIMES", "Run", "run"]
