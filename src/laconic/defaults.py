"""What holds where nothing is said, in Python, on the command line, in files and in a federation: stated once, here.

Parameters were chosen on seeds 100 and 101 of six problems, as the page on choosing tells. Sizes let a comparison
end in a minute or two. Nothing slow is imported here, as help texts quote all of it.
"""

from __future__ import annotations

#: Of the Gaussian kernel: features within the unit ball are then alike enough for a few hundred points to say all.
GAMMA = 0.2
LAM = 0.1
ALPHA = 0.2
#: Thresholds of Eq. 2 and Eq. 4.
D_EXACT, D_NYSTROM = 20.0, 2.0
QBAR = 1.0
#: Of LaconicUCB: a client asks when its new points are this part of its share of what there is to know.
DELTA = 0.3

PROBLEM = "catalogue"
CLIENTS, ROUNDS, SEEDS = 50, 60, 3
#: Where points return, exact algorithms stay small however long they run; elsewhere an interaction costs their square.
RETURNING, LONG_ROUNDS = ("catalogue", "magic", "mushroom", "shuttle", "clustered"), 200
RUNTIME = "lockstep"
ALGORITHMS = ("LaconicUCB", "OneKernelUCB", "DisKernelUCB", "ApproxDisKernelUCB", "NKernelUCB", "DisLinUCB")

#: Of a sweep over all knobs, `laconic frontier`.
SWEPT_CLIENTS, SWEPT_ROUNDS, SWEPT_LONG_ROUNDS, SWEPT_SEEDS = 30, 50, 100, 3


def rounds(problem: str) -> int:
    """How many rounds a comparison on a problem has."""
    return LONG_ROUNDS if problem in RETURNING else ROUNDS


def swept_rounds(problem: str) -> int:
    """How many rounds a sweep on a problem has."""
    return SWEPT_LONG_ROUNDS if problem in RETURNING else SWEPT_ROUNDS
