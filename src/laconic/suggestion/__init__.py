"""Settings for data of one's own: from a sample to kernel, ridge, exploration, exchanges and what they cost."""

from laconic.suggestion.costs import Cost, Traffic
from laconic.suggestion.fitting import Fit, fit
from laconic.suggestion.likelihood import Evidence, evidence
from laconic.suggestion.rehearsing import rehearsal
from laconic.suggestion.sample import Sample, pilot
from laconic.suggestion.suggesting import suggest, suggest_for
from laconic.suggestion.value import Grounds, Suggestion

__all__ = [
    "Cost",
    "Evidence",
    "Fit",
    "Grounds",
    "Sample",
    "Suggestion",
    "Traffic",
    "evidence",
    "fit",
    "pilot",
    "rehearsal",
    "suggest",
    "suggest_for",
]
