"""How a text file of ratings is laid out: what separates its fields, whether it has a header, which columns count."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from laconic.errors import ProblemError

ROLES = ("user", "item", "rating")
# Names that publishers use, in lower case without separators, the likelier first.
ALIASES: dict[str, tuple[str, ...]] = {
    "user": (
        *("userid", "user", "uid", "users", "reviewerid", "customerid", "memberid", "profileid", "accountid"),
        *("clientid", "visitorid", "readerid", "personid", "reviewer", "customer", "member", "reader", "client", "u"),
    ),
    "item": (
        *("itemid", "item", "iid", "items", "movieid", "businessid", "productid", "parentasin", "asin", "bookid"),
        *("isbn", "animeid", "artistid", "trackid", "songid", "gameid", "jokeid", "recipeid", "restaurantid"),
        *("articleid", "courseid", "beerid", "movie", "business", "product", "book", "anime", "artist", "track"),
        *("song", "game", "joke", "recipe", "restaurant", "article", "course", "beer", "title", "moviename", "i"),
    ),
    "rating": (
        *("rating", "ratings", "stars", "score", "overall", "bookrating", "userrating", "rate", "value", "grade"),
        *("weight", "preference", "vote", "points", "feedback", "playcount", "plays", "count", "label", "r"),
    ),
}
SPACE = " "
SEPARATORS = ("::", "\t", ",", ";", "|", SPACE)
QUOTED = (",", ";", "|")
COMMENTS = ("#", "%")
SPOKEN = {"\t": "tab", SPACE: "blanks"}


@dataclass(frozen=True)
class Layout:
    """What separates fields, how many lines come before the first rating, and where user, item and rating stand."""

    separator: str
    skip: int
    columns: tuple[int, int, int]
    width: int  # fields in the first row

    @property
    def quoted(self) -> bool:
        """Whether quotes may hold a separator."""
        return self.separator in QUOTED

    @property
    def says(self) -> str:
        """The separator in a word."""
        return SPOKEN.get(self.separator, repr(self.separator))


def sniff_layout(start: bytes, *, label: str, columns: str | None = None) -> Layout:
    """The layout of a text file from its first bytes; ``columns`` names or numbers user, item and rating."""
    lines = first_lines(start, label=label)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith(COMMENTS)), None)
    if first is None:
        raise ProblemError(f"{label} is empty; try a file with a user, an item and a rating a line")
    separator = _separator(lines[first], where=f"{label}:{first + 1}")
    fields = split(lines[first], separator)
    where = _header(fields, where=f"{label}:{first + 1}", columns=columns)
    if where is not None:
        return Layout(separator, skip=first + 1, columns=where, width=len(fields))
    return Layout(separator, skip=first, columns=_numbers(columns) or (0, 1, 2), width=len(fields))


def named_columns(names: Sequence[str], *, label: str, columns: str | None = None) -> tuple[int, int, int]:
    """Where user, item and rating stand among named columns, by common names or by those given."""
    wanted = _given(columns)
    if wanted is not None:
        return _exact(names, wanted, label=label)
    found = [_by_alias(names, role) for role in ROLES]
    missing = [role for role, place in zip(ROLES, found, strict=True) if place is None]
    if missing:
        raise ProblemError(
            f"{label} has no column for {' and '.join(missing)} among {listed(names)};"
            " try columns='USER,ITEM,RATING' with its own names"
        )
    user, item, rating = (place for place in found if place is not None)
    return user, item, rating


def split(line: str, separator: str) -> list[str]:
    """The fields of one line."""
    if separator == SPACE:
        return line.split()
    if separator in QUOTED:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return line.rstrip("\r\n").split(separator)


def rows(lines: Iterable[str], layout: Layout, *, label: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row after the header, blank lines left out."""
    for number, fields in numbered_rows(lines, layout.separator, label=label):
        if number > layout.skip and any(field.strip() for field in fields):
            yield number, fields


def numbered_rows(lines: Iterable[str], separator: str, *, label: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line."""
    if separator not in QUOTED:
        yield from ((number, split(line, separator)) for number, line in enumerate(lines, start=1))
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        raise ProblemError(f"{label}:{reader.line_num}: {error}") from None


def to_number(text: str) -> float | None:
    """A finite number written as one, otherwise None."""
    if "_" in text:  # Python's own notation, nobody else's
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def first_lines(start: bytes, *, label: str) -> list[str]:
    """The lines in the first bytes of a file; what is not text is refused."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ProblemError(f"{label} is text in UTF-16; try saving it as UTF-8")
    if b"\x00" in start:
        raise ProblemError(f"{label} is not text; try CSV, TSV, JSON lines or Parquet")
    return re.split(r"\r\n|\r|\n", start.decode("utf-8-sig", errors="replace"))


def _separator(line: str, *, where: str) -> str:
    for separator in SEPARATORS:
        if len(split(line, separator)) >= len(ROLES):
            return separator
    raise ProblemError(
        f"{where}: fewer than three fields in {short(line)};"
        " try user, item and rating separated by a comma, a tab or ::"
    )


def _header(fields: Sequence[str], *, where: str, columns: str | None) -> tuple[int, int, int] | None:
    """Where the columns stand if the first row is a header, None if it is a rating already."""
    numbers = _numbers(columns)
    if numbers is not None:
        if max(numbers) >= len(fields):
            raise ProblemError(f"{where}: {len(fields)} fields, too few for columns={columns!r}")
        return numbers if to_number(fields[numbers[2]]) is None else None
    if columns is None and to_number(fields[2]) is not None:
        return None
    if columns is None and any(to_number(field) is not None for field in fields):
        raise ProblemError(f"{where}: rating {short(fields[2])} is not a number")
    return named_columns(fields, label=where, columns=columns)


def _by_alias(names: Sequence[str], role: str) -> int | None:
    folded = [_folded(name) for name in names]
    return next((folded.index(alias) for alias in ALIASES[role] if alias in folded), None)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.partition(":")[0].casefold())  # some write user_id:token


def _given(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(set(names)) != len(ROLES) or len(names) != len(ROLES) or not all(names):
        raise ProblemError(f"columns must name user, item and rating, not {columns!r}; try columns='user,item,rating'")
    return names


def _numbers(columns: str | None) -> tuple[int, int, int] | None:
    names = _given(columns)
    if names is None or not all(name.isdecimal() and int(name) > 0 for name in names):
        return None
    user, item, rating = (int(name) - 1 for name in names)
    return user, item, rating


def _exact(names: Sequence[str], wanted: Sequence[str], *, label: str) -> tuple[int, int, int]:
    stripped = [name.strip() for name in names]
    for name in wanted:
        if name not in stripped:
            raise ProblemError(f"{label} has no column {name!r} among {listed(names)}")
    user, item, rating = (stripped.index(name) for name in wanted)
    return user, item, rating


def listed(names: Sequence[str]) -> str:
    """The first few names in a row."""
    shown = ", ".join(name.strip()[:30] for name in names[:8])
    return f"{shown}, …" if len(names) > 8 else shown


def short(text: str) -> str:
    """A text in quotes, cut to fit a line."""
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
