"""The algorithms that are simulated, with small thresholds, so that syncs come after a few points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laconic.algorithms import (
    Algorithm,
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    LaconicUCB,
    NKernelUCB,
    OneKernelUCB,
    Random,
)
from laconic.atoms import Recipe
from laconic.exploration import Theory
from laconic.kernels import Gaussian
from laconic.protocol.digests import AllPoints, Atoms

#: The reference leaves next to nothing of any point, so that certificates speak of the log as it is.
FINE = Atoms(Recipe(tolerance=1e-7, pool=64, most=2.0))

#: Invariants are compared to so many digits of numbers as a ridge of 1 leaves in 32 bits.
UNIT: dict[str, Any] = {"lam": 1.0, "alpha": 1.0}

SUBJECTS: Mapping[str, Algorithm] = {
    "DisKernelUCB": DisKernelUCB(Gaussian(1.0), D=1.0, **UNIT),
    "OneKernelUCB": OneKernelUCB(Gaussian(1.0), **UNIT),
    "DisLinUCB": DisLinUCB(D=1.0, **UNIT),
    "ApproxDisKernelUCB": ApproxDisKernelUCB(Gaussian(1.0), D=1.5, qbar=0.7, **UNIT),
    "ApproxDisKernelUCB local": ApproxDisKernelUCB(Gaussian(1.0), D=1.5, qbar=0.7, cold_start="local", **UNIT),
    "DisKernelUCB alone": DisKernelUCB(Gaussian(1.0), D=1.0, together=False, **UNIT),
    "LaconicUCB": LaconicUCB(Gaussian(0.5), lam=0.3, alpha=0.3, digest=FINE),
    "LaconicUCB all points": LaconicUCB(Gaussian(0.5), lam=0.3, alpha=0.3, digest=AllPoints()),
    "ApproxDisKernelUCB compact": ApproxDisKernelUCB(Gaussian(1.0), D=1.5, qbar=0.7, wire="compact", **UNIT),
    "DisLinUCB compact": DisLinUCB(D=1.0, wire="compact", **UNIT),
    "DisKernelUCB int8": DisKernelUCB(Gaussian(1.0), D=1.0, wire="int8", **UNIT),
    "LaconicUCB budget": LaconicUCB(Gaussian(0.5), lam=0.3, alpha=0.3, digest=FINE, budget=20_000.0),
    "LaconicUCB theory": LaconicUCB(Gaussian(0.5), lam=0.3, alpha=Theory(), digest=FINE),
    "NKernelUCB": NKernelUCB(Gaussian(1.0), **UNIT),
    "Random": Random(),
}
