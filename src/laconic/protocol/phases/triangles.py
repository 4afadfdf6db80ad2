"""Sums over points in few numbers: a factor goes up, a triangle comes down, both in single precision.

A client's G = ZᵀZ of n points in r coordinates is RᵀR, where R has k = min(n, r) rows and nothing left of its diagonal:
kr − k(k−1)/2 numbers, which are never more than a triangle of G and far fewer while the client has few points. R says
what G says and no more. The sum over all clients comes down as a triangle of G.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.beliefs import Embedding, Statistics, chunks
from laconic.errors import InputError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases.payloads import totals_of, with_totals
from laconic.protocol.shapes import Layout

SINGLE = np.dtype(np.float32)
#: A coordinate whose squares sum up to less is left out: single precision would keep no digit of it.
LOST = 1e-30

LAYOUT = Layout(
    values={"factor": ("k",), "gram": ("t",), "moment": ("r",)},
    records={"hashes": ("h",)},
    control={"prior": float, "count": int, "squares": float},
)


def contribution(embedding: Embedding, X: Floats, y: Floats) -> Payload:
    """The statistics of rewards y of the rows of X as they go up."""
    R, sums = np.empty((0, embedding.size)), Statistics(gram=np.empty((0, 0)), moment=np.zeros(embedding.size))
    for part in chunks(len(X), embedding.size):
        Z = np.asarray(embedding.embed(X[part]), dtype=np.float64)
        if Z.size:  # the factor of what came before stands for its points
            R = np.asarray(np.linalg.qr(np.concatenate([R, Z.T]), mode="r"))
        sums = sums + _beside_gram(embedding, Z, X[part], y[part])
    kept = np.einsum("kr,kr->r", R, R) >= LOST
    return _payload("factor", (R * kept)[_upper(*R.shape)], kept, sums)


def _beside_gram(embedding: Embedding, Z: Floats, X: Floats, y: Floats) -> Statistics:
    """The statistics of a few points whose coordinates are Z, but for G."""
    prior, squares = float(embedding.prior(X).sum()), float(y @ y)
    return Statistics(gram=np.empty((0, 0)), moment=Z @ y, prior=prior, count=len(X), squares=squares)


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


@dataclass(frozen=True, eq=False)
class Running:
    """A sum of parts in twice the precision, each number as high + low, which is rounded once, at the end.

    What comes down is rounded, which would turn a last bit that the order of arrival moved into a larger one. Here the
    order moves some 2⁻¹⁰⁰ of a number, which is gone after rounding; and parts need not be kept to be put in order.
    """

    high: Floats  # a triangle of G, b, and three totals
    low: Floats

    @classmethod
    def of(cls, part: Payload) -> Running:
        """The sum of one part."""
        sums = unpacked(part)
        triangle = sums.gram[_upper(*sums.gram.shape)]
        high = np.concatenate([triangle, sums.moment, [sums.prior, sums.count, sums.squares]])
        return cls(high=high, low=np.zeros_like(high))

    def __add__(self, other: Running) -> Running:
        high = self.high + other.high
        added = high - self.high
        error = (self.high - (high - added)) + (other.high - added)  # exactly what rounding has taken (Knuth)
        return Running(high=high, low=self.low + other.low + error)

    def rounded(self, size: int) -> Statistics:
        """The statistics in ``size`` coordinates that this is."""
        triangle, moment, totals = np.split(self.high + self.low, [size * (size + 1) // 2, -3])
        return Statistics.of_totals(_square(triangle, size), moment, totals)


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
