"""A phase: one all-reduce of a sync, as a few pure functions.

contribute (client) → add, … (server, in client order) → finish → address (by client) → complete → absorb (everyone)
"""

from __future__ import annotations

from typing import Any, ClassVar

from laconic.beliefs import Belief
from laconic.errors import LocalProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.mail import Mail
from laconic.protocol.phases.members import Member, Members


class Phase:
    """Base of phases: what most of them share is that everyone is sent the same."""

    name: ClassVar[str] = "phase"
    #: True when a belief is made anew from whole histories, so that points of clients that left are lost.
    replaces: bool = False

    def contribute(self, member: Member) -> Payload:
        """A client's part."""
        raise LocalProtocolError(f"{type(self).__name__} does not say what a client contributes")

    def check(self, draft: Belief, part: Payload) -> None:
        """Refuse a part, or a merged result, that does not fit the draft."""

    def speaks_for(self, part: Payload, *, covered: int, upto: int) -> bool:
        """Whether a part has what its sender says: its first ``upto`` observations, of which ``covered`` were known."""
        return True

    def empty(self) -> Any:
        """The state of the fold before the first part."""
        return ()

    def add(self, state: Any, client: int, part: Payload) -> Any:
        """The state with one more part; parts come in client order."""
        return (*state, part)

    def finish(self, draft: Belief, state: Any) -> Any:
        """The merged result."""
        return state

    def whole(self, merged: Any) -> Payload:
        """The merged result as `absorb` takes it."""
        return merged  # type: ignore[no-any-return]  # a payload unless the phase says otherwise

    def address(self, merged: Any, client: int) -> Payload:
        """What goes down to one client."""
        return self.whole(merged)

    def complete(self, received: Payload, own: Payload) -> Payload:
        """The inverse of `address`, on the client that contributed ``own``."""
        return received

    def absorb(self, draft: Belief, merged: Payload) -> Belief:
        """The draft that has taken the merged result in."""
        raise LocalProtocolError(f"{type(self).__name__} does not say how a belief absorbs its result")

    def gather(self, members: Members) -> tuple[Any, Mail]:
        """The merged result of everyone's part, and what they would send; override where one pass does for all."""
        parts = [self.contribute(members.member(client)) for client in range(len(members))]
        state = self.empty()
        for client, part in enumerate(parts):
            state = self.add(state, client, part)
        return self.finish(members.draft, state), Mail.each(parts)

    def spread(self, merged: Any, count: int) -> Mail:
        """What would go down to each of ``count`` clients."""
        if type(self).address is Phase.address:
            return Mail.same(self.whole(merged), count)
        return Mail.each([self.address(merged, client) for client in range(count)])
