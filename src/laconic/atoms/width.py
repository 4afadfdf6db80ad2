"""The confidence width α of a client with a belief and a tail, for which |f(x) − μ(x)| ≤ α σ̂(x).

The page on communication proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from laconic.atoms.certificate import Certificate
from laconic.atoms.settings import POINT_ROUNDING, REWARD_ROUNDING
from laconic.atoms.version import Version
from laconic.checks import require_at_least, require_positive, require_whole
from laconic.exploration import Theory, Told
from laconic.tail import News, Tail


@dataclass(frozen=True)
class LeanTheory:
    """α = what the belief may be wrong by + what the rounding of its mean does + what the tail may add.

    Of a version of atoms the first follows from its certificate; of an exact belief, which a client has before its
    first version and of points as they are, from ln det(I + K/λ) itself.

    Args:
        theory: Bounds S and R of the reward function and of the noise, and the risk. Raising S or R widens the
            confidence; epsilon is not used.
        step: Step Δ in which the coefficients of the mean travel, at least 0, in units of rewards. Raising it widens
            the confidence.
    """

    theory: Theory
    step: float

    def __post_init__(self) -> None:
        require_at_least("step", self.step, least=0)

    def coefficient(self, *, lam: float, clients: int, information: float) -> float:
        """α of a client that knows its own points only, as if these had not been rounded."""
        news = News(count=0, log_det=information, variance=0.0, residual=0.0)
        own = tail_width(news, lam=lam, theory=self.theory, clients=clients, downloads=0)
        return exact_width(0.0, observations=0, lam=lam, theory=self.theory) + own

    def width(self, tail: Tail, *, told: Told, clients: int) -> float:
        """α of a client that was told this of its belief and has this tail on it."""
        belief, theory, lam = tail.belief, self.theory, tail.belief.lam
        own = tail_width(tail.news, lam=lam, theory=theory, clients=clients, downloads=told.downloads)
        if told.certificate is None:
            return exact_width(belief.information, observations=told.observations, lam=lam, theory=theory) + own
        covered = certified_width(told.certificate, observations=told.observations, lam=lam, theory=theory)
        return covered + mean_width(self.step, rank=belief.width) + own


def width(version: Version, news: News, *, lam: float, theory: Theory, clients: int, downloads: int) -> float:
    """α for one of ``clients`` that holds this version as its ``downloads``-th, with the news of its whole tail.

    Args:
        version: The version of atoms that the client holds, with its certificate.
        news: Sums over the own points that the version does not have.
        lam: Ridge λ, above 0.
        theory: Bounds of the reward function and of the noise, and the risk.
        clients: Clients N for which it holds at once, from 1. Raising it widens the confidence.
        downloads: Versions that the client was sent so far, this one included, from 1. Raising it widens the
            confidence.
    """
    require_positive("lam", lam)
    require_whole("clients", clients, least=1)
    require_whole("downloads", downloads, least=1)
    covered = certified_width(version.certificate, observations=version.covered, lam=lam, theory=theory)
    own = tail_width(news, lam=lam, theory=theory, clients=clients, downloads=downloads)
    return covered + mean_width(version.quantum, rank=len(version.mean)) + own


def certified_width(certificate: Certificate, *, observations: int, lam: float, theory: Theory) -> float:
    """‖f − θ_S‖ in the norm of V̂, with θ_S the exact mean in the span of a version's atoms."""
    within = (
        theory.S * (math.sqrt(lam) + math.sqrt(certificate.missed))
        + rounding(observations, lam=lam, S=theory.S)
        + theory.R * math.sqrt(_surely(theory) + information(certificate, observations=observations, lam=lam))
        + certificate.beta
    )
    return math.sqrt(1.0 + max(certificate.e_hi, 0.0)) * within


def exact_width(information: float, *, observations: int, lam: float, theory: Theory) -> float:
    """‖f − θ‖ in the norm of V, with θ the exact mean of so many observations, whose ln det(I + K/λ) is given."""
    noise = theory.R * math.sqrt(_surely(theory) + information) if observations else 0.0
    return theory.S * math.sqrt(lam) + rounding(observations, lam=lam, S=theory.S) + noise


def mean_width(step: float, *, rank: int) -> float:
    """What rounding does to so many coefficients of the mean, in the norm of V̂."""
    return step * math.sqrt(rank) / 2.0


def tail_width(news: News, *, lam: float, theory: Theory, clients: int, downloads: int) -> float:
    """What a tail may add, on the belief that a client has after so many downloads."""
    attempts = 2.0 * clients * (downloads + 1) * (downloads + 2)  # a new prior for the tail with each of them
    return (
        theory.S * math.sqrt(lam * news.residual)
        + rounding(news.count, lam=lam, S=theory.S)
        + theory.R * math.sqrt(2.0 * math.log(attempts / theory.delta) + news.log_det)
    )


def information(certificate: Certificate, *, observations: int, lam: float) -> float:
    """ln det(I + G/λ) + n ln(1 + ρ/(λn)), which is at least ln det(I + K/λ) over the n observations."""
    return certificate.log_det + observations * math.log1p(certificate.missed / (lam * observations))


def rounding(count: int, *, lam: float, S: float) -> float:
    """What the rounding of so many points and rewards can do, in the norm of V."""
    return (S * math.sqrt(POINT_ROUNDING) + REWARD_ROUNDING) * math.sqrt(lam * count)


def _surely(theory: Theory) -> float:
    """2 ln(2/δ): half of the risk is for the noise in the log."""
    return 2.0 * math.log(2.0 / theory.delta)
