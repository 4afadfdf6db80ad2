"""Checks for what you add: one line each, and an `AssertionError` says which contract is broken and where.

>>> from laconic import ApproxDisKernelUCB, Catalogue, Gaussian
>>> from laconic.testing import check_algorithm, check_kernel, check_problem
>>> check_kernel(Gaussian(gamma=2.0))
>>> check_problem(Catalogue(items=8, arms=5, dim=3))
>>> check_algorithm(ApproxDisKernelUCB(D=2.0))

What is checked is what the rest of the package relies on, and nothing else: any object of yours that passes can be
used wherever ours can.
"""

from laconic.testing.algorithm_checks import check_algorithm
from laconic.testing.belief_checks import check_belief
from laconic.testing.digest_checks import check_digest
from laconic.testing.exploration_checks import check_exploration
from laconic.testing.kernel_checks import check_kernel
from laconic.testing.phase_checks import check_phase
from laconic.testing.problem_checks import check_problem
from laconic.testing.runtime_checks import check_runtime
from laconic.testing.simulation import SimulationFailure, simulate
from laconic.testing.trigger_checks import check_trigger

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
