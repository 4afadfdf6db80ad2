"""Checks for what you add: one line each, and an `AssertionError` says which contract is broken and where.

>>> from laconic import ApproxDisKernelUCB, Catalogue, Gaussian
>>> from laconic.testing import check_algorithm, check_kernel, check_problem
>>> check_kernel(Gaussian(gamma=2.0))
>>> check_problem(Catalogue(items=8, arms=5, dim=3))
>>> check_algorithm(ApproxDisKernelUCB(D=2.0))

What is checked is what the rest of the package relies on, and nothing else: any object of yours that passes can be
used wherever ours can.
"""

from laconic.testing.algorithms import check_algorithm
from laconic.testing.beliefs import check_belief
from laconic.testing.digests import check_digest
from laconic.testing.explorations import check_exploration
from laconic.testing.kernels import check_kernel
from laconic.testing.phases import check_phase
from laconic.testing.problems import check_problem
from laconic.testing.runtimes import check_runtime
from laconic.testing.simulation import SimulationFailure, simulate
from laconic.testing.triggers import check_trigger

__all__ = [
    "SimulationFailure",
    "check_algorithm",
    "check_belief",
    "check_digest",
    "check_exploration",
    "check_kernel",
    "check_phase",
    "check_problem",
    "check_runtime",
    "check_trigger",
    "simulate",
]
