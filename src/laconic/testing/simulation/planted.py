"""Eleven bugs to plant in the protocol and in what runs it: a simulation that does not find them does not look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from laconic.protocol import alone, session, together, work
from laconic.protocol.learner import Adoption
from laconic.protocol.messages import Install, Newer, Released
from laconic.protocol.parcels import Libraries
from laconic.protocol.records import Reborn
from laconic.protocol.roster import Turn
from laconic.protocol.server import Server
from laconic.protocol.session import ClientState, Local, Wants
from laconic.tail import Tail
from laconic.testing.simulation.nodes import Node
from laconic.testing.simulation.world import World


@contextmanager
def forget_a_record() -> Iterator[None]:
    """A server does not keep that a member goes on under a new incarnation."""
    event = Server._event

    def forgetful(self: Server, *given: Any, **options: Any) -> Any:
        outcome = event(self, *given, **options)
        return replace(outcome, keep=tuple(each for each in outcome.keep if not isinstance(each, Reborn)))

    with patch.object(Server, "_event", forgetful):
        yield


@contextmanager
def send_before_keep() -> Iterator[None]:
    """A runtime sends the messages of an event and answers its caller, and keeps the records last of all.

    Nothing is lost but by a crash between these effects.
    """
    put, finish = World._put, World._finish
    behind: list[tuple[Any, ...]] = []

    def late(self: World, *given: Any) -> None:
        behind.append(given)

    def hasty(self: World, node: Node, *given: Any) -> None:
        lazy, self.lazy = self.lazy, True
        finish(self, node, *given)
        put(self, *behind.pop())
        self.lazy = lazy
        if not lazy:
            self.perform(node)

    with patch.object(World, "_put", late), patch.object(World, "_finish", hasty):
        yield


@contextmanager
def reuse_an_epoch() -> Iterator[None]:
    """The next epoch is counted from the one installed, not from the one begun last."""
    begin = together.maybe_begin

    def forgetful(turn: Turn) -> None:
        begun = turn.hub.begun
        turn.change(begun=0)
        begin(turn)
        turn.change(begun=max(begun, turn.hub.begun))

    with patch.object(together, "maybe_begin", forgetful):
        yield


@contextmanager
def _taken_again(repeated: Callable[[int], int]) -> Iterator[None]:
    """An upload of so many observations that comes once more is taken as if only some of them were known."""
    check = alone._checked

    def careless(hub: Any, member: Any, message: Any) -> Any:
        count = len(message.payload.values.get("rewards", ()))
        if count and message.first + count <= member.known:
            message = msgspec.structs.replace(message, first=member.known - repeated(count))
        return check(hub, member, message)

    with patch.object(alone, "_checked", careless):
        yield


def count_a_point_twice() -> AbstractContextManager[None]:
    """The last observation of an upload that comes once more is put into the log once more."""
    return _taken_again(lambda count: count - 1)


def count_an_upload_twice() -> AbstractContextManager[None]:
    """An upload that comes once more is put into the log once more, with all its observations."""
    return _taken_again(lambda count: 0)


@contextmanager
def drop_the_tail() -> Iterator[None]:
    """A client that catches up forgets its points that the newer belief lacks."""
    catch_up = work._caught_up

    def forgetful(bench: Any, newer: Newer, share: Any) -> Any:
        adopting = catch_up(bench, newer, share)
        adoption = adopting.adoption
        return replace(adopting, adoption=Adoption(adoption.covered, Tail(adoption.tail.belief), adoption.upto))

    with patch.object(work, "_caught_up", forgetful):
        yield


@contextmanager
def refer_to_what_was_lost() -> Iterator[None]:
    """A server numbers the points of a lost download as if they had arrived."""

    def trusting(self: Libraries, count: int, *, mark: int) -> Libraries:
        return self

    with patch.object(Libraries, "received", trusting):
        yield


@contextmanager
def ignore_the_fingerprint() -> Iterator[None]:
    """A server lets in whoever greets."""
    with patch.object(Server, "_refusal", lambda self, hello: None):
        yield


@contextmanager
def apply_a_late_install() -> Iterator[None]:
    """A client takes the install of another epoch for that of the sync under way."""
    stale = session._stale_epoch

    def trusting(s: Any, message: Any) -> str | None:
        return None if isinstance(message, Install) and s.sync is not None else stale(s, message)

    def install(s: session.Session, own: session.Own, m: Install) -> session.Step:
        return session.Step(replace(s, owed=m))

    way = (ClientState.SYNCING, Install)
    with (
        patch.object(session, "_stale_epoch", trusting),
        patch.dict(session.TRANSITIONS, {way: replace(session.TRANSITIONS[way], handler=install)}),
    ):
        yield


@contextmanager
def leave_out_silently() -> Iterator[None]:
    """A server goes on without a member and does not tell it."""
    tell = Turn.tell

    def silent(self: Turn, number: int, message: Any) -> None:
        if not (isinstance(message, Released) and "in time" in message.reason):
            tell(self, number, message)

    with patch.object(Turn, "tell", silent):
        yield


@contextmanager
def take_an_earlier_answer() -> Iterator[None]:
    """A client takes any digest that comes after its flush went up for the answer to it."""

    def hasty(s: session.Session, own: session.Own, m: session.Adopted) -> session.Step:
        return session.adopted(replace(s, wants=Wants.NOTHING) if s.wants is Wants.ANSWER else s, own, m)

    ways = {way: each for way, each in session.TRANSITIONS.items() if way[1] is Local.ADOPTED}
    with patch.dict(session.TRANSITIONS, {way: replace(each, handler=hasty) for way, each in ways.items()}):
        yield


#: Each bug, and the algorithm on which it is looked for.
BUGS: Mapping[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
    "forget a record": (forget_a_record, "DisKernelUCB"),
    "send before keep": (send_before_keep, "DisKernelUCB"),
    "reuse an epoch": (reuse_an_epoch, "DisKernelUCB"),
    "count a point twice": (count_a_point_twice, "DisKernelUCB alone"),
    "drop the tail on catching up": (drop_the_tail, "DisKernelUCB"),
    "ignore the fingerprint": (ignore_the_fingerprint, "DisLinUCB"),
    "apply a late install": (apply_a_late_install, "OneKernelUCB"),
    "count an upload twice": (count_an_upload_twice, "LaconicUCB"),
    "refer to what was lost": (refer_to_what_was_lost, "LaconicUCB"),
    "leave out without telling": (leave_out_silently, "ApproxDisKernelUCB"),
    "take an earlier answer": (take_an_earlier_answer, "DisKernelUCB alone"),
}
