"""Problems to play: synthetic, recorded, and your own."""

from laconic.problems.base import Instance, Problem, Round
from laconic.problems.catalogue import Catalogue
from laconic.problems.recorded import Log, Recorded, save_recorded
from laconic.problems.replay import Replay
from laconic.problems.rounds import check_round
from laconic.problems.simple import FromFunctions
from laconic.problems.synthetic import Cosine, PolynomialReward

__all__ = [
    "Catalogue",
    "Cosine",
    "FromFunctions",
    "Instance",
    "Log",
    "PolynomialReward",
    "Problem",
    "Recorded",
    "Replay",
    "Round",
    "check_round",
    "save_recorded",
]
