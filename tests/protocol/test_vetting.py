"""What a message carries may be checked before its event, and only what was checked is believed."""

import numpy as np
import pytest

from laconic.errors import RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases import ShareStatistics
from laconic.protocol.vetting import expect_good, tried
from tests.test_received_beliefs import linear

PHASE = ShareStatistics(source="tail")


def sums(diagonal: float) -> Payload:
    """Statistics of one point, honest where the diagonal is positive."""
    gram = np.diag([diagonal, *[0.0] * (linear().dim - 1)])
    control = {"prior": 4.0, "count": 1.0, "squares": 1.0}
    return Payload(values={"gram": gram, "moment": np.zeros(linear().dim)}, control=control)


def test_what_a_check_found_is_raised_by_the_event_without_another_check() -> None:
    draft, bad = linear(), sums(-1.0)
    known = tried(PHASE.check, draft, bad)
    with pytest.raises(RemoteProtocolError) as raised:
        expect_good(PHASE.check, draft, bad, known)
    assert raised.value is known.error


def test_a_good_payload_is_not_checked_twice() -> None:
    seen: list[Payload] = []
    draft, good = linear(), sums(1.0)

    def check(_: object, payload: Payload) -> None:
        seen.append(payload)

    expect_good(check, draft, good, tried(check, draft, good))
    assert seen == [good]


def test_what_is_known_of_another_payload_draft_or_check_is_not_believed() -> None:
    draft, bad, good = linear(), sums(-1.0), sums(1.0)
    for known in (
        tried(PHASE.check, draft, good),
        tried(lambda *_: None, draft, bad),
        tried(PHASE.check, linear(), good),
        None,
    ):
        with pytest.raises(RemoteProtocolError):
            expect_good(PHASE.check, draft, bad, known)
