"""Schedules hold for algorithms of any settings and of any kind, and still find a belief that is wrong."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import laconic.atoms.belief
import laconic.atoms.certificate
import laconic.protocol.digests.atoms
from laconic import (
    AllPoints,
    ApproxDisKernelUCB,
    Determinant,
    DisKernelUCB,
    Gaussian,
    LaconicUCB,
    Plan,
    ShareData,
    ShareStatistics,
)
from laconic.algorithms import Algorithm, Random
from laconic.arrays import Floats
from laconic.atoms import Reference
from laconic.beliefs import (
    Belief,
    BeliefBase,
    ExactBelief,
    FiniteBelief,
    Statistics,
)
from laconic.beliefs.sums import DOUBLE, expect_sums
from laconic.exploration import Fixed
from laconic.protocol.digests import Held, Incoming
from laconic.randomness import Role, generator
from laconic.testing import SimulationFailure, simulate
from laconic.testing.simulation.subjects import SUBJECTS
from laconic.triggers import Never
from tests.test_received_beliefs import Average

SINGLE: dict[str, Any] = {"dtype": "float32"}


def broken(algorithm: Algorithm, seeds: range = range(6)) -> str:
    """What the first of these schedules finds that finds anything."""
    for seed in seeds:
        try:
            simulate(algorithm, seed=seed)
        except SimulationFailure as failure:
            return failure.broken
    return "nothing"


# -- atoms of a coarse reference


@pytest.mark.parametrize(
    "algorithm",
    [LaconicUCB(), LaconicUCB(lam=0.01), LaconicUCB(lam=1e-6)],
    ids=["defaults", "a small ridge", "a tiny ridge"],
)
def test_certificates_hold_whatever_a_reference_leaves_of_points(algorithm: Algorithm) -> None:
    for seed in (0, 10, 11, 14):
        assert any("atoms for" in line for line in simulate(algorithm, seed=seed)), seed


def test_a_belief_that_ignores_an_atom_is_found_at_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    gram = laconic.atoms.belief._gram

    def forgetful(embedding: Any, atoms: Floats, weights: Floats, spanning: Any) -> Floats:
        return gram(embedding, atoms, np.where(np.arange(len(weights)) == 0, 0.0, weights), spanning)

    monkeypatch.setattr(laconic.atoms.belief, "_gram", forgetful)
    assert "differ by" in broken(LaconicUCB())


def test_a_certificate_that_says_a_little_too_much_is_found_at_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    extremes = laconic.atoms.certificate._extremes

    def boastful(*given: Any, values: Floats) -> tuple[float, float]:
        e_lo, e_hi = extremes(*given, values=values)
        return e_lo, e_hi - 1e-3 * abs(e_hi)

    monkeypatch.setattr(laconic.atoms.certificate, "_extremes", boastful)
    assert " says " in broken(LaconicUCB())


def test_a_certificate_that_hides_what_its_reference_leaves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reference, "missed", property(lambda self: 0.99 * float(self.counts @ self.residual)))
    assert "says that its reference misses" in broken(LaconicUCB())


def test_a_certificate_that_is_shipped_better_than_it_is_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nearest(numbers: Floats, dtype: Any) -> np.ndarray:
        return numbers.astype(dtype)

    monkeypatch.setattr(laconic.protocol.digests.atoms, "_outwards", nearest)
    assert "came with" in broken(LaconicUCB())


# -- single precision


@pytest.mark.parametrize(
    "algorithm",
    [
        DisKernelUCB(Gaussian(1.0), D=1.0, **SINGLE),
        DisKernelUCB(Gaussian(1.0), D=1.0, together=False, **SINGLE),
        DisKernelUCB(Gaussian(1.0), D=1.0, together=False, lam=0.002, wire="int8", **SINGLE),
        ApproxDisKernelUCB(Gaussian(1.0), D=1.5, **SINGLE),
        ApproxDisKernelUCB(Gaussian(1.0), D=1.5, lam=0.002, **SINGLE),
        ApproxDisKernelUCB(Gaussian(1.0), D=1.5, lam=1e-4, wire="compact"),
    ],
    ids=["exact", "alone", "alone, a small ridge", "Nyström", "Nyström, a small ridge", "Nyström, sums in 32 bits"],
)
def test_single_precision_is_no_failure(algorithm: Algorithm) -> None:
    for seed in (4, 8, 11):
        simulate(algorithm, seed=seed)


def test_rounding_beside_a_tiny_ridge_is_no_failure() -> None:
    simulate(DisKernelUCB(Gaussian(1.0), D=1.0, lam=1e-11), seed=4)


def test_a_belief_that_ignores_a_point_is_found_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    extended = ExactBelief.extended

    def forgetful(self: ExactBelief, X: Floats, y: Floats, **known: Any) -> ExactBelief:
        return extended(self, X[:-1], y[:-1], **known) if len(X) > 1 else extended(self, X, y, **known)

    monkeypatch.setattr(ExactBelief, "extended", forgetful)
    assert "differ by" in broken(DisKernelUCB(Gaussian(1.0), D=1.0, **SINGLE))


# -- embeddings of one's own


@dataclass(frozen=True)
class Waves:
    """Random Fourier features, as the page on extending has them."""

    dim: int
    size: int = 20

    def embed(self, X: Floats) -> Floats:
        w = np.sqrt(2.0) * generator(0, Role.CATALOGUE).standard_normal((self.size // 2, self.dim))
        return np.concatenate([np.cos(w @ X.T), np.sin(w @ X.T)]) * np.sqrt(2 / self.size)

    def prior(self, X: Floats) -> Floats:
        return np.full(len(X), 1.25)

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return prior - np.sum(Z * Z, axis=0)


@dataclass(frozen=True)
class FourierUCB:
    """Its coordinates leave a quarter of every point unexpressed, so that residuals count too."""

    def plan(self, dim: int, /) -> Plan:
        belief = FiniteBelief.empty(embedding=Waves(dim), lam=1.0)
        statistics = ShareStatistics(source="tail")
        return Plan(belief=belief, trigger=Determinant(2.0), phases=(statistics,), confidence=Fixed(1.0))


def test_an_embedding_of_ones_own_is_taken_at_its_own_coordinates() -> None:
    for seed in range(5):
        simulate(FourierUCB(), seed=seed)


def test_sums_that_lack_a_reward_are_found_in_an_embedding_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Statistics._of_few

    def forgetful(embedding: Any, X: Floats, y: Floats) -> Statistics:
        sums = of(embedding, X, y)
        return replace(sums, moment=sums.moment - y[-1] * embedding.embed(X[-1:])[:, 0])

    monkeypatch.setattr(Statistics, "_of_few", forgetful)
    assert "means differ by" in broken(FourierUCB())


# -- beliefs of another kind


class Forgetful(Average):
    """It ignores the first reward of all that come together."""

    def extended(self, X: Floats, y: Floats) -> Average:
        return super().extended(X, np.array([0.0, *y[1:]]))


class Untaught(Average):
    """It learns neither points nor sums, and so has a tail only."""

    def extended(self, X: Floats, y: Floats) -> Average:
        return BeliefBase.extended(self, X, y)  # type: ignore[return-value]  # it raises


@dataclass(frozen=True)
class Ones:
    """z(x) = 1."""

    dim: int
    size: ClassVar[int] = 1

    def embed(self, X: Floats) -> Floats:
        return np.ones((1, len(X)))

    def prior(self, X: Floats) -> Floats:
        return np.ones(len(X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.zeros(Z.shape[1])


class Summed(Untaught):
    """It learns sums, and no points."""

    @property
    def coordinates(self) -> Ones:
        return Ones(self.dim)

    def check_statistics(self, sums: Statistics) -> None:
        expect_sums(sums, size=1, lam=self.lam, scale=1.0, margins=DOUBLE)

    def with_statistics(self, sums: Statistics, *, added: bool = False) -> Belief:
        before = self if added else replace(self, count=0.0, total=0.0)
        return replace(self, count=before.count + float(sums.gram[0, 0]), total=before.total + float(sums.moment[0]))


class Biased(Summed):
    """It counts sums half as much that are added to others."""

    def with_statistics(self, sums: Statistics, *, added: bool = False) -> Belief:
        halved = replace(sums, moment=sums.moment / 2) if added else sums
        return super().with_statistics(halved, added=added)


@dataclass(frozen=True)
class AverageUCB:
    """UCB on a belief of another kind."""

    kind: type[Average] = Average

    def plan(self, dim: int, /) -> Plan:
        phase = ShareStatistics(source="tail") if issubclass(self.kind, Summed) else ShareData()
        return Plan(belief=self.kind(dim), trigger=Determinant(1.0), phases=(phase,), confidence=Fixed(1.0))


@dataclass(frozen=True)
class UntaughtUCB:
    """UCB on a belief of another kind that is never exchanged."""

    def plan(self, dim: int, /) -> Plan:
        return Plan(belief=Untaught(dim), trigger=Never(), phases=(), confidence=Fixed(1.0))


@pytest.mark.parametrize("kind", [Average, Summed])
def test_a_belief_of_another_kind_is_compared_with_one_that_learnt_the_same_at_once(kind: type[Average]) -> None:
    for seed in range(4):
        simulate(AverageUCB(kind), seed=seed)


@pytest.mark.parametrize("kind", [Forgetful, Biased])
def test_a_belief_of_another_kind_that_ignores_rewards_is_found(kind: type[Average]) -> None:
    assert "means differ by" in broken(AverageUCB(kind))


def test_a_belief_that_cannot_learn_anew_goes_without_the_comparison_of_numbers() -> None:
    for seed in range(3):
        simulate(UntaughtUCB(), seed=seed)


# -- digests of another kind


@dataclass(frozen=True)
class Excerpt(AllPoints):
    """It says to be made of some points, and not how far these are from all."""

    name: ClassVar[str] = "excerpt"

    def absorb(self, incoming: Incoming) -> Held:
        held = super().absorb(incoming)
        return replace(held, atoms=held.built.belief.arrays()["points"])


def test_a_digest_without_a_certificate_goes_without_the_comparison_of_numbers() -> None:
    for seed in range(2):
        simulate(LaconicUCB(digest=Excerpt()), seed=seed)


# -- what never exchanges


def test_what_never_exchanges_is_among_the_subjects() -> None:
    assert SUBJECTS["Random"] == Random()
