"""Results as Arrow tables and Parquet files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laconic.checks import require_seed
from laconic.errors import InputError
from laconic.experiments.certified import QUANTITIES, SUMMARY, Certified
from laconic.experiments.files import replace_file
from laconic.experiments.grid import finite
from laconic.experiments.results import Curve, Results, Row, Tuning
from laconic.release import __version__

if TYPE_CHECKING:
    from os import PathLike

KEY = b"laconic.results"
WRITER = b"laconic.writer"
NAME = b"laconic.name"
FORMAT = 3  # 1 had nothing of certificates, 2 nothing of replays
SCHEMA = pa.schema(
    [
        pa.field("algorithm", pa.string(), nullable=False),
        pa.field("params", pa.string(), nullable=False),  # JSON: parameters differ between algorithms
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("regret", pa.float64(), nullable=False),
        pa.field("scalars", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("messages", pa.int64(), nullable=False),
        pa.field("syncs", pa.int64(), nullable=False),
        pa.field("dictionary", pa.int64()),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("curve_t", pa.list_(pa.int64()), nullable=False),
        pa.field("curve_regret", pa.list_(pa.float64()), nullable=False),
        pa.field("curve_scalars", pa.list_(pa.int64()), nullable=False),
        pa.field("curve_syncs", pa.list_(pa.int64()), nullable=False),
        pa.field("curve_dictionary", pa.list_(pa.int64()), nullable=False),
        pa.field("events", pa.int64()),
        pa.field("reward", pa.float64()),
        pa.field("versions", pa.int64()),
        pa.field("atoms", pa.int64()),
        pa.field("d_eff", pa.float64()),
        pa.field("kappa", pa.float64()),
        pa.field("kappa_max", pa.float64()),
        pa.field("e_hi", pa.float64()),
        pa.field("beta", pa.float64()),
        pa.field("fallbacks", pa.int64()),
        pa.field("fallback_reasons", pa.string()),  # JSON: why, and how often
        *(
            pa.field(f"version_{name}", pa.list_(pa.from_numpy_dtype(kind)), nullable=False)
            for name, kind in QUANTITIES.items()
        ),
    ]
)
ABOUT = ("problem", "problem_params", "clients", "rounds", "dim")


def to_arrow(results: Results) -> pa.Table:
    """One line for each run; what the runs share is in the schema's metadata."""
    for row in results.rows:
        require_seed("seed", row.seed)
    about = {"format": FORMAT} | {name: getattr(results, name) for name in ABOUT}
    if results.tuning is not None:
        about["tuning"] = {"metric": results.tuning.metric, "over": dict(results.tuning.over)}
    schema = SCHEMA.with_metadata({KEY: _json(about).encode(), WRITER: _json(_writer()).encode()})
    return pa.Table.from_pylist([_record(row) for row in results.rows], schema=schema)


def _record(row: Row) -> dict[str, Any]:
    plain, curve = row.as_dict(), {f"curve_{each.name}": getattr(row.curve, each.name) for each in fields(Curve)}
    versions = {f"version_{name}": getattr(row.certified, name) for name in QUANTITIES}
    reasons = None if plain["fallback_reasons"] is None else _json(plain["fallback_reasons"])
    return plain | {"params": _json(row.params), "fallback_reasons": reasons} | curve | versions


def _json(value: object) -> str:
    return json.dumps(finite(value), allow_nan=False)


@cache
def _writer() -> dict[str, str]:
    """What last digits may depend on, so that files which differ can be told apart."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    named = f"{blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip()
    return {"laconic": __version__, "numpy": np.__version__, "blas": named}


def from_arrow(table: pa.Table) -> Results:
    """The results that `to_arrow` laid out."""
    about = json.loads(table.schema.metadata[KEY])
    if about.pop("format") > FORMAT:
        raise InputError("these results were written by a newer laconic; update it to read them")
    tuned = about.pop("tuning", None)
    tuning = tuned and Tuning(tuned["metric"], over={name: tuple(over) for name, over in tuned["over"].items()})
    return Results(**about, rows=tuple(map(_row, table.to_pylist())), tuning=tuning)


def _row(record: dict[str, Any]) -> Row:
    certified = _certified(record)
    curve = Curve(**{each.name: np.array(record.pop(f"curve_{each.name}")) for each in fields(Curve)})
    return Row(**record | {"params": json.loads(record["params"])}, curve=curve, certified=certified)


def _certified(record: dict[str, Any]) -> Certified:
    """Take what is said of versions out of a record; what sums it up follows from it."""
    arrays = {name: np.array(record.pop(f"version_{name}", []), dtype=kind) for name, kind in QUANTITIES.items()}
    summary = {name: record.pop(name, None) for name in SUMMARY}
    return Certified(**arrays, reasons=json.loads(summary["fallback_reasons"] or "{}"))


@dataclass(frozen=True)
class Named:
    """Results, and what they were called when they were written; nothing where nobody said."""

    results: Results
    name: str


def write(results: Results, path: str | PathLike[str], *, name: str = "") -> None:
    """Replace the file by these results, which carry a name of their own whatever the file is called."""
    table = to_arrow(results)
    if name:
        table = table.replace_schema_metadata({**table.schema.metadata, NAME: name.encode()})
    replace_file(Path(path), lambda temporary: pq.write_table(table, temporary, write_page_checksum=True))


def read(path: str | PathLike[str]) -> Results:
    """The results in a Parquet file."""
    return read_named(path).results


def read_named(path: str | PathLike[str]) -> Named:
    """The results in a Parquet file, with their name."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    except pa.ArrowInvalid:
        raise InputError(f"{os.fspath(path)} is not a Parquet file") from None
    if KEY not in (table.schema.metadata or {}):
        raise InputError(f"{os.fspath(path)} holds no results of laconic")
    return Named(from_arrow(table), name=table.schema.metadata.get(NAME, b"").decode())
