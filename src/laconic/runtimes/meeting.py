"""What clients meet in a run: rounds and kernels that cannot be played are refused before any client sees them."""

from __future__ import annotations

from laconic.algorithms import Algorithm
from laconic.beliefs import require_moderate
from laconic.errors import InputError, ProblemError
from laconic.kernels import as_kernel, require_positive_definite
from laconic.problems.base import Instance, Round
from laconic.problems.rounds import check_round
from laconic.protocol.plan import Plan

#: So many arms of the first round are tried with a kernel.
SAMPLE = 100


def met(plan: Plan, instance: Instance, *, index: int, clients: int) -> Round:
    """A round of an instance, with arms and rewards that the plan's belief can compute with."""
    round_ = check_round(instance.round(index), index=index, clients=clients, dim=instance.dim)
    require_within(plan, round_, index=index)
    return round_


def require_within(plan: Plan, round_: Round, *, index: int) -> None:
    """Refuse a round that is beyond the precision of the plan's belief."""
    try:
        require_moderate(plan.belief, round_.arms.reshape(-1, round_.arms.shape[2]), round_.rewards)
    except InputError as error:
        raise ProblemError(f"round {index}: {error}") from None


def require_kernel(algorithm: Algorithm, first: Round) -> None:
    """Refuse an algorithm whose kernel is none on the arms of a problem's first round."""
    kernel = getattr(algorithm, "kernel", None)
    if kernel is not None:
        arms = first.arms.reshape(-1, first.arms.shape[2]) if first.mask is None else first.arms[first.mask]
        require_positive_definite(as_kernel(kernel), arms[:SAMPLE])
