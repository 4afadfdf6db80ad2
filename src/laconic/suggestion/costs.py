"""What algorithms would send: formulas over the curve of what a point teaches. Estimates, and within a factor only.

Each function gives the bytes of one client, up and down, from the beginning until it has made ``own`` observations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, LaconicUCB, OneKernelUCB
from laconic.atoms.reference import CAP
from laconic.checks import require_whole
from laconic.suggestion.curve import Curve

#: A float64 on the paper's wire.
WIDE = 8
#: Bytes of a client's messages at a sync beside what they carry, with one phase and with two.
ONE_PHASE, TWO_PHASES = 50, 90
#: What says, beside statistics, that an observation is in them.
HASH = 8
#: Bytes of an upload and of a download beside what they carry; of a reward, and of a number that names a point.
UPLOAD, DOWNLOAD, REWARD, NUMBER = 13, 36, 2, 2
#: Bytes of a weight and of a coefficient of the mean, in few bits (`laconic.protocol.rice`): means over all versions of
#: two runs on the cosine problem with λ = α = 0.1, of d = 5, N = 20, T = 100, γ = 0.5 (0.70 and 0.77) and
#: d = 20, N = T = 30, γ = 0.1 (0.51 and 0.58). Where atoms are few, an entry takes up to a byte.
WEIGHT, COEFFICIENT = 0.61, 0.68
#: Atoms are about this many times the effective dimension; where they are half of all points, points go instead.
ATOMS, SHARE = 2.5, 0.5
#: Thresholds over which the cost of syncs is averaged, as parts of D; the luckiest of N clients fires first.
AROUND = (0.5, 0.7, 1.0, 1.4)
DAYS = 30


@dataclass(frozen=True)
class Traffic:
    """What costs are estimated for: so many clients, with so many interactions each a day.

    Args:
        clients: Clients N that learn together, from 1.
        daily: Interactions of one client in a day, from 1.
        dim: Number of features d of a point, from 1.
        width: Bytes of one coordinate on LaconicUCB's wire, above 0: less than 1 where most are near their middle, and
            more where a byte is too coarse. Raising it makes LaconicUCB look dearer; other algorithms are not touched.
    """

    clients: int
    daily: int
    dim: int
    width: float = 1.0

    def __post_init__(self) -> None:
        require_whole("clients", self.clients, least=1)
        require_whole("traffic", self.daily, least=1)


@dataclass(frozen=True)
class Cost:
    """Bytes that a client sends and is sent, both ways together.

    Attributes:
        first: Bytes of its first day.
        later: Bytes of an average day of the 29 that follow.
    """

    first: float
    later: float


def costs(algorithms: Mapping[str, Algorithm], *, curve: Curve, traffic: Traffic) -> dict[str, Cost]:
    """The bytes of a client and day for each algorithm that has a formula; one that sends nothing costs nothing."""
    found = {}
    for name, algorithm in algorithms.items():
        first, all_days = (
            spent(algorithm, curve=curve, traffic=traffic, own=days * traffic.daily) for days in (1, DAYS)
        )
        found[name] = Cost(first, later=(all_days - first) / (DAYS - 1))
    return found


def spent(algorithm: Algorithm, *, curve: Curve, traffic: Traffic, own: int) -> float:
    """The bytes of one client until it has made so many observations."""
    if isinstance(algorithm, OneKernelUCB):
        return own * traffic.clients * (WIDE * (traffic.dim + 1) + ONE_PHASE)
    if isinstance(algorithm, DisKernelUCB):
        return _exact(algorithm.D, curve=curve, traffic=traffic, own=own)
    if isinstance(algorithm, ApproxDisKernelUCB):
        return _statistics(algorithm, curve=curve, traffic=traffic, own=own)
    if isinstance(algorithm, LaconicUCB):
        return _uploads(traffic, curve=curve, own=own) + _downloads(algorithm, curve=curve, traffic=traffic, own=own)
    return 0.0


def _exact(D: float, *, curve: Curve, traffic: Traffic, own: int) -> float:
    """Every point goes to everyone once, 8(d+1) bytes, and every sync costs its messages."""
    mine, syncs, fit = 0, 0, 1
    while fit:
        span = _until_sync(D, curve=curve, known=traffic.clients * mine, most=own)
        fit = _alike(syncs, left=own - mine, span=span)
        mine, syncs = mine + fit * span, syncs + fit
    return own * traffic.clients * WIDE * (traffic.dim + 1) + syncs * ONE_PHASE


def _until_sync(D: float, *, curve: Curve, known: int, most: int) -> int:
    """How many own points it takes until Eq. 2 fires when so many are known; beyond ``most`` nobody asks.

    Points are counted in blocks of an eighth of those before.
    """
    count, growth = 0, 0.0
    while count * growth <= D and count <= most:
        block = max(1, count // 8)
        growth += block * math.log1p(curve.variance(known + count))
        count += block
    return count


def _statistics(algorithm: ApproxDisKernelUCB, *, curve: Curve, traffic: Traffic, own: int) -> float:
    """The mean over thresholds around D: the last syncs cost most, and which is the last is chance."""
    around = [replace(algorithm, D=factor * algorithm.D) for factor in AROUND]
    return fmean(_syncs(each, curve=curve, traffic=traffic, own=own) for each in around)


def _syncs(algorithm: ApproxDisKernelUCB, *, curve: Curve, traffic: Traffic, own: int) -> float:
    """A sync: Σ|S_i|(d+1) up in all, |S|(d+1) + r² + r down and r² + r up for each client, 8 bytes a number."""
    N, d = traffic.clients, traffic.dim
    n, size, total, done, fit = 0, 0.0, 0.0, 0, 1
    while fit:
        variance = max(curve.variance(n), curve.missed(size))
        new = math.floor(algorithm.D / variance) + 1  # Eq. 4
        span = N * (new - 1) + 1  # the first client to have so many fires
        picked = span * min(1.0, algorithm.qbar * variance) + min(n, algorithm.qbar * curve.dimension(n))
        size = min(curve.distinct(max(picked, 1.0)), curve.distinct(n + span), curve.rank)
        numbers = picked / N * (d + 1) + size * (d + 1) + 2.0 * (size**2 + size)
        fit = _alike(done, left=N * own - n, span=span)
        total += fit * (WIDE * numbers + TWO_PHASES + HASH * new)
        n, done = n + fit * span, done + fit
    return total


def _alike(done: int, *, left: int, span: int) -> int:
    """How many of the next syncs are taken to be alike, after so many; none where the next is beyond what is left.

    One in sixteen: so a month is soon over at any traffic.
    """
    return min(max(1, done // 16), left // span)


def _uploads(traffic: Traffic, *, curve: Curve, own: int) -> float:
    """Each point once, or a number where it is known, in about 10 + 10 ln(own/10) messages."""
    n = traffic.clients * own
    fresh = curve.distinct(n) / n
    messages = own if own <= 10 else 10.0 * (1.0 + math.log(own / 10.0))
    return own * _point(traffic, fresh) + messages * UPLOAD


def _downloads(algorithm: LaconicUCB, *, curve: Curve, traffic: Traffic, own: int) -> float:
    """At each ask what is new: points, or atoms with all weights and the mean, whichever takes fewer bytes."""
    N, mine, atoms, total = traffic.clients, 0, 0.0, 0.0
    held = 0  # points of the log that the client has, or has atoms for
    while True:
        # Σσ² > δ·d_eff/N with d_eff = nσ²/(1 + σ²)
        mine += math.floor(algorithm.delta * mine / (1.0 + curve.variance(N * mine))) + 1
        if mine > own:
            return total
        n = N * mine
        fresh = (curve.distinct(n) - curve.distinct(held)) / (n - held)
        points = (n - held) * _point(traffic, fresh)
        wanted = min(ATOMS * curve.dimension(n), curve.distinct(n))
        if wanted > SHARE * n or wanted > CAP:
            total += DOWNLOAD + points
        else:
            new = max(wanted - atoms, 0.0) * traffic.dim * traffic.width
            total += DOWNLOAD + min(points, wanted * (WEIGHT + COEFFICIENT) + new)
            atoms = wanted
        held = n


def _point(traffic: Traffic, fresh: float) -> float:
    """A point with its reward, of which this part is fresh."""
    return REWARD + fresh * traffic.dim * traffic.width + (1.0 - fresh) * NUMBER
