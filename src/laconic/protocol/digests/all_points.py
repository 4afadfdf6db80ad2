"""All points of everybody, in the order of the log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Belief, expect_bounded
from laconic.errors import RemoteProtocolError
from laconic.protocol import parcels
from laconic.protocol.digests.digest import Addressed, Built, Digest, Held, Incoming, Reader
from laconic.protocol.history import History, chained
from laconic.protocol.known_points import Library
from laconic.protocol.messages import Payload
from laconic.protocol.shapes import Layout
from laconic.tail import Learning

#: Points in a row, their rewards, and where those of the client itself stand among them.
RAW = Layout(
    values={"points": ("n", "d"), "rewards": ("y",), "wide": ("w", "d"), "exact": ("e", "d"), "ids": ("i",)},
    records={"runs": ("k",), "facts": (7,), "forms": ("f",)},
    types={
        **parcels.TYPES,
        "runs": ("uint8", "uint32"),
        "facts": ("float16", "float32", "float64"),
        "forms": ("uint8",),
    },
    always=("rewards",),
    rest="rewards",
    small=("points",),
)


@dataclass(frozen=True)
class AllPoints(Digest):
    """A version is a length of the log; a client is sent the points of others that it lacks.

    Every client's belief is the exact one of a beginning of one log, so clients in one process share one factor.
    """

    name: ClassVar[str] = "all points"

    def layout(self, message: Any) -> Layout | None:
        return RAW

    def first(self, belief: Belief) -> int:
        return 0

    def blank(self) -> int:
        return 0

    def build(self, log: History, previous: int) -> int:
        return len(log)

    def number(self, edition: int) -> int:
        return edition

    def length(self, base: int) -> int:
        return base

    def reach(self, edition: int) -> int:
        return edition

    def due(self, log: History, edition: int, *, base: int) -> bool:
        return edition < len(log)

    def known(self, log: History, editions: Any, *, number: int, mark: int) -> int | None:
        return number if 0 <= number <= len(log) and log.chain.at(number) == mark else None

    def address(self, log: History, edition: int, reader: Reader) -> Addressed:
        payload, libraries = raw_parcel(log, reader.base, edition, reader)
        return Addressed(payload=payload, base=edition, libraries=libraries, raw=True, mark=log.chain.at(edition))

    def absorb(self, incoming: Incoming) -> Held:
        built, library = read_raw(incoming, base=incoming.held.built)
        return Held(number=incoming.message.version, built=built, library=library)


def raw_parcel(log: History, first: int, last: int, reader: Reader) -> tuple[Payload, parcels.Libraries]:
    """The observations of others in a stretch of the log, and where those of the reader stand among them."""
    mine = np.zeros(last - first, dtype=np.bool_)
    mine[reader.own[(reader.own >= first) & (reader.own < last)] - first] = True
    X, y = log.points[first:last][~mine], log.rewards[first:last][~mine]
    values, records = parcels.packed(X, reader.wire, reader.libraries)
    values["rewards"] = reader.wire.packed_rewards(y)
    libraries = reader.libraries.sent_down(X) if reader.wire.by_reference else reader.libraries
    return Payload(values=values, records={**records, "runs": _runs(mine)}), libraries


def read_raw(incoming: Incoming, *, base: Built) -> tuple[Built, Library]:
    """The exact belief of the log up to where a message brings it, and the library after that."""
    message, wire = incoming.message, incoming.wire
    values, records = message.payload.values, message.payload.records
    others = parcels.unpacked(values, records, wire, incoming.libraries, dim=base.belief.dim)
    rewards = wire.unpacked_rewards(values["rewards"]) if "rewards" in values else np.empty(0)
    if rewards.shape != (len(others),):
        raise RemoteProtocolError(f"{len(others)} points came with rewards of shape {rewards.shape}")
    expect_bounded({"points": others, "rewards": rewards})
    X, y = _completed(others, rewards, records, incoming.own, length=message.length - base.length)
    library = incoming.libraries.sent_down(others).down if wire.by_reference else incoming.libraries.down
    return incoming.share("points", partial(_extended, incoming.learning, base, X, y)), library


def _extended(learning: Learning, base: Built, X: Floats, y: Floats, newest: Built | None) -> Built:
    """The belief with these observations after those of the base, of which the newest one has some already."""
    length = base.length + len(y)
    start = newest if newest is not None and base.length <= newest.length <= length else base
    X, y = X[start.length - base.length :], y[start.length - base.length :]
    if len(y) == 0:
        return start
    longer = learning.extended(start.belief, X, y)
    return Built(longer, mark=int(chained(start.mark, X, y)[-1]), length=length)


def _runs(mine: Bools) -> np.ndarray:
    """Lengths of runs, points of others first, then own ones, in turn."""
    if len(mine) == 0:
        return np.empty(0, dtype=np.uint8)
    changes = np.flatnonzero(np.diff(np.concatenate([[False], mine, [not mine[-1]]])))
    runs = np.diff(np.concatenate([[0], changes]))
    return runs.astype(np.uint8 if runs.max() < 2**8 else np.uint32)


def _completed(
    X: Floats, y: Floats, records: dict[str, np.ndarray], own: tuple[Floats, Floats], *, length: int
) -> tuple[Floats, Floats]:
    """The points of the log with those of the client in their places."""
    runs = _read_runs(records)
    others, wanted = (int(runs[start::2].sum(dtype=np.float64)) for start in (0, 1))
    # All counts are compared before anything is made of them: a few bytes can claim any number of points.
    if others != len(y) or wanted > len(own[1]) or others + wanted != length:
        raise RemoteProtocolError(f"{len(y)} points of others and {wanted} own ones do not make {length} of the log")
    mine = np.repeat(np.arange(len(runs)) % 2 == 1, runs.astype(np.int64))
    points, rewards = np.empty((length, X.shape[1])), np.empty(length)
    points[~mine], rewards[~mine] = X, y
    points[mine], rewards[mine] = own[0][:wanted], own[1][:wanted]
    return points, rewards


def _read_runs(records: dict[str, np.ndarray]) -> np.ndarray:
    """Which points of a stretch of the log are the client's own, as lengths of runs."""
    runs = records.get("runs", np.empty(0, dtype=np.uint8))
    if runs.ndim != 1 or runs.dtype.kind != "u":
        raise RemoteProtocolError(f"runs of points are {runs.dtype} of shape {runs.shape}, not a row of counts")
    return runs
