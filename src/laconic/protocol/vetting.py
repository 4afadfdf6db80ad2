"""Vetting: what a message carries is checked by itself, before the event that takes it and beside all others.

A check of sums over a large dictionary factors a matrix. It depends on the draft of the sync and on the payload alone,
so a runtime may have it done in another thread while events go on; the event that takes the message then looks at what
came of it, if that is of the same check, draft and payload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from laconic.beliefs import Belief
from laconic.errors import LaconicError
from laconic.protocol.messages import Payload

Check = Callable[[Belief, Payload], None]


@dataclass(frozen=True, eq=False)
class Vetted:
    """What came of a check of a payload against a draft."""

    check: Check
    draft: Belief
    payload: Payload
    error: LaconicError | None

    def is_of(self, check: Check, draft: Belief, payload: Payload) -> bool:
        """Whether it is of these."""
        return self.check == check and self.draft is draft and self.payload is payload


def tried(check: Check, draft: Belief, payload: Payload) -> Vetted:
    """Check a payload now, for an event that comes later."""
    try:
        check(draft, payload)
    except LaconicError as error:
        return Vetted(check, draft, payload, error)
    return Vetted(check, draft, payload, None)


def expect_good(check: Check, draft: Belief, payload: Payload, known: Vetted | None) -> None:
    """Raise what is wrong with a payload, by what is known of it where that is of the same."""
    if known is None or not known.is_of(check, draft, payload):
        check(draft, payload)
    elif known.error is not None:
        raise known.error
