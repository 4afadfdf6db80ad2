"""Results as data frames of pandas and polars: one line for each run, one column for each parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from laconic.errors import InputError

if TYPE_CHECKING:
    from laconic.experiments.grid import Setting
    from laconic.experiments.results import Results

#: What JSON has no number for, as parameters write it.
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_pandas(results: Results) -> Any:
    """A ``pandas.DataFrame``."""
    return _package("pandas").DataFrame(columns(results))


def to_polars(results: Results) -> Any:
    """A ``polars.DataFrame``."""
    return _package("polars").DataFrame(columns(results))


def columns(results: Results) -> dict[str, list[Any]]:
    """What was played and by whom, the parameters, and what came of it.

    A parameter whose name another column has is under ``params.NAME``.
    """
    plain = [row.as_dict() for row in results.rows]
    said = {"problem": results.problem, "clients": results.clients, "rounds": results.rounds}
    first = {name: [value] * len(plain) for name, value in said.items()}
    measured = [name for name in (plain[0] if plain else ()) if name not in ("algorithm", "params", "seed")]
    taken = {*first, "algorithm", "seed", *measured}
    names = dict.fromkeys(name for row in results.rows for name in row.params)
    return (
        first
        | {"algorithm": [each["algorithm"] for each in plain]}
        | {f"params.{name}" if name in taken else name: parameter(results, name) for name in names}
        | {"seed": [each["seed"] for each in plain]}
        | {name: [_told(each[name]) for each in plain] for name in measured}
    )


def parameter(results: Results, name: str) -> list[Any]:
    """One parameter of every run, None where it has none; all numbers, all true or false, or else all text."""
    values = [row.params.get(name) for row in results.rows]
    numbers = [_number(value) for value in values]
    if all(number is not None or value is None for number, value in zip(numbers, values, strict=True)):
        kind = float if any(isinstance(number, float) for number in numbers) else int
        return [None if number is None else kind(number) for number in numbers]
    if all(isinstance(value, bool | None) for value in values):
        return list(values)
    return [None if value is None else str(value) for value in values]


def _number(value: Setting) -> float | int | None:
    if isinstance(value, str):
        return WORDS.get(value)
    return None if isinstance(value, bool) else value


def _told(value: Any) -> Any:
    """Reasons with their counts as text, so that every frame takes them."""
    return ", ".join(f"{why}: {count}" for why, count in value.items()) if isinstance(value, dict) else value


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        others: Sequence[str] = [each for each in ("pandas", "polars") if each != name]
        raise InputError(
            f"{name} is not installed; try: pip install {name}, or to_{others[0]}(), or pyarrow.table(results)"
        ) from None
