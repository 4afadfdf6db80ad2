"""Atoms: a small weighted set of data points that stands for all of them, with an error that is computed.

The server holds all points in the coordinates of a reference dictionary Q that never travels (`Reference`). Of these it
builds versions (`build`): atoms U with weights, chosen so that V̂ = λI + Σ w φφᵀ over the atoms is near V = λI + Σ φφᵀ
over all points, the exact mean in the span of U, and a `Certificate` that says how near. A client makes an ordinary
finite belief of it (`Version.belief`). Everything here is numbers: no message, no clock, no generator
but the one given.
"""

from laconic.atoms.belief import belief_of
from laconic.atoms.certificate import Certificate
from laconic.atoms.mean import quantised
from laconic.atoms.reference import Reference
from laconic.atoms.settings import Recipe
from laconic.atoms.version import Fallback, Reason, Version, build
from laconic.atoms.weights import coded, weights_of
from laconic.atoms.width import LeanTheory, width

__all__ = [
    "Certificate",
    "Fallback",
    "LeanTheory",
    "Reason",
    "Recipe",
    "Reference",
    "Version",
    "belief_of",
    "build",
    "coded",
    "quantised",
    "weights_of",
    "width",
]
