"""Ratings (user, item, value) from the publishers' formats and from anyone's, a block of the file at a time."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.checks import MOST, first_non_finite
from laconic.datasets.cache import Source, zip_members
from laconic.datasets.layout import ROLES, SPACE, Layout, named_columns, rows, short, sniff_layout, to_number
from laconic.datasets.streams import ZIP, head, magic, opened
from laconic.errors import ProblemError
from laconic.paths import is_there, own_path

Codes = NDArray[np.int32]

PARQUET = b"PAR1"
KNOWN_MEMBERS = ("ratings.csv", "ratings.dat", "u.data", "yelp_academic_dataset_review.json")
BLOCK_BYTES = 1 << 24
BLOCK_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class Triples:
    """One rating a row, users and items numbered in the order in which they first appear."""

    users: Codes
    items: Codes
    ratings: Floats
    n_users: int
    n_items: int
    style: str  # the separator of a table, "json" or "parquet"

    def __len__(self) -> int:
        return len(self.ratings)


@dataclass(frozen=True, eq=False)
class _Column:
    """Names and, where a reader found the distinct ones itself, which of them each row has."""

    names: Sequence[str]
    index: Codes | None = None


_Block = tuple[_Column, _Column, Floats]


class _LookCloserError(Exception):
    """The fast reader met something that the careful one must judge."""


def ratings_source(file: str | Path) -> Source:
    """A user's file as a source: of a zip archive the member that holds the ratings."""
    path = own_path("file", file)
    if not is_there(path):
        raise ProblemError(f"there is no file {path}")
    if not magic(Source(path)).startswith(ZIP):
        return Source(path)
    members = zip_members(path)
    known = [member for member in members if PurePosixPath(member).name in KNOWN_MEMBERS]
    if len(known) == 1 or len(members) == 1:
        return Source(path, member=(known or members)[0])
    raise ProblemError(f"{path} holds {len(members)} files; try unpacking it and giving the one with the ratings")


def read_triples(source: Source, *, columns: str | None = None) -> Triples:
    """All ratings of a file; CSV, TSV, ``::``, JSON lines or Parquet is told from its content."""
    start = head(source)
    if start.startswith(PARQUET):
        return _gather(_parquet_blocks(source, columns), source=source, style="parquet")
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return _gather(_json_blocks(source, start, columns), source=source, style="json")
    layout = sniff_layout(start, label=str(source), columns=columns)
    try:
        return _gather(fast_blocks(source, layout), source=source, style=layout.separator)
    except _LookCloserError:
        return _gather(careful_blocks(source, layout), source=source, style=layout.separator)


def _gather(blocks: Iterable[_Block], *, source: Source, style: str) -> Triples:
    users, items = _Numbering(), _Numbering()
    parts = [(users(user), items(item), ratings) for user, item, ratings in _checked(blocks, source=source)]
    if not parts:
        raise ProblemError(f"{source} holds no rating; try a file with a user, an item and a rating a line")
    return Triples(
        users=np.concatenate([part[0] for part in parts]),
        items=np.concatenate([part[1] for part in parts]),
        ratings=np.concatenate([part[2] for part in parts]),
        n_users=len(users),
        n_items=len(items),
        style=style,
    )


class _Numbering:
    """Numbers names in order of appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def __call__(self, column: _Column) -> Codes:
        known = self._codes
        codes = np.fromiter((known.setdefault(name.strip(), len(known)) for name in column.names), dtype=np.int32)
        return codes if column.index is None else codes[column.index]


def _checked(blocks: Iterable[_Block], *, source: Source) -> Iterator[_Block]:
    """The blocks as they are; whatever the format, a rating has a user, an item, and a value whose square is finite."""
    done = 0
    for users, items, ratings in blocks:
        for role, column in (("user", users), ("item", items)):
            place = _first_without_name(column)
            if place is not None:
                raise ProblemError(f"{source}: rating {done + place + 1} has no {role}")
        odd = first_non_finite(ratings)
        if odd is not None:
            number, value = done + odd[0] + 1, ratings[odd]
            raise ProblemError(f"{source}: rating {number} is {value}; try finite numbers below {MOST:g} in size")
        yield users, items, ratings
        done += len(ratings)


def _first_without_name(column: _Column) -> int | None:
    empty = [place for place, name in enumerate(column.names) if not name.strip()]
    if not empty or column.index is None:
        return min(empty, default=None)
    rows = np.isin(column.index, empty)
    return int(np.argmax(rows)) if rows.any() else None


# Tables of text: a fast reader for files in good order, a careful one that finds the line where they are not.


def fast_blocks(source: Source, layout: Layout) -> Iterator[_Block]:
    """Blocks by pyarrow's reader, which knows one-character separators and rows of equal length only."""
    if layout.separator == SPACE:  # runs of blanks are one separator
        raise _LookCloserError
    import pyarrow as pa
    from pyarrow import csv

    wide = 2 if layout.separator == "::" else 1  # a::b is a, nothing, b when ':' separates
    names = [f"f{wide * column}" for column in layout.columns]
    text = pa.dictionary(pa.int32(), pa.string())
    with opened(source) as stream:
        try:
            for batch in csv.open_csv(
                stream,
                read_options=csv.ReadOptions(
                    block_size=BLOCK_BYTES, skip_rows=layout.skip, autogenerate_column_names=True, use_threads=False
                ),
                parse_options=csv.ParseOptions(
                    delimiter=layout.separator[0], quote_char='"' if layout.quoted else False
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=_between(layout, names, wide=wide),
                    column_types={names[0]: text, names[1]: text, names[2]: pa.float64()}
                    | dict.fromkeys(_between(layout, names, wide=wide)[3:], pa.null()),
                ),
            ):
                if len(batch):
                    yield _arrow_block(batch)
        except pa.ArrowException:
            raise _LookCloserError from None


def _between(layout: Layout, names: list[str], *, wide: int) -> list[str]:
    """The columns to read: those that count and, with a doubled separator, the empty ones in between."""
    return names if wide == 1 else [*names, *(f"f{2 * place + 1}" for place in range(layout.width - 1))]


def _arrow_block(batch: Any) -> _Block:
    users, items, ratings = (batch.column(place) for place in range(3))
    values = ratings.to_numpy(zero_copy_only=False).astype(np.float64, copy=True)
    columns = _arrow_column(users), _arrow_column(items)
    if ratings.null_count or not np.isfinite(values).all() or any("" in map(str.strip, c.names) for c in columns):
        raise _LookCloserError
    return *columns, values


def _arrow_column(array: Any) -> _Column:
    if array.null_count:
        raise _LookCloserError
    index = array.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=True)
    return _Column([str(name) for name in array.dictionary.to_pylist()], index)


def careful_blocks(source: Source, layout: Layout) -> Iterator[_Block]:
    """The same blocks a line at a time: the rules themselves, and the line where a file breaks them."""
    with opened(source) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as text:
        numbered = rows(text, layout, label=str(source))
        triples = (_triple(fields, layout, where=f"{source}:{number}") for number, fields in numbered)
        while block := list(itertools.islice(triples, BLOCK_ROWS)):
            yield _block(block)


def _triple(fields: list[str], layout: Layout, *, where: str) -> tuple[str, str, float]:
    if len(fields) <= max(layout.columns):
        raise ProblemError(
            f"{where}: {len(fields)} fields separated by {layout.says}, too few for a user, an item and a rating"
        )
    user, item, rating = (fields[column] for column in layout.columns)
    if not user.strip() or not item.strip():
        raise ProblemError(f"{where}: no {'item' if user.strip() else 'user'}")
    value = to_number(rating)
    if value is None:
        raise ProblemError(f"{where}: rating {short(rating)} is not a number")
    return user, item, value


def _block(triples: Sequence[tuple[str, str, float]]) -> _Block:
    users, items, ratings = zip(*triples, strict=True)
    return _Column(users), _Column(items), np.array(ratings, dtype=np.float64)


# JSON lines


#: What a line raises that is not JSON, or not text at all, or brackets within brackets without end.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _json_blocks(source: Source, start: bytes, columns: str | None) -> Iterator[_Block]:
    names = _json_names(start, source=source, columns=columns)
    fields = [(role, kind) for role, kind in zip(ROLES, (str | int, str | int, float), strict=True)]
    row = msgspec.defstruct("Row", fields, rename=dict(zip(ROLES, names, strict=True)))
    decoder = msgspec.json.Decoder(row)
    with opened(source) as stream:
        done = 0
        while lines := stream.readlines(BLOCK_BYTES):
            found = _decoded(decoder, lines, source=source, done=done)
            done += len(lines)
            if found:
                yield _block([(str(each.user), str(each.item), each.rating) for each in found])


def _json_names(start: bytes, *, source: Source, columns: str | None) -> list[str]:
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    try:
        seen = msgspec.json.decode(first, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise ProblemError(f"{source}:1: not a line of JSON ({error}); try JSON lines, one rating a line") from None
    names = list(seen)
    return [names[place] for place in named_columns(names, label=f"{source}:1", columns=columns)]


def _decoded(decoder: msgspec.json.Decoder[Any], lines: list[bytes], *, source: Source, done: int) -> list[Any]:
    if done == 0:
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    try:
        return decoder.decode_lines(b"".join(lines))
    except UNREADABLE:
        return [
            _decoded_line(decoder, line, where=f"{source}:{number}")
            for number, line in enumerate(lines, start=done + 1)
            if line.strip()
        ]


def _decoded_line(decoder: msgspec.json.Decoder[Any], line: bytes, *, where: str) -> Any:
    try:
        return decoder.decode(line)
    except UNREADABLE as error:
        raise ProblemError(f"{where}: {error}") from None


# Parquet


def _parquet_blocks(source: Source, columns: str | None) -> Iterator[_Block]:
    import pyarrow as pa
    from pyarrow import parquet

    with opened(source) as stream:
        try:
            file = parquet.ParquetFile(stream)
            names = [file.schema_arrow.names[place] for place in _parquet_columns(file, source, columns)]
            done = 0
            for batch in file.iter_batches(batch_size=BLOCK_ROWS, columns=names):
                if len(batch):
                    yield _parquet_block([batch.column(name) for name in names], source=source, done=done)
                done += len(batch)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise ProblemError(f"{source} is a damaged Parquet file ({short(str(error))})") from None


def _parquet_columns(file: Any, source: Source, columns: str | None) -> tuple[int, int, int]:
    names = file.schema_arrow.names
    places = named_columns(names, label=str(source), columns=columns)
    for place in places:
        if names.count(names[place]) > 1:
            raise ProblemError(f"{source} has two columns called {names[place]!r}")
    return places


def _parquet_block(arrays: list[Any], *, source: Source, done: int) -> _Block:
    users, items, ratings = arrays
    for role, array in zip(ROLES, arrays, strict=True):
        if array.null_count:
            row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
            raise ProblemError(f"{source}: row {done + row + 1} has no {role}")
    values = _parquet_numbers(ratings, source=source)
    return _parquet_names(users), _parquet_names(items), values


def _parquet_numbers(ratings: Any, *, source: Source) -> Floats:
    import pyarrow as pa

    try:
        return np.asarray(ratings.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ProblemError(f"{source}: the rating column holds {ratings.type}, not numbers") from None


def _parquet_names(array: Any) -> _Column:
    import pyarrow as pa

    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return _arrow_column(coded)
