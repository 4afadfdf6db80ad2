"""A plan is what an algorithm comes to for arms of a given dimension: belief × trigger × phases × exploration."""

from __future__ import annotations

from dataclasses import dataclass

from laconic.beliefs import Belief
from laconic.errors import InputError
from laconic.exploration import Exploration
from laconic.protocol.phases import Phase
from laconic.triggers import Never, Trigger


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The parts that a client and a server run on."""

    belief: Belief
    trigger: Trigger
    phases: tuple[Phase, ...]
    exploration: Exploration

    def __post_init__(self) -> None:
        if not self.phases and self.trigger != Never():
            raise InputError("a trigger that may fire needs phases to run; give phases, or the trigger Never()")

    @property
    def forgets_departed(self) -> bool:
        """True when a sync makes the belief anew from the members' histories."""
        return any(phase.replaces for phase in self.phases)
