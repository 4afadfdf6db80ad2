"""Phases: a sync is a sequence of all-reduces."""

from laconic.protocol.phases.data import ShareData
from laconic.protocol.phases.dictionary import AgreeOnDictionary
from laconic.protocol.phases.member import Member
from laconic.protocol.phases.phase import Phase
from laconic.protocol.phases.statistics import ShareStatistics

__all__ = [
    "AgreeOnDictionary",
    "Member",
    "Phase",
    "ShareData",
    "ShareStatistics",
]
