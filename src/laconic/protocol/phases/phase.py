"""A phase: one all-reduce of a sync, as a few pure functions.

contribute (client) → add, … (server, as parts come) → finish → address (by client) → complete → absorb (everyone)
"""

from __future__ import annotations

from typing import Any, ClassVar

from laconic.arrays import Floats
from laconic.beliefs import Belief
from laconic.errors import LocalProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.member import Member
from laconic.protocol.phases.payloads import points_of
from laconic.protocol.shapes import Layout
from laconic.protocol.wire import EXACT, Wire


class Phase:
    """Base of phases: what most of them share is that everyone is sent the same.

    A phase of one's own writes `contribute`, `finish` and `absorb`, and `check` where a part can be wrong. All of these
    are pure: they change nothing that they are given. Class variables say more of it. ``name`` is what the ledger
    counts it under. ``replaces`` is True when a belief is made anew from whole histories, so that points of clients
    that left are lost. ``shows_points`` is True when a part has the points of all observations that the belief lacks.
    ``increments`` is True when what a sync adds can be added later too, by `joined` and `caught_up`. ``layout`` is what
    its payloads hold, a `Layout`, or None where each says its own names.
    """

    name: ClassVar[str] = "phase"
    #: True when a belief is made anew from whole histories, so that points of clients that left are lost.
    replaces: bool = False
    #: True when a part has the points of all observations that the belief lacks, so that others can hash them.
    shows_points: ClassVar[bool] = False
    #: True when what a sync adds can be added later to the belief before it (see `joined` and `caught_up`).
    increments: ClassVar[bool] = False
    #: What its payloads hold, both ways, so that names and shapes need not travel; None where each says its own.
    layout: ClassVar[Layout | None] = None

    @property
    def rounding(self) -> Wire:
        """The wire that observations are rounded to before anybody learns from them; the plan's must be the same."""
        return EXACT

    def contribute(self, member: Member) -> Payload:
        """A client's part.

        Args:
            member: The client, its history and its beliefs.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say what a client contributes")

    def check(self, draft: Belief, part: Payload) -> None:
        """Refuse a part, or a merged result, that does not fit the draft, by `RemoteProtocolError`.

        Args:
            draft: The belief that the sync has come to before this phase.
            part: What came from a client, or from the server.
        """

    def check_result(self, draft: Belief, merged: Payload) -> None:
        """Refuse a merged result, on a client, where a part would be; what is costly is left to absorbing it.

        Args:
            draft: The belief that the sync has come to before this phase.
            merged: What came from the server.
        """
        self.check(draft, merged)

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        """Whether a part may be of its sender's first observations.

        False refuses it; `RemoteProtocolError` does so in words of the phase's own.

        Args:
            part: What came from a client, checked by `check`.
            covered: Observations of that client that the server knew before, from 0.
            upto: Observations that the part claims to be of, at least ``covered``.
        """
        return True

    def shown(self, part: Payload, dim: int) -> tuple[Floats, Floats]:
        """The observations in a part, of a phase that shows them: points and rewards.

        Args:
            part: What came from a client.
            dim: Features d of a point.
        """
        return points_of(part, dim)

    def empty(self) -> Any:
        """The state of the fold before the first part."""
        return ()

    def add(self, state: Any, client: int, part: Payload) -> Any:
        """The state with one more part; parts come in any order, and once each.

        Args:
            state: State of the fold, which stays as it is.
            client: Number of the client whose part it is.
            part: Its part, checked by `check`.
        """
        return (*state, part)

    def finish(self, draft: Belief, state: Any) -> Any:
        """The merged result.

        Args:
            draft: The belief that the sync has come to before this phase.
            state: State of the fold with all parts.
        """
        return state

    def whole(self, merged: Any) -> Payload:
        """The merged result as `absorb` takes it.

        Args:
            merged: What `finish` gave.
        """
        return merged  # type: ignore[no-any-return]  # a payload unless the phase says otherwise

    def address(self, merged: Any, client: int) -> Payload:
        """What goes down to one client.

        Args:
            merged: What `finish` gave.
            client: Number of the client, which need not have a part in it.
        """
        return self.whole(merged)

    def complete(self, received: Payload, own: Payload) -> Payload:
        """The merged result on a client, from what came down to it: the inverse of `address`.

        Args:
            received: What came down.
            own: What this client contributed.
        """
        return received

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        """The draft that has taken the merged result in; the one given stays as it is.

        Args:
            draft: The belief that the sync has come to before this phase.
            merged: What `whole` gave on the server, and `complete` on a client.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how a belief absorbs its result")

    def joined(self, results: list[Payload]) -> Payload:
        """The results of several syncs, one after the other, for a client that missed them.

        Args:
            results: What `whole` gave in each of them, the oldest first.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how results are joined")

    def caught_up(self, belief: Belief, joined: Payload) -> Belief:
        """The belief after the syncs whose results were joined.

        Args:
            belief: The belief before the first of them.
            joined: What `joined` gave.
        """
        raise LocalProtocolError(f"{type(self).__name__} does not say how a belief catches up")

    def culprits(self, draft: Belief, state: Any) -> list[int]:
        """The clients whose parts cannot be absorbed even alone, where parts that were taken cannot be merged.

        Args:
            draft: The belief that the sync has come to before this phase.
            state: State of the fold with all parts.
        """
        return []
