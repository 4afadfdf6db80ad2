"""A plan is what an algorithm comes to for arms of a given dimension: belief × trigger × exchange × exploration."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from laconic.arrays import Floats
from laconic.beliefs import Belief
from laconic.canonical import FORMAT, Table, canonical, fingerprint, parts
from laconic.checks import seen
from laconic.errors import InputError
from laconic.exploration import UCB, Confidence, Exploration, require_exploration
from laconic.protocol.digests import Digest
from laconic.protocol.phases import Phase
from laconic.protocol.wire import EXACT, FloatWire, Wire
from laconic.triggers import Never, Trigger, counts_bytes
from laconic.uploads import UploadRule, WithAsk


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The parts that a client and a server run on.

    With ``phases`` knowledge is exchanged together, in syncs of all members. With a ``digest`` each client alone sends
    its points up and is sent a digest of everybody's.

    Args:
        belief: What is known before any data: kernel, λ and number of features.
        trigger: When a client asks for an exchange.
        phases: The steps of a sync in which all members take part; empty where each client exchanges alone, or nobody
            does.
        digest: What a client that exchanges alone is sent; None where all take part, or nobody does.
        confidence: α, by which widths are multiplied: Fixed(0.2), or what Theory() stands for, which depends on the
            belief: ExactTheory(Theory()) or NystromTheory(Theory()).
        exploration: How an arm is chosen given means and widths.
        wire: How points and rewards travel, and so how they are rounded before anybody learns from them.
        upload: When a client that exchanges alone sends its points without asking for anything.
    """

    belief: Belief
    trigger: Trigger
    phases: tuple[Phase, ...] = ()
    digest: Digest | None = None
    confidence: Confidence
    exploration: Exploration = field(default_factory=UCB)
    wire: Wire = field(default_factory=FloatWire)
    upload: UploadRule = field(default_factory=WithAsk)

    def __post_init__(self) -> None:
        require_exploration(self.exploration)
        if not isinstance(self.confidence, Confidence):
            raise InputError(f"confidence must have a method coefficient, not {seen(self.confidence)}; try Fixed(1.0)")
        if self.phases and self.digest is not None:
            raise InputError("a plan has phases or a digest, not both; give one of them")
        if not self.exchanges and self.trigger != Never():
            raise InputError("a trigger that may fire needs phases or a digest; give one, or the trigger Never()")
        if self.phases and counts_bytes(self.trigger):
            raise InputError("a trigger that looks at bytes needs a digest: in a sync all pay for what one asks")
        for phase in self.phases:
            if phase.rounding not in (EXACT, self.wire):
                raise InputError(f"{phase.name} sends {phase.rounding}, and the plan's wire is {self.wire}; give one")

    @property
    def exchanges(self) -> bool:
        """True when anything is ever sent."""
        return bool(self.phases) or self.digest is not None

    def rounded(self, points: Floats, rewards: Floats) -> tuple[Floats, Floats]:
        """Points and rewards as they would travel, and so as clients learn from them.

        Args:
            points: Points, (m, d), finite.
            rewards: Rewards, finite.
        """
        return self.wire.rounded(points, rewards, kernel=self.belief.metric(), lam=self.belief.lam)

    @property
    def forgets_departed(self) -> bool:
        """True when a sync makes the belief anew from the members' histories."""
        return any(phase.replaces for phase in self.phases)

    @cached_property
    def table(self) -> Table:
        """All that decides a result, by name: the parameters of the belief before any data, and of every other part."""
        others = {name: part for name, part in parts(self).items() if name != "belief"}
        return canonical({"format": FORMAT, **self.belief.parameters, **others}, dim=self.belief.dim)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the table: plans with the same one are the same."""
        return fingerprint(self.table)


def require_plan(plan: object) -> None:
    """A plan, and not the algorithm that it is made from."""
    if callable(getattr(plan, "plan", None)):
        name = plan.__name__ if isinstance(plan, type) else type(plan).__name__
        raise InputError(
            f"a plan is wanted, got the algorithm {seen(plan)}; try {name}(…).plan(dim), for arms of dim features"
        )
    if not isinstance(plan, Plan):
        raise InputError(
            f"plan must be what an algorithm's plan(dim) gives, not {seen(plan)}; try DisKernelUCB().plan(2)"
        )
