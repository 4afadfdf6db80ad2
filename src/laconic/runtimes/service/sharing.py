"""Sharing: agents of one process that follow the same coordinator hold a belief together, and do what it takes once.

What is sent to one of them is mostly sent to all. The first to whom it comes reads it, checks it and builds the new
belief; the others compare the bytes that came to them with those, and go on with the same arrays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from laconic.protocol.codec import Carried, Codec
from laconic.protocol.messages import Down, Install, Label, Merged
from laconic.protocol.outcome import Build, BuildOnce
from laconic.protocol.plan import Plan
from laconic.protocol.vetting import Vetted


class Shared:
    """Does each thing once for all agents of one federation in this process; of two who ask, one waits."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.codec = plan, Codec(plan)
        self._once, self._lock = BuildOnce(), threading.Lock()
        self._costs: dict[str, float] = {}  # by topic, how many seconds of a processor the last build took
        self._charged = threading.local()
        self._carried: Carried | None = None  # what came last, and what a check said of it
        self._vetted: Vetted | None = None

    def __call__(self, topic: str, label: Label, build: Build) -> Any:
        """What was built last under the topic if it bears this label, and else what is built now."""

        def timed(known: tuple[Label, Any] | None) -> Any:
            begun = time.thread_time()
            built = build(known)
            self._costs[topic] = time.thread_time() - begun
            return built

        with self._lock:
            found = self._once(topic, label, timed)
        self._charged.seconds = self.charged + self._costs.get(topic, 0.0)
        return found

    @property
    def charged(self) -> float:
        """How many seconds all builds took that this thread ever asked for, whoever made them."""
        seconds: float = getattr(self._charged, "seconds", 0.0)
        return seconds

    def read(self, data: bytes, vet: Callable[[Down, Vetted | None], Vetted | None]) -> tuple[Down, Vetted | None]:
        """The message in these bytes, and what a check says of it.

        Where it carries the same bytes as what another agent was sent, it has that one's arrays. ``vet(message,
        known)`` checks it, given what came of the last check. One thread at a time reads.
        """
        message = self.codec.decode(data, self._carried)
        if not isinstance(message, Merged | Install):
            return message, vet(message, None)
        if self._carried is None or self._carried.payload is not message.payload:
            self._carried = self.codec.carried(message)
        self._vetted = vet(message, self._vetted)
        return message, self._vetted


class Sharing:
    """What the agents of a process share, by federation: a coordinator's address, and the plan."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[str, str], Shared] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, address: str, plan: Plan) -> Shared:
        """What the agents of a federation share, as long as there is one of them."""
        with self._lock:
            shared = self._known.get((address, plan.fingerprint))
            if shared is None:
                shared = self._known[address, plan.fingerprint] = Shared(plan)
            return shared
