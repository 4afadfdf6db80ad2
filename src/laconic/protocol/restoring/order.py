"""What restoring either side needs: records in order, and a plan that is still the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from laconic.beliefs import Belief
from laconic.canonical import table_from
from laconic.errors import LaconicError, PlanMismatch, RemoteProtocolError
from laconic.protocol.difference import difference
from laconic.protocol.plan import Plan
from laconic.protocol.records import Record


def require_same_plan(plan: Plan, ours: bytes, saved: bytes) -> None:
    """Refuse a state that was saved under another plan, and say what differs."""
    said = None if saved == ours else difference(plan.table, table_from(saved))
    if said is not None:
        raise PlanMismatch(f"this state was saved under another plan: {said}")


@contextmanager
def naming(place: int, record: Record) -> Iterator[None]:
    """Say which record does not follow from those before it."""
    try:
        yield
    except PlanMismatch:
        raise
    except (LaconicError, KeyError, IndexError, ValueError, TypeError) as error:
        said = f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)
        raise RemoteProtocolError(
            f"record {place}, {type(record).__name__}: {said}; give records as they were kept, each once and in order"
        ) from error


def require_order(follows: bool, why: str) -> None:
    """Refuse a record that does not follow from those before it."""
    if not follows:
        raise RemoteProtocolError(f"{why}, so records are repeated, missing or out of order")


def saved_belief(plan: Plan, arrays: dict[str, Any]) -> Belief:
    """The belief of these arrays, of the kind that the plan has."""
    return plan.belief.from_arrays(arrays)
