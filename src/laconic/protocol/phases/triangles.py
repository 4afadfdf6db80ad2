"""Sums over points in few numbers: a factor goes up, a triangle comes down, both in single precision.

A client's G = ZᵀZ of n points in r coordinates is RᵀR, where R has k = min(n, r) rows and nothing left of its diagonal:
kr − k(k−1)/2 numbers, which are never more than a triangle of G and far fewer while the client has few points. R says
what G says and no more. The sum over all clients comes down as a triangle of G.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Embedding, Statistics
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.payloads import totals_of, with_totals
from laconic.protocol.shapes import Layout

SINGLE = np.dtype(np.float32)
#: A coordinate whose squares sum up to less is left out: single precision would keep no digit of it.
LOST = 1e-30
#: Factors of so many rows are multiplied at once.
ROWS_AT_ONCE = 4096

LAYOUT = Layout(
    values={"factor": ("k",), "gram": ("t",), "moment": ("r",)},
    records={"hashes": ("h",)},
    control={"prior": float, "count": int, "squares": float},
)


def contribution(embedding: Embedding, X: Floats, y: Floats) -> Payload:
    """The statistics of rewards y of the rows of X as they go up."""
    Z = np.asarray(embedding.embed(X), dtype=np.float64)
    R = np.asarray(np.linalg.qr(Z.T, mode="r")) if Z.size else np.empty((0, len(Z)))
    sums = Statistics(
        gram=np.empty((0, 0)),
        moment=Z @ y,
        prior=float(embedding.prior(X).sum()),
        count=len(X),
        squares=float(y @ y),
    )
    kept = np.einsum("kr,kr->r", R, R) >= LOST
    return _payload("factor", (R * kept)[_upper(*R.shape)], kept, sums)


def result(sums: Statistics) -> Payload:
    """Statistics as they come down."""
    kept = np.diagonal(sums.gram) >= LOST
    gram = sums.gram * np.outer(kept, kept)
    return _payload("gram", gram[_upper(*gram.shape)], kept, sums)


def _payload(name: str, entries: Floats, kept: Bools, sums: Statistics) -> Payload:
    values = {name: _single(name, entries), "moment": _single("moment", sums.moment * kept)}
    return Payload(values=values, control=totals_of(sums))


def unpacked(payload: Payload) -> Statistics:
    """The statistics that came, either way."""
    moment = _doubled(payload, "moment")
    if "gram" in payload.values:
        gram = _square(_doubled(payload, "gram"), len(moment))
    else:
        R = _factor(payload)
        gram = R.T @ R
    return with_totals(gram, moment, payload)


def total(parts: list[Payload], size: int) -> Statistics:
    """The sum of all parts, in their order."""
    gram, empty = np.zeros((size, size)), np.empty((0, size))
    rest, waiting = Statistics(gram=np.empty((0, 0)), moment=np.zeros(size)), empty
    for part in parts:
        rest = rest + with_totals(rest.gram, _doubled(part, "moment"), part)
        waiting = np.concatenate([waiting, _factor(part)])
        if len(waiting) >= ROWS_AT_ONCE:
            gram, waiting = gram + waiting.T @ waiting, empty
    return replace(rest, gram=gram + waiting.T @ waiting)


def _factor(payload: Payload) -> Floats:
    """R, whose number of rows follows from how many numbers there are."""
    entries, width = _doubled(payload, "factor"), payload.values["moment"].size
    rows = _rows(len(entries), width)
    R = np.zeros((rows, width))
    R[_upper(rows, width)] = entries
    return R


def _rows(entries: int, width: int) -> int:
    """k of k·width − k(k−1)/2 = entries."""
    root = 2 * width + 1
    rows = (root - isqrt(max(root * root - 8 * entries, 0))) // 2
    if rows > width or rows * width - rows * (rows - 1) // 2 != entries:
        raise RemoteProtocolError(f"a factor of {entries} numbers in {width} coordinates has no whole number of rows")
    return rows


def _square(entries: Floats, size: int) -> Floats:
    if len(entries) != size * (size + 1) // 2:
        raise RemoteProtocolError(f"a triangle of {len(entries)} numbers does not have {size} rows")
    gram = np.zeros((size, size))
    gram[_upper(size, size)] = entries
    return gram + np.triu(gram, 1).T


def _upper(rows: int, width: int) -> Bools:
    """Where numbers are: nothing is left of the diagonal."""
    return np.arange(width) >= np.arange(rows)[:, None]


def _single(name: str, array: Floats) -> np.ndarray:
    with np.errstate(over="ignore"):
        single = array.astype(SINGLE)
    if not np.isfinite(single).all():
        raise InputError(f"the {name} of the statistics does not fit into 32 bits; rescale, or try wire='paper'")
    return single


def _doubled(payload: Payload, name: str) -> Floats:
    """A row of numbers that came in single precision."""
    names = set(payload.values)
    if names not in ({"factor", "moment"}, {"gram", "moment"}):
        raise RemoteProtocolError(f"expected a factor or a gram, and a moment, got {sorted(names)}")
    array = payload.values[name]
    if array.dtype != SINGLE or array.ndim != 1:
        raise RemoteProtocolError(
            f"{name} is {array.ndim}-dimensional {array.dtype}, where a row of float32 is expected"
        )
    return array.astype(np.float64)
