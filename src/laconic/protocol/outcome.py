"""What a state machine wants done: records to keep, messages to send, work to run beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import ref

from laconic.beliefs import Belief
from laconic.protocol.messages import Label
from laconic.protocol.records import Record
from laconic.tail import Learning

S = TypeVar("S")

#: build(newest): ``newest`` is what was built last under the topic, and under which label; None when nothing was.
Build = Callable[[tuple[Label, Any] | None], Any]
#: share(topic, label, build) → what build gives; a process that hosts many clients builds what they share once.
Share = Callable[[str, Label, Build], Any]


def build_alone(topic: str, label: Label, build: Build) -> Any:
    """Build for this member alone."""
    return build(None)


class BuildOnce:
    """Builds each thing once for all members in this process: what is shared is pure, so that all get the same.

    What no member has any more is not kept here either: a belief may be large.
    """

    def __init__(self, *, learning: Learning | None = None) -> None:
        self._newest: dict[str, tuple[Label, Callable[[], Any]]] = {}
        self.learning = learning or Learning()

    def __call__(self, topic: str, label: Label, build: Build) -> Any:
        """What was built last under the topic if it bears this label, and else what is built now."""
        known, find = self._newest.get(topic, (label, _nothing))
        built = find()
        if built is None or known != label:
            built = build(None if built is None else (known, built))
            self._newest[topic] = label, _found_while_used(built)
        return built


def learning_of(share: Share) -> Learning:
    """How beliefs learn where this is shared."""
    return share.learning if isinstance(share, BuildOnce) else Learning()


def _nothing() -> None:
    return None


def _found_while_used(thing: Any) -> Callable[[], Any]:
    """Finds a thing as long as somebody else has it; one that cannot be looked after is kept."""
    try:
        return ref(thing)
    except TypeError:
        return lambda: thing


@dataclass(frozen=True, eq=False)
class Work:
    """Pure work that may run beside everything else; what it comes to is handed back with ``done(work, result)``.

    Attributes:
        of: What it is owed for; work that is no longer owed is dropped when it comes back.
        run: What is to be run.
    """

    of: object
    run: Callable[[Share], Any]

    def result(self, share: Share = build_alone) -> Any:
        """Run it here and now; what it raises is its result too, to be handed back with ``done``.

        Args:
            share: Builds what several members of this process need, once for all of them, as share(topic, label,
                build). The default builds it for this member alone; `laconic.protocol.outcome.BuildOnce` keeps it.
        """
        return self.run(share)


@dataclass(frozen=True, eq=False)
class Outcome(Generic[S]):
    """The effects of an event; all empty when nothing is to be done.

    Attributes:
        keep: Records to store durably, in order, before anything is sent and before a call is answered.
        send: Messages to send; a server's come with the link to send them on.
        compute: Work to run beside everything else, whose result is handed back with done(work, result).
        dropped: Why a message was not taken; None where it was.
        installed: The belief that was just installed; None where none was.
    """

    keep: tuple[Record, ...] = ()
    send: tuple[S, ...] = ()
    compute: tuple[Work, ...] = ()
    dropped: str | None = None
    installed: Belief | None = None
