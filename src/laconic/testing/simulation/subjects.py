"""The algorithms that are simulated, with small thresholds, so that syncs come after a few points."""

from __future__ import annotations

from collections.abc import Mapping

from laconic.algorithms import Algorithm, ApproxDisKernelUCB, DisKernelUCB, DisLinUCB, NKernelUCB, OneKernelUCB
from laconic.kernels import Gaussian

SUBJECTS: Mapping[str, Algorithm] = {
    "DisKernelUCB": DisKernelUCB(Gaussian(1.0), D=1.0),
    "OneKernelUCB": OneKernelUCB(Gaussian(1.0)),
    "DisLinUCB": DisLinUCB(D=1.0),
    "ApproxDisKernelUCB": ApproxDisKernelUCB(Gaussian(1.0), D=1.5, qbar=0.7),
    "ApproxDisKernelUCB local": ApproxDisKernelUCB(Gaussian(1.0), D=1.5, qbar=0.7, cold_start="local"),
    "DisKernelUCB alone": DisKernelUCB(Gaussian(1.0), D=1.0, together=False),
    "NKernelUCB": NKernelUCB(Gaussian(1.0)),
}
