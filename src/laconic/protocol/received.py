"""Beliefs that came from elsewhere: checked before anything is built of them, and before they are installed."""

from __future__ import annotations

import math

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs import Belief, ExactBelief, restored
from laconic.checks import MOST
from laconic.errors import InputError, KernelError, RemoteProtocolError
from laconic.protocol.messages import Payload
from laconic.protocol.phases import check_statistics


def expect_shapes(arrays: dict[str, Floats], shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse arrays that have other names or shapes than these."""
    seen = {name: array.shape for name, array in arrays.items()}
    if seen != shapes:
        raise RemoteProtocolError(f"for another plan, or damaged: arrays of shapes {seen} instead of {shapes}")


def belief_of(template: Belief, arrays: dict[str, Floats]) -> Belief:
    """The belief of these arrays, with the kernel and λ of the plan's belief, or `RemoteProtocolError`."""
    if isinstance(template, ExactBelief) and "dictionary" not in arrays:
        _check_exact(template, arrays)
    else:
        _check_finite(template, arrays)
    if not all((np.abs(array) < MOST).all() for array in arrays.values()):
        raise RemoteProtocolError(f"a belief with a number beyond ±{MOST:g}, or with one that is not finite")
    with np.errstate(all="ignore"):
        try:
            return sound(restored(template, arrays))
        except InputError as error:
            raise RemoteProtocolError(f"for another plan, or damaged: {error}") from None


def sound(belief: Belief) -> Belief:
    """The belief, which must be fit to predict with: it is about to be installed."""
    try:
        is_finite = belief.is_finite if isinstance(belief, ExactBelief) else math.isfinite(belief.information)
    except KernelError as error:
        raise RemoteProtocolError(f"the new belief cannot be factored: {error}") from None
    if not is_finite:
        raise RemoteProtocolError("the new belief overflows; rescale features and rewards to moderate sizes")
    return belief


def _check_exact(template: ExactBelief, arrays: dict[str, Floats]) -> None:
    rows, steps = _length(arrays, "points"), _length(arrays, "growth")
    shapes = {"points": (rows, template.dim), "counts": (rows,), "sums": (rows,), "growth": (steps,)}
    expect_shapes(arrays, shapes)
    growth, counts = arrays["growth"], arrays["counts"]
    if not ((growth >= 1) & (growth == np.floor(growth))).all() or growth.sum() != rows:
        raise RemoteProtocolError(f"{rows} points cannot have come in steps of {growth[:5]} …")
    if not ((counts >= 1) & (counts == np.floor(counts))).all():
        raise RemoteProtocolError("a point was counted less than once")


def _check_finite(template: Belief, arrays: dict[str, Floats]) -> None:
    rank = _length(arrays, "moment")
    shapes = {"gram": (rank, rank), "moment": (rank,), "totals": (2,)}
    if template.dictionary_size is not None or isinstance(template, ExactBelief):
        shapes["dictionary"] = (rank, template.dim)
    elif rank != template.rank:
        raise RemoteProtocolError(f"for another plan: {rank} coordinates instead of {template.rank}")
    expect_shapes(arrays, shapes)
    prior, count = (float(total) for total in arrays["totals"])
    sums = Payload(
        values={"gram": arrays["gram"], "moment": arrays["moment"]}, control={"prior": prior, "count": count}
    )
    check_statistics(sums, rank)


def _length(arrays: dict[str, Floats], name: str) -> int:
    array = arrays.get(name)
    return 0 if array is None or array.ndim == 0 else len(array)
