"""Every error that laconic raises on purpose, but those of one module alone, which stand there."""

from __future__ import annotations


class LaconicError(Exception):
    """Base of all errors that say what was wrong and what to try; catch it to catch all of them."""


class InputError(LaconicError, ValueError):
    """An argument was refused before anything ran.

    The message names the argument and says what to give in its place.
    """


class KernelError(InputError):
    """A kernel is not positive definite, or returned something that is not a kernel matrix.

    Rescale features or raise lam where rounding is to blame. `laconic.testing.check_kernel` looks for the mistake in a
    kernel of one's own.
    """


class ProblemError(InputError):
    """A problem or its file cannot be played.

    The message says what is wrong with it, and where.
    """


class UnknownName(InputError):
    """A name that no algorithm, problem, kernel, exploration, data set, paper or figure has.

    The message says which names are close, or which there are. `laconic list` shows most of them.
    """


class UnknownDecision(InputError):
    """A reward for a decision that was never made here, was rewarded before, or was given up.

    Report each reward once, to the client that chose. After a crash report it with the `Decision` itself, as its record
    may be lost.
    """


class OutputError(LaconicError, OSError):
    """Results or data could not be written where they were wanted; make room, or name another folder."""


class ProtocolError(LaconicError):
    """A message or a call that the protocol does not allow at this point; nothing happened."""


class LocalProtocolError(ProtocolError):
    """This side tried something that its state does not allow, or a message that is too large; nothing happened.

    Where it is the state, the message says what to call instead.
    """


class RemoteProtocolError(ProtocolError):
    """The other side sent something that no correct peer sends, or bytes that are no message; nothing happened.

    End that link, and greet on a new one. Records from which nothing can be restored raise it too: put a backup in
    their place.
    """


class MergeFailed(RemoteProtocolError):
    """Parts that pass their checks alone cannot be merged; ``culprits`` are the clients whose parts fail even alone.

    The work of a server raises it. Hand it back as the result, with `Server.done`: the sync is abandoned, and the
    culprits are set aside.
    """

    def __init__(self, reason: str, *, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.culprits = culprits


class PlanMismatch(RemoteProtocolError):
    """The other side, or a saved state, has another plan; the message names the parameters that differ.

    Give both sides the same algorithm with the same parameters.
    """


class StateError(LaconicError):
    """A state file cannot be used or written; what it holds was left as it is.

    It is damaged, of another program, role, name or plan, or the disk is full; or the agent was closed. The message
    says which, and what to do.
    """


class NotYetWritten(StateError):
    """What was told to an agent happened, and waits to be written with what was answered by ``group_commit``.

    It is tried again: do not repeat it, as it would be counted twice.
    """


class StateInUse(StateError):
    """Another process, or the one that this was forked from, has the state file.

    Give each process a state file and a name of its own, and join after the fork.
    """


class LinkError(LaconicError):
    """The coordinator cannot be reached, did not answer in time, or does not let this side in.

    What was observed is kept here, and shared once there is a link. A coordinator or a sidecar that cannot serve on its
    address raises it too.
    """
