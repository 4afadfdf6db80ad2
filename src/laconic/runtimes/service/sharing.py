"""Sharing: agents of one process that follow the same coordinator build a new belief once, and hold it together."""

from __future__ import annotations

import threading
from typing import Any

from laconic.protocol.messages import Label
from laconic.protocol.outcome import Build, BuildOnce


class Shared:
    """Builds each thing once for all agents of one federation in this process; of two who ask, one waits."""

    def __init__(self) -> None:
        self._once, self._lock = BuildOnce(), threading.Lock()

    def __call__(self, topic: str, label: Label, build: Build) -> Any:
        """What was built last under the topic if it bears this label, and else what is built now."""
        with self._lock:
            return self._once(topic, label, build)


class Sharing:
    """What the agents of a process share, by federation: a coordinator's address, and the plan."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Shared] = {}

    def of(self, address: str, plan: str) -> Shared:
        """What the agents of a federation share."""
        return self._known.setdefault((address, plan), Shared())
