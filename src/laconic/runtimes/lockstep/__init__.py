"""Lockstep: the choices of many clients in one batch between syncs, arm for arm those of loopback."""

from laconic.runtimes.lockstep.play import play

__all__ = ["play"]
