"""A sample from a file: ``.npz``, ``.csv`` or ``.parquet``."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from laconic.arrays import Floats
from laconic.checks import MOST
from laconic.datasets.tables import Numbers, Shape, own_source, read_table, sniff_table
from laconic.errors import InputError, LaconicError
from laconic.paths import is_file, own_path
from laconic.suggestion.sample import Sample

REWARD = "reward"
#: Names under which an archive holds its points and rewards.
POINTS, REWARDS = ("X", "x", "features", "points"), ("y", "reward", "rewards")
KINDS = (".npz", ".csv", ".parquet")


def read_sample(path: str | PathLike[str], *, reward: str | None = None) -> Sample:
    """The points of a file, and its rewards where it has a column ``reward``, or the one that is named.

    An archive holds X (n × d) and perhaps y (n); a table has one column for each feature.
    """
    file = own_path("file", path)
    if not is_file(file):
        raise InputError(f"there is no file {file}; try the path of an {', '.join(KINDS[:-1])} or {KINDS[-1]} file")
    kind = file.suffix.lower()
    if kind not in KINDS:
        raise InputError(f"{file} is not a table that can be read; try {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    try:
        if kind == ".npz":
            return replace(_archive(file, reward=reward), file=file.name)
        columns = _csv(file) if kind == ".csv" else _parquet(file)
        return replace(_table(columns, reward=reward), file=file.name)
    except LaconicError as error:
        message = str(error)
        raise InputError(message if str(file) in message else f"{file}: {message}") from None


def _archive(file: Path, *, reward: str | None) -> Sample:
    if not zipfile.is_zipfile(file):
        raise InputError(f"{file} is not a readable .npz archive; try numpy.savez(path, X=X, y=y)")
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except Exception as error:  # damaged bytes surface as a dozen types
        raise InputError(f"{file} is not a readable .npz archive ({' '.join(str(error).split())[:100]})") from None
    points = next((name for name in POINTS if name in held), None)
    if points is None:
        raise InputError(f"it holds {', '.join(held) or 'nothing'}, but no points; try an array X of rows, perhaps y")
    wanted = next((name for name in REWARDS if name in held), None) if reward is None else reward
    if wanted is not None and wanted not in held:
        raise InputError(f"it has no array {wanted!r}; it holds {', '.join(held)}")
    return Sample(held[points], None if wanted is None else held[wanted])


def _table(columns: Mapping[str, Floats], *, reward: str | None) -> Sample:
    """Features and rewards by column; without a name the column called reward is, where there is one."""
    if reward is not None and reward not in columns:
        raise InputError(f"it has no column {reward!r}; it has {', '.join(columns)}")
    wanted = reward or (REWARD if REWARD in columns else None)
    features = {name: values for name, values in columns.items() if name != wanted}
    if not features:
        raise InputError("it has rewards but no features; try one column for each feature")
    for name, values in columns.items():
        odd = np.flatnonzero(~(np.abs(values) < MOST))
        if len(odd):
            raise InputError(f"column {name} is {values[odd[0]]} in row {odd[0] + 1}; mend or leave out such rows")
    rewards = None if wanted is None else columns[wanted]
    return Sample(np.column_stack(list(features.values())), rewards, columns=tuple(features))


def _csv(file: Path) -> dict[str, Floats]:
    source = own_source(str(file))
    separator, (first, *_) = sniff_table(source, single=True)
    header = not any(_is_number(field) for field in first)
    names = first if header else [str(number) for number in range(1, len(first) + 1)]
    if len(set(names)) < len(names):
        raise InputError("two of its columns have the same name; rename one")
    shape = Shape(separator, header=header, words=frozenset(), used=tuple(range(len(names))), width=len(names))
    read = read_table([source], shape=shape, names=names, advice=", or leaving it out")
    return _numbers({each.name: each.values if isinstance(each, Numbers) else None for each in read})


def _parquet(file: Path) -> dict[str, Floats]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} is not a readable Parquet file ({' '.join(str(error).split())[:100]})") from None
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise InputError(f"column {field.name} holds {field.type}, not numbers; try a column a feature")
    return _numbers({name: _floats(table.column(name).to_numpy()) for name in table.column_names})


def _floats(values: np.ndarray) -> Floats | None:
    return values.astype(np.float64) if values.dtype.kind in "biuf" else None


def _numbers(columns: Mapping[str, Floats | None]) -> dict[str, Floats]:
    words = [name for name, values in columns.items() if values is None]
    if words:
        raise InputError(f"column {words[0]} holds words, not numbers; leave it out, or encode it as numbers")
    return {name: values for name, values in columns.items() if values is not None}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_sample(path: str) -> bool:
    """Whether a name is that of a file with a sample, and not of a problem or of a log of one."""
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        return False
    return not _is_recorded(path) if kind == ".npz" else not (kind == ".parquet" and _is_events(path))


def _is_recorded(path: str) -> bool:
    """Whether an archive holds arms with the mean of each."""
    try:
        with zipfile.ZipFile(own_path("file", path)) as archive:
            return {"arms.npy", "means.npy", "noise.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _is_events(path: str) -> bool:
    """Whether a table holds decisions, as ``Run.log`` writes them."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return {"arms", "chosen"} <= set(parquet.read_schema(own_path("file", path)).names)
    except (OSError, pa.ArrowException):
        return False
