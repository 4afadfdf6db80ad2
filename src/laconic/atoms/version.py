"""Versions of a digest: a pure function of the reference, the version before and an addressed generator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.atoms.belief import belief_of
from laconic.atoms.builder import most_atoms, select
from laconic.atoms.certificate import Certificate, certified, exact_mean
from laconic.atoms.joint import Joint
from laconic.atoms.mean import is_expressible, quantised
from laconic.atoms.reference import Reference
from laconic.atoms.settings import Recipe
from laconic.atoms.spanning import independent
from laconic.atoms.weights import STEPS, Codes, coded, weights_of
from laconic.atoms.whitened import Whitened
from laconic.beliefs import FiniteBelief
from laconic.errors import InputError
from laconic.kernels import Kernel

#: Atoms of which κ is more than so many times what is aimed at are not sent.
FAR = 2.0


class Reason(StrEnum):
    """Why all points are sent as they are."""

    REFERENCE = "the reference dictionary is at its cap"
    SHARE = "atoms would be too large a part of the observations"
    STEPS = "rewards are too large for the steps of the mean"
    PRECISION = "points differ too much in size, or say too little beside lam, for weights in single precision"
    WEAK = "atoms would leave far more unknown than all points do"


@dataclass(frozen=True)
class Fallback:
    """No atoms: it is cheaper to send the points as they are."""

    reason: Reason
    covered: int  # observations of the log
    d_eff: float
    log_det: float
    missed: float


@dataclass(frozen=True, eq=False)
class Version:
    """A weighted set of data points that stands for the first ``covered`` observations of the log, and the exact mean.

    Atoms that were in the version before come first, in their old order, then new ones; nobody pivots them again.
    """

    atoms: Floats  # (m, d)
    ids: Ints  # (m,) each atom's number among the log's distinct points, in order of first appearance
    weights: Codes  # (m,)
    spanning: Bools  # (m,) which atoms are in the dictionary; the others are in its span
    mean: Ints  # (p,) c = L_Hᵀθ in steps of the quantum, one for each atom of the dictionary
    quantum: float
    certificate: Certificate
    covered: int

    def belief(self, *, kernel: Kernel, lam: float) -> FiniteBelief:
        """What a client makes of it."""
        return belief_of(
            self.atoms,
            weights_of(self.weights),
            np.multiply(self.mean, self.quantum, dtype=np.float64),
            spanning=self.spanning,
            kernel=kernel,
            lam=lam,
            count=self.covered,
        )


def build(
    reference: Reference,
    *,
    lam: float,
    settings: Recipe,
    random: np.random.Generator,
    previous: Version | None = None,
) -> Version | Fallback:
    """The next version, or why there is none; the same inputs give the same version."""
    _check(reference, previous)
    whitened = Whitened(reference=reference, lam=lam)
    if settings.share == 0:
        return _fallback(whitened, Reason.SHARE)
    if reference.overflows:
        return _fallback(whitened, Reason.REFERENCE)
    every = reference.distinct <= most_atoms(whitened, settings=settings)
    if every and reference.distinct > settings.share * reference.covered:
        return _fallback(whitened, Reason.SHARE)
    if every:
        rows, weights = np.arange(reference.distinct), reference.counts
    else:
        try:
            rows, weights = _selected(whitened, previous, settings=settings, random=random)
        except ArithmeticError:  # weighing them is not possible
            return _fallback(whitened, Reason.PRECISION)
    if len(rows) > settings.share * reference.covered:
        return _fallback(whitened, Reason.SHARE)
    whitened = whitened.bare()  # here, so that nobody has the large one any more
    return _finished(whitened, rows, coded(weights), previous=previous, settings=settings)


def _check(reference: Reference, previous: Version | None) -> None:
    if reference.covered == 0:
        raise InputError("a version needs at least one observation; extend the reference first")
    if previous is None:
        return
    known = previous.ids < reference.distinct
    if not known.all() or not np.array_equal(reference.points[previous.ids], previous.atoms):
        raise InputError("the version before has atoms that this log has not; give one that was built of the same log")


def _fallback(whitened: Whitened, reason: Reason) -> Fallback:
    reference = whitened.reference
    return Fallback(reason, reference.covered, whitened.d_eff, whitened.log_det, reference.missed)


def _selected(
    whitened: Whitened, previous: Version | None, *, settings: Recipe, random: np.random.Generator
) -> tuple[Ints, Floats]:
    """Atoms from those of the version before, whose weights have grown with the log since."""
    ids, weights = np.empty(0, dtype=np.int64), np.empty(0)
    if previous is not None:
        grown = whitened.reference.covered / previous.covered
        ids, weights = previous.ids, weights_of(previous.weights) * grown
    return select(whitened, previous=ids, weights=weights, settings=settings, random=random)


def _finished(
    whitened: Whitened, rows: Ints, codes: Codes, *, previous: Version | None, settings: Recipe
) -> Version | Fallback:
    """The version of these atoms: put in order, their dictionary, the exact mean and the certificate."""
    reference = whitened.reference
    rows, codes = rows[codes > 0], codes[codes > 0]
    rows, codes = _ordered(rows, codes, previous)
    points = reference.points[rows]
    joint, spanning = _joint(whitened, rows, points)
    whitened.lighten()  # of a bare one only numbers are asked from here on
    theta = exact_mean(joint)
    while True:
        certificate, c = certified(joint, weights_of(codes), theta=theta, whitened=whitened)
        lower = _lowered(codes, certificate, settings=settings)
        if np.array_equal(lower, codes):
            break
        codes = lower
    if certificate.kappa > FAR * settings.kappa:
        return _fallback(whitened, Reason.WEAK)
    if not is_expressible(c, step=settings.quantum):
        return _fallback(whitened, Reason.STEPS)
    return Version(
        atoms=points,
        ids=rows,
        weights=codes,
        spanning=spanning,
        mean=quantised(c, step=settings.quantum),
        quantum=settings.quantum,
        certificate=certificate,
        covered=reference.covered,
    )


def _joint(whitened: Whitened, rows: Ints, points: Floats) -> tuple[Joint, Bools]:
    """The joint coordinates of these points of the reference, and which of them span the others."""
    K = whitened.reference.kernel(points, points)
    spanning = independent(K)
    return Joint.of(whitened, rows, K=K, spanning=spanning), spanning.which


def _lowered(codes: Codes, certificate: Certificate, *, settings: Recipe) -> Codes:
    """All weights some steps lower where rounding, or what lies beyond Q, took e_hi past its bound."""
    if certificate.e_hi <= settings.e_hi:
        return codes
    steps = math.ceil(STEPS * math.log2((1.0 + certificate.e_hi) / (1.0 + settings.e_hi)))
    return np.where(codes > steps, codes - np.minimum(codes, steps), np.minimum(codes, 1)).astype(np.uint8)


def _ordered(rows: Ints, codes: Codes, previous: Version | None) -> tuple[Ints, Codes]:
    """Kept atoms in their old order, then new ones."""
    if previous is None:
        return rows, codes
    place = {int(row): j for j, row in enumerate(previous.ids)}
    order = np.argsort([place.get(int(row), len(place)) for row in rows], kind="stable")
    return rows[order], codes[order]
