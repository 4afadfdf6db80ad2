"""What ``laconic compare`` does when it is told nothing, stated in one place: without any option it is the demo.

A catalogue of 30 items that repeat is where a small dictionary says nearly all there is to say. On fresh arms in many
dimensions it does not, and the verdicts printed below the table say so.
"""

from __future__ import annotations

from typing import Any

PROBLEM = "catalogue"
CLIENTS, ROUNDS, SEEDS = 50, 40, 3
#: Where points return, exact algorithms stay small however long they run; elsewhere an interaction costs their square.
LONG_ROUNDS, LONG_ON = 200, ("catalogue", "magic", "mushroom", "shuttle", "clustered")
RUNTIME = "lockstep"
ALGORITHMS = ("OneKernelUCB", "DisKernelUCB", "ApproxDisKernelUCB", "LaconicUCB", "NKernelUCB", "DisLinUCB")

# of every algorithm that has such a parameter
SHARED: dict[str, Any] = {"kernel": "Gaussian", "gamma": 1.0, "lam": 1.0, "alpha": 0.5}
# of one algorithm
OWN: dict[str, dict[str, Any]] = {
    "DisKernelUCB": {"D": 20.0},
    "DisLinUCB": {"D": 20.0},
    "ApproxDisKernelUCB": {"D": 5.0, "qbar": 0.3},
}
# of one algorithm on one problem: few items make few points to keep, so all of them may be kept, and syncs are cheap
ON: dict[str, dict[str, dict[str, Any]]] = {"catalogue": {"ApproxDisKernelUCB": {"qbar": 10.0, "D": 2.0}}}


def rounds(problem: str) -> int:
    """How many rounds a problem is played for."""
    return LONG_ROUNDS if problem in LONG_ON else ROUNDS


def of(algorithm: str, *, problem: str) -> dict[str, Any]:
    """The parameters of an algorithm on a problem, by name."""
    return SHARED | OWN.get(algorithm, {}) | ON.get(problem, {}).get(algorithm, {})
