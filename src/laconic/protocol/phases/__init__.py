"""Phases: a sync is a sequence of all-reduces."""

from laconic.protocol.phases.base import Phase
from laconic.protocol.phases.data import ShareData
from laconic.protocol.phases.dictionary import AgreeOnDictionary
from laconic.protocol.phases.mail import Mail
from laconic.protocol.phases.members import Member, Members
from laconic.protocol.phases.statistics import ShareStatistics, check_statistics

__all__ = [
    "AgreeOnDictionary",
    "Mail",
    "Member",
    "Members",
    "Phase",
    "ShareData",
    "ShareStatistics",
    "check_statistics",
]
