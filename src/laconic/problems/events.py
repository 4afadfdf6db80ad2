"""Logs of decisions: which arms were shown, which was chosen, with which probability, and what it paid.

| column | what |
|---|---|
| step, client | t = 1 … NT, and who decided |
| context | the features in which the arms of no set differ, apart from the others |
| arms | all features of every arm shown |
| chosen | the place of the chosen arm among them, from 0 |
| propensity | the probability with which it was chosen |
| propensity_error | the standard error of that, 0 where it is exact |
| reward | what it paid |
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.checks import MOST, first_non_finite
from laconic.errors import InputError, OutputError, ProblemError
from laconic.paths import is_there, own_path

#: Columns without which events cannot be replayed.
NEEDED = ("arms", "chosen", "propensity", "reward")


@dataclass(frozen=True, eq=False, kw_only=True)
class Events:
    """Decisions in order; arms that a set has fewer of than the largest are not there.

    Args:
        arms: Features of all arms shown, (n, A, d), with A the size of the largest set.
        there: Which of these arms there are, (n, A).
        chosen: Place of the chosen arm among those that are there, from 0, (n,).
        propensity: Probability with which it was chosen, above 0 and at most 1, (n,); NaN where it is not known. Where
            there were several arms, an event can be replayed only if it is below 1.
        reward: What it paid, (n,).
    """

    arms: Floats
    there: Bools
    chosen: Ints
    propensity: Floats
    reward: Floats

    def __len__(self) -> int:
        return len(self.reward)

    @cached_property
    def column(self) -> Ints:
        """Where the chosen arm is among all A."""
        place = np.cumsum(self.there, axis=1) - 1
        return np.asarray(((place == self.chosen[:, None]) & self.there).argmax(axis=1))

    @cached_property
    def sha256(self) -> str:
        """A hash of all that is replayed."""
        digest = hashlib.sha256()
        for array in (self.arms, self.there, self.chosen, self.propensity, self.reward):
            digest.update(f"{array.dtype.kind}{array.shape}".encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return digest.hexdigest()


def event_table(events: Events, *, errors: Floats, clients: Ints) -> Any:
    """Events as an Arrow table, a row each.

    Args:
        events: The decisions to put down.
        errors: Standard error of each propensity, (n,), at least 0; 0 where it is exact.
        clients: Number of the client that decided, from 0, (n,).
    """
    import pyarrow as pa  # slow to import

    sizes, dim = events.there.sum(axis=1), events.arms.shape[2]
    arms = events.arms[events.there].reshape(sizes.sum(), dim)  # also where there are none
    columns = {
        "step": pa.array(np.arange(1, len(events) + 1)),
        "client": pa.array(clients.astype(np.int32)),
        "context": _lists(_context(events)),
        "arms": pa.ListArray.from_arrays(_offsets(sizes), _lists(arms)),
        "chosen": pa.array(events.chosen.astype(np.int32)),
        "propensity": pa.array(events.propensity),
        "propensity_error": pa.array(errors),
        "reward": pa.array(events.reward),
    }
    return pa.table(columns)


def _context(events: Events) -> Floats:
    """The features in which the arms of no set differ."""
    first = np.take_along_axis(events.arms, events.there.argmax(axis=1)[:, None, None], axis=1)
    alike = ((events.arms == first) | ~events.there[:, :, None]).all(axis=(0, 1))
    return np.asarray(first[:, 0, alike])


def _lists(rows: Floats) -> Any:
    """Rows as lists of numbers."""
    import pyarrow as pa

    values = pa.array(np.ascontiguousarray(rows).ravel())
    return pa.ListArray.from_arrays(_offsets(np.full(len(rows), rows.shape[1])), values)


def _offsets(sizes: Ints) -> Any:
    import pyarrow as pa

    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))


def write_events(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a table of events as Parquet.

    Args:
        table: An Arrow table, as `event_table` makes it.
        path: The file to write; an earlier one is replaced.
    """
    import pyarrow.parquet as pq

    try:
        pq.write_table(table, os.fspath(path))
    except OSError as error:
        raise OutputError(f"{os.fspath(path)} cannot be written ({error.strerror}); try another folder") from None


def read_events(path: str | os.PathLike[str]) -> Events:
    """The events in a Parquet file; what cannot be replayed is refused, with the row where there is one.

    Args:
        path: The Parquet file, with the columns arms, chosen, propensity and reward; others are not looked at.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = str(own_path("path", path))
    if not is_there(name):
        raise ProblemError(f"there is no file {name!r}; try the path of a Parquet file that Run.log wrote")
    try:
        table = pq.read_table(name)
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or "it is no Parquet file"
        raise ProblemError(f"{name} cannot be read ({why}); try a file that Run.log wrote") from None
    try:
        return events_of(table)
    except InputError as error:
        raise ProblemError(f"{name}: {error}") from None


def events_of(table: Any) -> Events:
    """The events in an Arrow table, checked."""
    for column in NEEDED:
        if column not in table.column_names:
            raise InputError(f"there is no column {column!r}{_why(column)}; it has {', '.join(table.column_names)}")
    if table.num_rows == 0:
        raise InputError("it holds no events")
    arms, there = _sets(table["arms"].combine_chunks())
    places, reward = _numbers(table, "chosen"), _numbers(table, "reward")
    propensity = _numbers(table, "propensity", missing=True)
    _require(places == np.floor(places), "chosen", "is no whole number", places)
    _require((places >= 0) & (places < there.sum(axis=1)), "chosen", "is the place of no arm of its set", places)
    _require(np.abs(reward) < MOST, "reward", f"is no number below {MOST:g} in size", reward)
    _check_propensities(propensity, sizes=there.sum(axis=1))
    chosen = places.astype(np.int64)
    for array in (arms, there, chosen, propensity, reward):
        array.flags.writeable = False  # no player can change a log
    return Events(arms=arms, there=there, chosen=chosen, propensity=propensity, reward=reward)


def _check_propensities(propensity: Floats, *, sizes: Ints) -> None:
    """Refuse events that cannot be weighed; where there was but one arm, nothing need be known."""
    several = sizes > 1
    _require(~(several & np.isnan(propensity)), "propensity", "is missing", propensity)
    _require(~(several & (propensity <= 0)), "propensity", "is no probability of something that happened", propensity)
    _require(~(propensity > 1 + 1e-9), "propensity", "is above 1", propensity)
    certain = several & (propensity >= 1)
    if certain.any():
        row = int(np.argmax(certain))
        raise InputError(
            f"propensity is 1 in row {row} (counted from 0), where there were {sizes[row]} arms: the others had no "
            "chance, so nothing is known of whoever prefers them; log with EpsilonFloor, Softmax or Thompson"
        )


def _why(column: str) -> str:
    return ", without which agreement with the log says nothing" if column == "propensity" else ""


def _require(holds: Bools, column: str, broken: str, values: Floats | Ints) -> None:
    if not holds.all():
        row = int(np.argmin(holds))
        raise InputError(f"{column} {broken} in row {row} (counted from 0): {values[row]:g}")


def _numbers(table: Any, column: str, *, missing: bool = False) -> Floats:
    """A column of numbers; NaN where one is missing, if it may be."""
    values = table[column]
    if values.null_count and not missing:
        raise InputError(f"{column} is missing in {values.null_count} rows")
    if values.null_count < len(values) and not _is_numeric(values.type):
        raise InputError(f"{column} holds {values.type}, not numbers; try to store it as numbers")
    return np.array(values.to_numpy(), dtype=np.float64)


def _is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers; True and False count as 1 and 0."""
    from pyarrow import types

    which = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    return any(is_such(kind) for is_such in which)


def _sets(column: Any) -> tuple[Floats, Bools]:
    """Lists of lists of numbers as one array, and which of its arms there are."""
    if not _is_lists_of_numbers(column.type, depth=2):
        raise InputError(f"arms holds {column.type}, not lists of lists of numbers")
    rows = np.arange(len(column))
    sizes = _lengths(column, "the set of arms", rows)
    _require(sizes > 0, "arms", "is empty", sizes)
    rows = np.repeat(rows, sizes)
    widths = _lengths(column.flatten(), "an arm", rows)
    if len(set(widths.tolist())) != 1 or widths[0] == 0:
        raise InputError(f"arms have {sorted(set(widths.tolist()))} features; give every arm as many, one or more")
    values = np.array(column.flatten().flatten(), dtype=np.float64)  # NaN where one is missing
    values = values.reshape(-1, int(widths[0]))
    odd = first_non_finite(values)
    if odd is not None:
        raise InputError(
            f"an arm in row {rows[odd[0]]} (counted from 0) has the feature {values[odd]:g}; "
            f"try finite numbers below {MOST:g} in size"
        )
    there = np.arange(sizes.max()) < sizes[:, None]
    arms = np.zeros((*there.shape, values.shape[1]))
    arms[there] = values
    return arms, there


def _is_lists_of_numbers(kind: Any, *, depth: int) -> bool:
    """Whether an Arrow type is that of lists within lists, so many deep, of numbers."""
    from pyarrow import types

    if depth == 0:
        return _is_numeric(kind)
    is_list = any(is_such(kind) for is_such in (types.is_list, types.is_large_list, types.is_fixed_size_list))
    return is_list and _is_lists_of_numbers(kind.value_type, depth=depth - 1)


def _lengths(column: Any, what: str, rows: Ints) -> Ints:
    """How long each list of a column is; refused where one is missing, with the row it is of."""
    import pyarrow.compute as pc

    if column.null_count:
        row = rows[int(np.argmax(np.asarray(column.is_null())))]
        raise InputError(f"{what} is missing in row {row} (counted from 0)")
    return np.asarray(pc.list_value_length(column), dtype=np.int64)
