"""The edge between problems and runtimes: a round that cannot be played is refused before any client sees it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from laconic.arrays import Bools, Floats
from laconic.checks import any_array, first_non_finite, real_array, require_no_grid, require_seed, require_sizes, seen
from laconic.errors import InputError, ProblemError
from laconic.problems.base import Round

SHARED = "that of arms without its features"


def check_round(met: Round, *, index: int, clients: int, dim: int) -> Round:
    """The round in float64, missing arms standing in for others, or a ProblemError that says where it is wrong."""
    if not isinstance(met, Round):
        raise ProblemError(
            f"round {index}: round(index) must return a Round, got {seen(met)}; try Round(arms, means=…, rewards=…)"
        )
    try:
        checked = check_rows(met.arms, means=met.means, rewards=met.rewards, mask=met.mask, row="client")
        _expect("arms", checked.arms.shape, (clients, checked.arms.shape[1], dim), axes="(clients, arms, dim)")
        if met.revealed is not None:
            _expect("revealed", met.revealed.shape, checked.rewards.shape, axes=SHARED)
    except InputError as error:
        raise ProblemError(f"round {index}: {error}") from None
    return checked if met.revealed is None else replace(checked, revealed=met.revealed)


def check_rows(arms: object, *, means: object, rewards: object, mask: object, row: str) -> Round:
    """The same checks for any table of arm sets, where a row is a client of a round or a step of a log."""
    x = real_array("arms", arms, ndim=3)
    if 0 in x.shape:
        raise InputError(f"arms has shape {x.shape}, so there is nothing to choose; try one arm of one feature or more")
    f = _fitting("means", means, shape=x.shape[:2])
    y = _fitting("rewards", rewards, shape=x.shape[:2])
    exists = _mask(mask, shape=x.shape[:2], row=row)
    if exists is not None:  # what does not exist may hold anything: a kernel sees the first arm of the row that does
        there = np.arange(len(x)), exists.argmax(axis=1)
        x = np.where(exists[:, :, None], x, x[there][:, None])
        f, y = np.where(exists, f, 0.0), np.where(exists, y, 0.0)
    for name, values in (("arms", x), ("means", f), ("rewards", y)):
        _refuse_non_finite(name, values, row=row)
    return Round(x, means=f, rewards=y, mask=exists)


def check_opening(*, seed: int, clients: int, rounds: int) -> None:
    """Refuse the sizes and seeds that no instance has."""
    require_no_grid(seed=seed, clients=clients, rounds=rounds)
    require_seed("seed", seed)
    require_sizes(clients=clients, rounds=rounds)


def _fitting(name: str, value: object, *, shape: tuple[int, ...]) -> Floats:
    array = real_array(name, value, ndim=len(shape))
    _expect(name, array.shape, shape, axes=SHARED)
    return array


def _expect(name: str, shape: tuple[int, ...], needed: tuple[int, ...], *, axes: str) -> None:
    if shape != needed:
        raise InputError(f"{name} has shape {shape}, but {needed} is needed: {axes}")


def _mask(value: object, *, shape: tuple[int, ...], row: str) -> Bools | None:
    if value is None:
        return None
    array = any_array("mask", value)
    if array.dtype.kind not in "biu":
        raise InputError(f"mask holds {array.dtype}; try booleans, or whole numbers 0 and 1")
    _expect("mask", array.shape, shape, axes=SHARED)
    odd = array[(array != 0) & (array != 1)]
    if odd.size:
        raise InputError(f"mask holds {odd[0]}; try booleans, or whole numbers 0 and 1")
    some = array.any(axis=1)
    if not some.all():
        raise InputError(
            f"mask leaves {row} {int(np.argmin(some))} (counted from 0) without an arm; try one arm or more"
        )
    return None if array.all() else array.astype(np.bool_)


def _refuse_non_finite(name: str, values: Floats, *, row: str) -> None:
    where = first_non_finite(values)
    if where is not None:
        raise InputError(
            f"{name}{list(where)} is {values[where]} ({row} {where[0]} counted from 0);"
            " try finite numbers, or a mask without this arm"
        )
