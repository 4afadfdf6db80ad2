from pathlib import Path

import numpy as np
import pytest

from laconic.datasets import tables
from laconic.datasets.cache import Source
from laconic.datasets.tables import Column, Numbers, Shape, Words, column_at, own_source, read_table, sniff_table
from laconic.errors import ProblemError
from tests.datasets.samples import gzipped, written, zipped


def table(path: Path, *, names: str = "abc", words: str = "", header: bool = False) -> list[Column]:
    separator, _ = sniff_table(Source(path))
    shape = Shape(
        separator,
        header=header,
        words=frozenset(names.index(name) for name in words),
        used=tuple(range(len(names))),
        width=len(names),
    )
    return read_table([Source(path)], shape=shape, names=names)


def test_numbers_are_numbers_and_words_are_sorted_categories(tmp_path: Path) -> None:
    a, b, c = table(written(tmp_path / "t.csv", "1,x,g\n-2.5e1,?,h\n\n3,x,g\n"))
    assert isinstance(a, Numbers)
    assert a.values.tolist() == [1.0, -25.0, 3.0]
    assert isinstance(b, Words)
    assert (b.values, b.codes.tolist()) == (("?", "x"), [1, 0, 1])
    assert isinstance(c, Words)


def test_blanks_separate_as_well(tmp_path: Path) -> None:
    a, _, c = table(written(tmp_path / "t.trn", "50 21 77\n55  0 92 \n"))
    assert isinstance(a, Numbers)
    assert isinstance(c, Numbers)
    assert (a.values.tolist(), c.values.tolist()) == ([50.0, 55.0], [77.0, 92.0])


def test_numbers_are_categories_where_that_is_asked_for(tmp_path: Path) -> None:
    column = table(written(tmp_path / "t.csv", "1,2,3\n4,5,x\n"), words="c")[2]
    assert isinstance(column, Words)
    assert column.values == ("3", "x")


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.csv.gz", gzipped(b"".join(b"%d,w%d,z\n" % (n, n % 13) for n in range(100))))
    whole = table(path)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 7)
    for one, other in zip(whole, table(path), strict=True):
        assert type(one) is type(other)
        if isinstance(one, Words) and isinstance(other, Words):
            assert one.values == other.values
            np.testing.assert_array_equal(one.codes, other.codes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,2,3\n4,5\n", "t.csv:2: 2 fields separated by ',', where 3 are expected"),
        ("1,2,3\n4,x,6\n", "t.csv:2: column b is 'x', not a number"),
        ("1,2,3\n4,nan,6\n", "t.csv:2: column b is 'nan', not a number"),
        ("1,2,3\n4,,6\n", "t.csv:2: column b is '', not a number"),
        ("1,x,3\n\n4,5,6\n", "t.csv:3: column b is the number 5 here, but 'x' before"),
        ("one\ntwo\n", "t.csv:1: one field only in 'one'"),
        ("", "t.csv is empty"),
        ("\x00\x01\x02,", "t.csv is not text"),
    ],
)
def test_a_bad_table_is_refused_with_its_name_and_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ProblemError) as refused:
        table(written(tmp_path / "t.csv", text))
    assert str(refused.value).startswith(f"{tmp_path}/{says}")


def test_a_header_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"t\.csv holds no row"):
        table(written(tmp_path / "t.csv", "a,b,c\n"), header=True)


def test_a_column_of_names_is_no_category(tmp_path: Path) -> None:
    text = "".join(f"name{n},1,2\n" for n in range(tables.MAX_CATEGORIES + 1))
    with pytest.raises(ProblemError, match="column a has 1001 different words, too many"):
        table(written(tmp_path / "t.csv", text))


def test_columns_go_by_name_or_by_number() -> None:
    assert column_at("b", ["a", "b"], header=True, label="t") == 1
    assert column_at(2, ["a", "b"], header=True, label="t") == 1
    assert column_at("2", ["1", "2"], header=False, label="t") == 1
    with pytest.raises(ProblemError, match="t has no column 'x'; try one of a, b"):
        column_at("x", ["a", "b"], header=True, label="t")
    with pytest.raises(ProblemError, match="t has no column 3; try one of 1 to 2"):
        column_at(3, ["1", "2"], header=False, label="t")


def test_a_zip_with_one_table_is_opened(tmp_path: Path) -> None:
    path = written(tmp_path / "t.zip", zipped({"t.csv": b"1,2,3\n"}))
    assert own_source(str(path)).member == "t.csv"
    with pytest.raises(ProblemError, match=r"two\.zip holds 2 files"):
        own_source(str(written(tmp_path / "two.zip", zipped({"a": b"1", "b": b"2"}))))
    with pytest.raises(ProblemError, match="there is no file"):
        own_source(str(tmp_path / "nothing.csv"))
