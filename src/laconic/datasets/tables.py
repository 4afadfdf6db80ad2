"""Tables with one row for each example: numbers as numbers, words as categories, read a block at a time."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laconic.arrays import Floats
from laconic.checks import MOST, first_non_finite
from laconic.datasets.cache import Source, zip_members
from laconic.datasets.layout import SEPARATORS, SPOKEN, first_lines, listed, numbered_rows, short, split, to_number
from laconic.datasets.streams import ZIP, head, magic, opened
from laconic.errors import ProblemError
from laconic.paths import is_there, own_path

Codes = NDArray[np.int32]

BLOCK_ROWS = 1 << 14
MAX_CATEGORIES = 1000


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of finite numbers."""

    name: str
    values: Floats


@dataclass(frozen=True, eq=False)
class Words:
    """A column of categories: ``values[codes]``, the values sorted."""

    name: str
    codes: Codes
    values: tuple[str, ...]


Column = Numbers | Words


@dataclass(frozen=True)
class Shape:
    """How to read a table: what separates fields, whether the first line names the columns, which are categories."""

    separator: str
    header: bool
    words: frozenset[int]  # columns read as categories whatever they hold
    used: tuple[int, ...]  # columns to read at all
    width: int


def own_source(file: str) -> Source:
    """A user's table as a source: of a zip archive its only member."""
    path = own_path("file", file)
    if not is_there(path):
        raise ProblemError(f"there is no file {path}")
    if not magic(Source(path)).startswith(ZIP):
        return Source(path)
    members = zip_members(path)
    if len(members) != 1:
        raise ProblemError(f"{path} holds {len(members)} files; try unpacking it and giving the one with the table")
    return Source(path, member=members[0])


def sniff_table(source: Source, *, single: bool = False) -> tuple[str, list[list[str]]]:
    """The separator, and the fields of the first two lines that are not blank; one column will do where one may."""
    lines = [line for line in first_lines(head(source), label=str(source)) if line.strip()][:2]
    if not lines:
        raise ProblemError(f"{source} is empty; try a table with one row for each example")
    alone = "," if single else None
    separator = next((each for each in SEPARATORS if len(split(lines[0], each)) > 1), alone)
    if separator is None:
        raise ProblemError(f"{source}:1: one field only in {short(lines[0])}; try commas or tabs between fields")
    return separator, [[field.strip() for field in split(line, separator)] for line in lines]


def has_header(rows: Sequence[Sequence[str]], *, target: str | int) -> bool:
    """Whether the first row names the columns: it has the target's name, or no number while the second has some."""
    numbers = [any(to_number(field) is not None for field in row) for row in rows]
    return str(target) in rows[0] or numbers == [False, True]


def column_at(column: str | int, names: Sequence[str], *, header: bool, label: str) -> int:
    """Where a column stands, given its name or its number counted from 1."""
    if header and str(column) in names:
        return list(names).index(str(column))
    if str(column).isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    hint = listed(names) if header else f"1 to {len(names)}, as the file has no header"
    raise ProblemError(f"{label} has no column {column!r}; try one of {hint}")


def read_table(
    sources: Sequence[Source], *, shape: Shape, names: Sequence[str], advice: str = ", or categorical='{name}'"
) -> list[Column]:
    """The used columns of one or more files of equal shape, one below the other.

    ``advice`` is what else may help, beside mending the file, where a column holds both numbers and words.
    """
    columns = {place: _Growing(names[place], words=place in shape.words, advice=advice) for place in shape.used}
    for source in sources:
        count = 0
        for lines, block in _blocks(source, shape):
            count += len(block)
            for place, column in columns.items():
                column.add([row[place].strip() for row in block], lines=lines, label=str(source))
        if not count:
            raise ProblemError(f"{source} holds no row; try a table with one row for each example")
    return [column.done(label=str(sources[0])) for column in columns.values()]


def _blocks(source: Source, shape: Shape) -> Iterator[tuple[list[int], list[list[str]]]]:
    with opened(source) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as text:
        found = (
            (number, fields)
            for number, fields in numbered_rows(text, shape.separator, label=str(source))
            if any(field.strip() for field in fields)
        )
        if shape.header:
            next(found, None)
        while block := list(itertools.islice(found, BLOCK_ROWS)):
            for number, fields in block:
                _check_width(fields, shape=shape, where=f"{source}:{number}")
            yield [number for number, _ in block], [fields for _, fields in block]


def _check_width(fields: Sequence[str], *, shape: Shape, where: str) -> None:
    if len(fields) != shape.width:
        said = SPOKEN.get(shape.separator, repr(shape.separator))
        raise ProblemError(f"{where}: {len(fields)} fields separated by {said}, where {shape.width} are expected")


class _Growing:
    """A column while it is read: its first value says whether it holds numbers or words, and it never holds both."""

    def __init__(self, name: str, *, words: bool, advice: str) -> None:
        self._name = name
        self._advice = advice.format(name=name)
        self._mixes = words  # numbers are welcome among the words
        self._numbers = not words
        self._blocks: list[Floats] = []
        self._codes: list[Codes] = []
        self._known: dict[str, int] = {}

    def add(self, texts: list[str], *, lines: Sequence[int], label: str) -> None:
        if not self._blocks and not self._codes and not self._mixes:
            self._numbers = to_number(texts[0]) is not None
        if self._numbers:
            self._blocks.append(self._floats(texts, lines=lines, label=label))
        else:
            self._codes.append(self._numbered(texts, lines=lines, label=label))

    def done(self, *, label: str) -> Column:
        if self._numbers:
            return Numbers(self._name, np.concatenate(self._blocks))
        values = tuple(sorted(self._known))
        if len(values) > MAX_CATEGORIES:
            raise ProblemError(
                f"{label}: column {self._name} has {len(values)} different words, too many for categories;"
                " try columns= without it"
            )
        place = np.empty(len(values), dtype=np.int32)
        place[[self._known[value] for value in values]] = np.arange(len(values), dtype=np.int32)
        return Words(self._name, place[np.concatenate(self._codes)], values)

    def _floats(self, texts: list[str], *, lines: Sequence[int], label: str) -> Floats:
        values = [to_number(text) for text in texts]
        if None in values:
            odd = values.index(None)
            raise ProblemError(
                f"{label}:{lines[odd]}: column {self._name} is {short(texts[odd])}, not a number;"
                f" try mending the line{self._advice}"
            )
        found = np.array(values, dtype=np.float64)
        large = first_non_finite(found)
        if large is not None:
            raise ProblemError(
                f"{label}:{lines[large[0]]}: column {self._name} is {short(texts[large[0]])};"
                f" try numbers below {MOST:g} in size"
            )
        return found

    def _numbered(self, texts: list[str], *, lines: Sequence[int], label: str) -> Codes:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        odd = None if self._mixes else next((text for text in fresh if to_number(text) is not None), None)
        if odd is not None:
            word = next(iter(self._known), fresh[0])
            raise ProblemError(
                f"{label}:{lines[texts.index(odd)]}: column {self._name} is the number {odd} here, but {short(word)}"
                f" before; try mending the file{self._advice}"
            )
        self._known |= {text: len(self._known) + n for n, text in enumerate(fresh)}
        return np.array([self._known[text] for text in texts], dtype=np.int32)
