"""How a coordinator stands: as plain values, and as metrics in the text form of Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from laconic.runtimes.service.pages import JSON, TEXT, Answer

if TYPE_CHECKING:
    from laconic.runtimes.service.coordinator import Coordinator


def status_of(coordinator: Coordinator) -> dict[str, Any]:
    """What is going on, as plain values."""
    desk, server = coordinator.desk, coordinator.desk.server
    hub = server.hub  # a value: all of what follows is of one moment
    members = [
        {"name": each.name, "number": number, "status": each.status.value, "observations": each.known}
        for number, each in sorted(hub.members.items())
    ]
    return {
        "ready": coordinator.is_ready,
        "address": coordinator.address,
        "seconds": round(time.time() - coordinator.started, 1),
        "plan": coordinator.plan.fingerprint,
        "term": hub.term,
        "state": server.state.value,
        "epoch": hub.installed.label.number,
        "dictionary": hub.installed.belief.dictionary_size,
        "observations": sum(each["observations"] for each in members),
        "log": len(hub.log),
        "links": coordinator.links,
        "waiting": sorted({*hub.requests, *hub.asks}),
        "members": members,
        "traffic": desk.traffic.table(),
        "counters": asdict(desk.counters),
        "records": desk.store.last,
        "errors": list(desk.errors),
    }


def page_of(coordinator: Coordinator, path: str) -> Answer:
    """The answer to a path: ``/status``, ``/metrics``, ``/healthz`` and ``/readyz``."""
    if path == "/status":
        return Answer(200, JSON, msgspec.json.encode(status_of(coordinator)))
    if path == "/metrics":
        return Answer(200, f"{TEXT}; version=0.0.4", "".join(_lines(coordinator)).encode())
    if path == "/healthz":
        return Answer(200, TEXT, b"ok\n")
    if path == "/readyz":
        return Answer(200, TEXT, b"ready\n") if coordinator.is_ready else Answer(503, TEXT, b"not ready\n")
    return Answer(404, TEXT, b"there are /status, /metrics, /healthz and /readyz\n")


def _lines(coordinator: Coordinator) -> Iterator[str]:
    status = status_of(coordinator)
    yield from _metric("epoch", "gauge", "Epoch of the belief installed.", {"": status["epoch"]})
    yield from _metric("links", "gauge", "Links that are up.", {"": status["links"]})
    yield from _metric("observations", "gauge", "Observations of members that are known.", {"": status["observations"]})
    standing = Counter(each["status"] for each in status["members"])
    by_status = {f'status="{word}"': count for word, count in sorted(standing.items())}
    yield from _metric("members", "gauge", "Members by how they stand.", by_status)
    for what in ("messages", "scalars", "bytes"):
        counts = {f'direction="{row["direction"]}",phase="{row["phase"]}"': row[what] for row in status["traffic"]}
        yield from _metric(f"{what}_total", "counter", f"{what.capitalize()} that crossed links.", counts)
    for name, count in status["counters"].items():
        yield from _metric(f"{name}_total", "counter", f"Since the start: {name.replace('_', ' ')}.", {"": count})


def _metric(name: str, kind: str, about: str, values: dict[str, Any]) -> Iterator[str]:
    yield f"# HELP laconic_{name} {about}\n# TYPE laconic_{name} {kind}\n"
    for labels, value in values.items():
        yield f"laconic_{name}{'{' + labels + '}' if labels else ''} {value}\n"
