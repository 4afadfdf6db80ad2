"""Sharing: agents of one process that follow the same coordinator hold a belief together, and do what it takes once.

What is sent to one of them is mostly sent to all. The first that has read it checks it and builds the new belief; the
others compare what came to them with that, bit for bit, and go on with the same arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from laconic.protocol.messages import NOTHING, Down, Install, Label, Merged, Payload
from laconic.protocol.outcome import Build, BuildOnce
from laconic.protocol.plan import Plan
from laconic.protocol.vetting import Vetted


class Shared:
    """Does each thing once for all agents of one federation in this process; of two who ask, one waits."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._once, self._lock = BuildOnce(), threading.Lock()
        self._payload, self._vetted, self._reading = NOTHING, None, threading.Lock()

    _vetted: Vetted | None

    def __call__(self, topic: str, label: Label, build: Build) -> Any:
        """What was built last under the topic if it bears this label, and else what is built now."""
        with self._lock:
            return self._once(topic, label, build)

    def vetted(self, message: Down, vet: Callable[[Down, Vetted | None], Vetted | None]) -> tuple[Down, Vetted | None]:
        """A message, with the arrays that another agent was sent where they are the same, and what a check says of it.

        ``vet(message, known)`` checks it, given what came of the last check.
        """
        if not isinstance(message, Merged | Install):
            return message, vet(message, None)
        with self._reading:
            if _is_same(message.payload, self._payload):
                message = msgspec.structs.replace(message, payload=self._payload)
            self._payload, self._vetted = message.payload, vet(message, self._vetted)
            return message, self._vetted


def _is_same(one: Payload, other: Payload) -> bool:
    """Whether two payloads have the same names, shapes and bits."""
    if one.control != other.control or any(
        a.keys() != b.keys() for a, b in ((one.values, other.values), (one.records, other.records))
    ):
        return False
    mine, others = ({**each.values, **each.records} for each in (one, other))
    return all(_has_bits(array, others[name]) for name, array in mine.items())


def _has_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one.view(f"u{one.itemsize}"), other.view(f"u{one.itemsize}"))


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
