"""The confidence width α of a client with a version and a tail: |f(x) − μ(x)| ≤ α σ̂(x) (docs/communication.md)."""

from __future__ import annotations

import math

from laconic.atoms.version import Version
from laconic.checks import require_positive, require_whole
from laconic.exploration import Theory
from laconic.tail import News

#: ‖φ(x) − φ(x̂)‖² of a point as it was rounded for its upload is at most this part of λ.
POINT_ROUNDING = 1e-3
#: (y − ŷ)² of a reward as it was rounded for its upload is at most this part of λ.
REWARD_ROUNDING = 1e-4


def width(version: Version, news: News, *, lam: float, theory: Theory, clients: int, downloads: int) -> float:
    """α for one of ``clients`` that holds this version as its ``downloads``-th, with the news of its whole tail."""
    require_positive("lam", lam)
    require_whole("clients", clients, least=1)
    require_whole("downloads", downloads, least=1)
    certificate = version.certificate
    covered = math.sqrt(1.0 + max(certificate.e_hi, 0.0)) * (
        theory.S * (math.sqrt(lam) + math.sqrt(certificate.missed))
        + rounding(version.covered, lam=lam, S=theory.S)
        + theory.R * math.sqrt(2.0 * math.log(2.0 / theory.delta) + information(version, lam=lam))
        + certificate.beta
    )
    attempts = 2.0 * clients * downloads * (downloads + 1)  # a new prior for the tail with each of them
    own = (
        theory.S * math.sqrt(lam * news.residual)
        + rounding(news.count, lam=lam, S=theory.S)
        + theory.R * math.sqrt(2.0 * math.log(attempts / theory.delta) + news.log_det)
    )
    return covered + version.quantum * math.sqrt(len(version.mean)) / 2.0 + own


def information(version: Version, *, lam: float) -> float:
    """ln det(I + G/λ) + n ln(1 + ρ/(λn)), which is at least ln det(I + K/λ) over the n observations."""
    certificate, n = version.certificate, version.covered
    return certificate.log_det + n * math.log1p(certificate.missed / (lam * n))


def rounding(count: int, *, lam: float, S: float) -> float:
    """What the rounding of so many points and rewards can do, in the norm of V."""
    return (S * math.sqrt(POINT_ROUNDING) + math.sqrt(REWARD_ROUNDING)) * math.sqrt(lam * count)
