"""Every error that laconic raises on purpose."""

from __future__ import annotations


class LaconicError(Exception):
    """Base of all errors that say what was wrong and what to try."""


class InputError(LaconicError, ValueError):
    """An argument was refused before anything ran."""


class KernelError(InputError):
    """A kernel is not positive definite, or returned something that is not a kernel matrix."""


class ProblemError(InputError):
    """A problem or its file cannot be played."""


class UnknownName(InputError):
    """A name that no algorithm, problem or kernel has."""


class UnknownDecision(InputError):
    """A reward for a decision that was never made, or was rewarded before."""


class OutputError(LaconicError, OSError):
    """Results could not be written where they were wanted."""


class ProtocolError(LaconicError):
    """A message or a call that the protocol does not allow at this point."""


class LocalProtocolError(ProtocolError):
    """This side tried something that its state does not allow; nothing happened."""


class RemoteProtocolError(ProtocolError):
    """The other side sent something that no correct peer sends; nothing happened."""


class MergeFailed(RemoteProtocolError):
    """Parts that pass their checks alone cannot be merged; ``culprits`` are the clients whose parts fail even alone."""

    def __init__(self, reason: str, *, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.culprits = culprits


class PlanMismatch(RemoteProtocolError):
    """The other side plays by another plan; which parameters differ is said."""


class StateError(LaconicError):
    """A state file cannot be used or written; what it holds was left as it is."""


class StateInUse(StateError):
    """Another process, or the one that this was forked from, has the state file."""


class LinkError(LaconicError):
    """The coordinator cannot be reached, or does not let this side in; what was observed is kept here."""
