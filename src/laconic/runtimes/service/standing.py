"""How a coordinator stands: as plain values, and as metrics in the text form of Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from laconic.runtimes.service.chronicle import atoms_in
from laconic.runtimes.service.pages import HTML, JSON, TEXT, Answer

if TYPE_CHECKING:
    from laconic.runtimes.service.coordinator import Coordinator

#: Seconds between two looks, and after how many it is said though nothing changed: silence means that it hangs.
PAUSE, QUIET = 1.0, 5
#: The page is one file, and asks nobody but this coordinator for anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


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
        "seconds": round(time.monotonic() - coordinator.started, 1),
        "plan": coordinator.plan.fingerprint,
        "term": hub.term,
        "state": server.state.value,
        "together": bool(coordinator.plan.phases),
        "epoch": hub.installed.label.number,
        "version": getattr(hub.edition, "number", 0),
        "dictionary": hub.installed.belief.dictionary_size,
        "atoms": atoms_in(hub),
        "observations": sum(each["observations"] for each in members),
        "log": len(hub.log),
        "links": coordinator.links,
        "waiting": sorted({*hub.requests, *hub.asks}),
        "members": members,
        "traffic": desk.traffic.table(),
        "counters": asdict(desk.counters) | {"refused_links": coordinator.doors.refused},
        "records": desk.store.last,
        "errors": list(desk.errors),
    }


def view_of(coordinator: Coordinator) -> dict[str, Any]:
    """What is going on, and what happened since the start, as the live page shows it."""
    hub = coordinator.desk.server.hub
    status, view = status_of(coordinator), coordinator.desk.chronicle.view(hub)
    means = view["rewards"].pop("means")
    members = [each | {"mean": means.get(each["number"])} for each in status["members"]]
    return status | view | {"members": members}


def live_page(coordinator: Coordinator) -> Answer:
    """The live page, which shows how things stand before its first event comes."""
    page = (files("laconic.runtimes.service") / "live.html").read_text(encoding="utf-8")
    first = msgspec.json.encode(view_of(coordinator)).decode().replace("<", "\\u003c")
    return Answer(200, HTML, page.replace(">null<", f">{first}<", 1).encode(), {"Content-Security-Policy": POLICY})


async def events(coordinator: Coordinator, *, pause: float = PAUSE) -> AsyncIterator[bytes]:
    """Server-sent events: how things stand, whenever that has changed and now and then otherwise."""
    last, silent = b"", 0
    while True:
        view = view_of(coordinator)
        now = msgspec.json.encode(view | {"seconds": 0})
        silent = 0 if now != last else silent + 1
        if silent % QUIET == 0:
            yield b"data: " + msgspec.json.encode(view) + b"\n\n"
        last = now
        await asyncio.sleep(pause)


def page_of(coordinator: Coordinator, path: str) -> Answer:
    """The answer to a path: a page, its events, numbers in JSON and for Prometheus, and what probes ask."""
    if path == "/":
        return live_page(coordinator)
    if path == "/events":
        return Answer(200, "text/event-stream", stream=events(coordinator))
    if path == "/view":
        return Answer(200, JSON, msgspec.json.encode(view_of(coordinator)))
    if path == "/status":
        return Answer(200, JSON, msgspec.json.encode(status_of(coordinator)))
    if path == "/metrics":
        return Answer(200, f"{TEXT}; version=0.0.4", "".join(_lines(coordinator)).encode())
    if path == "/healthz":
        return Answer(200, TEXT, b"ok\n")
    if path == "/readyz":
        return Answer(200, TEXT, b"ready\n") if coordinator.is_ready else Answer(503, TEXT, b"not ready\n")
    return Answer(404, TEXT, b"there are /, /events, /view, /status, /metrics, /healthz and /readyz\n")


def _lines(coordinator: Coordinator) -> Iterator[str]:
    status = status_of(coordinator)
    if status["together"]:
        yield from _metric("epoch", "gauge", "Epoch of the belief installed.", {"": status["epoch"]})
    else:
        yield from _metric("version", "gauge", "Version of the digest.", {"": status["version"]})
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
