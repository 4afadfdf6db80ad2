"""Exploration: how wide the confidence in a mean is, and how an arm is chosen given means and widths.

A `Confidence` gives α, a number throughout (`Fixed`) or the paper's (`Theory`). An `Exploration` chooses among the arms
shown, given μ and ασ of each, and says with which probability: `UCB`, `Thompson`, `Softmax`, `EpsilonFloor`, `Greedy`.
"""

from laconic.exploration.confidence import (
    Confidence,
    ExactTheory,
    Fixed,
    Informed,
    NystromTheory,
    Theory,
    Told,
)
from laconic.exploration.greatest import UCB, Greedy
from laconic.exploration.mixed import EpsilonFloor, Softmax
from laconic.exploration.shown import (
    NOT_KNOWN,
    TIE,
    Chance,
    Choice,
    Draws,
    Exploration,
    Shown,
    choice_of,
    require_exploration,
    tied_with_best,
)
from laconic.exploration.thompson import Thompson

__all__ = [
    "NOT_KNOWN",
    "TIE",
    "UCB",
    "Chance",
    "Choice",
    "Confidence",
    "Draws",
    "EpsilonFloor",
    "ExactTheory",
    "Exploration",
    "Fixed",
    "Greedy",
    "Informed",
    "NystromTheory",
    "Shown",
    "Softmax",
    "Theory",
    "Thompson",
    "Told",
    "choice_of",
    "require_exploration",
    "tied_with_best",
]
